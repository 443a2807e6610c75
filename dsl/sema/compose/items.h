// Items of compressors: wires, claims and `set`.
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

#include "dsl/sema/compose/parameters.h"
#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

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
  Instance* inner_named(const ast::Name& name);
  bool has_wire_room(const Instance& instance, std::size_t more, const ast::Name& part);
  void begin_wire_part(Instance& instance, const ast::WireField& node);
  void add_part_fields(Instance& instance, const ast::WireField& node);
  void elaborate_wire_count(Instance& instance, const ast::WireCount& node);
  void elaborate_wire_field(Instance& instance, const ast::WireField& node);
  bool elaborate_packing(WireField& field, const ast::WireField& node);
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
