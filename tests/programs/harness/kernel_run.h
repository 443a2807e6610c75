// One call of a kernel on the kernel machine: a value is a list of words, or one word if it is
// uniform.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "codegen/kir/kir.h"
#include "runtime/core/error.h"
#include "runtime/session/loaded_program.h"

namespace cinch::testing {

// Elements of buffers and values of the kernel machine: 64 bits each, encoded as
// runtime/core/numbers/scalar_eval.h says for the compute type of their dtype.

using Word = std::uint64_t;

Word load_word(const rt::BufferInfo& buffer, const void* memory, std::int64_t index);
void store_word(const rt::BufferInfo& buffer, void* memory, std::int64_t index, Word value);
/// Clears the bits of the last byte from bit `end` on, since a run of packed elements ends there.
void close_run(const rt::BufferInfo& buffer, void* memory, std::int64_t end);
/// The results of `scalar`, `convert` and `bitcast` for one element.
Word compute_word(const kir::Instr& instr, kir::ComputeType operand_type, const Word* operands);
/// The word of a `constant`.
Word constant_word(kir::ComputeType type, std::uint64_t bits);

using Words = std::vector<Word>;

class KernelRun {
 public:
  KernelRun(const kir::KernelProgram& program, const kir::Kernel& kernel,
            const rt::KernelArgs& args);

  /// Groups without an order run in an order that the seed chooses.
  void run(std::uint64_t begin, std::uint64_t end, std::uint64_t seed);

 private:
  using ComputeType = kir::ComputeType;
  using Instr = kir::Instr;
  using ValueId = kir::ValueId;

  std::vector<std::uint64_t> order_of(std::uint64_t begin, std::uint64_t end,
                                      std::uint64_t seed) const;
  std::int64_t size(HostExprId expr) const;
  void find_extent();
  void run_group(std::uint64_t group);
  void linear(const Instr& instr, std::size_t count);
  void at_places(const Instr& instr, std::size_t count);
  void argsort(const Instr& instr);
  Words join(const kir::Combiner& combiner, ComputeType single, const Words& a, const Words& b);
  template <typename Part, typename Has>
  static Word reduced_by(ScalarOp op, ComputeType single, std::size_t count, const Part& part,
                         const Has& has, std::size_t member);
  template <typename Part, typename Has>
  void reduce(const Instr& instr, std::size_t count, const Part& part, const Has& has);
  void reduce_elements(const Instr& instr, std::size_t count);
  void finish_reduce(const Instr& instr);
  void scan(const Instr& instr, std::vector<Words>& tuples, ComputeType single);
  void finish_scan(const Instr& instr);
  void local_whole(const Instr& instr);
  void local_scan(const Instr& instr);
  void butterflies(const Instr& instr);
  void mark_largest(const Instr& instr);
  void product(const Instr& instr);
  void local(const Instr& instr, std::size_t count);
  void running_sum(const Instr& instr, std::size_t count);
  void look_back(const Instr& instr);
  void draw(const Instr& instr, std::size_t count);
  void status(const Instr& instr, std::size_t count);
  void leaf(const Instr& instr, std::size_t count);
  void compute(const Instr& instr, std::size_t count);
  void call_extern(const Instr& instr, std::size_t count);
  void execute(const Instr& instr, std::size_t count);
  // Checks that the marks of the instruction are true.
  void check_facts(const Instr& instr, std::size_t count) const;

  Word at(ValueId value, std::size_t j) const {
    const Words& words = values_[value.index()];
    return words.size() == 1 ? words[0] : words[j];
  }
  bool holds(ValueId pred, std::size_t j) const { return !pred || at(pred, j) != 0; }
  ComputeType type(ValueId value) const { return kernel_.values[value.index()].type; }
  void set(ValueId value, Word word) { values_[value.index()].assign(1, word); }
  template <typename Make>
  void fill(ValueId value, std::size_t count, const Make& make) {
    Words words(count);
    for (std::size_t j = 0; j < count; ++j) words[j] = make(j);
    values_[value.index()] = std::move(words);
  }
  std::int64_t index_at(ValueId value, std::size_t j) const {
    return static_cast<std::int64_t>(at(value, j));
  }
  Word load(rt::BufferIndex buffer, std::int64_t index) const {
    return load_word(program_.buffers[buffer], args_.buffers[buffer], index);
  }
  void store(rt::BufferIndex buffer, std::int64_t index, Word value) const {
    store_word(program_.buffers[buffer], args_.buffers[buffer], index, value);
  }

  const kir::KernelProgram& program_;
  const kir::Kernel& kernel_;
  const rt::KernelArgs& args_;
  std::vector<Words> values_;
  std::vector<Words> locals_;
  std::uint64_t group_ = 0;
  std::int64_t len_ = 0, row_len_ = 0, group_elems_ = 1, extent_ = 0;
  bool has_actual_ = false;
};

// Runs kernel IR directly, slowly and without a compiler: each instruction over all elements of a
// group before the next one, and groups without an order in a random order. Errors of the planner
// of kernels show here as they would in compiled kernels, in a hundredth of the time; errors of
// emitters do not.

/// The program with the machine instead of compiled kernels; `kernels` outlives its calls. Only one
/// such program runs at a time, on one thread: a later load makes earlier ones unusable.
rt::Result<std::shared_ptr<const rt::LoadedProgram>> load_on_machine(
    const kir::KernelProgram& kernels, std::uint64_t order_seed);

}  // namespace cinch::testing
