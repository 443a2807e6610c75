#include <algorithm>
#include <cstring>
#include <map>

#include "codegen/emit/cpu/reuse.h"
#include "codegen/emit/value_facts.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::codegen {
namespace {

using kir::Instr;
using kir::InstrKind;
using kir::SectionKind;
using kir::ValueId;

// In about the cost of an addition. To compute a cheaper value is as fast as to store and load it.
constexpr int kLeastCost = 10;
// An array takes 4 or 8 KiB for each tile of a chunk; one of truth values takes 128 bytes.
constexpr std::size_t kMostArrays = 6;

int cost_of(const Instr& instr) {
  switch (instr.kind) {
    case InstrKind::load_at:
    case InstrKind::running_sum:
      return 8;
    case InstrKind::load_linear:
      return 2;
    default:
      return kir::is_draw(instr.kind) ? 16 : 1;
  }
}

bool is_pure(InstrKind kind) {
  switch (kind) {
    case InstrKind::element:
    case InstrKind::column:
    case InstrKind::scalar:
    case InstrKind::convert:
    case InstrKind::bitcast:
    case InstrKind::load_linear:
    case InstrKind::load_at:
    case InstrKind::local_load:
    case InstrKind::running_sum:
      return true;
    default:
      return is_draw(kind);
  }
}

// Equal for instructions that compute the same. Operands count by the first value that is the same.
using Key = std::vector<std::uint64_t>;

class TileKeeper {
 public:
  explicit TileKeeper(kir::Kernel& kernel) : kernel_(kernel) {}

  // In every element section, computes once what two instructions compute.
  void merge() {
    note_written();
    number_values();
    for (kir::Section& section : kernel_.sections) {
      if (section.kind == SectionKind::Elements) merge_in(section);
    }
    for (kir::Section& section : kernel_.sections) {
      for (Instr& instr : section.instrs) {
        for (ValueId& v : instr.operands) {
          if (const auto other = merged_.find(v ? v.index() : 0); v && other != merged_.end())
            v = other->second;
        }
      }
    }
    made_.clear();
    same_.clear();
  }

  void keep() {
    note_written();
    // A compact store reads the begin of the vector from its running count, so the count must stay.
    each_instr([&](std::size_t, const Instr& instr) {
      const Instr* place = instr.is_compact ? made_[instr.operands[0].index()].instr : nullptr;
      if (place != nullptr) as_they_are_.insert(place->operands[1].index());
    });
    number_values();
    for (std::size_t s = 1; s < kernel_.sections.size(); ++s) {
      if (kernel_.sections[s].kind == SectionKind::Elements) find_candidates(s);
    }
    choose();
    for (std::size_t s = 1; s < kernel_.sections.size(); ++s) {
      if (kernel_.sections[s].kind == SectionKind::Elements) rewrite(s);
    }
  }

 private:
  struct Candidate {
    ValueId first, again;
  };
  struct Made {
    std::size_t section = 0;
    const Instr* instr = nullptr;
  };

  void merge_in(kir::Section& section) {
    std::map<std::size_t, const Instr*> seen;  // by the first value that is the same
    std::vector<Instr> instrs;
    instrs.reserve(section.instrs.size());  // `seen` points into it
    for (Instr& instr : section.instrs) {
      if (instr.results.size() == 1 && is_repeatable(instr)) {
        const auto [at, is_new] = seen.emplace(same_[instr.results[0].index()].index(), nullptr);
        if (!is_new && at->second->is_alike == instr.is_alike) {
          merged_[instr.results[0].index()] = at->second->results[0];
          continue;
        }
        instrs.push_back(std::move(instr));
        if (is_new) at->second = &instrs.back();
        continue;
      }
      instrs.push_back(std::move(instr));
    }
    section.instrs = std::move(instrs);
  }

  template <typename Visit>
  void each_instr(const Visit& visit) const {
    for (std::size_t s = 0; s < kernel_.sections.size(); ++s) {
      for (const Instr& instr : kernel_.sections[s].instrs) visit(s, instr);
    }
  }

  void note_written() {
    made_.resize(kernel_.values.size());
    each_instr([&](std::size_t s, const Instr& instr) {
      for (const ValueId v : instr.results) made_[v.index()] = {s, &instr};
      if (!kir::is_load(instr.kind)) written_.insert(instr.buffers.begin(), instr.buffers.end());
    });
  }

  bool is_repeatable(const Instr& instr) const {
    const bool reads_what_changes =
        std::ranges::any_of(instr.buffers, [&](rt::BufferIndex b) { return written_.contains(b); });
    const bool is_known = instr.kind == InstrKind::constant || instr.kind == InstrKind::host_size ||
                          instr.kind == InstrKind::group;
    return (is_known || is_pure(instr.kind)) && !reads_what_changes;
  }

  Key key_of(const Instr& instr) const {
    const auto type = [](DType t) { return static_cast<std::uint64_t>(t.kind) << 8 | t.bits; };
    Key key = {static_cast<std::uint64_t>(instr.kind),
               static_cast<std::uint64_t>(instr.scalar_op),
               instr.bits,
               instr.index,
               type(instr.dtype),
               type(instr.from_dtype),
               instr.draw.site,
               std::uint64_t{instr.draw.shared} << 1 | std::uint64_t{instr.exclusive},
               instr.buffers.size()};
    key.insert(key.end(), instr.buffers.begin(), instr.buffers.end());
    for (const ValueId v : instr.operands) key.push_back(v ? same_[v.index()].index() : UINT64_MAX);
    if (instr.kind == InstrKind::local_load) key.push_back(num_changes_);
    return key;
  }

  void number_values() {
    for (std::size_t v = 0; v < kernel_.values.size(); ++v) same_.emplace_back(v);
    num_changes_ = 0;
    std::map<Key, const Instr*> seen;
    for (const kir::Section& section : kernel_.sections) {
      for (const Instr& instr : section.instrs) {
        const bool changes_locals = instr.kind == InstrKind::local_store ||
                                    kir::family_of(instr.kind) == kir::InstrFamily::LocalWhole;
        if (changes_locals) ++num_changes_;
        if (!is_repeatable(instr)) continue;
        const auto [at, is_new] = seen.emplace(key_of(instr), &instr);
        if (is_new) continue;
        for (std::size_t r = 0; r < instr.results.size(); ++r) {
          same_[instr.results[r].index()] = same_[at->second->results[r].index()];
        }
      }
    }
  }

  // Did an earlier section compute the value, and can that section keep it?
  bool was_there(ValueId v) const {
    const Made& made = made_[v.index()];
    const Made& first = made_[same_[v.index()].index()];
    return made.instr != nullptr && first.section < made.section &&
           kernel_.sections[made.section].kind == SectionKind::Elements &&
           made.instr->kind != InstrKind::convert && !made.instr->is_alike &&
           made.instr->results[0] == v && !as_they_are_.contains(v.index());
  }

  // The cost of everything that the section computes for the value only.
  int cost(ValueId v, std::size_t section, std::set<std::size_t>& counted) const {
    const Made& made = made_[v.index()];
    if (made.section != section || loaded_.contains(v.index())) return 0;
    if (!counted.insert(v.index()).second) return 0;
    int sum = cost_of(*made.instr);
    for (const ValueId operand : made.instr->operands) {
      if (operand) sum += cost(operand, section, counted);
    }
    return sum;
  }

  // Goes backwards from what the section must do. What only a kept value needs is no candidate.
  void find_candidates(std::size_t s) {
    std::set<std::size_t> used, taken, group_results;
    each_instr([&](std::size_t section, const Instr& instr) {
      for (const ValueId v : instr.operands) {
        if (section != s && v && made_[v.index()].section == s) group_results.insert(v.index());
      }
    });
    const std::vector<Instr>& instrs = kernel_.sections[s].instrs;
    for (std::size_t i = instrs.size(); i-- > 0;) {
      const bool stays =
          !is_pure(instrs[i].kind) || std::ranges::any_of(instrs[i].results, [&](ValueId v) {
            return used.contains(v.index()) || group_results.contains(v.index());
          });
      if (!stays) continue;
      for (const ValueId v : instrs[i].operands) {
        if (!v || made_[v.index()].section != s) continue;
        if (!was_there(v)) {
          used.insert(v.index());
        } else if (taken.insert(v.index()).second) {
          candidates_.push_back({same_[v.index()], v});
        }
      }
    }
    // The instruction of a running sum also makes a sum for the group, which may be needed here.
    std::erase_if(candidates_, [&](const Candidate& c) {
      const Instr& made = *made_[c.again.index()].instr;
      return made.results.size() > 1 && group_results.contains(made.results[1].index());
    });
  }

  // Operands come before the values that use them.
  void choose() {
    std::ranges::sort(candidates_, std::less<>(),
                      [](const Candidate& c) { return c.again.index(); });
    for (const Candidate& c : candidates_) {
      std::set<std::size_t> counted;
      if (cost(c.again, made_[c.again.index()].section, counted) < kLeastCost) continue;
      const auto known = arrays_.find(c.first.index());
      if (known == arrays_.end()) {
        if (arrays_.size() == kMostArrays) continue;
        arrays_[c.first.index()] = static_cast<std::uint32_t>(kernel_.locals.size());
        kernel_.locals.push_back({kernel_.values[c.first.index()].type});
      }
      loaded_[c.again.index()] = arrays_.at(c.first.index());
    }
  }

  void rewrite(std::size_t s) {
    std::vector<Instr> instrs;
    for (Instr& instr : kernel_.sections[s].instrs) {
      const auto loaded =
          instr.results.empty() ? loaded_.end() : loaded_.find(instr.results[0].index());
      if (loaded != loaded_.end()) {
        instrs.push_back({.kind = InstrKind::local_load,
                          .results = {instr.results[0]},
                          .index = loaded->second});
        continue;
      }
      const std::vector<ValueId> results = instr.results;
      instrs.push_back(std::move(instr));
      for (const ValueId v : results) {
        const auto array = arrays_.find(v.index());
        if (array == arrays_.end()) continue;
        instrs.push_back({.kind = InstrKind::local_store, .operands = {v}, .index = array->second});
      }
    }
    kernel_.sections[s].instrs = std::move(instrs);
    drop_unused(s);
  }

  // Goes backwards and drops instructions whose results are unused.
  void drop_unused(std::size_t s) {
    std::set<std::size_t> used;
    const auto use = [&](const Instr& instr) {
      for (const ValueId v : instr.operands) {
        if (v) used.insert(v.index());
      }
    };
    each_instr([&](std::size_t section, const Instr& instr) {
      if (section != s) use(instr);
    });
    std::vector<Instr> kept;
    std::vector<Instr>& instrs = kernel_.sections[s].instrs;
    for (std::size_t i = instrs.size(); i-- > 0;) {
      const bool is_used = !is_pure(instrs[i].kind) ||
                           std::ranges::any_of(instrs[i].results,
                                               [&](ValueId v) { return used.contains(v.index()); });
      if (!is_used) continue;
      use(instrs[i]);
      kept.push_back(std::move(instrs[i]));
    }
    std::ranges::reverse(kept);
    instrs = std::move(kept);
  }

  kir::Kernel& kernel_;
  std::vector<Made> made_;  // by value; valid until sections are rewritten
  std::set<rt::BufferIndex> written_;
  std::set<std::size_t> as_they_are_;
  std::vector<ValueId> same_;  // by value: the first one that is the same
  std::vector<Candidate> candidates_;
  std::uint64_t num_changes_ = 0;  // of local arrays, before the instruction that is numbered
  std::map<std::size_t, ValueId>
      merged_;  // by value: the earlier one of its section that it equals
  std::map<std::size_t, std::uint32_t> arrays_, loaded_;  // numbers of local arrays, by value
};

// A row that is a tile may keep values, too. The sections of shorter rows are short.
bool may_keep(const kir::Kernel& kernel, const HostExprPool& exprs) {
  constexpr std::int64_t kShortRow = 64;
  if (kernel.group_kind == kir::GroupKind::Tile) return true;
  if (kernel.group_kind != kir::GroupKind::Row || !exprs.is_const(kernel.group_len)) return false;
  const std::int64_t len = exprs.const_value(kernel.group_len).as_int();
  return len > kShortRow && len <= kir::kTileElems;
}

template <typename Bits>
class Matrix {
 public:
  Matrix(std::span<const std::uint8_t> elements, std::int64_t side)
      : elements_(elements), side_(side) {}

  int folds() const {
    int count = 0;
    while (folds_at(std::int64_t{1} << count)) ++count;
    return count;
  }

 private:
  static constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);

  Bits at(std::int64_t row, std::int64_t column) const {
    Bits bits;
    std::memcpy(&bits,
                elements_.data() + static_cast<std::size_t>(row * side_ + column) * sizeof bits,
                sizeof bits);
    return bits;
  }
  // Looks at rows that are multiples of `stride`, in columns below side / stride.
  bool folds_at(std::int64_t stride) const {
    const std::int64_t width = side_ / stride;
    if (width % 2 != 0 || side_ % stride != 0) return false;
    for (std::int64_t row = 0; row < side_; row += stride) {
      const Bits sign = row / stride % 2 == 0 ? Bits{0} : kSign;
      for (std::int64_t j = 0; j < width / 2; ++j) {
        if (at(row, width - 1 - j) != (at(row, j) ^ sign)) return false;
      }
    }
    return true;
  }

  std::span<const std::uint8_t> elements_;
  std::int64_t side_;
};

}  // namespace

void keep_in_tiles(kir::Kernel& kernel, const HostExprPool& exprs) {
  TileKeeper keeper(kernel);
  keeper.merge();
  if (may_keep(kernel, exprs)) keeper.keep();
}

int matrix_folds(std::span<const std::uint8_t> elements, std::int64_t side) {
  const std::size_t count = static_cast<std::size_t>(side * side);
  if (elements.size() == 8 * count) return Matrix<std::uint64_t>(elements, side).folds();
  return elements.size() == 4 * count ? Matrix<std::uint32_t>(elements, side).folds() : 0;
}

}  // namespace cinch::codegen
