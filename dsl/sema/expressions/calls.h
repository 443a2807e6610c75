// Calls: what is called, and the dispatch to functions, scalar operators, named operators and
// members of wrapped compressors.
#pragma once

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Calls : Part {
 public:
  using Part::Part;

  /// The value of a call.
  Value call(const ast::Call& node, Span span);

 private:
  Value call_named(const ast::Call& node, const ast::Name& name, Span span);
  Value call_decl(const DeclRef& decl, const ast::Call& node, const ast::Name& name, Span span);
  Value call_scalar(const ast::Call& node, ScalarOp op, const ast::Name& name, Span span);
  Value call_member(const ast::Call& node, const ast::FieldRef& member, Span span);
  Value call_builtin(const ast::Call& node, BuiltinId id, const ast::Name& name, Span span);
};

}  // namespace cinch::sema
