// Calls of `extern fn`: the declaration's types, the header behind it, and what is wrong with that,
// in both places.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class ExternFunctions : Part {
 public:
  using Part::Part;

  /// Reads the header of an `extern fn`, once; reports and gives nothing
  /// where kernels cannot call what it holds.
  const rt::ExternInfo* find_extern(const DeclRef& decl);
  /// A call of an `extern fn`, element by element.
  Value call_extern(const DeclRef& decl, const ast::ExternFn& fn, const ast::Call& node, Span span);

 private:
  std::optional<DType> extern_type(ast::TypeId id);
  std::optional<std::vector<DType>> extern_types(const ast::ExternFn& fn);
  void report_extern(const ast::ExternFn& fn, const rt::ExternReply& reply);
  void add_headers(rt::ExternReply& reply) const;
  std::uint32_t extern_index(const rt::ExternInfo& function);
};

}  // namespace cinch::sema
