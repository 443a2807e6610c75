#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/service/library_list.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/payload/payload.h"

namespace cinch::service {
namespace {

struct Term {
  HostExprId of;
  std::int64_t times = 1;
};

class Terms {
 public:
  explicit Terms(HostExprPool& pool) : pool_(pool) {}

  void add(HostExprId id) {
    const HostExprNode node = pool_.node(id);
    if (node.op == HostOp::Add && node.type == HostType::Int) {
      add(node.args[0]);
      add(node.args[1]);
      return;
    }
    const Term term = term_of(id);
    const auto same = std::ranges::find(terms_, term.of, &Term::of);
    if (same == terms_.end()) {
      terms_.push_back(term);
    } else {
      same->times += term.times;
    }
  }

  HostExprId sum() {
    HostExprId total = pool_.const_int(0);
    for (const Term& term : terms_) {
      const HostExprId product =
          term.times == 1 ? term.of : pool_.mul(pool_.const_int(term.times), term.of);
      total = pool_.add(total, product);
    }
    return total;
  }

 private:
  std::optional<std::int64_t> constant(HostExprId id) const {
    if (!pool_.is_const(id) || pool_.type(id) != HostType::Int) return std::nullopt;
    return pool_.const_value(id).as_int();
  }

  Term term_of(HostExprId id) {
    const HostExprNode node = pool_.node(id);
    if (const auto value = constant(id)) return {pool_.const_int(1), *value};
    if (node.op == HostOp::Mul) {
      for (const int side : {0, 1}) {
        const auto factor = constant(node.args[side]);
        if (!factor) continue;
        Term rest = term_of(node.args[1 - side]);
        rest.times *= *factor;
        return rest;
      }
    }
    if (node.op == HostOp::CeilDiv) {
      const auto divisor = constant(node.args[1]);
      Term divided = term_of(node.args[0]);
      if (divisor && *divisor > 0 && divided.times % *divisor == 0) {
        divided.times /= *divisor;
        return divided;
      }
    }
    return {id, 1};
  }

  HostExprPool& pool_;
  std::vector<Term> terms_;
};

}  // namespace

HostExprId collected(HostExprPool& pool, HostExprId sum) {
  if (pool.type(sum) != HostType::Int) return sum;
  Terms terms(pool);
  terms.add(sum);
  return terms.sum();
}

std::string formula_text(rt::ProgramInfo& info, HostExprId id) {
  return info.exprs->print(
      collected(*info.exprs, id), [&](std::uint32_t i) { return info.params[i].name; },
      [&](std::uint32_t i) { return info.counts[i].name; });
}

// A call needs no brackets, wherever it is.
static bool is_call(const std::string& text) {
  const std::size_t bracket = text.find('(');
  if (bracket == 0 || bracket == std::string::npos || text.back() != ')') return false;
  if (text.find(' ') < bracket) return false;
  int depth = 0;
  for (std::size_t i = bracket; i + 1 < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) return false;
  }
  return true;
}

bool name_size(std::string& text, const std::string& formula, const std::string& name) {
  if (!is_call(formula)) return false;
  const std::string before = text;
  for (std::size_t at = 0; (at = text.find(formula, at)) != std::string::npos; at += name.size())
    text.replace(at, formula.size(), name);
  return text != before;
}

std::string formula_with_sizes(rt::ProgramInfo& info, HostExprId id) {
  std::string text = formula_text(info, id), sizes;
  for (const rt::SizeInfo& size : info.sizes) {
    const std::string value = formula_text(info, size.value);
    if (!name_size(text, value, size.name)) continue;
    sizes += (sizes.empty() ? ", where " : ", ") + size.name + " = " + value;
  }
  return text + sizes;
}

HostExprId payload_bound(rt::ProgramInfo& info) {
  HostExprPool& pool = *info.exprs;
  const auto num_counts = static_cast<std::int64_t>(info.wire.counts.size());
  HostExprId end = pool.const_int(rt::kPayloadHeaderBytes + 4 * num_counts);
  for (const rt::FieldInfo& field : info.wire.fields) {
    HostExprId elements = pool.const_int(1);
    for (int d = 0; d < field.type.rank; ++d) {
      elements = pool.mul(elements, pool.upper_bound(field.type.dims[d]));
    }
    const std::int64_t bits = field.type.dtype.bits;
    const HostExprId bytes =
        bits % 8 == 0 ? pool.mul(pool.const_int(bits / 8), elements)
                      : pool.ceil_div(pool.mul(pool.const_int(bits), elements), pool.const_int(8));
    end = pool.add(pool.align_up(end, pool.const_int(rt::kPayloadFieldAlignment)), bytes);
  }
  return end;
}

std::string carrier_text(const rt::ProgramInfo& info) {
  const rt::SumCarrier& carrier = info.carrier;
  switch (carrier.kind) {
    case rt::CarrierKind::Itself: {
      const bool has_residual = !info.states.empty() && !info.has_sync;
      return has_residual ? "itself, with a residual of the owner's own" : "itself";
    }
    case rt::CarrierKind::Exact:
      return "f32 (exact)";
    case rt::CarrierKind::Program:
      return carrier.text + (carrier.shares_draws ? " with the draws of the ranks" : "");
    case rt::CarrierKind::None:
      break;
  }
  return "nothing: " + carrier.text +
         "; takes allgather, allreduce if its wire adds up, reduce_scatter";
}

nlohmann::json carrier_json(const rt::SumCarrier& carrier) {
  constexpr const char* kKinds[] = {"itself", "exact", "program", "none"};
  return {{"kind", kKinds[static_cast<std::size_t>(carrier.kind)]},
          {"text", carrier.text},
          {"shares_draws", carrier.shares_draws}};
}

}  // namespace cinch::service
