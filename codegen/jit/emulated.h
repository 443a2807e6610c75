// Compiles emitted CUDA text for the emulated GPU (codegen/emulator), with Clang and LLD in
// process.
#pragma once
#include <cstdint>
#include <vector>

#include "codegen/emit/kernel_source.h"
#include "codegen/jit/clang_jit.h"
#include "runtime/core/error.h"

namespace cinch::codegen {

struct EmulatedCompileOptions {
  bool checks = true;             // report accesses, so that the emulator finds faults
  CompileTimes* times = nullptr;  // filled in if given
};

/// Returns the bytes of an ELF shared object for x86-64 that needs no library; emulator::Module
/// loads it. Takes any CUDA text without includes. source.symbols are its kernels: `extern "C"`, of
/// any parameters, in no namespace or in `cinch`. Errors: as compile_cpu. Text that does not
/// compile is our own bug: throws InternalError{Bug} with the compiler's messages, whose lines are
/// those of the text.
rt::Result<std::vector<std::uint8_t>> compile_emulated(const KernelSource& source,
                                                       const EmulatedCompileOptions& options = {});

}  // namespace cinch::codegen
