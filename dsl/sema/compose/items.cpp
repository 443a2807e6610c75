// Constants, sizes and states of a compressor, and the order of all items.
#include <algorithm>

#include "dsl/sema/compose/items.h"
#include "dsl/sema/elaboration/elaboration.h"
#include "runtime/core/check.h"

namespace cinch::sema {
using dsl::DiagKind;

// Sizes come first, because the arguments of `set` may use them. Wrapped compressors come next,
// because a wire may be the wire of one of them.
void Items::elaborate_items(Instance& instance) {
  const auto each = [&](auto&& handle) {
    for (ast::ItemId id : tree().list(instance.spec->node->items)) handle(tree()[id]);
  };
  Environment env = environment_of(instance);
  all_.exprs.with_environment(env, [&] {
    each([&](const ast::Item& item) {
      if (const auto* node = std::get_if<ast::Const>(&item.node)) elaborate_const(instance, *node);
      if (const auto* node = std::get_if<ast::SizeItem>(&item.node)) {
        elaborate_size(instance, *node);
      }
      // Among the sizes, so that an input in a later one is reported as such.
      if (const auto* node = std::get_if<ast::InputItem>(&item.node)) {
        elaborate_input(instance, *node);
      }
    });
    each([&](const ast::Item& item) {
      if (const auto* node = std::get_if<ast::SetItem>(&item.node)) elaborate_set(instance, *node);
    });
    check_set_elements(instance);
  });
  for (const auto& [slot, inner] : instance.inner) {
    if (!inner->has_set_elements) inner->elements = instance.elements;
    if (!inner->rows) {
      inner->rows = instance.rows;
      inner->rows_span = instance.rows_span;
    }
    elaborate_items(*inner);
  }
  all_.exprs.with_environment(env, [&] {
    each([&](const ast::Item& item) {
      if (const auto* node = std::get_if<ast::StateItem>(&item.node)) {
        elaborate_state(instance, *node);
      }
    });
    elaborate_wire(instance);
    each([&](const ast::Item& item) {
      const auto* node = std::get_if<ast::Claims>(&item.node);
      if (node != nullptr) elaborate_claims(instance, *node);
    });
  });
}

Value Items::constant_of(const ast::Const& node) {
  const ModeScope scope(mode_);
  mode_.in_constant = true;
  return build_.in_block(tree()[node.value].span, [&] { return all_.exprs.expr(node.value); });
}

void Items::elaborate_const(Instance& instance, const ast::Const& node) {
  Symbol symbol{.value = constant_of(node), .span = node.name.span, .noun = "a constant"};
  const Value& value = symbol.value;
  if (value.is_host() && pool().is_const(value.host) && !value.is_big) {
    const double shown = pool().const_value(value.host).to_double();
    out_.info.constants.push_back({instance.prefix + node.name.text, shown});
  }
  declare_item(instance, node.name, std::move(symbol));
}

void Items::elaborate_size(Instance& instance, const ast::SizeItem& node) {
  Symbol symbol{.span = node.name.span, .noun = "a size"};
  if (const auto size = all_.numbers.host_size(node.value, "a size")) {
    prover_.canonical(*size);  // later proofs begin from here
    symbol.value = host_value(*size, node.name.span);
    const bool is_plain = pool().is_const(*size) || host_op_num_args(pool().node(*size).op) == 0;
    if (!is_plain) {
      sizes_.name(*size, instance.prefix + node.name.text, node.name.span);
    }
    out_.info.sizes.push_back({instance.prefix + node.name.text, *size});
  }
  declare_item(instance, node.name, std::move(symbol));
}

Value Items::first_value(const ast::StateItem& node, const Type& type) {
  if (!node.initial.has_value())
    return mistake<DiagKind::MissingItem>(node.name.span, node.name.text, "first value");
  const ModeScope scope(mode_);
  mode_.body = BodyKind::StateInit;
  mode_.wanted = &type;
  const Span span = tree()[node.initial].span;
  return build_.in_block(span, [&] {
    return conversions_.fit_to(all_.exprs.expr(node.initial), type, node.name.text, span);
  });
}

void Items::elaborate_state(Instance& instance, const ast::StateItem& node) {
  Symbol symbol{.span = node.name.span};
  auto type = conversions_.type_of(node.type);
  if (type && is_by_rows()) type = by_rows(*type, tree()[node.type].span);
  if (!type) {
    declare_item(instance, node.name, std::move(symbol));
    return;
  }
  for (int i = 0; i < type->rank; ++i) {
    const bool on_param = pool().depends_on(type->dims[i], HostOp::Param);
    if (!on_param && !pool().depends_on(type->dims[i], HostOp::Step)) continue;
    auto& diag = reporter_.report<DiagKind::StateSize>(
        tree()[node.type].span, node.name.text, on_param ? "a run-time parameter" : "`step`");
    const bool is_set = pool().depends_on(instance.elements, HostOp::Param) ||
                        pool().depends_on(instance.elements, HostOp::Step);
    if (is_set) {
      diag.note("what wraps `" + instance.name() +
                "` sets its number of elements in each step: wrap a compressor without states");
    }
  }
  const Value init = first_value(node, *type);
  symbol.kind = SymbolKind::State;
  instance.has_states = true;
  symbol.index = static_cast<std::uint32_t>(out_.info.states.size());
  out_.info.states.push_back({instance.prefix + node.name.text, *type});
  out_.state_inits.push_back(init.expr);
  declare_item(instance, node.name, std::move(symbol));
}

// Inputs of equal names are one, whichever compressor of the composition declares them: weights are
// the tensor's, not a compressor's. So their names have no prefix.
void Items::elaborate_input(Instance& instance, const ast::InputItem& node) {
  Symbol symbol{.span = node.name.span};
  const bool is_array = std::holds_alternative<ast::ArrayType>(tree()[node.type].node);
  const auto made = is_array ? input_array(instance, node) : all_.params.input_scalar(node);
  if (made) symbol = *made;
  declare_item(instance, node.name, std::move(symbol));
}

std::optional<Symbol> Items::input_array(const Instance& instance, const ast::InputItem& node) {
  const Span span = tree()[node.type].span;
  const auto type = FOUND(conversions_.type_of(node.type));
  const Type wanted = instance.is_matrix ? matrix_type(kF32, pool().rows(), pool().cols())
                                         : vector_type(kF32, pool().n());
  const bool has_shape = type.dtype == kF32 && type.rank == wanted.rank && !is_by_rows() &&
                         !instance.has_set_elements &&
                         prover_.proves_equal(sizes_.num_elems(type), sizes_.num_elems(wanted)) &&
                         (type.rank == 1 || prover_.proves_equal(type.dims[0], wanted.dims[0]));
  if (!has_shape || node.range.has_value()) {
    reporter_.report<DiagKind::InputType>(
        node.range.has_value() && has_shape ? tree()[node.range].span : span, node.name.text,
        node.range.has_value() && has_shape ? "a range of an array" : sizes_.type_text(type));
    return std::nullopt;
  }
  const auto taken = std::ranges::find_if(
      out_.info.params, [&](const rt::ParamInfo& param) { return param.name == node.name.text; });
  const auto known = std::ranges::find_if(out_.info.states, [&](const rt::StateInfo& state) {
    return state.is_input && state.name == node.name.text;
  });
  const bool is_known = known != out_.info.states.end();
  if (taken != out_.info.params.end() || (is_known && known->type.rank != type.rank)) {
    reporter_.report<DiagKind::InputDiffers>(
        node.name.span, node.name.text, sizes_.type_text(type),
        is_known ? sizes_.type_text(known->type) : all_.params.declared_as(*taken));
    return std::nullopt;
  }
  Symbol symbol{.kind = SymbolKind::State, .span = node.name.span};
  symbol.is_input = true;
  symbol.noun = "an input";
  symbol.index = static_cast<std::uint32_t>(known - out_.info.states.begin());
  if (is_known) return symbol;
  out_.info.states.push_back({node.name.text, type, true});
  // Memory begins as zeros; every call brings the values.
  const Value zero = build_.in_block(span, [&] {
    return conversions_.fit_to(host_value(pool().const_int(0), span), type, node.name.text, span);
  });
  out_.state_inits.push_back(zero.expr);
  return symbol;
}

// Compressors that keep what another one loses, and what they may wrap.

namespace {

// Does `encode` decode what the wrapped compressor made of the gradient? Only wrappers that keep
// what this loses do so.
bool decodes_in_encode(const Instance& instance, const std::string& slot) {
  const ast::Method* encode = instance.method(ast::MethodKind::Encode);
  if (encode == nullptr) return false;
  const ast::Module& tree = instance.tree();
  const Span body = tree[encode->body].span;
  return std::ranges::any_of(tree.exprs.nodes, [&](const ast::Expr& node) {
    const auto* field = std::get_if<ast::FieldRef>(&node.node);
    if (field == nullptr || node.span.begin < body.begin || node.span.end > body.end) return false;
    const auto* base = std::get_if<ast::NameRef>(&tree[field->base].node);
    return base != nullptr && base->name.text == slot && field->field.text == "decode";
  });
}

const Claim* claim_of(const Instance& instance, ClaimKind kind) {
  const auto at = std::ranges::find(instance.claims, kind, &Claim::kind);
  return at == instance.claims.end() ? nullptr : &*at;
}

}  // namespace

void Items::find_own_states(const Instance& instance, std::vector<std::string>& found) const {
  for (const auto& [name, symbol] : instance.names) {
    if (symbol.kind != SymbolKind::State || symbol.is_input) continue;
    const Type& type = out_.info.states[symbol.index].type;
    const HostExprId elements =
        instance.rows ? pool().mul(instance.rows, instance.elements) : instance.elements;
    const bool is_gradient = prover_.proves_equal(sizes_.num_elems(type), elements);
    if (type.rank > 0 && is_gradient)
      found.push_back("`" + name + "` of `" + instance.name() + "`");
  }
}

void Items::find_states(const Instance& instance, std::vector<std::string>& found) const {
  find_own_states(instance, found);
  for (const auto& [slot, inner] : instance.inner) find_states(*inner, found);
}

// A variance below 1 is a contraction.
bool Items::loses_too_much(const Instance& inner) const {
  if (claim_of(inner, ClaimKind::Unbiased) == nullptr) return false;
  if (claim_of(inner, ClaimKind::Contraction) != nullptr) return false;
  const Claim* variance = claim_of(inner, ClaimKind::Variance);
  if (variance == nullptr || !pool().is_const(variance->numbers[0])) return true;
  return pool().const_value(variance->numbers[0]).to_double() >= 1;
}

void Items::check(const Instance& instance, Span span) {
  // A residual has an element for each of the gradient's: a counter keeps nothing that was lost.
  std::vector<std::string> own;
  find_own_states(instance, own);
  for (const auto& [slot, inner] : instance.inner) {
    if (!own.empty() && decodes_in_encode(instance, slot)) {
      std::vector<std::string> states;
      find_states(*inner, states);
      if (!states.empty()) {
        reporter_.report<DiagKind::ResidualOfStates>(span, instance.name(), states.front())
            .note("wrap the other way round, as in `momentum(error_feedback(topk))`");
      } else if (claim_of(instance, ClaimKind::Unbiased) == nullptr && loses_too_much(*inner)) {
        // Where the wrapper stays unbiased, it keeps no residual: DIANA's memory is such a state.
        reporter_.report<DiagKind::ResidualOfUnbiased>(span, inner->name(), instance.name());
      }
    }
    check(*inner, span);
  }
}

// Operators that work by rows, and types with rows.

Value Items::not_by_rows(std::string_view what, Span span) {
  return error_value(reporter_.report<DiagKind::NotByRows>(span, what)
                         .note(env_->instance->rows_span, "rows are set here"));
}

bool Items::has_row_form(BuiltinId id) const {
  switch (builtin_info(id).group) {
    case BuiltinGroup::Map:
      return id == BuiltinId::map || id == BuiltinId::floor_div;
    case BuiltinGroup::Reduce:
    case BuiltinGroup::Scan:
    case BuiltinGroup::Sort:
      return true;
    case BuiltinGroup::Move:
      return is_scatter(id) || id == BuiltinId::iota;
    case BuiltinGroup::Random:
      return id != BuiltinId::random_index;
    case BuiltinGroup::Filter:
    case BuiltinGroup::Pack:
    case BuiltinGroup::Matrix:
    case BuiltinGroup::Collective:
      return false;
  }
  return false;
}

std::optional<Type> Items::by_rows(const Type& type, Span span) {
  const HostExprId rows = env_->instance->rows;
  if (type.rank == 2) {
    not_by_rows("a matrix", span);
    return std::nullopt;
  }
  return matrix_type(type.dtype, rows, type.rank == 0 ? pool().const_int(1) : type.dims[0]);
}

// The wire in the form that the program publishes, and bounds of packed fields.

// The logarithm of a number of at most 32 bits, rounded down; 0 for 0.
HostExprId Items::log2_of(HostExprId x) {
  HostExprPool& p = pool();
  const HostExprId whole = p.make(HostOp::Floor, p.make(HostOp::Log2, p.cast(x, HostType::F64)));
  return p.make(HostOp::Max, p.cast(whole, HostType::Int), p.const_int(0));
}

// The most bits that the unary parts of the codes of `len` numbers take.
HostExprId Items::most_unary_bits(const WireField& field, HostExprId len) {
  HostExprPool& p = pool();
  if (field.code == FieldCode::Ascending) {
    return p.make(HostOp::Min, p.mul(len, p.const_int(3)), field.below);
  }
  const HostExprId width = log2_of(field.below);
  return p.mul(len, p.add(log2_of(p.add(width, p.const_int(1))), p.const_int(1)));
}

// The most words that `most` numbers take.
//
// Rice codes of m gaps with l low bits take m * l bits for these, and at most m + (below - m) / 2^l
// for the rest, where 2^l <= below / m < 2^(l + 1). So m * l is at most below / 2, and at most
// most * (l of `most`, plus 1). The rest is at most 3 m, and at most `below`.
//
// Elias delta codes are at most as long as the code of the largest number. The code of y takes at
// most 2 y bits.
HostExprId Items::most_words(const WireField& field, HostExprId most) {
  HostExprPool& p = pool();
  const HostExprId one = p.const_int(1), below = field.below;
  HostExprId bits;
  if (field.code == FieldCode::Ascending) {
    const HostExprId low = log2_of(p.div(below, p.make(HostOp::Max, most, one)));
    if (pool().has_count(field.type.dims[0])) {
      const HostExprId lows =
          p.make(HostOp::Min, p.mul(most, p.add(low, one)), p.ceil_div(below, p.const_int(2)));
      bits = p.add(lows, p.make(HostOp::Min, p.mul(most, p.const_int(3)), below));
    } else {
      const HostExprId rest = p.make(HostOp::Max, p.sub(below, most), p.const_int(0));
      bits = p.add(p.mul(most, p.add(low, one)), p.make(HostOp::Shr, rest, low));
    }
  } else {
    const HostExprId width = log2_of(below), unary = log2_of(p.add(width, one));
    bits = p.mul(most, p.add(p.add(width, p.mul(p.const_int(2), unary)), one));
    if (field.is_ascending()) bits = p.make(HostOp::Min, bits, p.mul(p.const_int(2), below));
  }
  return p.ceil_div(bits, p.const_int(32));
}

// A packed field becomes words in the payload, with a count of their number.
void Items::publish_packed(const WireField& field, rt::FieldInfo& info) {
  CheckedField& checked = out_.fields.back();
  checked.code = field.code;
  checked.below = field.below;
  checked.most = sizes_.without_counts(field.type.dims[0]);
  CINCH_CHECK(checked.most, "a wire field without a bound");
  checked.most_unary = most_unary_bits(field, checked.type.dims[0]);
  checked.words = static_cast<std::uint32_t>(out_.info.wire.counts.size());
  constexpr const char* kCodes[] = {"", "ascending", "elias", "elias ascending"};
  info.packing = sizes_.type_text(field.type) + ' ' + kCodes[static_cast<std::size_t>(field.code)] +
                 " below " + sizes_.size_text(field.below);
  const rt::CountInfo words{field.name + ".words", most_words(field, checked.most)};
  out_.info.wire.counts.push_back(words);
  out_.info.counts.push_back(words);
  info.type = vector_type(kU32, pool().count(checked.words, words.bound));
}

// The counts of the program's own wire are the first entries of ProgramInfo::counts.
void Items::publish_wire(Instance& instance) {
  std::map<HostExprId, HostExprId> real;
  for (const WireCount& count : instance.counts) {
    const auto index = static_cast<std::uint32_t>(out_.info.wire.counts.size());
    const HostExprId made = pool().count(index, count.bound);
    real[count.placeholder] = made;
    sizes_.name(made, count.name, count.span);
    out_.info.wire.counts.push_back({count.name, count.bound});
    out_.info.counts.push_back({count.name, count.bound});
  }
  bool all_add_up = !instance.fields.empty() && instance.counts.empty();
  out_.fields.clear();
  for (const WireField& field : instance.fields) {
    rt::FieldInfo info{.name = field.name, .type = with_counts(field.type, real), .sum = field.sum};
    out_.fields.push_back({info.type});
    if (field.code != FieldCode::Plain) publish_packed(field, info);
    all_add_up &= field.sum != rt::FieldSum::None;
    out_.info.wire.fields.push_back(std::move(info));
  }
  out_.info.aggregation = all_add_up ? rt::Aggregation::SumToTest : rt::Aggregation::Gather;
}

}  // namespace cinch::sema
