// Calls: their arguments, and the functions and operators that they call.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

/// Calls of functions and operators.
class Calls : Part {
 public:
  using Part::Part;

  // Finds what a call means: a function, a scalar operator, a named operator, or a member of a
  // wrapped compressor.
  Value call(const ast::Call& node, Span span);

  // Arguments of calls: operands of the required rank, sizes, axes, flags and words.
  /// Sorts operands and labelled arguments. Reports wrong labels and wrong numbers of operands.
  CallArgs sort_args(const ast::Call& node, std::string_view name, Span span,
                     const std::vector<std::string_view>& labels, std::size_t min, std::size_t max);
  /// A labelled argument that is `true` or `false`; false if it is missing.
  bool flag(const CallArgs& args, std::string_view label);
  /// An operand as a typed array or scalar.
  Value operand(ast::ExprId id);
  /// The same for a value.
  Value operand_of(const Value& value);
  /// An operand that must be an array; reports other values.
  Value array_operand(ast::ExprId id, std::string_view name);
  /// The same for a value.
  Value array_of(const Value& value, std::string_view name);
  Value vector_operand(ast::ExprId id, std::string_view name);
  Value matrix_operand(ast::ExprId id, std::string_view name);
  /// The same for a value.
  Value matrix_of(const Value& given, std::string_view name);
  /// An argument that is a size. Reports a size that the host does not know or that may be
  /// negative.
  std::optional<HostExprId> size_arg(ast::ExprId id, std::string_view name);
  /// An argument that must be one of these names; reports anything else.
  std::optional<std::string_view> word(ast::ExprId id, const std::vector<std::string_view>& words);
  /// A labelled argument that is a size; reports if it is missing.
  std::optional<HostExprId> named_size(const CallArgs& args, std::string_view label);
  /// The `axis:` argument; -1 if there is none. Returns nothing after a mistake.
  std::optional<int> axis(const CallArgs& args, const Value& x);
  /// The axis of an operator that works along lines. Reports a matrix without an axis.
  std::optional<int> line_axis(const CallArgs& args, const Value& x);
  /// Reports an array within a lambda whose size is not constant.
  Value check_lambda_array(Value value);
  /// The argument `where:` in the shape of the array from which it selects.
  std::optional<Value> mask(const CallArgs& args, const Type& shape);

  // Signatures of `fn`s: parameters and results in their declared types, and sizes that a call
  // binds.
  /// Converts the result of a fn, or each of several results, to the declared type.
  Value to_result(const Value& value, ast::TypeId id, Span span, std::string_view what);
  /// Binds the sizes and parameters of a fn to the arguments; reports arguments that do not fit.
  bool bind_fn_params(const ast::Fn& fn, const std::vector<Value>& args, Environment& inner);
  /// Makes unknown sizes for the names in a parameter's type.
  void declare_generic_sizes(const ast::Param& param);
  /// The type of a parameter when a fn is checked without a caller.
  std::optional<Type> checked_type(const ast::Param& param);

  // `fn`s: inlined into their callers, mapped over arrays, and checked alone with unknown sizes.
  /// Is a `fn` being inlined (beside the one under check)?
  bool is_inlining() const { return open_fns_.size() > (mode_.is_of_fn ? 1u : 0u); }
  /// Elaborates a call of a `fn`: inlines it, or maps it over arrays if all its parameters are
  /// scalars.
  Value call_fn(const DeclRef& decl, const ast::Fn& fn, const ast::Call& node, Span span);
  /// Checks a fn without a caller, with unknown sizes.
  void check_fn(const DeclRef& decl);
  /// Calls a fn for the compiler; see elaborate_call. The tree of this elaboration moves into the
  /// result.
  CheckedCall call_alone(const DeclRef& decl, DType element,
                         const std::vector<FnArgument>& arguments, Span span);

  // Calls of `extern fn`. Mistakes are reported at the declaration and in the header.
  /// Reads the header of an `extern fn`, once. Reports a function that kernels cannot call, and
  /// returns nothing.
  const rt::ExternInfo* find_extern(const DeclRef& decl);
  /// Elaborates a call of an `extern fn`, element by element.
  Value call_extern(const DeclRef& decl, const ast::ExternFn& fn, const ast::Call& node, Span span);

 private:
  Value call_named(const ast::Call& node, const ast::Name& name, Span span);
  Value call_decl(const DeclRef& decl, const ast::Call& node, const ast::Name& name, Span span);
  Value call_member(const ast::Call& node, const ast::FieldRef& member, Span span);
  Value call_builtin(const ast::Call& node, BuiltinId id, const ast::Name& name, Span span);
  bool bind_generic_sizes(const ast::ArrayType& type, const Value& arg, Scope& scope);
  Value to_declared(const Value& value, ast::TypeId id, Span span, std::string_view what);
  Value map_each(const DeclRef& decl, const ast::Fn& fn, std::vector<Value> values,
                 std::size_t num_results, Span span);
  static bool is_of_scalars(const ast::Module& tree, const ast::Fn& fn);
  Value map_fn(const DeclRef& decl, const ast::Fn& fn, std::vector<Value> values,
               std::optional<std::size_t> result, Span span);
  Value inline_fn(const DeclRef& decl, const ast::Fn& fn, const std::vector<Value>& values,
                  Span span);
  Value fn_body(const ast::Fn& fn, Span span);
  std::optional<DType> extern_type(ast::TypeId id);
  std::optional<std::vector<DType>> extern_types(const ast::ExternFn& fn);
  void report_extern(const ast::ExternFn& fn, const rt::ExternReply& reply);
  void add_headers(rt::ExternReply& reply) const;
  std::uint32_t extern_index(const rt::ExternInfo& function);

  std::vector<DeclRef> open_fns_;  // the ones that are being inlined
};

}  // namespace cinch::sema
