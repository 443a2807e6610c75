// Elaboration: one compressor (or one fn) to a CheckedProgram. A single class, since every rule
// needs names, types and sizes at once; its parts stand in elaborate_*.cpp, one per group below.
// A method that finds a mistake reports it and returns an error value; error values stay silent.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dsl/sema/environment.h"
#include "dsl/sema/sizes.h"
#include "dsl/sema/value.h"

namespace cinch::sema {

class Elaborator {
 public:
  Elaborator(ModuleData& module, Reporter& reporter) : module_(module), reporter_(reporter) {}

  /// elaborate_instance.cpp. A compressor with values for open parameters; `is_check`: parameters
  /// without a default get one.
  bool run(Spec& spec, const ast::Name& name, const std::vector<Binding>& bindings, bool is_check);
  /// A number of a file that is known when the program is compiled; reports.
  std::optional<Constant> evaluate_constant(const FileUnit& unit, ast::ExprId id);
  /// Checks a fn with sizes of its own.
  void check_fn(const DeclRef& decl);
  /// elaborate_extern.cpp. Reads the header of an `extern fn`, once; reports and gives nothing
  /// where kernels cannot call what it holds.
  const rt::ExternInfo* find_extern(const DeclRef& decl);
  /// Checks a constant of a file.
  void check_const(const DeclRef& decl);
  CheckedProgram take() { return std::move(out_); }

 private:
  // ---- nodes of the result (elaborate_core.cpp)
  HostExprPool& pool() { return out_.info.exprs; }
  Value typed(Expr expr);
  Value host(HostExprId id, Span span) const;
  Value error(Span span) const;
  Value read_var(VarId var, Span span);
  VarId add_var(std::string name, const Type& type, bool is_mutable, Span span);
  void push(Stmt stmt);
  /// Runs `body` with a statement list of its own; a Block when it left statements.
  Value in_block(Span span, const std::function<Value()>& body);
  /// Host conditions: proved, a mistake, or checked before launch.
  bool require(HostExprId condition, const std::string& what, Span span,
               const std::string& found = "");
  bool require_at_most(HostExprId a, HostExprId b, const std::string& what, Span span);
  bool require_nonnegative(HostExprId size, const std::string& what, Span span);
  /// A size that is never below this one and holds no count; invalid where none is known.
  HostExprId without_counts(HostExprId size);
  /// A read-only variable for a value that is used more than once.
  Value shared(const Value& value, std::string name);
  bool is_leaf(const Value& value) const;
  /// An array of counted length whose filter belongs to the statement at hand: only where that has
  /// run is its count known.
  bool holds_filter(const Value& value);
  bool has_filter(ExprId id) const;
  /// `use` of an operand that it checks the length of: behind the filters that the operand holds.
  Value behind_filter(const Value& operand, Span span,
                      const std::function<Value(const Value&)>& use);

  // ---- limits on what a program grows to (elaborate_growth.cpp)
  /// Counts an expression that was made; reports what is too large.
  void weigh(const Expr& expr);
  std::size_t operations_of(const Expr& expr);
  /// False, and reported once, where too much was elaborated or the stack would not hold more.
  bool may_go_on(Span span);
  /// Room for so many levels more, or reported.
  bool holds_levels(int more, Span span);
  void report_growth(Span reached, std::size_t most, std::size_t Growth::* measure);
  void report_too_large(Span span, std::size_t most);
  Growth growth_now() const;

  // ---- text of types and sizes (elaborate_text.cpp)
  std::string size_text(HostExprId id);
  std::string size_text_within(HostExprId id, int depth, int& left);
  std::string type_text(const Type& type);
  std::string describe(const Value& value);
  std::string number_text(const Value& value);
  /// For editors: what is known of an expression or a name that is declared.
  void record_type(Span span, const Value& value);
  void record_type(Span span, const Symbol& symbol);
  bool records_types(Span span) const;
  void record_text(Span span, std::string text) const;
  dsl::Diagnostic& note_sizes(dsl::Diagnostic& diag, std::initializer_list<const Value*> values);
  void collect_sizes(HostExprId id, std::vector<std::pair<std::string, Span>>& out,
                     std::set<HostExprId>& seen);

  // ---- types and conversions (elaborate_types.cpp)
  const ast::Module& tree() const { return env_->unit->tree; }
  static bool fits(std::int64_t value, DType type);
  /// Proved for every n, parameter and step.
  bool is_known_to_fit(HostExprId number, DType type);
  std::optional<DType> dtype_of(ast::TypeId id);
  std::optional<Type> type_of(ast::TypeId id);
  Type scalar(DType dtype) const { return {dtype, 0, {}}; }
  Type vector(DType dtype, HostExprId size) const { return {dtype, 1, {size, {}}}; }
  Type matrix(DType dtype, HostExprId rows, HostExprId cols) const {
    return {dtype, 2, {rows, cols}};
  }
  bool is_one(HostExprId size);
  /// Of sizes that are proved to be equal the one that was met first, as the IR compares sizes by
  /// their ids. Types of expressions and variables, and written sizes, are in this form.
  HostExprId one_form(HostExprId size);
  Type in_one_form(Type type);
  bool same_shape(const Type& a, const Type& b);
  HostExprId num_elems(const Type& type);
  /// The type a value has when nothing else decides.
  Value materialize(const Value& value);
  /// Silent conversion of the elements to `to`; reports when a value could change.
  Value big_as_float(const Value& value, DType to);
  bool is_every_choice_in(const Value& value, DType to);
  std::vector<HostExprId> constants_of(std::span<const Value> choices);
  Value coerce(const Value& value, DType to);
  Value size_in_type(const Value& value, DType to);
  DType wide_type(const Value& value);
  /// A float, or a number with a point.
  bool is_real(const Value& value);
  /// Has a literal of 2^63 or more.
  static bool holds_big(const Value& value);
  void add_element(Value& table, HostExprId number, bool is_big) const;
  Value table_element(const Value& table, std::size_t i) const;
  static Value table_row(const Value& table, std::size_t row);
  std::vector<Value> with_big_settled(ScalarOp op, std::vector<Value> args);
  DType type_of_numbers(const std::vector<Value>& numbers);
  bool can_coerce(const Value& value, DType to);
  /// The type without a conversion of exact numbers: that of the elements.
  std::optional<DType> own_dtype(const Value& value) const;
  Value convert(const Value& value, DType to, Span span);  // as
  Value literal(HostExprId constant, DType to, Span span);
  /// Float of at least f32 for functions of reals; reports.
  Value as_float(const Value& value, std::string_view op);
  Value arithmetic(const Value& value);
  std::optional<DType> meet(const Value& a, const Value& b);
  Type value_type(const Value& value);

  // ---- exact numbers (elaborate_exact.cpp)
  static bool is_for_reals(ScalarOp op);
  /// min, max and clamp, with which sizes are bounded.
  static bool bounds(ScalarOp op);
  static bool has_quotient(const Value& value);
  static bool holds_shift(const Value& value);
  static Value as_quotient(const Value& value);
  bool has_fraction(const Value& value);
  Value unmet(const Value& value);
  /// Operands that may meet nothing but each other: one with a fraction makes all of them floats.
  std::vector<Value> unmet_together(std::vector<Value> values);
  /// What `made_of` makes of an array of exact numbers, in the type that it meets.
  Value made_of_exact(const Value& array, Span span,
                      const std::function<Value(const Value&)>& made_of);
  std::vector<Value> with_quotients(ScalarOp op, std::vector<Value> args);
  Value exact_as_float(const Value& value);
  std::shared_ptr<const Value> quotient_of(ScalarOp op, const std::vector<Value>& args,
                                           const Value& result, Span span);
  Value with_table_quotient(Value table, const std::vector<Value>& elements);
  std::shared_ptr<const Remake> remake_of(ScalarOp op, const std::vector<Value>& args, Value result,
                                          Span span);
  std::shared_ptr<const Remake> branch_remake(const Value& test, std::span<const Value> branches,
                                              Value result, Span span);
  Value as_named(const Value& value, Value read);
  std::shared_ptr<const Remake> host_remake(ScalarOp op, const std::vector<Value>& args,
                                            const Value& result, Span span);
  static bool is_adaptable(const Value& value);
  bool stays_adaptable(ScalarOp op, std::span<const Value> args);
  Value without_quotient(Value value);
  Value floor_div_of(Value a, Value b, const std::string& name, Span span);
  Value shift_count(const Value& count, DType type);
  std::vector<Value> with_adaptables(ScalarOp op, std::vector<Value> args);
  Value named_quotient(const Value& value, Value read);
  Value as_operand(ScalarOp op, const Value& value, DType type);
  Value as_low_bits(const Value& value, DType type);
  bool may_be_negative(const Value& value);
  Value as_natural(const Value& value, DType type);
  std::shared_ptr<const Remake> array_remake(const std::vector<Value>& elements, const Value& array,
                                             Span span);
  bool is_never_positive(HostExprId size);
  Value as_mask(const Value& value, DType type);
  bool is_bool_table(const Value& value) const;

  // ---- host arithmetic (elaborate_host.cpp)
  Value host_scalar_op(ScalarOp op, std::span<const Value> values, Span span);
  /// The same with no report of a constant that overflows; invalid where there is no host form.
  HostExprId host_op(ScalarOp op, std::vector<HostExprId> args, Span span);
  /// Numbers of which a fn's signature gave some a type: the bits are those of that type's
  /// arithmetic, and the number stays known to the host where it is proved to fit.
  Value declared_scalar_op(ScalarOp op, const std::vector<Value>& args, Span span,
                           std::string_view name);
  std::optional<HostExprId> big_shift(std::span<const HostExprId> args);
  Value host_unify(ScalarOp op, std::vector<HostExprId>& args, Span span);
  HostExprId to_int(HostExprId id);
  HostExprId host_select(HostExprId c, HostExprId a, HostExprId b);
  /// An expression that the host must compute, as an Int; reports and gives nothing otherwise.
  std::optional<HostExprId> host_size(ast::ExprId id, std::string_view what);
  std::optional<std::int64_t> constant_int(ast::ExprId id);
  std::optional<HostValue> constant_value(ast::ExprId id);
  std::optional<Constant> constant_number(ast::ExprId id);
  Value constant(const Constant& number, Span span);
  Value as_table_op(ScalarOp op, std::span<const Value> args, Span span);

  // ---- expressions (elaborate_expr.cpp, elaborate_name.cpp, elaborate_scalar.cpp)
  Value expr(ast::ExprId id);
  Value expr_node(ast::ExprId id, const ast::Expr& node);
  Value literal_expr(const ast::Literal& node, Span span);
  Value name_expr(const ast::Name& name);
  Value builtin_name(const ast::Name& name);
  Value symbol_value(const Symbol& symbol, const ast::Name& name);
  const Symbol* find_symbol(std::string_view name) const;
  Value decl_value(const DeclRef& decl, const ast::Name& name);
  Value const_value(const DeclRef& decl, const ast::Const& node);
  Value known_const(const KnownConst& known, Span span);
  std::optional<KnownConst> as_known_const(const Value& value);
  Value elaborate_const_value(const DeclRef& decl, const ast::Const& node);
  void unknown_name(const ast::Name& name);
  Value field_expr(const ast::FieldRef& node, Span span);
  Value payload_field(const Value& payload, const ast::Name& field, Span span);
  Value payload_field_at(const Value& payload, std::uint32_t index, Span span);
  Value unary(const ast::Unary& node, Span span);
  Value binary(const ast::Binary& node, Span span);
  Value binary_op(ast::BinaryOp op, const Value& a, const Value& b, Span span);
  void warn_of_chain(const ast::Binary& node, Span span);
  Value scalar_op(ScalarOp op, std::vector<Value> args, Span span, std::string_view name);
  IndexFacts facts_of_op(ScalarOp op, const std::vector<Value>& args, DType type);
  Value typed_scalar_op(ScalarOp op, std::vector<Value> args, Span span, std::string_view name);
  std::optional<DType> cannot_apply(const Value& value, std::string_view name);
  std::optional<DType> one_operand_type(ScalarOp op, const Value& arg, std::string_view name);
  bool is_small_number(const Value& value);
  std::optional<DType> operand_type(ScalarOp op, const std::vector<Value>& args, Span span,
                                    std::string_view name);
  bool has_room(const Value& number, DType type);
  bool is_row_of(const Type& a, const Type& b);
  /// A vector as the row of a matrix that it meets.
  Value as_row(const Value& value, const Type& shape);
  std::optional<Type> broadcast(std::span<const Value> args, Span span, std::string_view name);
  // `joins_types`: the operator wants one type of both, so that a conversion may help.
  Value cannot_combine(std::string_view name, const Value& a, const Value& b, Span span,
                       bool joins_types = true);
  Value cast(const ast::Cast& node, Span span);
  Value bitcast(const ast::Bitcast& node, Span span);
  Value tuple(const ast::Tuple& node, Span span);
  Value array_literal(const ast::ArrayLiteral& node, Span span);
  Value table_of_rows(Value table, const std::vector<Value>& rows);
  // ---- elaborate_facts.cpp
  IndexFacts common_facts(const IndexFacts& a, const IndexFacts& b);
  void join_variable_facts(const std::map<std::uint32_t, IndexFacts>& other);
  Value in_loop(const std::function<Value()>& body);

  Value if_expr(const ast::If& node, Span span);
  Value join_branches(const Value& chosen_by, Value a, Value b, Span span);
  Value choose(const Value& test, Value a, Value b, Span span);
  Value block(ast::BlockId id);
  Value block_in_scope(ast::BlockId id);
  Value lambda(ast::ExprId id, const std::vector<Type>& params, std::string_view name,
               const std::function<Value(Value)>& finish);
  std::optional<ExprId> condition(ast::ExprId id);
  Value bool_value(const Value& value, std::string_view what);
  /// What `if`, `while` and `assert` take.
  Value one_bool(const Value& chosen_by);

  // ---- indices (elaborate_index.cpp)
  Value index_expr(const ast::Index& node, Span span);
  Value index_value(const Value& base, ast::ExprId id, Span span);
  Value look_up(const Value& array, const Value& index, Span span);
  Value gather(const Value& base, const Value& index, Span span);
  Value gather_flat(const Value& base, const Value& index, Span span);
  Value gather_rows(const Value& base, const Value& index, Span span);
  Value places_in_rows(const Value& index, HostExprId cols, Span span);
  Value is_column(const Value& index, const Value& column, HostExprId cols, Span span);
  Value slice(const Value& base, const ast::Range& range, Span span);
  HostExprId length_of(HostExprId begin, HostExprId end);
  Value slice_of(const Value& base, HostExprId begin, HostExprId end, Span span);
  Value make_slice(const Value& base, HostExprId begin, HostExprId end, Span span);
  Value slice_at(const Value& base, const Value& begin, HostExprId size, Span span);
  Value as_index(const Value& value);
  bool is_in_bounds(const Value& index, HostExprId size);
  void check_host_index(const Value& index, HostExprId size, Span span);
  HostExprId index_limit(const Value& value);
  /// A host expression in which loop variables are leaves; nothing where there is none.
  std::optional<HostExprId> symbolic(ast::ExprId id);
  bool has_loop_leaf(HostExprId id);

  // ---- calls (elaborate_call.cpp)
  Value call(const ast::Call& node, Span span);
  Value call_named(const ast::Call& node, const ast::Name& name, Span span);
  Value call_decl(const DeclRef& decl, const ast::Call& node, const ast::Name& name, Span span);
  Value call_fn(const DeclRef& decl, const ast::Fn& fn, const ast::Call& node, Span span);
  static bool is_of_scalars(const ast::Module& tree, const ast::Fn& fn);
  Value map_fn(const DeclRef& decl, const ast::Fn& fn, std::vector<Value> values,
               std::optional<std::size_t> result, Span span);
  Value map_each(const DeclRef& decl, const ast::Fn& fn, std::vector<Value> values,
                 std::size_t num_results, Span span);
  Value inline_fn(const DeclRef& decl, const ast::Fn& fn, const std::vector<Value>& values,
                  Span span);
  Value call_extern(const DeclRef& decl, const ast::ExternFn& fn, const ast::Call& node, Span span);
  std::optional<std::vector<DType>> extern_types(const ast::ExternFn& fn);
  std::optional<DType> extern_type(ast::TypeId id);
  std::uint32_t extern_index(const rt::ExternInfo& function);
  void add_headers(rt::ExternReply& reply) const;
  void report_extern(const ast::ExternFn& fn, const rt::ExternReply& reply);
  bool bind_fn_params(const ast::Fn& fn, const std::vector<Value>& args, Environment& inner);
  bool bind_generic_sizes(const ast::ArrayType& type, const Value& arg, Scope& scope);
  Value fn_body(const ast::Fn& fn, Span span);
  void declare_generic_sizes(const ast::Param& param);
  std::optional<Type> checked_type(const ast::Param& param);
  Value to_result(const Value& value, ast::TypeId id, Span span, std::string_view what);
  Value to_declared(const Value& value, ast::TypeId id, Span span, std::string_view what);
  Value call_member(const ast::Call& node, const ast::FieldRef& member, Span span);
  Value call_scalar(const ast::Call& node, ScalarOp op, const ast::Name& name, Span span);
  Value call_builtin(const ast::Call& node, BuiltinId id, const ast::Name& name, Span span);
  CallArgs sort_args(const ast::Call& node, std::string_view name, Span span,
                     const std::vector<std::string_view>& labels, std::size_t min, std::size_t max);
  bool flag(const CallArgs& args, std::string_view label);
  std::optional<int> axis(const CallArgs& args, const Value& x);
  /// The axis of what runs along lines: of a matrix it must be given (else that is reported).
  std::optional<int> line_axis(const CallArgs& args, const Value& x);
  Value operand_of(const Value& value);
  Value operand(ast::ExprId id);  // a typed array or scalar
  Value array_of(const Value& value, std::string_view name);
  Value array_operand(ast::ExprId id, std::string_view name);
  Value vector_operand(ast::ExprId id, std::string_view name);
  Value matrix_operand(ast::ExprId id, std::string_view name);
  Value builtin(BuiltinId id, Type type, std::vector<ExprId> args, Span span,
                const std::function<void(Expr&)>& set = {});
  std::optional<HostExprId> named_size(const CallArgs& args, std::string_view label);
  // An argument that is one of these names; anything else is an error.
  std::optional<std::string_view> word(ast::ExprId id, const std::vector<std::string_view>& words);
  std::optional<HostExprId> size_arg(ast::ExprId id, std::string_view name);
  bool all_constant_sizes(const Type& type);
  Value check_lambda_array(Value value);

  // ---- groups of operators (elaborate_{reduce,select,move,random,sync}.cpp)
  Value map_call(const CallArgs& args);
  Value fill_call(const CallArgs& args);
  Value floor_div_call(const CallArgs& args);
  Value len_call(const CallArgs& args);
  Value reduce_call(BuiltinId id, const CallArgs& args);
  Value reduce_lambda_call(const CallArgs& args);
  Value reduced(BuiltinId id, const CallArgs& args, std::vector<Value> xs, DType result);
  std::optional<Value> mask(const CallArgs& args, const Type& shape);
  Type reduced_type(const Type& type, int axis, DType dtype);
  bool is_known_line(const Value& x, int axis, std::string_view name);
  bool joins_scalars(std::size_t first_expr, std::size_t first_stmt);
  Value scan_call(BuiltinId id, const CallArgs& args);
  std::optional<std::pair<Value, Value>> lambda_pair(const CallArgs& args, const Value& x,
                                                     Value& init);
  Value filter_call(BuiltinId id, const CallArgs& args);
  std::optional<std::uint32_t> count_of_mask(const Value& mask, HostExprId limit, HostExprId len,
                                             Span span);
  // elaborate_meaning.cpp
  ExprId resolved(ExprId id) const;
  ExprId unwidened(ExprId id) const;
  std::string meaning_text(ExprId id);
  std::uint32_t meaning_of(ExprId written);
  std::string count_key(const Value& mask, HostExprId limit);
  void note_sent_counts(const Instance& instance, const Value& wire);
  std::optional<std::uint32_t> sent_count(const std::string& key) const;
  /// Counts of the wire that one mask filled are one count in decode.
  void check_twin_counts(Span span);
  Value with_first_count(const Value& field, Span span);
  void note_masks(dsl::Diagnostic& diag, std::initializer_list<const Value*> values);
  Value as_sent(const Value& result, std::uint32_t count, const CallArgs& args);
  Value sort_call(BuiltinId id, const CallArgs& args);
  Value top_k_call(BuiltinId id, const CallArgs& args);
  Value top_k_of(BuiltinId id, const CallArgs& args, const Value& x, HostExprId k);
  Value move_call(BuiltinId id, const CallArgs& args);
  Value pack_call(BuiltinId id, const CallArgs& args);
  Value concat_call(const CallArgs& args);
  Value slice_call(const CallArgs& args);
  Value scatter_call(BuiltinId id, const CallArgs& args);
  static bool is_scatter(BuiltinId id);
  // `in_rows`: values, indices and result are rows after rows, and each index stays in its row.
  Value scatter_at(const Scatter& how, const Value& v, const Value& at, HostExprId size, Span span,
                   bool in_rows = false);
  Value scatter_rows(const Scatter& how, const Value& v, const Value& at, HostExprId size,
                     Span span);
  Value reshape_call(const CallArgs& args);
  std::optional<Value> reshaped_table(const Value& table, std::span<const HostExprId> dims);
  Value transpose_call(const CallArgs& args);
  Value chunk_call(BuiltinId id, const CallArgs& args);
  Value iota_call(const CallArgs& args);
  Value histogram_call(const CallArgs& args);
  Value random_call(BuiltinId id, const CallArgs& args);
  Value stochastic_round_call(const CallArgs& args);
  void number_draw(Expr& made, const CallArgs& args);
  Value matmul(const Value& a, const Value& b, Span span);
  Value matrix_call(BuiltinId id, const CallArgs& args);
  Value collective_call(BuiltinId id, const CallArgs& args);
  Value sendrecv_call(const CallArgs& args);
  /// `index`: of `given`.
  bool is_surely_a_rank(const Value& given, const Value& index);
  bool is_counted_vector(const Value& x);
  Value counted_collective(BuiltinId id, const Value& x, ExprId to, Span span);
  Value allreduce_call(const CallArgs& args);
  Value per_rank_call(BuiltinId id, const CallArgs& args);

  // ---- statements (elaborate_stmt.cpp)
  void statement(ast::StmtId id);
  void let(const ast::Let& node, Span span);
  void bind(const ast::Name& name, bool is_mutable, Value value, std::optional<ast::ExprId> written,
            Span span);
  void let_tuple(const ast::LetTuple& node, Span span);
  Value updated(const ast::Assign& node, const Symbol& symbol, const Value& value, Span span);
  Value update(ast::BinaryOp op, const Value& before, const Value& value, Span span);
  Value narrow_bits(const Value& value, DType type);
  void assign(const ast::Assign& node, Span span);
  IndexFacts assign_whole(const ast::Assign& node, const Symbol& symbol, const Type& type,
                          Span span);
  void assign_indexed(const ast::Assign& node, const Symbol& symbol, const Type& type, Span span);
  Value index_of_range(const ast::Range& range, const Type& type, Span span);
  const Symbol* assignable(const ast::Assign& node);
  bool is_in_condition(const Symbol& symbol) const;
  void report_not_mutable(const ast::Name& name, const Symbol& symbol);
  void report_repeats(const ast::Assign& node, Span span);
  void name_counts(const Type& type, const ast::Name& name);
  Value unused_block(ast::BlockId id);
  void for_loop(const ast::For& node, Span span);
  void while_loop(const ast::While& node, Span span);
  void assertion(const ast::Assert& node, Span span);
  void declare(const ast::Name& name, Symbol symbol);
  Value fit_to(const Value& value, const Type& type, std::string_view name, Span span);
  void forget_masks() { ++epoch_; }

  // ---- compressors (elaborate_instance.cpp, elaborate_params.cpp, elaborate_wire.cpp)
  Instance* add_instance(Spec& spec, const std::string& prefix);
  void collect_items(Instance& instance);
  void add_method(Instance& instance, const ast::Method& method);
  void find_shape(Instance& instance);
  void check_items(Instance& instance);
  void bind_params(Instance& instance);
  void bind_param(Instance& instance, const ast::Param& param);
  void bind_constant(Instance& instance, const ast::Param& param, DType dtype, Constant value);
  struct ParamType {
    DType dtype;
    std::optional<rt::ParamRange> range;
    std::vector<std::string> words;  // where its values have names
  };
  /// Of a declaration; reports.
  std::optional<ParamType> declared_type(const ast::Param& param);
  static std::string takes_text(const ParamType& type);
  // elaborate_words.cpp
  void declare_word(Instance& instance, const ast::Param& param, std::size_t i);
  const ast::Param* words_param(ast::ExprId id) const;
  Value compared(ast::ExprId id, ast::ExprId other);
  Value ambiguous_word(const ast::Name& name);
  bool may_be_word(ast::ExprId id);
  /// The value that stands behind `=` of a parameter.
  std::optional<Constant> default_of(const ast::Param& param, DType dtype);
  /// Reports a value that the parameter may not have.
  bool may_have(const Instance& instance, const ast::Param& param, const ParamType& type,
                const Constant& value, Span span);
  bool take_named(const NamedParam& named, const ast::Param& param, ParamType& type);
  static const std::vector<NamedParam>& names_of(const Instance& instance, const ast::Param& param);
  void share_param(Instance& instance, const ast::Param& param, const NamedParam& named,
                   const ParamType& type);
  void add_param(Instance& instance, const ast::Param& param, const ParamType& type, double value,
                 std::optional<double> declared_default);
  std::optional<Constant> bound_value(Instance& instance, const ast::Param& param,
                                      const ParamType& type, const Binding& binding, Span span);
  Constant stand_in(const ParamType& type) const;
  std::optional<rt::ParamRange> param_range(const ast::Param& param, DType type);
  bool check_range(const std::string& name, DType dtype, double value,
                   const std::optional<rt::ParamRange>& range, Span span, Span range_span);
  void check_bindings(const std::vector<Binding>& bindings, Span span);
  std::string open_name(const Instance& instance, const ast::Param& param) const;
  /// May no name of that text be declared there? `instance`: nullptr in a fn.
  static bool is_taken(std::string_view name, const Instance* instance);
  void declare_item(Instance& instance, const ast::Name& name, Symbol symbol);
  void elaborate_items(Instance& instance);
  void elaborate_const(Instance& instance, const ast::Const& node);
  // elaborate_set.cpp: values that wrappers give to parameters of what they wrap
  struct InnerParam {
    Instance* owner;
    const ast::Param* param;
  };
  void elaborate_set(Instance& instance, const ast::SetItem& node);
  std::optional<InnerParam> find_inner_param(Instance& from, std::span<const ast::Name> path);
  bool has_param(Instance& from, std::span<const ast::Name> path);
  std::optional<InnerParam> search_param(Instance& inner, std::string_view name);
  Value inner_param_value(const ast::FieldRef& node);
  // elaborate_rows.cpp: bodies for vectors on every row of a matrix
  bool is_by_rows() const { return env_->instance != nullptr && env_->instance->rows.is_valid(); }
  /// Reports what has no such form.
  Value not_by_rows(std::string_view what, Span span);
  bool has_row_form(BuiltinId id) const;
  /// A declared type, for all rows; reports and gives nothing where it is a matrix already.
  std::optional<Type> by_rows(const Type& type, Span span);
  void set_elements(Instance& instance, const ast::SetItem& node, const Value& value);
  void set_rows(Instance& inner, const Instance& outer, HostExprId rows, Span span);
  void check_set_elements(const Instance& instance);
  Instance* find_inner(Instance& from, std::span<const ast::Name> path);
  HostExprId set_value(const Value& value, DType dtype);
  void require_set_value(const ast::SetItem& node, const ParamType& target, HostExprId value);
  void check_set_values();
  /// A host expression of which nothing is known.
  HostExprId opaque_number(HostType type);
  void elaborate_size(Instance& instance, const ast::SizeItem& node);
  void elaborate_state(Instance& instance, const ast::StateItem& node);
  void check_state_size(const ast::StateItem& node, const Type& type);
  // elaborate_claims.cpp
  void elaborate_claims(Instance& instance, const ast::Claims& node);
  void elaborate_claim(Instance& instance, ast::ExprId id);
  void inherit_claim(Instance& instance, const ast::Expr& claim, const ast::FieldRef& member);
  void add_claim(Instance& instance, Claim claim);
  const ClaimInfo* find_claim(Span span, const std::string& name);
  /// Can gradients be added to the state?
  bool holds_gradient(const Instance& instance, const Type& state);
  bool read_claim_args(const Instance& instance, const ast::Call& call, Claim& claim);
  std::optional<HostExprId> claimed_number(ast::ExprId id);
  void elaborate_wire(Instance& instance);
  void elaborate_wire_count(Instance& instance, const ast::WireCount& node);
  void elaborate_wire_field(Instance& instance, const ast::WireField& node);
  bool has_room(const Instance& instance, std::size_t more, const ast::Name& part);
  void begin_wire_part(Instance& instance, const ast::WireField& node);
  void add_part_fields(Instance& instance, const ast::WireField& node);
  Instance* inner_named(const ast::Name& name);
  bool elaborate_packing(WireField& field, const ast::WireField& node);
  HostExprId log2_of(HostExprId x);
  HostExprId most_unary_bits(const WireField& field, HostExprId len);
  HostExprId most_words(const WireField& field, HostExprId most);
  void publish_packed(const WireField& field, rt::FieldInfo& info);
  void publish_wire(Instance& instance);
  Environment environment_of(Instance& instance);
  void with_environment(Environment& env, const std::function<void()>& body);

  // ---- bodies (elaborate_method.cpp, elaborate_payload.cpp)
  void elaborate_bodies(Instance& instance);
  void check_collectives(const Body& sync);
  void elaborate_encode(Instance& instance);
  void elaborate_decode(Instance& instance);
  Body body_of(BodyKind kind, Instance& instance, const std::function<Value()>& make);
  void check_wire_sizes(Instance& instance);
  Type gradient_type(const Instance& instance);
  Value gradient_value(Instance& instance, Span span);
  Value gradient_result(const Value& value, Instance& instance, std::string_view what);
  Value program_result(const Value& value);
  Value encode_value(Instance& instance, const Value& g, Span span);
  Value decode_value(Instance& instance, const Value& payload, Span span);
  Value finish_value(Instance& instance, const Value& sum, Span span);
  Value encode_in_finish(Instance& inner, const Value& g, Span span);
  const Instance* rank_states(const Instance& instance) const;
  bool has_finish(const Instance& instance) const;
  Value method_block(Instance& instance, ast::MethodKind kind, const Value& arg, Span span,
                     const std::function<Value(Value)>& finish);
  const ast::Param* method_param(Instance& instance, ast::MethodKind kind);
  Value inner_argument(const Value& value, Instance& inner, Span span);
  Value outer_result(Value value, const Instance& inner, Span span);
  bool fill_wire_part(const WirePart& part, Value given, Span span, std::vector<Value>& values,
                      std::vector<bool>& is_given);
  Value reshaped(const Value& value, const Type& type, Span span);
  const Instance* wire_owner(const Instance& instance) const;
  Value as_wire(const Value& value, Instance& instance, Span span);
  Value wire_literal(const ast::WireLiteral& node, Span span);
  Value make_wire(Instance& owner, const std::vector<Value>& given, Span span);
  bool check_packed(const WireField& field, const Value& value);
  bool bind_counts(Instance& owner, const std::vector<Value>& values,
                   std::map<HostExprId, HostExprId>& bound);
  Type with_counts(Type type, const std::map<HostExprId, HostExprId>& bound);
  ExprId literal_of(const Value& wire) const;
  Value payload_of(Instance& owner, const Value& wire, std::string name, Span span);
  void note_field_facts(const Value& wire);

  ModuleData& module_;
  Reporter& reporter_;
  CheckedProgram out_;
  SizeProver sizes_{out_.info.exprs};
  std::vector<std::unique_ptr<Instance>> instances_;
  Environment* env_ = nullptr;
  std::vector<StmtId>* stmts_ = nullptr;
  BodyKind body_ = BodyKind::Host;
  bool in_host_ = false;            // parameters are host values: sizes, loop bounds
  bool encodes_in_finish_ = false;  // an encode inlined in finish
  bool in_set_ = false;             // parameters of what is wrapped are seen
  bool in_leaves_ = false;          // loop variables are leaves of host expressions
  bool is_check_ = false;           // nothing will be compiled
  bool in_claim_ = false;           // whole numbers divide exactly
  bool in_constant_ = false;        // nothing but constants can be seen
  /// In the condition of a `while`: variables from this number on are the condition's own.
  std::optional<std::size_t> condition_vars_;
  bool is_of_fn_ = false;  // a fn is checked with sizes of its own
  int lambda_depth_ = 0;
  int depth_ = 0;  // inlined calls
  /// Holds an open level of expressions and blocks.
  class Level {
   public:
    explicit Level(Elaborator& in) : in_(in) {
      ++in_.levels_;
      in_.deepest_ = std::max(in_.deepest_, in_.levels_);
    }
    ~Level() { --in_.levels_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Elaborator& in_;
  };
  int levels_ = 0;
  int deepest_ = 0;
  // Uses of what is put in place that are being elaborated; first all of it.
  struct OpenUse {
    Span span;
    Growth before;
  };
  class Use {
   public:
    Use(Elaborator& in, Span span) : in_(in) { in_.open_uses_.push_back({span, in_.growth_now()}); }
    ~Use() { in_.open_uses_.pop_back(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Elaborator& in_;
  };
  std::vector<OpenUse> open_uses_;
  std::vector<std::size_t> weights_;  // by expression: operations, counted wherever it stands
  std::size_t num_operations_ = 0;
  std::vector<DeclRef> open_fns_;
  std::vector<const void*> open_consts_;
  const Type* wanted_ = nullptr;  // state inits: the shape that operators without a size take
  std::map<HostExprId, std::pair<std::string, Span>> size_names_;
  std::set<HostExprId> unnamed_counts_;          // whose name is still the compiler's
  std::map<HostExprId, HostExprId> size_forms_;  // normal form: the one that was met first
  std::uint32_t next_placeholder_ = 1u << 20;
  std::uint32_t next_generic_ = 0;
  std::map<std::string, std::uint32_t> counts_by_mask_;
  std::map<std::string, std::uint32_t> sent_counts_;  // of encode: the wire's count by the same key
  std::map<std::uint32_t, std::uint32_t> twin_counts_;  // of the wire: the first of one filter
  ExprId sent_literal_;                                 // what the fields of encode's payload hold
  bool in_decode_body_ = false;                         // of the program
  std::map<std::uint32_t, std::uint32_t> meanings_;     // by ExprId
  std::map<std::string, std::uint32_t> meaning_numbers_;
  std::map<std::uint32_t, std::string> lambda_params_;  // by VarId, of lambdas that were looked at
  int meaning_depth_ = 0;                               // lambdas around what is looked at
  int meaning_levels_ = 0;
  std::map<std::uint32_t, ExprId> definitions_;  // by VarId of what does not change
  // By VarId of a `let mut`: its first value, and the loop that it stands in.
  std::map<std::uint32_t, std::pair<ExprId, std::uint32_t>> first_values_;
  // By ExprId, of what is another expression's value: reads of a first value, cut fields.
  std::map<std::uint32_t, ExprId> same_values_;
  std::uint32_t loop_ = 0, num_loops_ = 0;
  std::map<std::uint32_t, ExprId> payload_literals_;        // by VarId of a payload
  using Version = std::pair<std::uint32_t, std::uint32_t>;  // of a name, and the epoch
  std::map<std::uint32_t, Version> read_versions_;          // by ExprId of a read
  std::map<std::uint32_t, std::uint32_t> var_versions_, state_versions_;
  std::map<std::uint32_t, IndexFacts> variable_facts_;  // by VarId of a mutable one, as of now
  std::uint32_t epoch_ = 0;
  std::vector<IndexFacts> field_facts_;  // of the program's own payload, as encode fills it
  std::map<std::uint32_t, std::vector<IndexFacts>> wire_facts_;  // by wire literal
  // What the values of `set` must fulfil, checked before launch.
  struct SetCheck {
    HostExprId holds;
    std::string text;
    Span span;
  };
  std::vector<SetCheck> set_checks_;
  std::map<std::pair<const Instance*, const Symbol*>, Span> set_spans_;
  std::map<std::string, Binding> bindings_;
  std::map<const ast::Param*, Symbol> named_params_;  // by a composition's parameter, once made
  std::vector<std::pair<const ast::Param*, std::pair<const Spec*, std::string>>> open_names_;
  std::map<std::uint32_t, std::vector<IndexFacts>> payload_facts_;  // by payload variable
};

/// A compressor's expression in a composition, or its declaration, as a tree of Specs. Reports and
/// gives nothing on a mistake.
std::unique_ptr<Spec> make_spec(ModuleData& module, const DeclRef& decl, Reporter& reporter);
/// The number of the word that an expression is, of those that a parameter takes.
std::optional<Constant> word_given(const ast::Module& declaring, const ast::Param& param,
                                   const ast::Module& tree, ast::ExprId id);
/// Reports a name that is no word of `param` where it takes words, nor anything that `unit`
/// declares.
bool is_wrong_word(const ast::Module& declaring, const ast::Param& param, const FileUnit& unit,
                   ast::ExprId id, Reporter& reporter);
/// True where the spec still wants a compressor; `fill`: puts the stand-in there.
bool wants_inner(ModuleData& module, Spec& spec, bool fill);
/// Open (not fixed) parameters of a spec: their name in the result, the spec and the parameter.
struct OpenParam {
  std::string name;
  Spec* spec;
  const ast::Param* param;
  const ast::Param* declared;  // by a composition, or nullptr
};
std::vector<OpenParam> open_params(Spec& spec);

}  // namespace cinch::sema
