// Runs an entry of a kernel program twice, by its CPU kernels and by its CUDA text in lock-step,
// and compares every buffer.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kir/kir.h"
#include "runtime/core/error.h"

namespace cinch::codegen {

struct BitsCase {
  std::int64_t n = 0, rows = 1, cols = 0;
  std::vector<std::uint64_t> params;  // raw bits
  std::vector<std::uint8_t> input;    // bytes that fill buffers which hold input, over and over
  std::uint32_t num_blocks = 3;
};

/// Empty if all buffers and status words are equal; else what differs. `program` must launch, zero
/// and copy only.
rt::Result<std::string> compare_targets(const kir::KernelProgram& program, rt::EntryKind entry,
                                        const std::vector<BitsCase>& cases);

}  // namespace cinch::codegen
