// The stages inside cinch_clang: source to LLVM module to object to shared object. Headers of LLVM
// stay in the .cpp files where they can.
#pragma once
#include <memory>
#include <string>
#include <string_view>

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

/// Unoptimised module of the request's source, or null with the diagnostics in `log`.
std::unique_ptr<llvm::Module> run_front_end(const CinchClangRequest& request,
                                            llvm::LLVMContext& context, std::string& log);

/// Null with a message in `log` if the target is unknown.
std::unique_ptr<llvm::TargetMachine> make_target_machine(const CinchClangRequest& request,
                                                         llvm::Module& module, std::string& log);
void optimize(const CinchClangRequest& request, llvm::Module& module, llvm::TargetMachine& machine);
/// Object file or assembly text, by request.output.
Bytes emit_machine_code(const CinchClangRequest& request, llvm::Module& module,
                        llvm::TargetMachine& machine);
std::string print_module(const llvm::Module& module);

/// An ELF object to a shared object that needs no library. Empty with a message in `log` on errors.
Bytes link_shared_object(const Bytes& object, std::string& log);

Bytes format_text(std::string_view text, std::string& log);

}  // namespace cinch::clang_backend
