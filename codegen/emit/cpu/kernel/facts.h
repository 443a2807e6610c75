// Facts about a kernel for the CPU emitter: its values, what they can be, and how instructions use
// memory. Computed before the first line is printed, and constant afterwards.
#pragma once

#include <map>

#include "codegen/emit/cpu.h"
#include "codegen/emit/value_facts.h"

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

/// Converts a loaded element (scalar or lanes of storage.element) to the dtype's compute type.
std::string from_storage(const Storage& storage, const std::string& x);
/// The inverse: canonicalizes NaN, and takes the low bits of integers.
std::string to_storage(const Storage& storage, const std::string& x);

class CpuKernelFacts : public ValueFacts {
 public:
  /// `rows_are_lanes`: each lane works on a row of its own (beside.h).
  CpuKernelFacts(const kir::KernelProgram& program, const kir::Kernel& kernel,
                 const CpuOptions& options, bool rows_are_lanes = false)
      : ValueFacts(program, kernel),
        counts_accesses_(options.count_accesses),
        is_quick_(options.effort == Effort::Quick),
        rows_are_lanes_(rows_are_lanes) {}

  /// Does the kernel count the bytes that it touches? If so, it skips nothing.
  bool counts_accesses() const { return counts_accesses_; }
  /// Is there to be as little code as possible, since somebody waits for it?
  bool is_quick() const { return is_quick_; }

  // ---- groups ----
  /// Can a group be longer than one tile?
  bool has_many_tiles() const;

  // ---- values ----
  /// Does the value differ between lanes, in a section or in a combiner's body?
  bool is_element(kir::ValueId value) const;
  /// Is the value a bound of elements that is neither NaN nor a zero?
  bool is_plain_bound(kir::ValueId element) const;
  /// Is the value a float without a sign, such as the result of abs?
  bool is_magnitude(kir::ValueId value) const;
  /// Is the value an integer that is the same in all lanes of each vector?
  bool is_alike_in_vectors(kir::ValueId value) const;

  // ---- memory ----
  Storage storage(rt::BufferIndex buffer) const;
  /// Does the local array hold truth values that are only stored and loaded? A bit is enough.
  bool is_kept_as_bits(std::uint32_t local) const;
  /// Does the instruction load packed elements that masked loops read from a stage?
  bool is_staged_load(const kir::Instr& instr) const;

  // ---- draws ----
  /// Do draws belong to consecutive elements, so that a tile is drawn at once?
  bool is_staged_draw(const kir::Instr& instr) const;
  /// Does such a draw become an integer? It is then rounded and converted at once, in fixed point.
  bool is_staged_int(const kir::Instr& instr) const;

  // ---- reductions ----
  /// Does every order of elements give the same result?
  bool is_any_order(const kir::Instr& instr) const;
  /// Members of a region combiner's tuples that are the same for all elements of a row of a whole
  /// tile, a bit for each. 0 if there are none, or not all elements take part.
  unsigned same_in_rows(const kir::Instr& instr) const;
  std::vector<kir::ComputeType> combined_types(const kir::Combiner& combiner) const;
  /// The truth value that a running sum counts (it sums 1 for true and 0 for false), or none.
  kir::ValueId counted_truth(const kir::Instr& running_sum) const;

  // ---- element sections ----
  /// Does the section flag elements whose value is not finite? Nobody then uses what a call
  /// computes from them.
  bool is_flagged(kir::ValueId value, std::size_t section) const;
  /// The bounds of float elements that do not depend on the element, each once.
  std::vector<kir::ValueId> uniform_bounds(const std::vector<kir::Instr>& instrs) const;
  /// May whole tiles be rounded without the rare lanes, and again if there were any? Only if no
  /// harm comes from doing a tile twice.
  bool rounds_again(const std::vector<kir::Instr>& instrs) const;

 private:
  bool counts_accesses_, is_quick_, rows_are_lanes_;
};

// A kernel's sections, cut into phases. A chunk of groups runs one phase, then the next one. Phases
// end at look-backs, and before and after what short rows compute together.

/// Do several rows of the kernel go through each section together? What is computed once for a row
/// is then computed for a vector of rows, and the packed elements of all rows are packed at once.
/// One row at a time, both would take longer than the elements of a row of 16.
///
/// The rows must have a constant length of 16, 32 or 64 elements. Between two element sections
/// there may only be computations, and stores of one value for each row.
bool takes_rows_together(const CpuKernelFacts& facts);

/// Up to which length a kernel's rows go beside one another, a row in each lane of a vector: a loop
/// then takes element j of all rows at once. 0 if never. Rows that are shorter than a vector, and
/// rows whose elements lie far apart beside those of the next row (columns of a matrix), take
/// several times as long one after the other.
std::int64_t longest_rows_beside(const CpuKernelFacts& facts);
/// Elements that lie one after the other in each row: row r's begin at r * stride, and all rows'
/// end at one place.
struct RowRun {
  kir::ValueId stride;  // none: all rows begin at the first row's place
  kir::ValueId base;    // then that place, or none for 0
  kir::ValueId end;     // none: every element of a row is there
};
/// None if the instruction's places are another function of the row.
std::optional<RowRun> run_of_rows(const CpuKernelFacts& facts, const kir::Instr& linear);
/// Is the store of packed elements one run from row to row? `length` is that of a row.
bool is_packed_run(const CpuKernelFacts& facts, const kir::Instr& store, std::int64_t length);

class CpuPhases {
 public:
  // A run of instructions of one section inside a phase.
  struct Piece {
    std::size_t section, begin, end;
  };
  struct Phase {
    std::vector<Piece> pieces;
    const kir::Instr* look_back = nullptr;  // ends the phase; null for the last
    bool is_for_rows = false;  // computes values of rows, for a vector of rows at a time
  };

  explicit CpuPhases(const CpuKernelFacts& facts);

  const std::vector<Phase>& all() const { return phases_; }
  bool takes_rows_together() const { return takes_rows_together_; }
  /// Group values that a later phase than their own uses.
  const std::set<std::uint32_t>& crossing() const { return crossing_; }
  /// The phase that makes the value.
  std::size_t phase_of(kir::ValueId value) const { return def_phase_[value.index()]; }
  /// Do several phases use the local array, so that each group of a chunk has its own?
  bool is_kept(std::uint32_t local) const;

 private:
  void note_uses(const kir::Instr& instr, std::size_t phase);
  void cut_at_look_backs();
  void cut_short_rows();

  const CpuKernelFacts& facts_;
  bool takes_rows_together_;
  std::vector<Phase> phases_;
  std::vector<std::size_t> def_phase_;
  std::set<std::uint32_t> crossing_;
  std::map<std::uint32_t, std::set<std::size_t>> local_phases_;
};

}  // namespace cinch::codegen
