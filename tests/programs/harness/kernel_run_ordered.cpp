// KernelRun: what has an order: reductions, scans, local arrays, sums over groups.
#include "tests/programs/harness/kernel_run.h"

#include <optional>

#include "codegen/kir/compute_type.h"
#include "runtime/core/numbers/ordered_reduce.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::testing {

using kir::ComputeType;
using kir::Instr;
using kir::InstrKind;
using kir::ValueId;

// ---- tuples ----

// The tuple of a and b; `single` is the type of a builtin combiner.
Words KernelRun::join(const kir::Combiner& combiner, ComputeType single, const Words& a,
                      const Words& b) {
  if (combiner.op) {
    const Word both[] = {a[0], b[0]};
    return {evaluate_scalar(*combiner.op, kir::dtype_of(single), both)};
  }
  for (std::size_t i = 0; i < combiner.args.size(); ++i) {
    set(combiner.args[i], i < a.size() ? a[i] : b[i - a.size()]);
  }
  for (const Instr& instr : combiner.body) execute(instr, 1);
  Words results;
  for (const ValueId result : combiner.results) results.push_back(at(result, 0));
  return results;
}

// By an operation; an empty reduction gives its identity.
template <typename Part, typename Has>
Word KernelRun::reduced_by(ScalarOp op, ComputeType single, std::size_t count, const Part& part,
                           const Has& has, std::size_t member) {
  const DType dtype = kir::dtype_of(single);
  const auto reduced = ordered_reduce<Word>(
      count,
      [&](std::size_t i) { return has(i) ? std::optional<Word>(part(i, member)) : std::nullopt; },
      [&](Word a, Word b) {
        const Word both[] = {a, b};
        return evaluate_scalar(op, dtype, both);
      });
  return reduced.value_or(constant_word(single, kir::identity_bits(op, single)));
}

// Results of `reduce` and `finish_reduce`: part(i, k) gives member k of place i, has(i) whether
// it takes part.
template <typename Part, typename Has>
void KernelRun::reduce(const Instr& instr, std::size_t count, const Part& part, const Has& has) {
  const kir::Combiner& combiner = kernel_.combiners[instr.combiner];
  if (combiner.op) {
    for (std::size_t k = 0; k < instr.results.size(); ++k) {
      const ComputeType single = type(instr.results[k]);
      set(instr.results[k], reduced_by(*combiner.op, single, count, part, has, k));
    }
    return;
  }
  const std::size_t num_members = instr.results.size() - 1;
  const auto reduced = ordered_reduce<Words>(
      count,
      [&](std::size_t i) -> std::optional<Words> {
        if (!has(i)) return std::nullopt;
        Words tuple(num_members);
        for (std::size_t k = 0; k < num_members; ++k) tuple[k] = part(i, k);
        return tuple;
      },
      [&](const Words& a, const Words& b) { return join(combiner, ComputeType(), a, b); });
  for (std::size_t k = 0; k < num_members; ++k) {
    set(instr.results[k], reduced ? (*reduced)[k] : 0);
  }
  set(instr.results[num_members], reduced.has_value());
}

void KernelRun::reduce_elements(const Instr& instr, std::size_t count) {
  const bool has_flag = !kernel_.combiners[instr.combiner].op;
  const ValueId pred = optional_operand(instr, instr.results.size() - (has_flag ? 1 : 0));
  reduce(
      instr, count, [&](std::size_t i, std::size_t k) { return at(instr.operands[k], i); },
      [&](std::size_t i) { return holds(pred, i); });
}

void KernelRun::finish_reduce(const Instr& instr) {
  const bool has_flag = !kernel_.combiners[instr.combiner].op;
  const auto place = [](std::size_t i) { return static_cast<std::int64_t>(i); };
  reduce(
      instr, static_cast<std::size_t>(index_at(instr.operands[0], 0)),
      [&](std::size_t i, std::size_t k) { return load(instr.buffers[k], place(i)); },
      [&](std::size_t i) { return !has_flag || load(instr.buffers.back(), place(i)) != 0; });
}

void KernelRun::scan(const Instr& instr, std::vector<Words>& tuples, ComputeType single) {
  const kir::Combiner& combiner = kernel_.combiners[instr.combiner];
  ordered_scan(tuples,
               [&](const Words& a, const Words& b) { return join(combiner, single, a, b); });
}

void KernelRun::finish_scan(const Instr& instr) {
  const std::int64_t rows = index_at(instr.operands[0], 0), len = index_at(instr.operands[1], 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<Words> tuples(static_cast<std::size_t>(len));
    for (std::int64_t i = 0; i < len; ++i) {
      for (const rt::BufferIndex b : instr.buffers) {
        tuples[static_cast<std::size_t>(i)].push_back(load(b, row * len + i));
      }
    }
    scan(instr, tuples, kir::compute_type(program_.buffers[instr.buffers[0]].dtype));
    for (std::int64_t i = 0; i < len; ++i) {
      for (std::size_t k = 0; k < instr.buffers.size(); ++k) {
        store(instr.buffers[k], row * len + i, tuples[static_cast<std::size_t>(i)][k]);
      }
    }
  }
}

// ---- local arrays ----

void KernelRun::local_scan(const Instr& instr) {
  const kir::Combiner& combiner = kernel_.combiners[instr.combiner];
  const std::size_t members = combiner.op ? 1 : combiner.results.size();
  std::vector<Words> tuples(static_cast<std::size_t>(len_), Words(members));
  for (std::size_t i = 0; i < tuples.size(); ++i) {
    for (std::size_t k = 0; k < members; ++k) tuples[i][k] = locals_[instr.index + k][i];
  }
  scan(instr, tuples, kernel_.locals[instr.index].type);
  for (std::size_t i = 0; i < tuples.size(); ++i) {
    for (std::size_t k = 0; k < members; ++k) locals_[instr.index + k][i] = tuples[i][k];
  }
}

void KernelRun::local_whole(const Instr& instr) {
  switch (instr.kind) {
    case InstrKind::local_scan:
      return local_scan(instr);
    case InstrKind::local_butterflies:
      return butterflies(instr);
    case InstrKind::local_largest:
      return mark_largest(instr);
    default:
      return product(instr);
  }
}

void KernelRun::butterflies(const Instr& instr) {
  Words& x = locals_[instr.index];
  const DType dtype = kir::dtype_of(kernel_.locals[instr.index].type);
  const auto len = static_cast<std::size_t>(len_);
  for (std::size_t distance = 1; distance < len; distance *= 2) {
    for (std::size_t i = 0; i < len; ++i) {
      if (i & distance) continue;
      const Word both[] = {x[i], x[i + distance]};
      x[i] = evaluate_scalar(ScalarOp::add, dtype, both);
      x[i + distance] = evaluate_scalar(ScalarOp::sub, dtype, both);
    }
  }
}

// One after another, always the first of the largest that are left.
void KernelRun::mark_largest(const Instr& instr) {
  Words& x = locals_[instr.index];
  const auto len = static_cast<std::size_t>(len_);
  std::vector<bool> is_marked(len);
  const Word k = std::min<Word>(at(instr.operands[0], 0), len);
  for (Word taken = 0; taken < k; ++taken) {
    std::size_t best = len;
    for (std::size_t i = 0; i < len; ++i) {
      if (!is_marked[i] && (best == len || x[i] > x[best])) best = i;
    }
    is_marked[best] = true;
  }
  for (std::size_t i = 0; i < len; ++i) x[i] = is_marked[i] ? 1 : 0;
}

void KernelRun::product(const Instr& instr) {
  const DType dtype = kir::dtype_of(kernel_.locals[instr.index].type);
  const auto len = static_cast<std::size_t>(len_);
  const auto binary = [&](ScalarOp op, Word a, Word b) {
    const Word both[] = {a, b};
    return evaluate_scalar(op, dtype, both);
  };
  for (std::size_t j = 0; j < len; ++j) {
    const auto sum = ordered_reduce<Word>(
        len,
        [&](std::size_t k) -> std::optional<Word> {
          const Word y = load(instr.buffers[0], static_cast<std::int64_t>(k * len + j));
          return binary(ScalarOp::mul, locals_[instr.index][k], y);
        },
        [&](Word a, Word b) { return binary(ScalarOp::add, a, b); });
    locals_[instr.index + 1][j] = binary(ScalarOp::add, 0, sum.value_or(0));
  }
}

void KernelRun::local(const Instr& instr, std::size_t count) {
  Words& array = locals_[instr.index];
  switch (instr.kind) {
    case InstrKind::local_store:
      for (std::size_t j = 0; j < count; ++j) array[j] = at(instr.operands[0], j);
      return;
    case InstrKind::local_load:
      return fill(instr.results[0], count, [&](std::size_t j) { return array[j]; });
    case InstrKind::local_last:
      return set(instr.results[0], array[static_cast<std::size_t>(len_) - 1]);
    default:
      return fill(instr.results[0], count,
                  [&](std::size_t j) { return j == 0 ? at(instr.operands[0], 0) : array[j - 1]; });
  }
}

// ---- sums over groups ----

void KernelRun::running_sum(const Instr& instr, std::size_t count) {
  const DType dtype = kir::dtype_of(type(instr.results[0]));
  Word sum = 0;
  Words sums(count);
  for (std::size_t j = 0; j < count; ++j) {
    const Word both[] = {sum, at(instr.operands[0], j)};
    const Word next = evaluate_scalar(ScalarOp::add, dtype, both);
    sums[j] = instr.exclusive ? sum : next;
    sum = next;
  }
  values_[instr.results[0].index()] = std::move(sums);
  set(instr.results[1], sum);
}

// Each group leaves the sum up to and with itself in its second word.
void KernelRun::look_back(const Instr& instr) {
  const DType dtype = kir::dtype_of(type(instr.results[0]));
  const rt::BufferIndex state = instr.buffers[0];
  const auto group = static_cast<std::int64_t>(group_);
  const Word before = group == 0 ? 0 : load(state, 2 * group - 1);
  const Word both[] = {before, at(instr.operands[0], 0)};
  store(state, 2 * group + 1, evaluate_scalar(ScalarOp::add, dtype, both));
  set(instr.results[0], before);
}

}  // namespace cinch::testing
