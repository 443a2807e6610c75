// `fn`s: inlined where they are called, mapped over arrays, and checked with sizes of their own.
#pragma once

#include <optional>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class FunctionCalls : Part {
 public:
  using Part::Part;

  /// Is the body of another `fn` at hand than that which is checked?
  bool is_inlining() const { return open_fns_.size() > (mode_.is_of_fn ? 1u : 0u); }
  /// A call of a `fn`: inlined, or mapped over arrays where all its parameters are scalars.
  Value call_fn(const DeclRef& decl, const ast::Fn& fn, const ast::Call& node, Span span);
  /// Checks a fn with sizes of its own.
  void check_fn(const DeclRef& decl);

 private:
  Value map_each(const DeclRef& decl, const ast::Fn& fn, std::vector<Value> values,
                 std::size_t num_results, Span span);
  static bool is_of_scalars(const ast::Module& tree, const ast::Fn& fn);
  Value map_fn(const DeclRef& decl, const ast::Fn& fn, std::vector<Value> values,
               std::optional<std::size_t> result, Span span);
  Value inline_fn(const DeclRef& decl, const ast::Fn& fn, const std::vector<Value>& values,
                  Span span);
  Value fn_body(const ast::Fn& fn, Span span);

  std::vector<DeclRef> open_fns_;  // that are being inlined
};

}  // namespace cinch::sema
