// What the kernels of a cubin take of a multiprocessor, read from the file itself: neither a GPU
// nor a tool of NVIDIA's is needed.
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
  std::uint32_t shared_bytes = 0;  // per block, with what the system reserves
  std::uint32_t stack_bytes = 0;   // per thread: spilled registers and arrays, in local memory
};

/// In the order of the file. Errors: CorruptFile (no cubin, or one cut short).
rt::Result<std::vector<KernelResources>> cubin_resources(std::span<const std::uint8_t> cubin);

}  // namespace cinch::codegen
