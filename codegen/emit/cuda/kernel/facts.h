// Facts about a kernel for the CUDA emitter: its values, how its groups are spread over threads,
// and how its sections go through rows. Computed before the first line is printed, and constant
// afterwards.
#pragma once

#include "codegen/emit/cuda/shape.h"
#include "codegen/emit/value_facts.h"

namespace cinch::codegen {

/// How many rows a turn of a section's loop over whole rows takes. 0 if there is no such loop: the
/// section is long, or neither loads nor stores neighbours. `longest_group`: see shape.h.
int rows_ahead(const kir::KernelProgram& program, const kir::Section& section,
               std::int64_t longest_group);
bool has_whole_rows(const kir::KernelProgram& program, const kir::Kernel& kernel);

class CudaKernelFacts : public ValueFacts {
 public:
  CudaKernelFacts(const kir::KernelProgram& program, const kir::Kernel& kernel,
                  std::uint32_t block_warps);

  const CudaShape& shape() const { return shape_; }
  bool is_element(kir::ValueId value) const { return level(value) == Level::Element; }
  /// The truth value of elements that a sum of 32 bits counts, or none.
  kir::ValueId counted_truth(const kir::Instr& reduce) const;

  // ---- whole rows ----
  int rows_ahead(const kir::Section& section) const {
    return codegen::rows_ahead(program(), section, longest_);
  }
  /// Do this many rows make up a group?
  bool is_one_turn(int num_rows) const;
  /// Does the packed store pack several rows at once? Four neighbours must lie within a word, and
  /// nothing in the section may read the buffer.
  bool is_packed_by_rows(const kir::Section& section, const kir::Instr& store) const;

  // ---- short rows ----
  /// Lanes that share a row. 0 if rows do not share a warp.
  std::uint32_t short_lanes() const { return short_lanes_; }

 private:
  std::uint32_t find_short_lanes() const;
  bool has_whole_words(const kir::Instr& store) const;
  static bool loads_its_stores(const kir::Section& section);

  CudaShape shape_;
  std::int64_t longest_;  // the most elements of a group
  std::uint32_t short_lanes_;
};

}  // namespace cinch::codegen
