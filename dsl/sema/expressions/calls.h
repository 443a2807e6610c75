// Calls: their arguments, and what they call.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

/// Calls: what is called, and the dispatch to functions, scalar operators, named operators and
/// members of wrapped compressors.
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

/// Arguments of calls, sorted out: operands of the wanted rank, sizes, axes, flags and words.
class Arguments : Part {
 public:
  using Part::Part;

  /// Operands and labelled arguments of a call; reports wrong labels and numbers of operands.
  CallArgs sort_args(const ast::Call& node, std::string_view name, Span span,
                     const std::vector<std::string_view>& labels, std::size_t min, std::size_t max);
  /// A labelled argument that is `true` or `false`; false where it is not given.
  bool flag(const CallArgs& args, std::string_view label);
  /// An operand: a typed array or scalar.
  Value operand(ast::ExprId id);
  /// The same of a value.
  Value operand_of(const Value& value);
  /// An operand that is an array; reports what is none.
  Value array_operand(ast::ExprId id, std::string_view name);
  /// The same of a value.
  Value array_of(const Value& value, std::string_view name);
  /// An operand that is a vector.
  Value vector_operand(ast::ExprId id, std::string_view name);
  /// An operand that is a matrix.
  Value matrix_operand(ast::ExprId id, std::string_view name);
  /// The same of a value.
  Value matrix_of(const Value& given, std::string_view name);
  /// An argument that is a size; reports what the host does not know or may be negative.
  std::optional<HostExprId> size_arg(ast::ExprId id, std::string_view name);
  /// An argument that is one of these names; anything else is reported.
  std::optional<std::string_view> word(ast::ExprId id, const std::vector<std::string_view>& words);
  /// A labelled argument that is a size; reports a missing one.
  std::optional<HostExprId> named_size(const CallArgs& args, std::string_view label);
  /// -1: no axis was asked for; nothing: a mistake was reported.
  std::optional<int> axis(const CallArgs& args, const Value& x);
  /// The axis of what runs along lines: of a matrix it must be given (else that is reported).
  std::optional<int> line_axis(const CallArgs& args, const Value& x);
  /// Reports an array without a constant size within a lambda.
  Value check_lambda_array(Value value);
  /// The argument `where:`, in the shape of the array that it selects from.
  std::optional<Value> mask(const CallArgs& args, const Type& shape);
};

/// Signatures of `fn`s: parameters and results in their declared types, and the sizes that are
/// bound by them.
class Signatures : Part {
 public:
  using Part::Part;

  /// What a fn gives as its signature says, of several values each.
  Value to_result(const Value& value, ast::TypeId id, Span span, std::string_view what);
  /// Binds the sizes and parameters of a fn to the arguments; reports what does not suit.
  bool bind_fn_params(const ast::Fn& fn, const std::vector<Value>& args, Environment& inner);
  /// Unknown sizes for those that a parameter's type names.
  void declare_generic_sizes(const ast::Param& param);
  /// The type of a parameter when a fn is checked without a caller.
  std::optional<Type> checked_type(const ast::Param& param);

 private:
  bool bind_generic_sizes(const ast::ArrayType& type, const Value& arg, Scope& scope);
  Value to_declared(const Value& value, ast::TypeId id, Span span, std::string_view what);
};

/// `fn`s: inlined where they are called, mapped over arrays, and checked with sizes of their own.
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

/// Calls of `extern fn`: the declaration's types, the header behind it, and what is wrong with
/// that, in both places.
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
