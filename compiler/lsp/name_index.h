// The names of one file: their declarations, uses and scopes. It is made from the tree alone, by
// the checker's rules for looking up names, so that files with errors have one, too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/sema/module_data.h"
#include "dsl/syntax/ast.h"

namespace cinch::lsp {
using dsl::Span;

enum class NameKind : std::uint8_t {
  Const,
  Fn,
  ExternFn,
  Compressor,
  Parameter,         // of a compressor
  InnerCompressor,   // a parameter that is a compressor
  FnParameter,       // of a fn or extern fn
  MethodParameter,   // of encode, finish and sync
  PayloadParameter,  // of decode
  Size,
  State,
  Field,
  Count,
  Variable,
  MutableVariable,
  LoopVariable,
  LambdaParameter,
  GenericSize,  // of a fn's signature
  Word,         // a word that a parameter takes: `exact` of `{fast, exact}`
};

struct Declaration {
  NameKind kind;
  ast::Name name;
  Span whole;  // text of the declaration: a statement, an item, a parameter, a signature
  Span scope;  // where the name is visible
  std::string doc;
};

/// A declaration, by its file and the place of its name.
struct NamePlace {
  const sema::FileUnit* unit = nullptr;
  Span name;
  friend bool operator==(const NamePlace&, const NamePlace&) = default;
};

struct NameUse {
  Span span;
  NamePlace declared;
  bool is_shorthand = false;  // `value` of `wire { value }`: a field and the value that fills it
};

/// Names that the language defines.
enum class WordKind : std::uint8_t { Operator, Claim, BuiltinName };
struct WordUse {
  Span span;
  WordKind kind;
};

struct NameIndex {
  std::vector<Declaration> declarations;  // in source order, except names of the file
  std::vector<NameUse> uses;              // include declarations
  std::vector<WordUse> words;

  const Declaration* find(Span name) const;
  /// Uses whose text contains the offset or ends there: two for a shorthand, else one or none.
  std::vector<NameUse> uses_at(std::uint32_t offset) const;
  const WordUse* word_at(std::uint32_t offset) const;
};

/// `imports`: the file whose imports are used: the same file or, if its imports could not be read,
/// an earlier state of it.
NameIndex index_names(const sema::FileUnit& unit, const sema::FileUnit& imports);

// Walks the tree of a file for index_names; name_walker.cpp and name_walker_items.cpp.

class NameWalker {
 public:
  NameWalker(const sema::FileUnit& unit, const sema::FileUnit& imports, NameIndex& out)
      : unit_(unit), imports_(imports), tree_(unit.tree), out_(out) {}

  void walk_file();

 private:
  using Scope = std::map<std::string, std::size_t, std::less<>>;  // name: declaration

  void walk_decl(const ast::Decl& decl);
  void walk_fn(const ast::IdRange<ast::ParamId>& params, ast::TypeId result, ast::BlockId body,
               Span scope);
  void declare_generic_sizes(ast::TypeId id, Span scope);
  void walk_params(const ast::IdRange<ast::ParamId>& params, Span scope);
  void declare_items(const ast::Compressor& node, Span scope);
  void declare_wire(const ast::WireItem& wire, Span scope);
  void walk_item(const ast::Item& item);
  void walk_wire(const ast::WireItem& wire);
  void walk_method(const ast::Method& method, Span scope);
  void walk_claim(ast::ExprId id);

  // ---- expressions, statements and types (name_walker.cpp)
  void expr(ast::ExprId id);
  void call(const ast::Call& node);
  void callee(const ast::Call& node, const ast::Name& name);
  void labels(const ast::Call& node, const NamePlace& called);
  void field(const ast::FieldRef& node);
  void wire_literal(const ast::WireLiteral& node);
  void type(ast::TypeId id);
  void interval(ast::IntervalId id);
  void block(ast::BlockId id);
  void statement(ast::StmtId id, Span block);
  void exprs(ast::IdRange<ast::ExprId> ids);

  // ---- names
  std::size_t declare(NameKind kind, const ast::Name& name, Span whole, Span scope,
                      std::string doc = "");
  /// Makes the name visible from here on.
  void bring_in(std::size_t declaration);
  void use(const ast::Name& name);
  void use_declared(Span span, const NamePlace& declared, bool is_shorthand = false);
  std::optional<std::size_t> find_local(std::string_view name) const;
  std::optional<NamePlace> find_in_files(const std::string& name) const;
  const Declaration* local(std::string_view name) const;

  const sema::FileUnit& unit_;
  const sema::FileUnit& imports_;
  const ast::Module& tree_;
  NameIndex& out_;
  std::vector<Scope> scopes_;  // local names, without names of the file
  Scope file_names_;
  Scope fields_, counts_;  // of the current compressor's wire
};

}  // namespace cinch::lsp
