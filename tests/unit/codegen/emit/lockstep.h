// Runs emitted CUDA text on the CPU: the text behind lockstep_shim.h goes through the CPU compiler;
// a block's threads are fibers that meet in collectives; blocks run one after another. Finds wrong
// results, collectives that not all threads reach, and writes beyond buffers; not races, which take
// an emulator with a memory model.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "codegen/emit/cuda.h"
#include "runtime/core/error.h"

namespace cinch::codegen {

class LockstepModule {
 public:
  /// Emits and compiles. Errors: Unavailable (no Clang library).
  static rt::Result<LockstepModule> compile(const kir::KernelProgram& program);
  LockstepModule(LockstepModule&&) noexcept;
  ~LockstepModule();

  /// Runs one kernel on `num_blocks` blocks; `args` is laid out as cuda_args_layout says. Errors:
  /// Internal (threads that wait for each other for ever, or meet in different collectives).
  rt::Status launch(const std::string& symbol, std::span<const std::uint8_t> args,
                    std::uint32_t num_blocks, std::uint32_t block_threads) const;

 private:
  LockstepModule();
  struct Loaded;
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace cinch::codegen
