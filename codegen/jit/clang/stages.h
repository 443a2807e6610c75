// The stages inside cinch_clang: source to LLVM module to object to shared object. Headers of LLVM
// stay in the .cpp files where they can.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/jit/clang_backend.h"

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
}  // namespace llvm

namespace cinch::clang_backend {

using Bytes = std::string;

/// The triple and LLVM's name of request.cpu.
struct Processor {
  const char *triple, *cpu;
};
Processor processor_of(const CinchClangRequest& request);

/// What became of one source, up to the object; `bytes` is empty on errors, which `log` tells.
struct Compiled {
  Bytes bytes;
  std::string log;
  CinchClangTimes times{};
};
/// All stages but the linker. `prelude` is what `precompile` made of the text that belongs in front
/// of the source, with the same request; empty if the source stands alone. std::bad_alloc passes:
/// nothing of LLVM may be used after that.
Compiled compile_source(const CinchClangRequest& request, const CinchClangText& source,
                        std::string_view prelude);

/// All sources of a request at the same time. Throws std::bad_alloc where memory has run out within
/// LLVM, in this call or another; what LLVM holds in common may be half made then.
std::vector<Compiled> compile_sources(const CinchClangRequest& request);
bool has_run_out_of_memory();
void note_out_of_memory();

/// Once per process. Clang looks at the targets that are registered, too: before any other stage.
void initialize_target();

/// Clang itself as it runs here, which need not be the one of the headers: "clang version 19.1.7
/// …".
std::string clang_version();

/// Text as Clang keeps it between runs, the same bytes for the same request, for the Clang of
/// clang_version() only. Empty with the diagnostics in `log` on errors.
Bytes precompile(const CinchClangRequest& request, const CinchClangText& source, std::string& log);

/// Unoptimised module of the source, or null with the diagnostics in `log`.
std::unique_ptr<llvm::Module> run_front_end(const CinchClangRequest& request,
                                            const CinchClangText& source, std::string_view prelude,
                                            llvm::LLVMContext& context, std::string& log);

/// Null with a message in `log` if the target is unknown.
std::unique_ptr<llvm::TargetMachine> make_target_machine(const CinchClangRequest& request,
                                                         llvm::Module& module, std::string& log);
void optimize(const CinchClangRequest& request, llvm::Module& module, llvm::TargetMachine& machine);
/// A pipeline in the words of LLVM's `opt`.
void run_passes(llvm::Module& module, llvm::TargetMachine& machine, const char* pipeline);
/// Instead of `optimize`, for the emulated GPU. False with a message in `log` for what it has not.
bool make_emulated(const CinchClangRequest& request, const CinchClangText& source,
                   llvm::Module& module, llvm::TargetMachine& machine, std::string& log);
/// From here on, functions whose frames the emulator's stacks cannot hold add to `complaints`,
/// which outlives the module's context.
void watch_frames(llvm::Module& module, std::string& complaints);
/// Object file or assembly text, by request.output.
Bytes emit_machine_code(const CinchClangRequest& request, llvm::Module& module,
                        llvm::TargetMachine& machine);
std::string print_module(const llvm::Module& module);

/// ELF objects to a shared object that needs no library, or only what the process has by then (the
/// run time of a sanitizer). Empty with a message in `log` on errors.
Bytes link_shared_object(const std::vector<std::string_view>& objects, bool needs_process,
                         std::string& log);

/// After the front end: kernels (what is visible by default) become `prefix` + name and hidden, all
/// else local; memory functions are those of the process. See CinchClangRequest::symbol_prefix.
void make_private(llvm::Module& module, std::string_view prefix);

/// The calls of CinchClangBackend of the same names. Empty with a message in `log` on errors.
Bytes make_data_object(const char* cpu, const std::vector<CinchClangBytes>& data, std::string& log);
Bytes link_library(const std::vector<std::string_view>& objects, const std::string& soname,
                   const std::vector<std::string>& exports, std::string& log);
Bytes make_archive_file(const std::vector<CinchClangBytes>& members, std::string& log);

/// What make_helpers made, as part of this library. cpu_helpers_digest() of that, or nothing where
/// another Clang made it than runs here.
const char* helpers_digest();
/// The object of the prelude's helpers for an architecture; empty if it is none of ours.
std::string_view helpers_object(std::string_view cpu);
/// The prelude, precompiled for an architecture; empty if it is none of ours.
std::string_view precompiled_prelude(std::string_view cpu);

Bytes format_text(std::string_view text, std::string& log);

}  // namespace cinch::clang_backend
