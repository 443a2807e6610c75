// Shared memory of the emulated GPU. Clang puts shared variables into an address space of their
// own; here each becomes an offset from the running block's memory. A variable that several kernels
// use has the same place in all of them; others share places.
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ReplaceConstant.h>

#include <algorithm>
#include <cstddef>
#include <set>

#include "codegen/jit/clang/emulated_stages.h"

namespace cinch::clang_backend {
namespace {

// LangAS::cuda_shared under -ffake-address-space-map.
constexpr unsigned kSharedSpace = 9;
// Between arrays, and before the first, to find overruns.
constexpr std::uint64_t kRedZoneBytes = 64;
constexpr std::uint64_t kDynamicAlign = 16;

using Reached = std::map<const llvm::Function*, std::set<const llvm::GlobalVariable*>>;

std::vector<llvm::GlobalVariable*> shared_variables(llvm::Module& module) {
  std::vector<llvm::GlobalVariable*> variables;
  for (llvm::GlobalVariable& variable : module.globals()) {
    if (variable.getAddressSpace() == kSharedSpace) variables.push_back(&variable);
  }
  return variables;
}

bool is_dynamic(const llvm::GlobalVariable& variable) {
  return variable.isDeclaration();
}

// The variables that each function names itself; constants around variables are instructions by
// now.
Reached named_by_functions(const std::vector<llvm::GlobalVariable*>& variables) {
  Reached named;
  for (const llvm::GlobalVariable* variable : variables) {
    for (const llvm::User* user : variable->users()) {
      if (const auto* instruction = llvm::dyn_cast<llvm::Instruction>(user)) {
        named[instruction->getFunction()].insert(variable);
      }
    }
  }
  return named;
}

void add_reached(const llvm::Function& function, const Reached& named,
                 std::set<const llvm::GlobalVariable*>& reached,
                 llvm::SmallPtrSetImpl<const llvm::Function*>& seen) {
  if (!seen.insert(&function).second) return;
  if (const auto found = named.find(&function); found != named.end()) {
    reached.insert(found->second.begin(), found->second.end());
  }
  for (const llvm::BasicBlock& block : function) {
    for (const llvm::Instruction& instruction : block) {
      const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      if (call && call->getCalledFunction()) {
        add_reached(*call->getCalledFunction(), named, reached, seen);
      }
    }
  }
}

std::uint64_t size_of(const llvm::Module& module, const llvm::GlobalVariable& variable) {
  return module.getDataLayout().getTypeAllocSize(variable.getValueType());
}

void replace_by_place(llvm::GlobalVariable& variable, std::uint64_t offset) {
  llvm::SmallVector<llvm::Instruction*> users;
  for (llvm::User* user : variable.users()) users.push_back(llvm::cast<llvm::Instruction>(user));
  for (llvm::Instruction* user : users) {
    llvm::Function& function = *user->getFunction();
    auto* hooks = llvm::cast<llvm::Instruction>(hooks_of(function));
    llvm::IRBuilder<> builder(hooks->getNextNode());
    llvm::Value* field =
        builder.CreateConstGEP1_64(builder.getInt8Ty(), hooks, offsetof(emulator::Hooks, shared));
    llvm::Value* memory = builder.CreateLoad(builder.getPtrTy(), field);
    llvm::Value* place = builder.CreateConstGEP1_64(builder.getInt8Ty(), memory, offset);
    user->replaceUsesOfWith(&variable, builder.CreateAddrSpaceCast(place, variable.getType()));
  }
  variable.eraseFromParent();
}

}  // namespace

std::map<const llvm::Function*, SharedLayout> place_shared_memory(
    llvm::Module& module, const std::vector<llvm::Function*>& kernels) {
  std::map<const llvm::Function*, SharedLayout> layouts;
  const std::vector<llvm::GlobalVariable*> variables = shared_variables(module);
  llvm::SmallVector<llvm::Constant*> constants(variables.begin(), variables.end());
  llvm::convertUsersOfConstantsToInstructions(constants);
  const Reached named = named_by_functions(variables);
  Reached reached;
  std::map<const llvm::Function*, std::uint64_t> end;
  for (const llvm::Function* kernel : kernels) {
    llvm::SmallPtrSet<const llvm::Function*, 16> seen;
    add_reached(*kernel, named, reached[kernel], seen);
    end[kernel] = kRedZoneBytes;
    layouts[kernel];
  }
  std::map<llvm::GlobalVariable*, std::uint64_t> offsets;
  std::uint64_t static_end = kRedZoneBytes;
  for (llvm::GlobalVariable* variable : variables) {
    if (is_dynamic(*variable)) continue;
    const std::uint64_t size = size_of(module, *variable);
    std::uint64_t offset = kRedZoneBytes;
    for (const llvm::Function* kernel : kernels) {
      if (reached[kernel].contains(variable)) offset = std::max(offset, end[kernel]);
    }
    offset = llvm::alignTo(offset, variable->getAlign().valueOrOne());
    offsets[variable] = offset;
    for (const llvm::Function* kernel : kernels) {
      if (!reached[kernel].contains(variable)) continue;
      end[kernel] = offset + size + kRedZoneBytes;
      layouts[kernel].arrays.push_back({offset, size});
    }
    static_end = std::max(static_end, offset + size + kRedZoneBytes);
  }
  const std::uint64_t dynamic_offset = llvm::alignTo(static_end, kDynamicAlign);
  for (llvm::GlobalVariable* variable : variables) {
    if (!is_dynamic(*variable)) continue;
    offsets[variable] = dynamic_offset;
    for (const llvm::Function* kernel : kernels) {
      if (reached[kernel].contains(variable)) layouts[kernel].dynamic_offset = dynamic_offset;
    }
  }
  for (llvm::GlobalVariable* variable : variables) replace_by_place(*variable, offsets[variable]);
  return layouts;
}

}  // namespace cinch::clang_backend
