// What names mean: locals, what a compressor declares, built-in names, and declarations of files.
#pragma once

#include <functional>
#include <string_view>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Names : Part {
 public:
  using Part::Part;

  /// The innermost symbol of the name; nullptr where there is none.
  const Symbol* find_symbol(std::string_view name) const;
  /// Reports an unknown name, and suggests a near one.
  void unknown_name(const ast::Name& name);
  /// The value of a symbol where the name is read.
  Value symbol_value(const Symbol& symbol, const ast::Name& name);
  /// The value of a name.
  Value name_expr(const ast::Name& name);
  /// Runs `body` with these names in sight.
  void with_environment(Environment& env, const std::function<void()>& body);
  /// `a.b`: a field of a payload, a name of an imported file, or a parameter of what is wrapped.
  Value field_expr(const ast::FieldRef& node, Span span);
  /// May no name of that text be declared there? `instance`: nullptr in a fn.
  static bool is_taken(std::string_view name, const Instance* instance);
  /// Declares a name in the innermost scope; reports names that are taken.
  void declare(const ast::Name& name, Symbol symbol);

 private:
  Value builtin_name(const ast::Name& name);
  Value decl_value(const DeclRef& decl, const ast::Name& name);
};

}  // namespace cinch::sema
