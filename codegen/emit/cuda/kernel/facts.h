// What the CUDA emitter asks about a kernel: its values, how its groups are spread over threads,
// and how its sections go through rows. Worked out before anything is printed, and only read
// afterwards.
#pragma once
#include <cstdint>
#include <optional>

#include "codegen/emit/cuda/shape.h"
#include "codegen/emit/value_facts.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// How many rows go through a turn of a section's loop over whole rows; 0 where it has none: what
/// is long, or neither loads nor stores neighbours. `longest_group`: see shape.h.
int rows_ahead(const kir::KernelProgram& program, const kir::Section& section,
               std::int64_t longest_group);
bool has_whole_rows(const kir::KernelProgram& program, const kir::Kernel& kernel);

class CudaKernelFacts : public ValueFacts {
 public:
  CudaKernelFacts(const kir::KernelProgram& program, const kir::Kernel& kernel,
                  std::uint32_t block_warps);

  const CudaShape& shape() const { return shape_; }
  bool is_element(kir::ValueId value) const { return level(value) == Level::Element; }
  /// Where a sum of 32 bits counts truths of elements: these, or none.
  kir::ValueId counted_truth(const kir::Instr& reduce) const;

  // ---- whole rows ----
  int rows_ahead(const kir::Section& section) const {
    return codegen::rows_ahead(program(), section, longest_);
  }
  /// Are so many rows a group?
  bool is_one_turn(int num_rows) const;
  /// Is the packed store one of several rows at once? Four neighbours then lie within a word, and
  /// nothing of the section reads the buffer.
  bool is_packed_by_rows(const kir::Section& section, const kir::Instr& store) const;

  // ---- short rows ----
  /// Lanes that share a row; 0 where rows do not share a warp.
  std::uint32_t short_lanes() const { return short_lanes_; }

 private:
  std::uint32_t find_short_lanes() const;
  bool has_whole_words(const kir::Instr& store) const;
  static bool loads_its_stores(const kir::Section& section);

  CudaShape shape_;
  std::int64_t longest_;  // elements of a group, at most
  std::uint32_t short_lanes_;
};

}  // namespace cinch::codegen
