// Counts of filters by mask, and the counts of the wire that encode fills by the same mask.
#include "dsl/sema/tree/counts.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

std::optional<std::uint32_t> Counts::count_of_mask(const Value& mask, HostExprId limit,
                                                   HostExprId len, Span span) {
  const std::string key = count_key(mask, limit);
  const auto known = counts_by_mask_.find(key);
  if (known != counts_by_mask_.end()) return known->second;
  HostExprId bound = sizes_.without_counts(len);
  if (limit) {
    const HostExprId cap = sizes_.without_counts(limit);
    bound = bound && cap ? pool().min(bound, cap) : bound ? bound : cap;
  }
  if (!bound) {
    reporter_.report<DiagKind::NotKnownOnHost>(span, "the most that this keeps");
    return std::nullopt;
  }
  const auto index = static_cast<std::uint32_t>(out_.info.counts.size());
  out_.info.counts.push_back({"count" + std::to_string(index), bound});
  counts_by_mask_.emplace(key, index);
  const HostExprId count = pool().count(index, bound);
  if (sizes_.name(count, out_.info.counts[index].name, span)) {
    unnamed_counts_.insert(count);
  }
  return index;
}

std::uint32_t Counts::received(const std::string& key, HostExprId most) {
  const auto [known, is_new] =
      counts_by_mask_.try_emplace(key, static_cast<std::uint32_t>(out_.info.counts.size()));
  if (is_new) out_.info.counts.push_back({"count" + std::to_string(known->second), most});
  return known->second;
}

void Counts::name_counts(const Type& type, const ast::Name& name) {
  for (int i = 0; i < type.rank; ++i) {
    const HostExprNode& node = pool().node(type.dims[i]);
    if (node.op != HostOp::Count || !unnamed_counts_.erase(type.dims[i])) continue;
    sizes_.rename(type.dims[i], "len(" + name.text + ")", name.span);
  }
}

std::string Counts::count_key(const Value& mask, HostExprId limit) {
  return std::to_string(all_.numbering.value_number(mask.expr)) + "|" +
         std::to_string(limit.index());
}

void Counts::note_sent_counts(const Instance& instance, const Value& wire) {
  const ExprId literal = all_.payloads.literal_of(wire);
  const std::vector<ExprId>& args = out_.exprs[literal.index()].args;
  std::map<std::uint32_t, std::uint32_t> sent;  // the wire's count by the filter's count
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

void Counts::check_twin_counts(Span span) {
  const auto& counts = out_.info.wire.counts;
  const auto size = [&](std::uint32_t i) { return pool().count(i, counts[i].bound); };
  for (const auto& [twin, first] : twin_counts_) {
    build_.require(pool().make(HostOp::Eq, size(twin), size(first)),
                   "count " + counts[twin].name + ": the payload has another number for count " +
                       counts[first].name + ", which the same mask filled",
                   span);
  }
}

Value Counts::with_first_count(const Value& field, Span span) {
  if (!mode_.in_decode_body || twin_counts_.empty() || field.type.rank == 0) return field;
  const HostExprNode& size = pool().node(field.type.dims[0]);
  if (size.op != HostOp::Count) return field;
  const auto twin = twin_counts_.find(static_cast<std::uint32_t>(size.payload));
  if (twin == twin_counts_.end()) return field;
  Expr made{ExprKind::Slice, field.type, span};
  made.size = pool().const_int(0);
  made.size2 = pool().count(twin->second, out_.info.wire.counts[twin->second].bound);
  made.type.dims[0] = made.size2;
  made.args = {field.expr};
  Value value = build_.typed(std::move(made));
  value.facts = field.facts;
  all_.numbering.note_same(value.expr, field.expr);
  return value;
}

void Counts::note_masks(dsl::Diagnostic& diag, std::initializer_list<const Value*> values) {
  if (!mode_.in_decode_body) return;
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

std::optional<std::uint32_t> Counts::sent_count(const std::string& key) const {
  if (mode_.body != BodyKind::Decode || !mode_.in_decode_body) return std::nullopt;
  const auto at = sent_counts_.find(key);
  return at == sent_counts_.end() ? std::nullopt : std::optional(at->second);
}

// Payloads are not trusted, so the program checks that both counts are equal. Then the array gets
// the wire's count.
Value Counts::as_sent(const Value& result, std::uint32_t count, const CallArgs& args) {
  const rt::CountInfo& info = out_.info.wire.counts[count];
  const HostExprId sent = pool().count(count, info.bound);
  return build_.behind_filter(result, args.span, [&](const Value& found) {
    const HostExprId own = found.type.dims[0];
    build_.require(
        pool().make(HostOp::Eq, own, sent),
        "count " + info.name + ": `" + args.name + "` finds another number in the payload",
        args.span);
    Expr made{ExprKind::Slice, found.type, args.span};
    made.size = pool().const_int(0);
    made.size2 = sent;
    made.type.dims[0] = sent;
    made.args = {found.expr};
    const HostExprId bound = sizes_.without_counts(own);
    made.proved_in_bounds = bound && prover_.proves_less_equal(info.bound, bound);
    Value value = build_.typed(std::move(made));
    value.facts = found.facts;
    return value;
  });
}

}  // namespace cinch::sema
