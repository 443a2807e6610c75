// Inserts calls into the emulator: for CUDA's cooperative operations, for accesses, and for loops.
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "codegen/jit/clang/stages.h"

namespace cinch::clang_backend {
namespace {

constexpr const char* kHooksVariable = "cinch_emulated_hooks";
constexpr llvm::StringLiteral kHookPrefix = "cinch_emulated_";
constexpr llvm::StringLiteral kStateFunction = "cinch_emulated_state";
constexpr llvm::StringLiteral kReport = "cinch.report";  // metadata of calls that report an access

struct HookName {
  const char* name;
  std::uint64_t offset;  // in struct Hooks
};
constexpr HookName kHookNames[] = {
#define CINCH_HOOK(name, result, parameters) {#name, offsetof(emulator::Hooks, name)},
#include "codegen/emulator/hooks.def"
#undef CINCH_HOOK
};

std::uint64_t offset_of_hook(llvm::StringRef name) {
  for (const HookName& hook : kHookNames) {
    if (name == hook.name) return hook.offset;
  }
  llvm_unreachable("a function of the prelude that has no hook");
}

// Threads meet in these calls: no pass may duplicate them.
llvm::CallInst* call_hook(llvm::IRBuilder<>& builder, llvm::StringRef name,
                          llvm::FunctionType* type, llvm::ArrayRef<llvm::Value*> args) {
  llvm::Value* hooks = hooks_of(*builder.GetInsertBlock()->getParent());
  llvm::Value* field = builder.CreateConstGEP1_64(builder.getInt8Ty(), hooks, offset_of_hook(name));
  llvm::CallInst* call =
      builder.CreateCall(type, builder.CreateLoad(builder.getPtrTy(), field), args);
  call->addFnAttr(llvm::Attribute::Convergent);
  call->addFnAttr(llvm::Attribute::NoDuplicate);
  call->addFnAttr(llvm::Attribute::NoMerge);
  return call;
}

// Is it the table of hooks, which holds the thread's state?
bool is_state(const llvm::Value* object) {
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(object)) {
    const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(load->getPointerOperand());
    return variable && variable->getName() == kHooksVariable;
  }
  const auto* call = llvm::dyn_cast<llvm::CallInst>(object);
  return call && call->getCalledFunction() &&
         call->getCalledFunction()->getName() == kStateFunction;
}

// Is it a thread's own memory, or data of the module? Such accesses need no report.
bool is_private(const llvm::Value* pointer) {
  const llvm::Value* object = llvm::getUnderlyingObject(pointer, 0);
  if (llvm::isa<llvm::AllocaInst>(object) || llvm::isa<llvm::GlobalVariable>(object)) return true;
  if (is_state(object)) return true;
  const auto* argument = llvm::dyn_cast<llvm::Argument>(object);
  return argument && argument->hasByValAttr();
}

// Inserts the calls that one function needs.
class FunctionHooks {
 public:
  FunctionHooks(llvm::Function& function, bool checks, SiteTable& sites)
      : function_(function), checks_(checks), sites_(sites) {}

  void insert() {
    llvm::SmallVector<llvm::Instruction*> instructions;
    for (llvm::Instruction& instruction : llvm::instructions(function_)) {
      instructions.push_back(&instruction);
    }
    for (llvm::Instruction* instruction : instructions) visit(*instruction);
    insert_fuel();
  }

 private:
  void visit(llvm::Instruction& instruction) {
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
      access(instruction, load->getPointerOperand(), load->getType(), load->getAlign(),
             load->isVolatile(), false);
    } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
      access(instruction, store->getPointerOperand(), store->getValueOperand()->getType(),
             store->getAlign(), store->isVolatile(), true);
    } else if (auto* fill = llvm::dyn_cast<llvm::MemIntrinsic>(&instruction)) {
      bulk_access(*fill);
    } else if (auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction)) {
      const llvm::Function* callee = call->getCalledFunction();
      if (callee && callee->getName().starts_with(kHookPrefix)) replace_call(*call, *callee);
    }
  }

  void access(llvm::Instruction& at, llvm::Value* pointer, llvm::Type* type, llvm::Align align,
              bool is_strong, bool is_write) {
    if ((!checks_ && !is_strong) || is_private(pointer)) return;
    llvm::IRBuilder<> builder(&at);
    const std::uint64_t size = function_.getDataLayout().getTypeStoreSize(type);
    report(builder, pointer, builder.getInt64(size), align, is_strong, is_write);
  }

  void bulk_access(llvm::MemIntrinsic& bulk) {
    if (!checks_) return;
    llvm::IRBuilder<> builder(&bulk);
    llvm::Value* size = builder.CreateZExt(bulk.getLength(), builder.getInt64Ty());
    if (auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(&bulk)) {
      if (!is_private(copy->getRawSource())) {
        report(builder, copy->getRawSource(), size, copy->getSourceAlign().valueOrOne(),
               bulk.isVolatile(), false);
      }
    }
    if (!is_private(bulk.getRawDest())) {
      report(builder, bulk.getRawDest(), size, bulk.getDestAlign().valueOrOne(), bulk.isVolatile(),
             true);
    }
  }

  void report(llvm::IRBuilder<>& builder, llvm::Value* pointer, llvm::Value* size,
              llvm::Align align, bool is_strong, bool is_write) {
    const char* name =
        is_write ? (is_strong ? "strong_write" : "write") : (is_strong ? "strong_read" : "read");
    llvm::Type* words[] = {builder.getPtrTy(), builder.getInt64Ty(), builder.getInt64Ty(),
                           builder.getInt32Ty()};
    const std::uint32_t site = sites_.site_of(*builder.GetInsertPoint());
    llvm::CallInst* call =
        call_hook(builder, name, llvm::FunctionType::get(builder.getVoidTy(), words, false),
                  {builder.CreateAddrSpaceCast(pointer, builder.getPtrTy()), size,
                   builder.getInt64(align.value()), builder.getInt32(site)});
    if (!is_strong) call->setMetadata(kReport, llvm::MDNode::get(call->getContext(), {}));
  }

  void replace_call(llvm::CallInst& call, const llvm::Function& callee) {
    llvm::Value* replacement = hooks_of(function_);
    if (callee.getName() != kStateFunction) {
      llvm::IRBuilder<> builder(&call);
      llvm::SmallVector<llvm::Value*> args(call.args());
      // The last parameter, a word that the prelude left 0.
      auto* last = llvm::dyn_cast<llvm::ConstantInt>(args.back());
      if (last) args.back() = builder.getInt32(sites_.site_of(call));
      replacement = call_hook(builder, callee.getName().drop_front(kHookPrefix.size()),
                              call.getFunctionType(), args);
    }
    call.replaceAllUsesWith(replacement);
    call.eraseFromParent();
  }

  void insert_fuel() {
    llvm::DominatorTree tree(function_);
    llvm::LoopInfo loops(tree);
    llvm::SmallVector<llvm::Instruction*> latches;
    for (const llvm::Loop* loop : loops.getLoopsInPreorder()) {
      llvm::SmallVector<llvm::BasicBlock*> blocks;
      loop->getLoopLatches(blocks);
      for (llvm::BasicBlock* block : blocks) latches.push_back(block->getTerminator());
    }
    for (llvm::Instruction* latch : latches) use_fuel(*latch);
  }

  void use_fuel(llvm::Instruction& latch) {
    const std::uint32_t site = sites_.site_of(latch);
    llvm::IRBuilder<> builder(&latch);
    llvm::Value* field = builder.CreateConstGEP1_64(builder.getInt8Ty(), hooks_of(function_),
                                                    offsetof(emulator::Hooks, fuel));
    llvm::Value* left =
        builder.CreateSub(builder.CreateLoad(builder.getInt64Ty(), field), builder.getInt64(1));
    builder.CreateStore(left, field);
    llvm::Value* is_out = builder.CreateICmpEQ(left, builder.getInt64(0));
    llvm::Instruction* then = llvm::SplitBlockAndInsertIfThen(is_out, &latch, false);
    llvm::IRBuilder<> out(then);
    call_hook(out, "out_of_fuel",
              llvm::FunctionType::get(out.getVoidTy(), {out.getInt32Ty()}, false),
              {out.getInt32(site)});
  }

  llvm::Function& function_;
  bool checks_;
  SiteTable& sites_;
};

}  // namespace

std::uint32_t SiteTable::site_of(const llvm::Instruction& instruction) {
  std::uint32_t line = 0, kernel_line = 0;
  for (const llvm::DILocation* at = instruction.getDebugLoc(); at; at = at->getInlinedAt()) {
    if (at->getFilename() != kEmulatedTextFile) continue;
    if (line == 0) line = at->getLine();
    kernel_line = at->getLine();
  }
  const auto [found, is_new] =
      numbers_.try_emplace({line, kernel_line}, static_cast<std::uint32_t>(sites_.size()));
  if (is_new) sites_.push_back({line, kernel_line});
  return found->second;
}

llvm::GlobalVariable* hooks_variable(llvm::Module& module) {
  if (auto* variable = module.getNamedGlobal(kHooksVariable)) return variable;
  auto* pointer = llvm::PointerType::get(module.getContext(), 0);
  return new llvm::GlobalVariable(module, pointer, false, llvm::GlobalValue::InternalLinkage,
                                  llvm::ConstantPointerNull::get(pointer), kHooksVariable);
}

llvm::Value* hooks_of(llvm::Function& function) {
  llvm::GlobalVariable* variable = hooks_variable(*function.getParent());
  llvm::Instruction* first = &*function.getEntryBlock().begin();
  const auto* load = llvm::dyn_cast<llvm::LoadInst>(first);
  if (load && load->getPointerOperand() == variable) return first;
  llvm::IRBuilder<> builder(first);
  return builder.CreateLoad(builder.getPtrTy(), variable);
}

void insert_hooks(llvm::Module& module, bool checks, SiteTable& sites) {
  for (llvm::Function& function : module) {
    // Entries only read what the host passed; memcpy and memset implement accesses that are
    // reported themselves.
    const llvm::StringRef name = function.getName();
    const bool is_ours =
        name.starts_with(kEmulatedEntryPrefix) || name == "memcpy" || name == "memset";
    if (function.isDeclaration() || is_ours) continue;
    FunctionHooks(function, checks, sites).insert();
  }
}

void drop_private_reports(llvm::Module& module) {
  llvm::SmallVector<llvm::CallInst*> dropped;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      if (call && call->hasMetadata(kReport) && is_private(call->getArgOperand(0))) {
        dropped.push_back(call);
      }
    }
  }
  for (llvm::CallInst* call : dropped) call->eraseFromParent();
}

}  // namespace cinch::clang_backend
