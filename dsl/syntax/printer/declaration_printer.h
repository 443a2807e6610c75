// Prints declarations, the items of compressors, and a whole file.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "dsl/syntax/printer/body_printer.h"

namespace cinch::dsl {

class DeclarationPrinter : BodyPrinter {
 public:
  DeclarationPrinter(const SourceBuffer& source, TokenStream stream, const ast::Module& module)
      : BodyPrinter(source, std::move(stream), module) {}

  /// The text of the file.
  std::string run();

 private:
  static bool has_body(const ast::Decl& node);
  void decl(const ast::Import& node);
  // The further names of a path; the first one is printed already.
  void path(std::size_t length);
  void decl(const ast::Const& node);
  void decl(const ast::Fn& node);
  void decl(const ast::ExternFn& node);
  void decl(const ast::Compressor& node);
  void decl(const ast::Composition& node);
  // ` -> T`.
  void result(ast::TypeId id);
  void params(ast::IdRange<ast::ParamId> range);
  void param(const ast::Param& node);
  void item(const ast::Const& node);
  void item(const ast::SizeItem& node);
  void item(const ast::SetItem& node);
  void item(const ast::StateItem& node);
  void item(const ast::WireItem& node);
  void item(const ast::Method& node);
  void item(const ast::Claims& node);
  void item(const ast::Again& node);
  void entry(const ast::WireCount& node);
  void entry(const ast::WireField& node);
  void packing(const ast::WireField& node);
};

}  // namespace cinch::dsl
