// Reads from a cubin how much of a multiprocessor its kernels need, without a GPU or NVIDIA's
// tools.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/error.h"

namespace cinch::codegen {

struct KernelResources {
  std::string symbol;
  std::uint32_t registers = 0;     // per thread
  std::uint32_t shared_bytes = 0;  // per block, including what the system reserves
  std::uint32_t stack_bytes = 0;   // per thread: spilled registers and arrays, in local memory
};

/// In the order of the file. Errors: CorruptFile (not a cubin, or truncated).
rt::Result<std::vector<KernelResources>> cubin_resources(std::span<const std::uint8_t> cubin);

}  // namespace cinch::codegen
