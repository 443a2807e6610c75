// Compressors: their parameters, and their items: wires, claims and `set`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

/// The values that a parameter takes.
struct ParamType {
  DType dtype;
  std::optional<rt::ParamRange> range;
  std::vector<std::string> words;  // empty if its values are numbers
};

class Parameters : Part {
 public:
  using Part::Part;

  /// Collects the parameters that callers may bind, by the names that callers see.
  /// Parameters of a carrier have the names that they have in its
  /// program, or begin with "again.".
  void open(Spec& spec, bool is_carrier);
  /// Keeps the values from outside. Reports names that are not parameters.
  void check_bindings(const std::vector<Binding>& bindings, Span span);
  void bind_params(Instance& instance);
  /// The declared values of a parameter. Reports mistakes.
  std::optional<ParamType> declared_type(const ast::Param& param);
  /// Adds a scalar input, or finds that of another compressor. Reports mistakes.
  std::optional<Symbol> input_scalar(const ast::InputItem& node);
  /// What a parameter or input was declared as, as text for messages.
  static std::string declared_as(const rt::ParamInfo& info);
  /// The values that the parameter takes, as text for messages.
  static std::string takes_text(const ParamType& type);

  // Words as values of parameters: `fit: {exponential, gamma}`. The parameter gives each word a
  // number. Two parameters may give the same word different numbers.
  /// Declares the i-th word of a parameter, visible wherever the compressor's names are.
  void declare_word(Instance& instance, const ast::Param& param, std::size_t i);
  /// An operand of a comparison. Beside a parameter with words, a name means one of its words.
  Value compared(ast::ExprId id, ast::ExprId other);
  /// Is the name unknown here? It may be a word of the compressor that an open wrapper will wrap.
  bool may_be_word(ast::ExprId id);
  /// Reports a word with several numbers.
  Value ambiguous_word(const ast::Name& name);

 private:
  /// A composition's parameter, or the name from outside of a carrier's.
  using SharedName = std::pair<const ast::Param*, std::string>;
  std::string open_name(const Instance& instance, const ast::Param& param) const;
  std::optional<rt::ParamRange> param_range(const ast::Param& param, DType type);
  bool check_range(const std::string& name, DType dtype, double value,
                   const std::optional<rt::ParamRange>& range, Span span, Span range_span);
  std::optional<Constant> bound_value(Instance& instance, const ast::Param& param,
                                      const ParamType& type, const Binding& binding, Span span);
  Constant stand_in(const ParamType& type) const;
  /// Reports a value that the parameter does not take.
  bool may_have(const Instance& instance, const ast::Param& param, const ParamType& type,
                const Constant& value, Span span);
  /// The default of a parameter.
  std::optional<Constant> default_of(const ast::Param& param, DType dtype);
  void bind_param(Instance& instance, const ast::Param& param);
  static const std::vector<NamedParam>& names_of(const Instance& instance, const ast::Param& param);
  void share_param(Instance& instance, const ast::Param& param, const SharedName& shared,
                   const ParamType& type);
  bool take_named(const NamedParam& named, const ast::Param& param, ParamType& type);
  void bind_constant(Instance& instance, const ast::Param& param, DType dtype, Constant value);
  void add_param(Instance& instance, const ast::Param& param, const ParamType& type, double value,
                 std::optional<double> declared_default);
  const ast::Param* words_param(ast::ExprId id) const;

  std::map<std::string, Binding> bindings_;
  std::map<SharedName, Symbol> named_params_;  // once made
  bool is_carrier_ = false;
  std::vector<std::pair<const ast::Param*, std::pair<const Spec*, std::string>>> open_names_;
};

/// A parameter of a wrapped compressor.
struct InnerParam {
  Instance* owner;
  const ast::Param* param;
};

/// The compressors of a composition, and their items.
class Items : Part {
 public:
  using Part::Part;

  // The compressors of a composition, and their items in order.
  /// Starts the numbering of draws and of inlined methods again, once per body.
  void restart_draws();
  /// How many methods were inlined in this body.
  std::uint32_t num_methods() const { return num_methods_; }
  /// Adds the outermost compressor and all that it wraps.
  Instance* add_root(Spec& spec);
  Instance* add_instance(Spec& spec, const std::string& prefix);
  /// Declares a name that is visible in the whole compressor. Reports a name that is taken.
  void declare_item(Instance& instance, const ast::Name& name, Symbol symbol);
  /// The names that are visible in an item or a method, which gets the next number.
  Environment environment_of(Instance& instance);
  /// Elaborates all items of the compressor and of those that it wraps.
  void elaborate_items(Instance& instance);

  // Wires: counts, fields and parts, as declared and as the program publishes them.
  /// Elaborates the compressor's wire, declared or inherited.
  void elaborate_wire(Instance& instance);
  /// Replaces counts in a type by the sizes of these arrays.
  Type with_counts(Type type, const std::map<HostExprId, HostExprId>& bound);
  /// Adds checks before launch that sizes and bounds of the wire are possible.
  void check_wire_sizes(Instance& instance);
  /// Makes the fields of the program's payload.
  void publish_wire(Instance& instance);

  // Claims of compressors, with their arguments. A wrapper may inherit those of the compressor that
  // it wraps.
  void elaborate_claims(Instance& instance, const ast::Claims& node);

  // What wrappers that keep the loss of another compressor may wrap.
  /// Reports states under a residual, which would count what is sent again twice, and warns of
  /// unbiased compressors under one, whose loss can be larger than what they got.
  void check(const Instance& instance, Span span);

  // `set inner.ratio = e`: a wrapper sets a run-time parameter of the compressor that it wraps. The
  // host computes the value before each call. In `e`, `inner.ratio` is the value that the parameter
  // has without the `set`.
  /// The value of `inner.ratio` within a `set`.
  Value inner_param_value(const ast::FieldRef& node);
  void elaborate_set(Instance& instance, const ast::SetItem& node);
  /// Checks that set sizes are possible, and that a part is at most as large as the whole.
  void check_set_elements(const Instance& instance);
  /// Adds checks before launch of all set values.
  void check_set_values();

  // A compressor of vectors that runs on every row of a matrix (`set inner.r = rows`). Its vectors
  // become matrices with this many rows and its scalars matrices with one column. Its reductions
  // run along rows.
  /// Reports an operator that does not work by rows.
  Value not_by_rows(std::string_view what, Span span);
  /// Does the operator work along rows?
  bool has_row_form(BuiltinId id) const;
  /// A declared type for all rows. Reports a matrix type, which has no such form, and returns
  /// nothing.
  std::optional<Type> by_rows(const Type& type, Span span);

 private:
  void add_method(Instance& instance, const ast::Method& method);
  void collect_items(Instance& instance);
  void find_shape(Instance& instance);
  void check_items(Instance& instance);
  Value constant_of(const ast::Const& node);
  void elaborate_const(Instance& instance, const ast::Const& node);
  void elaborate_size(Instance& instance, const ast::SizeItem& node);
  Value first_value(const ast::StateItem& node, const Type& type);
  void elaborate_state(Instance& instance, const ast::StateItem& node);
  void elaborate_input(Instance& instance, const ast::InputItem& node);
  std::optional<Symbol> input_array(const Instance& instance, const ast::InputItem& node);
  Instance* inner_named(const ast::Name& name);
  bool has_wire_room(const Instance& instance, std::size_t more, const ast::Name& part);
  void begin_wire_part(Instance& instance, const ast::WireField& node);
  void add_part_fields(Instance& instance, const ast::WireField& node);
  void add_worker_field(Instance& instance);
  void elaborate_wire_count(Instance& instance, const ast::WireCount& node);
  void elaborate_wire_field(Instance& instance, const ast::WireField& node);
  bool elaborate_packing(WireField& field, const ast::WireField& node,
                         std::span<const WireField> before);
  bool elaborate_table(WireField& field, const ast::Name& table, std::span<const WireField> before);
  HostExprId log2_of(HostExprId x);
  HostExprId most_unary_bits(const WireField& field, HostExprId len);
  HostExprId most_words(const WireField& field, HostExprId most);
  void publish_packed(const WireField& field, rt::FieldInfo& info);
  const ClaimInfo* find_claim(Span span, const std::string& name);
  std::optional<HostExprId> claimed_number(ast::ExprId id);
  bool read_claim_args(const Instance& instance, const ast::Call& call, Claim& claim);
  void add_claim(Instance& instance, Claim claim);
  void inherit_claim(Instance& instance, const ast::Expr& claim, const ast::FieldRef& member);
  void elaborate_claim(Instance& instance, ast::ExprId id);
  void find_own_states(const Instance& instance, std::vector<std::string>& found) const;
  void find_states(const Instance& instance, std::vector<std::string>& found) const;
  bool loses_too_much(const Instance& inner) const;
  std::optional<InnerParam> search_param(Instance& inner, std::string_view name);
  Instance* find_inner(Instance& from, std::span<const ast::Name> path);
  std::optional<InnerParam> find_inner_param(Instance& from, std::span<const ast::Name> path);
  Value given_value(const ast::SetItem& node, const std::optional<InnerParam>& target);
  void set_elements(Instance& instance, const ast::SetItem& node, const Value& value);
  void set_rows(Instance& inner, const Instance& outer, HostExprId rows, Span span);
  void require_set_value(const ast::SetItem& node, const ParamType& target, HostExprId value);

  std::vector<std::unique_ptr<Instance>> instances_;
  std::uint32_t num_methods_ = 0;
  std::uint32_t next_placeholder_ = 1u << 20;
  // A condition on a set value, checked before launch.
  struct SetCheck {
    HostExprId holds;
    std::string text;
    Span span;
  };
  std::vector<SetCheck> set_checks_;
  std::map<std::pair<const Instance*, const Symbol*>, Span> set_spans_;
};

}  // namespace cinch::sema
