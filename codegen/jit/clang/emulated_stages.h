// Passes that turn CUDA text in Clang's CUDA mode into code for the emulated GPU
// (codegen/emulator).
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

/// The places, in a block's shared memory, of the arrays that a kernel uses.
struct SharedLayout {
  std::vector<emulator::SharedArray> arrays;
  std::uint64_t dynamic_offset = emulator::kNoDynamicShared;
};
/// Replaces shared variables by places behind Hooks::shared, in every function. Returns the layouts
/// by kernel.
std::map<const llvm::Function*, SharedLayout> place_shared_memory(
    llvm::Module& module, const std::vector<llvm::Function*>& kernels);

/// Replaces calls of cinch_emulated_… by calls through the table. With checks, also reports
/// accesses to memory that may not be a thread's own. Back edges of loops use up fuel.
void insert_hooks(llvm::Module& module, bool checks, SiteTable& sites);
/// Removes reports of accesses that turned out to be to a thread's own memory.
void drop_private_reports(llvm::Module& module);

/// Adds the exported description; `text` is the emitted text.
void describe_module(llvm::Module& module, const std::vector<llvm::Function*>& kernels,
                     const std::map<const llvm::Function*, SharedLayout>& shared, bool checks,
                     const SiteTable& sites, std::string_view text);

}  // namespace cinch::clang_backend
