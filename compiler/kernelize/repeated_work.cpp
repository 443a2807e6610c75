// Values that kernels would recompute too often; see plan_region.h.

#include <algorithm>
#include <deque>
#include <ranges>
#include <unordered_set>

#include "compiler/ir/ops.h"
#include "compiler/ir/types.h"
#include "compiler/kernelize/walk_pulls.h"

namespace cinch::codegen {
namespace {

using ir::ValueId;

constexpr std::size_t kMostPlaces = 64;  // more places of a value are not distinguished
// Limit of a value's places times the operators that make it
constexpr std::size_t kMostWork = 96;
constexpr std::size_t kMuchWork = 16;    // the most operators that are counted for one value
constexpr std::size_t kLongChain = 128;  // in operators
constexpr std::size_t kFewSinks = 2;     // this many sinks may each compute a long chain
constexpr std::size_t kMostLooked = 256;

// Number of separate elements of an operand that an element of the result reads.
std::size_t parts_of(const ir::Op& op) {
  const std::size_t bits = op.attrs.bits;
  if (op.kind == ir::OpKind::pack) return 8 / bits + 2;       // elements with bits in a byte
  if (op.kind == ir::OpKind::unpack) return (bits + 14) / 8;  // bytes with bits of an element
  return 1;
}

// The work of an operator in simple operators: packed bits are assembled part by part.
std::size_t work_of(const ir::Op& op) {
  constexpr std::size_t kOfPart = 16;
  const std::size_t parts = parts_of(op);
  return parts > 1 ? parts * kOfPart : 1;
}

class RepeatedWork {
 public:
  RepeatedWork(const FunctionContext& cx, ir::RegionId region,
               const std::vector<StoreRequest>& requests)
      : cx_(cx), ops_(cx.fn.regions[region.index()].ops) {
    for (const auto id : ops_) {
      for (const auto r : cx_.op(id).results) here_.insert(r.index());
      for_each_used_value(cx_.fn, id, [&](ValueId v) { users_[v.index()].push_back(id); });
    }
    for (const auto& r : requests) requested_.insert(r.value.index());
  }

  std::vector<ValueId> run() {
    choose_by_places();
    choose_by_chains();
    return std::move(chosen_);
  }

 private:
  using Places = std::unordered_set<std::uint64_t>;

  // Is it computed element by element where it is pulled?
  bool is_pulled(ValueId v) const {
    return here_.contains(v.index()) && cx_.value(v).type.rank > 0 &&
           !ir::is_sweep(cx_.def(v).kind) && !cx_.def(v).operands.empty() &&
           !is_chosen_.contains(v.index());
  }
  bool may_be_stored(ValueId v) const { return !is_bool(cx_.value(v).type.dtype); }

  void choose(ValueId v) {
    chosen_.push_back(v);
    is_chosen_.insert(v.index());
  }

  // The place of element i in a sweep over this many elements.
  std::uint64_t swept_place(ValueId v) const {
    return cx_.program.num_elems(cx_.value(v).type).index();
  }
  static std::uint64_t moved_place(std::uint64_t place, ir::OpId op, std::size_t operand) {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
    return ((place ^ (op.index() + 1)) * kOdd ^ (operand + 1)) * kOdd;
  }

  void choose_by_places() {
    for (const auto v : requested_) {
      places_[v].insert(swept_place(ValueId(std::size_t{v})));
    }
    for (const auto id : std::views::reverse(ops_)) {
      const auto& op = cx_.op(id);
      if (ir::is_sweep(op.kind)) {
        for_each_used_value(cx_.fn, id,
                            [&](ValueId v) { places_[v.index()].insert(swept_place(v)); });
        continue;
      }
      if (op.results.size() != 1 || !is_pulled(op.results[0])) continue;
      Places& places = places_[op.results[0].index()];
      const ValueId v = op.results[0];
      const std::size_t num_places = places.size();
      const bool is_work = num_places * kMuchWork > kMostWork &&
                           num_places * std::min(chain_length(v, kMuchWork), kMuchWork) > kMostWork;
      if (is_work && may_be_stored(v)) {
        choose(op.results[0]);
        places = {swept_place(op.results[0])};
      }
      hand_on(id, Places(places));
    }
  }

  void hand_on(ir::OpId id, const Places& places) {
    const auto& op = cx_.op(id);
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      Places& to = places_[op.operands[i].index()];
      if (to.size() > kMostPlaces) continue;  // already enough to be chosen
      for (const auto place : places) {
        const ir::Reads reads = ir::reads_of(op, i);
        if (reads == ir::Reads::Pointwise || reads == ir::Reads::SameIndex ||
            reads == ir::Reads::Index) {
          to.insert(place);
          continue;
        }
        for (std::size_t part = 0; part < parts_of(op); ++part)
          to.insert(moved_place(place, id, i + part * op.operands.size()));
      }
    }
  }

  void choose_by_chains() {
    for (const auto id : ops_) {
      const auto& op = cx_.op(id);
      if (op.results.size() != 1 || !is_pulled(op.results[0])) continue;
      const ValueId v = op.results[0];
      if (may_be_stored(v) && chain_length(v, kMostLooked) > kLongChain && num_sinks(v) > kFewSinks)
        choose(v);
    }
  }

  // Work of the operators between `v` and memory, counted up to `most`.
  std::size_t chain_length(ValueId v, std::size_t most) const {
    std::unordered_set<std::uint32_t> seen = {v.index()};
    std::vector<ValueId> work = {v};
    std::size_t length = work_of(cx_.def(v));
    while (!work.empty() && length < most) {
      const ValueId value = work.back();
      work.pop_back();
      for (const auto operand : cx_.def(value).operands) {
        if (!is_pulled(operand) || !seen.insert(operand.index()).second) continue;
        work.push_back(operand);
        length += work_of(cx_.def(operand));
      }
    }
    return length;
  }

  // Sinks that pull `v`, counted up to a few.
  std::size_t num_sinks(ValueId v) const {
    // One element for each row: sweeps over whole rows compute it once per row.
    const ir::Type& type = cx_.value(v).type;
    const auto& exprs = cx_.program.exprs();
    const bool has_one_a_row = type.rank == 2 && !exprs.is_const(type.dims[0]) &&
                               ir::constant_size(exprs, type.dims[1]) == 1;
    std::unordered_set<std::uint32_t> sinks, seen = {v.index()};
    std::deque<std::uint32_t> work = {v.index()};  // near ones first: a chain may be long
    std::size_t num_requests = 0;
    while (!work.empty() && seen.size() < kMostLooked && sinks.size() <= kFewSinks) {
      const std::uint32_t value = work.front();
      work.pop_front();
      if (requested_.contains(value)) ++num_requests;
      const auto users = users_.find(value);
      if (users == users_.end()) continue;
      for (const auto id : users->second) {
        const auto& op = cx_.op(id);
        // A stored value is a sink, too, and its readers do not compute it.
        const bool is_stored = op.results.size() == 1 && is_chosen_.contains(op.results[0].index());
        if (has_one_a_row && op.kind == ir::OpKind::reduce && op.attrs.axis == 1) continue;
        if (ir::is_sweep(op.kind) || is_stored) {
          sinks.insert(id.index());
        } else if (op.results.size() == 1 && seen.insert(op.results[0].index()).second) {
          work.push_back(op.results[0].index());
        }
      }
    }
    return sinks.size() + (num_requests > 0 ? 1 : 0);
  }

  const FunctionContext& cx_;
  const std::vector<ir::OpId>& ops_;
  std::unordered_set<std::uint32_t> here_, requested_, is_chosen_;
  std::unordered_map<std::uint32_t, std::vector<ir::OpId>> users_;
  std::unordered_map<std::uint32_t, Places> places_;
  std::vector<ValueId> chosen_;
};

}  // namespace

std::vector<ValueId> find_repeated_work(const FunctionContext& cx, ir::RegionId region,
                                        const std::vector<StoreRequest>& requests) {
  if (!region.is_valid()) return {};
  return RepeatedWork(cx, region, requests).run();
}

}  // namespace cinch::codegen
