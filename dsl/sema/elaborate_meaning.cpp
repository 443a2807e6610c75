// Which expressions have the same value. Filters by one mask share a count; and a filter in decode
// finds as many elements as encode sent where encode filtered by the same mask, made of what decode
// reads from the payload.
#include <algorithm>

#include "dsl/sema/elaborator.h"

namespace cinch::sema {

// What an expression stands for: past names of what does not change, past blocks that only name
// parts of their value, and past the fields of a payload, which hold what encode gave them.
ExprId Elaborator::resolved(ExprId id) const {
  while (true) {
    const Expr& e = out_.exprs[id.index()];
    ExprId next;
    if (const auto same = same_values_.find(id.index()); same != same_values_.end()) {
      next = same->second;
    } else if (e.kind == ExprKind::Var) {
      const auto known = definitions_.find(e.var.index());
      if (known != definitions_.end()) next = known->second;
    } else if (e.kind == ExprKind::Field) {
      const auto known = payload_literals_.find(e.var.index());
      if (known != payload_literals_.end()) next = out_.exprs[known->second.index()].args[e.index];
    } else if (e.kind == ExprKind::Block && !e.args.empty() && e.args[0]) {
      const auto names_a_part = [&](StmtId stmt) {
        return out_.stmts[stmt.index()].kind == StmtKind::Let;
      };
      if (std::ranges::all_of(e.stmts, names_a_part)) next = e.args[0];
    }
    if (!next) return id;
    id = next;
  }
}

// An integer that was widened, as what it was before.
ExprId Elaborator::unwidened(ExprId id) const {
  id = resolved(id);
  const Expr& e = out_.exprs[id.index()];
  if (e.kind != ExprKind::Convert) return id;
  const ExprId inner = resolved(e.args[0]);
  const bool is_wider = widens_losslessly(out_.exprs[inner.index()].type.dtype, e.type.dtype);
  return is_wider ? unwidened(inner) : id;
}

// A text that is equal for two expressions only if they have the same value: reads of mutable names
// carry the number of the assignment they see, parameters of lambdas their place.
std::string Elaborator::meaning_text(ExprId id) {
  const Expr& e = out_.exprs[id.index()];
  std::string key = std::to_string(static_cast<int>(e.kind)) + dtype_name(e.type.dtype) + ":";
  const auto add = [&](std::uint64_t number) { key += std::to_string(number) + ","; };
  const auto param = e.var ? lambda_params_.find(e.var.index()) : lambda_params_.end();
  if (e.kind == ExprKind::Var && param != lambda_params_.end()) return "parameter" + param->second;
  const auto flags = static_cast<std::uint64_t>(e.axis + 1) * 16 + (e.exclusive ? 4u : 0u) +
                     (e.descending ? 2u : 0u) + (e.shared ? 1u : 0u);
  for (const std::uint64_t number :
       {e.bits, std::uint64_t{e.index}, std::uint64_t{e.var.index()}, std::uint64_t{e.size.index()},
        std::uint64_t{e.size2.index()}, static_cast<std::uint64_t>(e.scalar_op),
        static_cast<std::uint64_t>(e.builtin), static_cast<std::uint64_t>(e.keep), flags}) {
    add(number);
  }
  if (const auto version = read_versions_.find(id.index()); version != read_versions_.end()) {
    add(version->second.first);
    add(version->second.second);
  }
  // Draws, and blocks that do something, are equal only to themselves.
  const bool is_alone =
      e.kind == ExprKind::Block || e.kind == ExprKind::WireLiteral ||
      (e.kind == ExprKind::Builtin && builtin_info(e.builtin).group == BuiltinGroup::Random);
  if (is_alone) {
    add(id.index() + 1);
    return key;
  }
  for (std::size_t i = 0; i < e.params.size(); ++i) {
    const DType dtype = out_.vars[e.params[i].index()].type.dtype;
    lambda_params_[e.params[i].index()] =
        std::to_string(meaning_depth_) + "," + std::to_string(i) + dtype_name(dtype);
    key += dtype_name(dtype) + ";";
  }
  const bool is_lambda = e.kind == ExprKind::Lambda;
  if (is_lambda) ++meaning_depth_;
  key += "(";
  for (ExprId arg : e.args) {
    if (arg && e.kind == ExprKind::Convert) arg = unwidened(arg);
    key += arg ? std::to_string(meaning_of(arg)) + ";" : ";";
  }
  if (is_lambda) --meaning_depth_;
  return key + ")";
}

// Equal numbers are equal values.
std::uint32_t Elaborator::meaning_of(ExprId written) {
  // Names are looked behind up to here: chains of them are longer than the stack is high.
  constexpr int kDeepest = 200;
  ExprId id = meaning_levels_ < kDeepest ? resolved(written) : written;
  if (const Expr& e = out_.exprs[id.index()]; e.kind == ExprKind::Convert) {
    const ExprId from = unwidened(e.args[0]);
    if (out_.exprs[from.index()].type.dtype == e.type.dtype) id = from;
  }
  const auto known = meanings_.find(id.index());
  if (known != meanings_.end()) return known->second;
  ++meaning_levels_;
  const std::string text = meaning_text(id);
  --meaning_levels_;
  const auto number = static_cast<std::uint32_t>(meaning_numbers_.size());
  return meanings_[id.index()] = meaning_numbers_.try_emplace(text, number).first->second;
}

std::string Elaborator::count_key(const Value& mask, HostExprId limit) {
  return std::to_string(meaning_of(mask.expr)) + "|" + std::to_string(limit.index());
}

// What encode has sent: its counts by their filters' masks, and what its fields hold.
void Elaborator::note_sent_counts(const Instance& instance, const Value& wire) {
  const ExprId literal = literal_of(wire);
  const std::vector<ExprId>& args = out_.exprs[literal.index()].args;
  std::map<std::uint32_t, std::uint32_t> sent;  // the wire's count by that of a filter
  for (std::uint32_t count = 0; count < instance.counts.size(); ++count) {
    for (std::size_t i = 0; i < args.size(); ++i) {
      const Type& declared = instance.fields[i].type;
      for (int d = 0; d < declared.rank; ++d) {
        if (declared.dims[d] != instance.counts[count].placeholder) continue;
        const HostExprNode& size = pool().node(out_.exprs[args[i].index()].type.dims[d]);
        if (size.op != HostOp::Count) continue;
        const auto filter = static_cast<std::uint32_t>(size.payload);
        const std::uint32_t first = sent.emplace(filter, count).first->second;
        if (first != count) twin_counts_[count] = first;
      }
    }
  }
  for (const auto& [key, found] : counts_by_mask_) {
    if (const auto at = sent.find(found); at != sent.end()) sent_counts_[key] = at->second;
  }
  sent_literal_ = literal;
}

void Elaborator::check_twin_counts(Span span) {
  const auto& counts = out_.info.wire.counts;
  const auto size = [&](std::uint32_t i) { return pool().count(i, counts[i].bound); };
  for (const auto& [twin, first] : twin_counts_) {
    require(pool().make(HostOp::Eq, size(twin), size(first)),
            "count " + counts[twin].name + ": the payload has another number for count " +
                counts[first].name + ", which the same mask filled",
            span);
  }
}

// A field of the payload whose count is that of another by one mask has the other's.
Value Elaborator::with_first_count(const Value& field, Span span) {
  if (!in_decode_body_ || twin_counts_.empty() || field.type.rank == 0) return field;
  const HostExprNode& size = pool().node(field.type.dims[0]);
  if (size.op != HostOp::Count) return field;
  const auto twin = twin_counts_.find(static_cast<std::uint32_t>(size.payload));
  if (twin == twin_counts_.end()) return field;
  Expr made{ExprKind::Slice, field.type, span};
  made.size = pool().const_int(0);
  made.size2 = pool().count(twin->second, out_.info.wire.counts[twin->second].bound);
  made.type.dims[0] = made.size2;
  made.args = {field.expr};
  Value value = typed(std::move(made));
  value.facts = field.facts;
  same_values_[value.expr.index()] = field.expr;
  return value;
}

// A filter in decode whose mask is not known beside what encode sent.
void Elaborator::note_masks(dsl::Diagnostic& diag, std::initializer_list<const Value*> values) {
  if (!in_decode_body_) return;
  bool has_sent = false, has_found = false;
  for (const Value* value : values) {
    for (int i = 0; value->is_typed() && i < value->type.rank; ++i) {
      const HostExprNode& size = pool().node(value->type.dims[i]);
      if (size.op != HostOp::Count) continue;
      const bool is_sent = static_cast<std::size_t>(size.payload) < out_.info.wire.counts.size();
      has_sent |= is_sent;
      has_found |= !is_sent;
    }
  }
  if (!has_sent || !has_found) return;
  diag.note(
      "a filter in `decode` finds as many as `encode` sent if both make the mask the same way: by "
      "the same operators, of the same fields");
}

// The count of the program's wire that is as large as what this filter keeps, if encode was honest.
std::optional<std::uint32_t> Elaborator::sent_count(const std::string& key) const {
  if (body_ != BodyKind::Decode || !in_decode_body_) return std::nullopt;
  const auto at = sent_counts_.find(key);
  return at == sent_counts_.end() ? std::nullopt : std::optional(at->second);
}

// Payloads are not trusted: that both counts are equal is checked, and then the array has the
// wire's.
Value Elaborator::as_sent(const Value& result, std::uint32_t count, const CallArgs& args) {
  const rt::CountInfo& info = out_.info.wire.counts[count];
  const HostExprId sent = pool().count(count, info.bound);
  return behind_filter(result, args.span, [&](const Value& found) {
    const HostExprId own = found.type.dims[0];
    require(pool().make(HostOp::Eq, own, sent),
            "count " + info.name + ": `" + args.name + "` finds another number in the payload",
            args.span);
    Expr made{ExprKind::Slice, found.type, args.span};
    made.size = pool().const_int(0);
    made.size2 = sent;
    made.type.dims[0] = sent;
    made.args = {found.expr};
    const HostExprId bound = without_counts(own);
    made.proved_in_bounds = bound && sizes_.proves_less_equal(info.bound, bound);
    Value value = typed(std::move(made));
    value.facts = found.facts;
    return value;
  });
}

}  // namespace cinch::sema
