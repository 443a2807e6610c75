// Passes that make code for the emulated GPU (codegen/emulator) of CUDA text in Clang's CUDA mode.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/emulator/hooks.h"

namespace llvm {
class Function;
class GlobalVariable;
class Instruction;
class Module;
class Value;
}  // namespace llvm

namespace cinch::clang_backend {

/// The file that emitted text is from, for debug locations; set with #line in front of it.
inline constexpr const char* kEmulatedTextFile = "kernels.cu";
/// Names of generated functions: `void PREFIXkernel(void** params)`.
inline constexpr const char* kEmulatedEntryPrefix = "cinch_emulated_entry_";

/// Places in emitted text, numbered as they are asked for; number 0 is nowhere.
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
/// The table of hooks, loaded where a function begins.
llvm::Value* hooks_of(llvm::Function& function);

/// Where the arrays of shared memory that a kernel reaches lie in a block's.
struct SharedLayout {
  std::vector<emulator::SharedArray> arrays;
  std::uint64_t dynamic_offset = emulator::kNoDynamicShared;
};
/// Turns shared variables into places behind Hooks::shared, in every function. By kernel.
std::map<const llvm::Function*, SharedLayout> place_shared_memory(
    llvm::Module& module, const std::vector<llvm::Function*>& kernels);

/// Calls of cinch_emulated_… become calls through the table. With checks, so do accesses to memory
/// that may not be a thread's own. Back edges of loops use up fuel.
void insert_hooks(llvm::Module& module, bool checks, SiteTable& sites);
/// Takes the reports away again of accesses that turned out to be to a thread's own memory.
void drop_private_reports(llvm::Module& module);

/// The exported description; `text` is the emitted one.
void describe_module(llvm::Module& module, const std::vector<llvm::Function*>& kernels,
                     const std::map<const llvm::Function*, SharedLayout>& shared, bool checks,
                     const SiteTable& sites, std::string_view text);

}  // namespace cinch::clang_backend
