// KernelRun: groups, memory, single elements, and the dispatch over instructions.
#include "tests/programs/harness/kernel_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "codegen/jit/library.h"
#include "codegen/kir/compute_type.h"
#include "runtime/core/check.h"
#include "runtime/core/lang.h"
#include "runtime/core/numbers/scalar_eval.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::testing {

using kir::ComputeType;
using kir::Instr;
using kir::InstrKind;
using kir::ValueId;

KernelRun::KernelRun(const kir::KernelProgram& program, const kir::Kernel& kernel,
                     const rt::KernelArgs& args)
    : program_(program),
      kernel_(kernel),
      args_(args),
      values_(kernel.values.size()),
      locals_(kernel.locals.size(), Words(kir::kTileElems)) {}

void KernelRun::run(std::uint64_t begin, std::uint64_t end, std::uint64_t seed) {
  len_ = 1;
  for (const Instr& instr : kernel_.sections[0].instrs) execute(instr, 1);
  find_extent();
  for (const std::uint64_t group : order_of(begin, end, seed)) run_group(group);
}

// Runs of groups that may share a byte stay together.
std::vector<std::uint64_t> KernelRun::order_of(std::uint64_t begin, std::uint64_t end,
                                               std::uint64_t seed) const {
  const bool is_fixed = kernel_.info.is_ordered || kernel_.info.is_sequential;
  const std::uint64_t run = is_fixed ? std::max<std::uint64_t>(end - begin, 1)
                                     : std::max<std::uint64_t>(kernel_.info.group_multiple, 1);
  std::vector<std::uint64_t> runs;
  for (std::uint64_t first = begin; first < end; first += run) runs.push_back(first);
  for (std::size_t i = runs.size(); i > 1; --i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    std::swap(runs[i - 1], runs[(seed >> 33) % i]);
  }
  std::vector<std::uint64_t> groups;
  for (const std::uint64_t first : runs) {
    for (std::uint64_t g = first; g < std::min(first + run, end); ++g) groups.push_back(g);
  }
  return groups;
}

std::int64_t KernelRun::size(HostExprId expr) const {
  const HostExprPool& pool = *program_.info.exprs;
  if (pool.is_const(expr)) return pool.const_value(expr).as_int();
  const auto index = kir::find_size(program_, expr);
  CINCH_CHECK(index, "a size that no kernel is given");
  return static_cast<std::int64_t>(args_.sizes[*index]);
}

void KernelRun::find_extent() {
  const bool is_tile = kernel_.group_kind == kir::GroupKind::Tile;
  row_len_ = kernel_.group_kind == kir::GroupKind::Row ? size(kernel_.group_len) : 1;
  if (is_tile) extent_ = size(kernel_.extent);
  if (!kernel_.extent_value) return;
  const auto actual = static_cast<std::int64_t>(values_[kernel_.extent_value.index()][0]);
  extent_ = is_tile ? std::min(extent_, actual) : actual;
  has_actual_ = true;
}

void KernelRun::run_group(std::uint64_t group) {
  const auto g = static_cast<std::int64_t>(group);
  group_ = group;
  if (kernel_.group_kind == kir::GroupKind::Tile) {
    group_elems_ = kir::kTileElems;
    if (g * group_elems_ >= extent_) return;
    len_ = std::min<std::int64_t>(extent_ - g * group_elems_, group_elems_);
  } else {
    if (has_actual_ && g >= extent_) return;
    len_ = group_elems_ = row_len_;
  }
  for (std::size_t s = 1; s < kernel_.sections.size(); ++s) {
    const kir::Section& section = kernel_.sections[s];
    const bool is_elements = section.kind == kir::SectionKind::Elements;
    for (const Instr& instr : section.instrs) {
      const std::size_t count = is_elements ? static_cast<std::size_t>(len_) : 1;
      execute(instr, count);
      check_facts(instr, count);
    }
  }
}

// ---- memory ----

void KernelRun::linear(const Instr& instr, std::size_t count) {
  const bool is_store = instr.kind == InstrKind::store_linear;
  const std::size_t first = is_store ? 1 : 0;
  const ValueId base = optional_operand(instr, first), limit = optional_operand(instr, first + 1);
  const std::int64_t from = base ? index_at(base, 0) : 0;
  const std::int64_t end = limit ? index_at(limit, 0) : static_cast<std::int64_t>(count);
  const auto is_there = [&](std::size_t j) { return static_cast<std::int64_t>(j) < end; };
  const auto place = [&](std::size_t j) { return from + static_cast<std::int64_t>(j); };
  if (!is_store) {
    fill(instr.results[0], count,
         [&](std::size_t j) { return is_there(j) ? load(instr.buffers[0], place(j)) : 0; });
    return;
  }
  std::size_t stored = 0;
  for (; stored < count && is_there(stored); ++stored) {
    store(instr.buffers[0], place(stored), at(instr.operands[0], stored));
  }
  if (stored > 0) {
    close_run(program_.buffers[instr.buffers[0]], args_.buffers[instr.buffers[0]], place(stored));
  }
}

void KernelRun::at_places(const Instr& instr, std::size_t count) {
  const rt::BufferIndex buffer = instr.buffers[0];
  if (instr.kind == InstrKind::load_at) {
    const ValueId pred = optional_operand(instr, 1);
    fill(instr.results[0], count, [&](std::size_t j) {
      return holds(pred, j) ? load(buffer, index_at(instr.operands[0], j)) : 0;
    });
    return;
  }
  const bool is_hist = instr.kind == InstrKind::hist_add;
  const ValueId pred = optional_operand(instr, is_hist ? 1 : 2);
  for (std::size_t j = 0; j < count; ++j) {
    if (!holds(pred, j)) continue;
    const std::int64_t index = index_at(instr.operands[0], j);
    if (is_hist) {
      if (at(instr.operands[0], j) < instr.bits) store(buffer, index, load(buffer, index) + 1);
    } else if (instr.kind == InstrKind::store_at) {
      store(buffer, index, at(instr.operands[1], j));
    } else {
      const Word both[] = {load(buffer, index), at(instr.operands[1], j)};
      const DType dtype = kir::dtype_of(type(instr.operands[1]));
      const ScalarOp joins = instr.kind == InstrKind::max_at ? ScalarOp::max : ScalarOp::add;
      store(buffer, index, evaluate_scalar(joins, dtype, both));
    }
  }
}

void KernelRun::argsort(const Instr& instr) {
  const std::int64_t begin = index_at(instr.operands[0], 0);
  const auto len = static_cast<std::size_t>(index_at(instr.operands[1], 0));
  const DType dtype = kir::dtype_of(kir::compute_type(program_.buffers[instr.buffers[0]].dtype));
  Words keys(len);
  std::vector<bool> is_nan(len);
  for (std::size_t i = 0; i < len; ++i) {
    keys[i] = load(instr.buffers[0], begin + static_cast<std::int64_t>(i));
    const Word same[] = {keys[i], keys[i]};
    is_nan[i] = is_float(dtype) && evaluate_scalar(ScalarOp::ne, dtype, same) != 0;
  }
  std::vector<std::uint32_t> order(len);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (is_nan[a] || is_nan[b]) return !is_nan[a] && is_nan[b];
    const Word both[] = {keys[a], keys[b]};
    return evaluate_scalar(instr.descending ? ScalarOp::gt : ScalarOp::lt, dtype, both) != 0;
  });
  for (std::size_t i = 0; i < len; ++i) {
    store(instr.buffers[1], begin + static_cast<std::int64_t>(i), order[i]);
  }
}

// ---- draws ----

void KernelRun::draw(const Instr& instr, std::size_t count) {
  const bool is_round = instr.kind == InstrKind::stochastic_round;
  const bool is_index = instr.kind == InstrKind::random_index;
  const ValueId iteration = optional_operand(instr, is_round || is_index ? 2 : 1);
  const auto site = static_cast<lang::u32>(instr.draw.site + (iteration ? at(iteration, 0) : 0));
  const lang::DrawStream stream = lang::draw_stream(args_.draw, site, instr.draw.shared);
  const bool is_double = is_round && type(instr.operands[0]) == ComputeType::F64;
  lang::IndexPermutation permutation{};
  if (is_index) permutation = lang::index_permutation(stream, at(instr.operands[1], 0));
  fill(instr.results[0], count, [&](std::size_t j) -> Word {
    const auto index = static_cast<lang::u32>(at(instr.operands[is_round ? 1 : 0], j));
    switch (instr.kind) {
      case InstrKind::random:
        return element_of_f32(lang::random(stream, index));
      case InstrKind::random_bits:
        return lang::random_bits(stream, index);
      case InstrKind::normal:
        return element_of_f32(lang::normal(stream, index));
      case InstrKind::random_index:
        return lang::random_index(permutation, index);
      default:
        break;
    }
    const Word x = at(instr.operands[0], j);
    if (is_double) {
      return element_of_f64(lang::stochastic_round(f64_of(x), stream, index));
    }
    const Word rounded = element_of_f32(lang::stochastic_round(f32_of(x), stream, index));
    return kir::rounds_to_int(instr) ? convert_element(kF32, instr.dtype, rounded) : rounded;
  });
}

// ---- the rest ----

void KernelRun::status(const Instr& instr, std::size_t count) {
  for (std::size_t j = 0; j < count; ++j) {
    const Word x = at(instr.operands[0], j);
    if (instr.kind == InstrKind::flag_nonfinite) {
      if (!std::isfinite(f32_of(x))) args_.status[rt::kStatusFlags] |= rt::kFlagNonFinite;
      continue;
    }
    if (x == 0) continue;
    std::uint32_t& failed = args_.status[rt::kStatusFailed];
    if (failed == 0 || failed > instr.index + 1) failed = instr.index + 1;
  }
}

void KernelRun::leaf(const Instr& instr, std::size_t count) {
  const ValueId result = instr.results[0];
  const auto first = static_cast<std::uint32_t>(group_ * static_cast<std::uint64_t>(group_elems_));
  switch (instr.kind) {
    case InstrKind::constant:
      return set(result, constant_word(type(result), instr.bits));
    case InstrKind::param:
      return set(result, constant_word(type(result), args_.params[instr.index]));
    case InstrKind::host_size:
      return set(result, constant_word(type(result), args_.sizes[instr.index]));
    case InstrKind::group:
      return set(result, group_);
    case InstrKind::group_len:
      return set(result, static_cast<Word>(len_));
    case InstrKind::column:
      return fill(result, count, [](std::size_t j) { return j; });
    default:
      return fill(result, count, [&](std::size_t j) {
        return static_cast<std::uint32_t>(first + static_cast<std::uint32_t>(j));
      });
  }
}

void KernelRun::compute(const Instr& instr, std::size_t count) {
  const bool is_select = instr.kind == InstrKind::scalar && instr.scalar_op == ScalarOp::select;
  const ComputeType operand_type = type(instr.operands[is_select ? 1 : 0]);
  std::array<Word, 3> operands{};
  fill(instr.results[0], count, [&](std::size_t j) {
    for (std::size_t k = 0; k < instr.operands.size(); ++k) operands[k] = at(instr.operands[k], j);
    return compute_word(instr, operand_type, operands.data());
  });
}

void KernelRun::check_facts(const Instr& instr, std::size_t count) const {
  for (std::size_t j = 1; instr.is_alike && j < count; ++j) {
    const bool begins_row = j % kir::kRowElems == 0;
    CINCH_CHECK(begins_row || at(instr.results[0], j) == at(instr.results[0], j - 1),
                "what is marked alike differs in a row");
  }
  std::optional<std::int64_t> last;
  for (std::size_t j = 0; instr.is_compact && j < count; ++j) {
    if (!holds(instr.operands[2], j)) continue;
    const std::int64_t place = index_at(instr.operands[0], j);
    CINCH_CHECK(!last || place == *last + 1, "a store that is marked compact leaves a place out");
    last = place;
  }
}

void KernelRun::call_extern(const Instr& instr, std::size_t count) {
  std::vector<std::vector<Word>> operands;
  for (const ValueId value : instr.operands) {
    std::vector<Word>& column = operands.emplace_back();
    column.reserve(count);
    for (std::size_t j = 0; j < count; ++j) column.push_back(at(value, j));
  }
  const auto made =
      codegen::call_extern(program_.info.externs[instr.index], operands, count).value();
  fill(instr.results[0], count, [&](std::size_t j) { return made[j]; });
}

void KernelRun::execute(const Instr& instr, std::size_t count) {
  switch (instr.kind) {
    case InstrKind::constant:
    case InstrKind::param:
    case InstrKind::host_size:
    case InstrKind::group:
    case InstrKind::group_len:
    case InstrKind::column:
    case InstrKind::element:
      return leaf(instr, count);
    case InstrKind::scalar:
    case InstrKind::convert:
    case InstrKind::bitcast:
      return compute(instr, count);
    case InstrKind::call_extern:
      return call_extern(instr, count);
    case InstrKind::load_linear:
    case InstrKind::store_linear:
      return linear(instr, count);
    case InstrKind::load_at:
    case InstrKind::store_at:
    case InstrKind::add_at:
    case InstrKind::max_at:
    case InstrKind::hist_add:
      return at_places(instr, count);
    case InstrKind::argsort_row:
      return argsort(instr);
    case InstrKind::reduce:
      return reduce_elements(instr, count);
    case InstrKind::finish_reduce:
      return finish_reduce(instr);
    case InstrKind::finish_scan:
      return finish_scan(instr);
    case InstrKind::running_sum:
      return running_sum(instr, count);
    case InstrKind::look_back:
      return look_back(instr);
    case InstrKind::local_store:
    case InstrKind::local_load:
    case InstrKind::local_last:
    case InstrKind::local_previous:
      return local(instr, count);
    case InstrKind::local_scan:
    case InstrKind::local_butterflies:
    case InstrKind::local_largest:
    case InstrKind::local_product:
      return local_whole(instr);
    case InstrKind::random:
    case InstrKind::random_bits:
    case InstrKind::normal:
    case InstrKind::random_index:
    case InstrKind::stochastic_round:
      return draw(instr, count);
    case InstrKind::flag_nonfinite:
    case InstrKind::fail_if:
      return status(instr, count);
  }
  CINCH_BUG("unknown instruction");
}

}  // namespace cinch::testing
