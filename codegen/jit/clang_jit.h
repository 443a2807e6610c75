// Compiles emitted C++ to a shared object in memory, with Clang and LLD in process. The library
// that links them (cinch_clang) is opened when it is first needed. It is searched in the folder of
// this code's binary and in ../lib, or where CINCH_CLANG_LIBRARY says. Thread-safe.
//
// It makes a shared object rather than ORC's memory image: an image file must run without a
// compiler.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/emit/kernel_source.h"
#include "runtime/core/error.h"
#include "runtime/core/sanitizer.h"

namespace cinch::codegen {

struct CompileTimes {
  // Summed over all threads.
  double front_end_ms = 0, optimizer_ms = 0, machine_code_ms = 0, link_ms = 0;
  double total_ms() const { return front_end_ms + optimizer_ms + machine_code_ms + link_ms; }
};

struct CpuCompileOptions {
  // Kernels with AddressSanitizer run only in a process with its run time.
  bool sanitize_address = kAddressSanitizer;
  int optimization_level = sanitize_address ? 1 : 3;
  // For objects of a library: see CinchClangRequest. Empty: kernels are exported under their names.
  std::string symbol_prefix = {};
  Effort effort = Effort::Full;
  CompileTimes* times = nullptr;  // filled in if given
};

/// Returns the bytes of an ELF shared object that exports source.symbols and needs no library.
/// source.target.arch is one of cpu_archs() or "native". Errors: Unavailable (no cinch_clang
/// library, no place for the linker's files, memory ran out in an earlier call). Throws
/// std::bad_alloc if memory runs out. Source that does not compile is our own bug: throws
/// InternalError{Bug} with log and source.
rt::Result<std::vector<std::uint8_t>> compile_cpu(const KernelSource& source,
                                                  const CpuCompileOptions& options = {});
/// The same for several sources for one target, at least one, compiled on as many threads.
rt::Result<std::vector<std::uint8_t>> compile_cpu(std::span<const KernelSource> sources,
                                                  const CpuCompileOptions& options = {});
/// Can sources be compiled with these options without the prelude, and link its helpers? Not if
/// helpers would lack a sanitizer or are optimised otherwise, nor if cinch_clang is missing, of
/// another build, or runs another Clang than it was built with.
bool can_link_helpers(const CpuCompileOptions& options);

/// The relocatable object of the same compilation, for `--emit=object`.
rt::Result<std::vector<std::uint8_t>> compile_cpu_to_object(const KernelSource& source,
                                                            const CpuCompileOptions& options = {});

struct NamedBytes {
  std::string name;
  std::vector<std::uint8_t> bytes;
};
/// The other parts of a library for one of cpu_archs(): an object with `data` as hidden constants
/// of these names; a shared library of objects that need nothing else, with only `exports` visible;
/// a static library. Errors: Unavailable. Parts that do not link are our own bug:
/// InternalError{Bug}.
rt::Result<std::vector<std::uint8_t>> make_data_object(const std::string& arch,
                                                       std::span<const NamedBytes> data);
rt::Result<std::vector<std::uint8_t>> link_library(std::span<const NamedBytes> objects,
                                                   const std::string& soname,
                                                   const std::vector<std::string>& exports);
rt::Result<std::vector<std::uint8_t>> make_archive(std::span<const NamedBytes> members);

/// Assembly of the same compilation, for `--emit=asm`.
rt::Result<std::string> compile_cpu_to_assembly(const KernelSource& source,
                                                const CpuCompileOptions& options = {});

/// Formats the text by Clang's format library, for people. Errors: Unavailable.
rt::Result<std::string> format_source(std::string_view text);

/// "clang 19.1.7", and the file the library came from, for `cinch doctor`. Errors: Unavailable.
struct ClangInfo {
  std::string version, path;
};
rt::Result<ClangInfo> find_clang();

/// Architectures for code: the levels of x86-64, lowest first, and "aarch64" (ARMv8-A with NEON),
/// which has source, assembly and objects but no images.
std::vector<std::string> cpu_archs();
bool has_images(std::string_view arch);

// ---- the emulated GPU (codegen/emulator), clang_jit.cpp ----

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
