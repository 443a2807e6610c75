// Names, expressions and calls.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"
#include "dsl/sema/tree/tree.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::sema {

/// What a range `a..b` selects.
struct Bounds {
  HostExprId begin, end;
  bool is_whole = false;  // `..`
  // With loop variables only the device knows where it begins, and the host knows how long it is.
  Value first;
  HostExprId size;
};

/// One index of `x[i]` or `m[i, j]`: a range, or numbers.
struct Place {
  std::optional<Bounds> bounds;
  Value at;
  Span span;

  bool is_whole() const { return bounds && bounds->is_whole; }
  int rank() const {
    if (bounds) return 1;
    if (at.kind == ValueKind::Table) return at.table_cols == 0 ? 1 : 2;
    return at.is_typed() ? at.type.rank : 0;
  }
};

/// Where a store goes: indices, and the type of what is stored.
struct Target {
  Value index;
  Type stored;
  bool is_in_bounds = false;  // or as the facts of the index say
};

/// Names, expressions, statements and indexing.
class Expressions : Part {
 public:
  using Part::Part;

  // Finds what names mean: locals, names that a compressor declares, built-in names, and
  // declarations of files.
  /// The innermost symbol of the name; nullptr if there is none.
  const Symbol* find_symbol(std::string_view name) const;
  /// Reports an unknown name and suggests a similar one.
  void unknown_name(const ast::Name& name);
  /// The value of a symbol at a read of its name.
  Value symbol_value(const Symbol& symbol, const ast::Name& name);
  Value input_in_decode(const Symbol& symbol, const ast::Name& name);
  Value name_expr(const ast::Name& name);
  /// Runs `body` while these names are visible.
  void with_environment(Environment& env, const std::function<void()>& body);
  /// `a.b`: a field of a payload, a name of an imported file, or a parameter of a wrapped
  /// compressor.
  Value field_expr(const ast::FieldRef& node, Span span);
  /// Is the name taken? `instance` is nullptr in a fn.
  static bool is_taken(std::string_view name, const Instance* instance);
  /// Declares a name in the innermost scope. Reports a name that is taken.
  void declare(const ast::Name& name, Symbol symbol);

  // Expressions: dispatch by kind, literals, array literals, casts, tuples, blocks, `if` and
  // lambdas.
  Value expr(ast::ExprId id);
  /// A condition of `if`, `while` or `assert`, which must be one bool.
  std::optional<ExprId> condition(ast::ExprId id);
  /// Elaborates a block with a scope of its own.
  Value block(ast::BlockId id);
  /// Elaborates a lambda over elements of these types. `finish` turns its value into the result.
  Value lambda(ast::ExprId id, const std::vector<Type>& params, std::string_view name,
               const std::function<Value(Value)>& finish);

  // Statements: let, assignments, loops and assertions.
  void statement(ast::StmtId id);

  // `x[i]`, `x[a..b]` and `m[i, j]`: their shapes, and what is known of a result that is itself an
  // index. Bounds are proved, checked before launch, or checked at run time where the index is
  // used.
  /// `x[i]`, `x[a..b]`, `m[i, j]`.
  Value index_expr(const ast::Index& node, Span span);
  /// Converts an index to a typed integer; reports other values.
  Value as_index(const Value& value);
  /// Requires that a host-computed index is in bounds.
  /// `array` is the text of what is indexed, for messages.
  void check_host_index(const Value& index, HostExprId size, std::string_view array, Span span);
  Value gather(const Value& base, const Value& index, Span span);
  /// Turns indices within the rows of a matrix into indices of all its elements, row by row.
  Value places_in_rows(const Value& index, HostExprId cols, Span span);
  /// A host expression with loop variables as leaves; nothing if there is none.
  std::optional<HostExprId> symbolic(ast::ExprId id);
  /// The range of a slice of `size` elements or lines.
  std::optional<Bounds> bounds(const ast::Range& range, HostExprId size, Span span);
  /// `base[bounds]`.
  Value cut(const Value& base, const Bounds& bounds, Span span);
  /// `size` elements from a place that the device computes.
  Value slice_at(const Value& base, const Value& begin, HostExprId size, Span span);
  /// A slice between bounds that the host computes.
  Value make_slice(const Value& base, HostExprId begin, HostExprId end, Span span);
  /// A range as indices a, a + 1 … b - 1.
  Value indices_of(const Bounds& bounds, HostExprId size, Span span);
  /// This rank's number, where a body may see it.
  Value worker(Span span);

 private:
  Value builtin_name(const ast::Name& name);
  Value decl_value(const DeclRef& decl, const ast::Name& name);
  Value expr_node(ast::ExprId id, const ast::Expr& node);
  Value literal_expr(const ast::Literal& node, Span span);
  Value cast(const ast::Cast& node, Span span);
  Value bitcast(const ast::Bitcast& node, Span span);
  Value tuple(const ast::Tuple& node, Span span);
  Value table_of_rows(Value table, const std::vector<Value>& rows);
  Value array_literal(const ast::ArrayLiteral& node, Span span);
  Value if_expr(const ast::If& node, Span span);
  std::optional<bool> decided_condition(const Value& chosen_by);
  Value join_branches(const Value& chosen_by, Value a, Value b, Span span);
  bool holds_as_equal(const Value& chosen_by, HostOp op, const Value& counted, const Value& other);
  bool differ_in_counts(const Value& a, const Value& b);
  Value join_counted(const Value& test, const Value& a, const Value& b, Span span);
  Value cut_to(const Value& counted, HostExprId size, Span span);
  std::optional<DType> type_of_choice(const Value& a, const Value& b);
  bool is_exact_choice(const Value& a, const Value& b);
  bool are_of_one_shape(const Value& a, const Value& b, bool have_type, Span span);
  // Branches of several values (branches.cpp).
  Value join_several(const Value& chosen_by, Branch& a, Branch& b, Span span);
  Value assigned_in(const Value& first, const Value& second, Branch& a, Branch& b, Span span);
  Value choose(const Value& test, Value a, Value b, Span span);
  void let(const ast::Let& node, Span span);
  void let_tuple(const ast::LetTuple& node, Span span);
  void bind(const ast::Name& name, bool is_mutable, Value value, std::optional<ast::ExprId> written,
            Span span);
  Value unused_block(ast::BlockId id);
  void for_loop(const ast::For& node, Span span);
  void while_loop(const ast::While& node, Span span);
  void assertion(const ast::Assert& node, Span span);
  void report_not_mutable(const ast::Name& name, const Symbol& symbol);
  const Symbol* assignable(const ast::Assign& node);
  void assign(const ast::Assign& node, Span span);
  IndexFacts assign_whole(const ast::Assign& node, const Symbol& symbol, const Type& type,
                          Span span);
  Value update(ast::BinaryOp op, const Value& before, const Value& value, Span span);
  void report_repeats(const ast::Assign& node, Span span);
  void assign_indexed(const ast::Assign& node, const Symbol& symbol, const Type& type, Span span);
  std::optional<Place> place(ast::ExprId id, HostExprId size, Span span);
  Value at_place(const Value& base, const Place& place, Span span);
  Value cut_typed(const Value& base, const Bounds& bounds, Span span);
  bool holds_bounds(HostExprId begin, HostExprId end, HostExprId size, Span span);
  // Rows and columns (rows_and_columns.cpp).
  Value at_places(const Value& base, const Place& rows, const Place& cols, Span span);
  bool is_line(const Place& place);
  Value gather_pairs(const Value& base, const Place& rows, const Place& cols, Span span);
  std::optional<std::pair<Value, std::optional<Value>>> number_in(const Value& given,
                                                                  HostExprId size, Span span);
  Value number_of_pair(const Value& rows, const Value& cols, const Type& shape, Span span);
  bool has_no_pair_twice(const Value& rows, const Value& cols, const Type& pairs);
  bool holds_numbers(const Type& shape, bool is_proved, Span span);
  /// `array` is its name, for messages.
  std::optional<Target> target_of(const Place& place, const Type& shape, std::string_view array,
                                  Span span);
  std::optional<Target> target_of(const Place& rows, const Place& cols, const Type& shape,
                                  Span span);
  Value gather_flat(const Value& base, const Value& index, Span span);
  Value is_column(const Value& index, const Value& column, HostExprId cols, Span span);
  Value gather_rows(const Value& base, const Value& index, Span span);
  bool has_loop_leaf(HostExprId id);
  Value slice_of(const Value& base, HostExprId begin, HostExprId end, Span span);
  bool is_from_the_end(HostExprId at, HostExprId size, std::string_view array,
                       std::string_view rest, Span span);
  std::string_view text_of(const Value& value) const;

  static constexpr char kLoopVariable[] = "a loop variable";
  /// In the condition of a `while`: the first number of the condition's own variables.
  std::optional<std::size_t> condition_vars_;
};

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
  Value unknown_member_call(const ast::Call& node, const ast::FieldRef& member, bool is_module);
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
