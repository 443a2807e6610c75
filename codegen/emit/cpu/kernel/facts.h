// What the CPU emitter asks about a kernel: its values, what they can be, and how instructions use
// memory. Worked out before anything is printed, and only read afterwards.
#pragma once
#include <string>
#include <vector>

#include "codegen/emit/cpu.h"
#include "codegen/emit/value_facts.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

// ---- how elements of a buffer are stored (cpu/storage.cpp) ----

struct Storage {
  DType dtype;
  int bits = 0;
  bool is_packed = false;  // fields of `bits` bits one after another
  std::string element;     // as loaded: "f32", "u16" (f16's bits), …; packed: the stage's element
  bool is_bit() const { return is_packed && bits == 1; }
};

Storage storage_of(const rt::BufferInfo& buffer);

/// A loaded element (scalar or lanes of storage.element) as a value of the dtype's compute type.
std::string from_storage(const Storage& storage, const std::string& x);
/// The inverse: canonical NaN, low bits of integers.
std::string to_storage(const Storage& storage, const std::string& x);

class CpuKernelFacts : public ValueFacts {
 public:
  CpuKernelFacts(const kir::KernelProgram& program, const kir::Kernel& kernel,
                 const CpuOptions& options)
      : ValueFacts(program, kernel),
        counts_accesses_(options.count_accesses),
        is_quick_(options.effort == Effort::Quick) {}

  /// Does the kernel count the bytes that it touches? Then it leaves nothing out.
  bool counts_accesses() const { return counts_accesses_; }
  /// Is there to be as little code as possible, since somebody waits for it?
  bool is_quick() const { return is_quick_; }

  // ---- groups ----
  /// Can a group be longer than one tile?
  bool has_many_tiles() const;
  /// Do tiles without masks consist of whole rows of columns (ordered reductions join columns)?
  bool has_whole_columns() const;
  /// Are all tiles there are whole ones, by a size that is known now?
  bool has_whole_tiles_only() const;

  // ---- values ----
  /// Is the value one of each element, in a section or in a combiner's body?
  bool is_element(kir::ValueId value) const;
  /// A bound of elements that is neither NaN nor a zero?
  bool is_plain_bound(kir::ValueId element) const;
  /// A float that was made by taking a sign away?
  bool is_magnitude(kir::ValueId value) const;
  /// Is an integer the same in all lanes of each vector?
  bool is_alike_in_vectors(kir::ValueId value) const;

  // ---- memory ----
  Storage storage(rt::BufferIndex buffer) const;
  /// Does the instruction load packed elements that masked loops take from a stage?
  bool is_staged_load(const kir::Instr& instr) const;

  // ---- draws ----
  /// Is the draw of consecutive elements, so that it is made for a tile at once?
  bool is_staged_draw(const kir::Instr& instr) const;
  /// Does such a draw give an integer? It is rounded and converted at once, in fixed point.
  bool is_staged_int(const kir::Instr& instr) const;

  // ---- reductions ----
  /// Is the result the same in whatever order elements are taken in?
  bool is_any_order(const kir::Instr& instr) const;
  /// Members of a region combiner's tuples that are the same for all elements of a row of a whole
  /// tile: a bit for each; 0 where there are none, or not all elements take part.
  unsigned same_in_rows(const kir::Instr& instr) const;
  std::vector<kir::ComputeType> combined_types(const kir::Combiner& combiner) const;
  /// The truth value whose lanes a running sum counts (it sums 1 where true, else 0), or none.
  kir::ValueId counted_truth(const kir::Instr& running_sum) const;

  // ---- element sections ----
  /// Does the section flag the elements where the value is not finite? What a call computes from
  /// them is then used by nobody.
  bool is_flagged(kir::ValueId value, std::size_t section) const;
  /// The bounds of float elements that are known before the elements, each once.
  std::vector<kir::ValueId> uniform_bounds(const std::vector<kir::Instr>& instrs) const;
  /// May whole tiles be rounded without the rare lanes, and again where there were some? That is
  /// where doing a tile twice does no harm.
  bool rounds_again(const std::vector<kir::Instr>& instrs) const;

 private:
  bool counts_accesses_, is_quick_;
};

}  // namespace cinch::codegen
