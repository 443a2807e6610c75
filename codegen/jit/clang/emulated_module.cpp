// The description of a module for the emulated GPU, and the order of its passes.
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <set>

#include "codegen/jit/clang/stages.h"

namespace cinch::clang_backend {
namespace {

// The places, in a block's shared memory, of the arrays that a kernel uses.
struct SharedLayout {
  std::vector<emulator::SharedArray> arrays;
  std::uint64_t dynamic_offset = emulator::kNoDynamicShared;
};

// LangAS::cuda_device and cuda_constant under -ffake-address-space-map.
constexpr unsigned kDeviceSpace = 7, kConstantSpace = 8;

// Passes before the hooks are inserted shrink the inlined functions and split no access. Passes
// after them keep frames small. Machine code is generated without optimisation.
constexpr const char* kBefore = "function(mem2reg,early-cse),always-inline,globaldce";
constexpr const char* kBehind = "function(sroa)";
constexpr const char* kAtLast = "function(sroa,early-cse,simplifycfg),globaldce";

// Builds the constants of the structs in module.h, word by word.
class Describer {
 public:
  explicit Describer(llvm::Module& module) : module_(module), builder_(module.getContext()) {}

  llvm::Constant* word(std::uint64_t x) { return builder_.getInt64(x); }
  llvm::Constant* text(llvm::StringRef text) {
    return private_data(llvm::ConstantDataArray::getString(module_.getContext(), text));
  }
  llvm::Constant* record(llvm::ArrayRef<llvm::Constant*> fields) {
    return llvm::ConstantStruct::getAnon(module_.getContext(), fields);
  }
  // The address of an array of records; null if it is empty.
  llvm::Constant* array(llvm::ArrayRef<llvm::Constant*> records) {
    if (records.empty()) return llvm::ConstantPointerNull::get(builder_.getPtrTy());
    auto* type = llvm::ArrayType::get(records[0]->getType(), records.size());
    return private_data(llvm::ConstantArray::get(type, records));
  }
  llvm::Constant* site(const emulator::Site& site) {
    return record({builder_.getInt32(site.line), builder_.getInt32(site.kernel_line)});
  }
  llvm::GlobalVariable* private_data(llvm::Constant* value) {
    auto* variable = new llvm::GlobalVariable(module_, value->getType(), true,
                                              llvm::GlobalValue::PrivateLinkage, value);
    variable->setAlignment(llvm::Align(8));
    return variable;
  }
  void export_data(llvm::Constant* value, const char* name) {
    new llvm::GlobalVariable(module_, value->getType(), true, llvm::GlobalValue::ExternalLinkage,
                             value, name);
  }

 private:
  llvm::Module& module_;
  llvm::IRBuilder<> builder_;
};

std::vector<llvm::Constant*> constant_ranges(llvm::Module& module, Describer& describer) {
  std::vector<llvm::Constant*> ranges;
  auto* pointer = llvm::PointerType::get(module.getContext(), 0);
  for (llvm::GlobalVariable& variable : module.globals()) {
    if (variable.isDeclaration() || !variable.isConstant()) continue;
    const std::uint64_t size = module.getDataLayout().getTypeAllocSize(variable.getValueType());
    ranges.push_back(
        describer.record({llvm::ConstantExpr::getPointerBitCastOrAddrSpaceCast(&variable, pointer),
                          describer.word(size)}));
  }
  return ranges;
}

llvm::Constant* describe_kernel(Describer& describer, llvm::Module& module,
                                const llvm::Function& kernel, const SharedLayout& layout) {
  std::vector<llvm::Constant*> arrays;
  arrays.reserve(layout.arrays.size());
  for (const emulator::SharedArray& array : layout.arrays) {
    arrays.push_back(
        describer.record({describer.word(array.offset), describer.word(array.size_bytes)}));
  }
  llvm::Function* entry =
      module.getFunction((llvm::Twine(kEmulatedEntryPrefix) + kernel.getName()).str());
  return describer.record({describer.text(kernel.getName()), entry, describer.array(arrays),
                           describer.word(arrays.size()), describer.word(layout.dynamic_offset)});
}

// Finds kernels by the entries that were generated for them.
std::vector<llvm::Function*> find_kernels(llvm::Module& module) {
  std::vector<llvm::Function*> kernels;
  for (const llvm::Function& function : module) {
    llvm::StringRef name = function.getName();
    if (function.isDeclaration() || !name.consume_front(kEmulatedEntryPrefix)) continue;
    if (llvm::Function* kernel = module.getFunction(name)) kernels.push_back(kernel);
  }
  return kernels;
}

// Device variables are not supported: every emulated device would have to initialise them at each
// launch.
bool has_device_variables(const llvm::Module& module, std::string& log) {
  for (const llvm::GlobalVariable& variable : module.globals()) {
    const unsigned space = variable.getAddressSpace();
    const bool is_device = space == kDeviceSpace || space == kConstantSpace;
    if (!is_device || variable.isConstant()) continue;
    log += "the emulated GPU has no __device__ variables: " + variable.getName().str() + "\n";
    return true;
  }
  return false;
}

// Inlines as compilers for GPUs do. This matters most for lambdas, whose captured arrays then
// become a thread's own.
void inline_everything(llvm::Module& module) {
  for (llvm::Function& function : module) {
    const bool is_local = function.hasLocalLinkage() || function.hasLinkOnceLinkage();
    if (function.isDeclaration() || !is_local) continue;
    if (!function.hasFnAttribute(llvm::Attribute::NoInline)) {
      function.addFnAttr(llvm::Attribute::AlwaysInline);
    }
  }
}

// Adds the exported description; `text` is the emitted text.
void describe_module(llvm::Module& module, const std::vector<llvm::Function*>& kernels,
                     const std::map<const llvm::Function*, SharedLayout>& shared, bool checks,
                     const SiteTable& sites, std::string_view text) {
  Describer describer(module);
  const std::vector<llvm::Constant*> ranges = constant_ranges(module, describer);
  std::vector<llvm::Constant*> entries, places;
  for (const llvm::Function* kernel : kernels) {
    entries.push_back(describe_kernel(describer, module, *kernel, shared.at(kernel)));
  }
  for (const emulator::Site& site : sites.sites()) places.push_back(describer.site(site));
  llvm::Constant* hooks = hooks_variable(module);
  describer.export_data(
      describer.record(
          {describer.word(emulator::kModuleAbi), describer.word(checks ? 1 : 0), hooks,
           describer.array(entries), describer.word(entries.size()), describer.array(places),
           describer.word(places.size()), describer.array(ranges), describer.word(ranges.size()),
           describer.text(llvm::StringRef(text.data(), text.size())), describer.word(text.size())}),
      emulator::kModuleSymbol);
}

// Shared memory of the emulated GPU. Clang puts shared variables into an address space of their
// own; here each becomes an offset from the running block's memory. A variable that several kernels
// use has the same place in all of them; others share places.

// LangAS::cuda_shared under -ffake-address-space-map.
constexpr unsigned kSharedSpace = 9;
// Between arrays, and before the first, to find overruns.
constexpr std::uint64_t kRedZoneBytes = 64;
constexpr std::uint64_t kDynamicAlign = 16;

using Reached = std::map<const llvm::Function*, std::set<const llvm::GlobalVariable*>>;

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

// Replaces shared variables by places behind Hooks::shared, in every function. Returns the layouts
// by kernel.
std::map<const llvm::Function*, SharedLayout> place_shared_memory(
    llvm::Module& module, const std::vector<llvm::Function*>& kernels) {
  std::map<const llvm::Function*, SharedLayout> layouts;
  std::vector<llvm::GlobalVariable*> variables;
  for (llvm::GlobalVariable& variable : module.globals()) {
    if (variable.getAddressSpace() == kSharedSpace) variables.push_back(&variable);
  }
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
    const std::uint64_t size = module.getDataLayout().getTypeAllocSize(variable->getValueType());
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

}  // namespace

void watch_frames(llvm::Module& module, std::string& complaints) {
  const std::string limit = std::to_string(emulator::kStackBytes / 2);
  for (llvm::Function& function : module) function.addFnAttr("warn-stack-size", limit);
  const auto note = [](const llvm::DiagnosticInfo* info, void* log) {
    const auto* frame = llvm::dyn_cast<llvm::DiagnosticInfoStackSize>(info);
    if (!frame) return;
    *static_cast<std::string*>(log) +=
        "the emulated GPU has no stack for " + frame->getFunction().getName().str() +
        ": a thread of it takes " + std::to_string(frame->getStackSize()) + " bytes\n";
  };
  module.getContext().setDiagnosticHandlerCallBack(note, &complaints);
}

bool make_emulated(const CinchClangRequest& request, const CinchClangText& source,
                   llvm::Module& module, llvm::TargetMachine& machine, std::string& log) {
  inline_everything(module);
  run_passes(module, machine, kBefore);
  if (has_device_variables(module, log)) return false;
  const std::vector<llvm::Function*> kernels = find_kernels(module);
  const bool checks = request.emulation == kCinchEmulatedChecked;
  SiteTable sites;
  const auto shared = place_shared_memory(module, kernels);
  insert_hooks(module, checks, sites);
  const std::string_view text(source.text + request.emulated_text_begin,
                              request.emulated_text_size);
  describe_module(module, kernels, shared, checks, sites, text);
  llvm::StripDebugInfo(module);
  run_passes(module, machine, kBehind);
  if (checks) drop_private_reports(module);
  run_passes(module, machine, kAtLast);
  return true;
}

}  // namespace cinch::clang_backend
