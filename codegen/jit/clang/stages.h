// The stages inside cinch_clang: source to LLVM module to object to shared object. Headers of LLVM
// stay in .cpp files where possible.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/emulator/module.h"
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

/// The result of one source, up to the object. After errors `bytes` is empty and `log` has them.
struct Compiled {
  Bytes bytes;
  std::string log;
  CinchClangTimes times{};
};
/// Runs all stages except the linker. `prelude` is the result of `precompile` for the text that
/// belongs before the source, with the same request; empty if the source stands alone.
/// std::bad_alloc passes through: nothing of LLVM may be used after that.
Compiled compile_source(const CinchClangRequest& request, const CinchClangText& source,
                        std::string_view prelude);

/// Compiles all sources of a request at the same time. Throws std::bad_alloc if memory has run out
/// within LLVM, in this call or another: LLVM's shared data may then be inconsistent.
std::vector<Compiled> compile_sources(const CinchClangRequest& request);
bool has_run_out_of_memory();
void note_out_of_memory();

/// Registers targets, once per process, before any other stage: Clang, too, reads the list.
void initialize_target();

/// The version of the Clang that runs here, which may differ from that of the headers: "clang
/// version 19.1.7 …".
std::string clang_version();

/// Precompiles text to the form that Clang keeps between runs. The same request gives the same
/// bytes, for the Clang of clang_version() only. Empty after errors, with diagnostics in `log`.
Bytes precompile(const CinchClangRequest& request, const CinchClangText& source, std::string& log);

/// The unoptimised module of the source, or null with the diagnostics in `log`.
std::unique_ptr<llvm::Module> run_front_end(const CinchClangRequest& request,
                                            const CinchClangText& source, std::string_view prelude,
                                            llvm::LLVMContext& context, std::string& log);

/// Null with a message in `log` if the target is unknown.
std::unique_ptr<llvm::TargetMachine> make_target_machine(const CinchClangRequest& request,
                                                         llvm::Module& module, std::string& log);
void optimize(const CinchClangRequest& request, llvm::Module& module, llvm::TargetMachine& machine);
/// Runs a pipeline in the syntax of LLVM's `opt`.
void run_passes(llvm::Module& module, llvm::TargetMachine& machine, const char* pipeline);
/// Replaces `optimize` for the emulated GPU. Returns false for unsupported code, with a message in
/// `log`.
bool make_emulated(const CinchClangRequest& request, const CinchClangText& source,
                   llvm::Module& module, llvm::TargetMachine& machine, std::string& log);
/// From here on, functions with frames too large for the emulator's stacks add to `complaints`,
/// which must outlive the module's context.
void watch_frames(llvm::Module& module, std::string& complaints);
/// The object file or assembly text, by request.output.
Bytes emit_machine_code(const CinchClangRequest& request, llvm::Module& module,
                        llvm::TargetMachine& machine);
std::string print_module(const llvm::Module& module);

/// Links ELF objects to a shared object that needs no library, or only what the process has loaded
/// (the run time of a sanitizer). Empty after errors, with a message in `log`.
Bytes link_shared_object(const std::vector<std::string_view>& objects, bool needs_process,
                         std::string& log);

/// Runs after the front end. Kernels (the functions that are visible by default) become `prefix` +
/// name and hidden; all else becomes local. Memory functions are those of the process. See
/// CinchClangRequest::symbol_prefix.
void make_private(llvm::Module& module, std::string_view prefix);

/// Implement the calls of CinchClangBackend with the same names. Empty after errors, with a message
/// in `log`.
Bytes make_data_object(const char* cpu, const std::vector<CinchClangBytes>& data, std::string& log);
Bytes link_library(const std::vector<std::string_view>& objects, const std::string& soname,
                   const std::vector<std::string>& exports, std::string& log);
Bytes make_archive_file(const std::vector<CinchClangBytes>& members, std::string& log);

/// cpu_helpers_digest() of the helpers that make_helpers built into this library; empty if another
/// Clang built them than runs here.
const char* helpers_digest();
/// The object of the prelude's helpers for an architecture; empty if we have none for it.
std::string_view helpers_object(std::string_view cpu);
/// The precompiled prelude for an architecture; empty if we have none for it.
std::string_view precompiled_prelude(std::string_view cpu);

Bytes format_text(std::string_view text, std::string& log);

}  // namespace cinch::clang_backend

// Passes that turn CUDA text in Clang's CUDA mode into code for the emulated GPU
// (codegen/emulator).

namespace llvm {
class Function;
class GlobalVariable;
class Instruction;
class Module;
class Value;
}  // namespace llvm

namespace cinch::clang_backend {

/// The file name of emitted text in debug locations; a #line before the text sets it.
inline constexpr const char* kEmulatedTextFile = "kernels.cu";
/// Names of generated functions: `void PREFIXkernel(void** params)`.
inline constexpr const char* kEmulatedEntryPrefix = "cinch_emulated_entry_";

/// Places in emitted text, numbered at their first use; number 0 means unknown.
class SiteTable {
 public:
  std::uint32_t site_of(const llvm::Instruction& instruction);
  const std::vector<emulator::Site>& sites() const { return sites_; }

 private:
  std::vector<emulator::Site> sites_{{0, 0}};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;
};

/// The module's variable that points to the table of hooks.
llvm::GlobalVariable* hooks_variable(llvm::Module& module);
/// Loads the table of hooks at the function's entry.
llvm::Value* hooks_of(llvm::Function& function);

/// Replaces calls of cinch_emulated_… by calls through the table. With checks, also reports
/// accesses to memory that may not be a thread's own. Back edges of loops use up fuel.
void insert_hooks(llvm::Module& module, bool checks, SiteTable& sites);
/// Removes reports of accesses that turned out to be to a thread's own memory.
void drop_private_reports(llvm::Module& module);

}  // namespace cinch::clang_backend
