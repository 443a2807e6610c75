// LLVM's optimiser and code generator for the x86-64 levels and AArch64.
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/Transforms/Instrumentation/AddressSanitizer.h>

#include <mutex>

#include "codegen/jit/clang/stages.h"

namespace cinch::clang_backend {
namespace {

#define CINCH_CLEAN "instcombine<no-verify-fixpoint>"
#define CINCH_BRANCHES "simplifycfg<switch-range-to-icmp>"
// Selected for text that already uses vectors and whose calls are nearly all inlined by attribute.
// Compared with -O3 the code is equally fast within 2 % for every compressor of the library
// (measured on a Zen 4 core, November 2026), and takes two thirds of the time. Without
// jump-threading, vector-combine or loop-unroll some kernels were a tenth to a quarter slower.
constexpr const char* kPasses =
    "function<eager-inv>(lower-expect," CINCH_BRANCHES
    ",sroa,early-cse<>),"
    "always-inline,globaldce,"
    "cgscc(inline,function<eager-inv;no-rerun>(sroa,early-cse<memssa>," CINCH_BRANCHES
    "," CINCH_CLEAN ",loop-mssa(loop-rotate,licm,simple-loop-unswitch<nontrivial>)," CINCH_BRANCHES
    "," CINCH_CLEAN
    ",loop(indvars,loop-deletion,loop-unroll-full),sroa,vector-combine,gvn," CINCH_CLEAN
    ",jump-threading,correlated-propagation,adce,dse,"
    "loop-mssa(licm),simplifycfg<switch-range-to-icmp;switch-to-lookup;no-keep-loops;"
    "hoist-common-insts;sink-common-insts>," CINCH_CLEAN
    ",loop-unroll<O3>,vector-combine," CINCH_CLEAN ",loop-mssa(licm)," CINCH_BRANCHES
    ")),globaldce";
// For code that serves until the other is made. It takes two fifths of the time, machine code
// included, and runs about twice as long, at most six times. Without unrolling and what follows it
// some decoders would run more than 20 times as long: arrays of lanes would stay in memory.
constexpr const char* kQuickPasses =
    "function<eager-inv>(lower-expect," CINCH_BRANCHES
    ",sroa,early-cse<>),"
    "always-inline,globaldce,"
    "cgscc(inline,function<eager-inv;no-rerun>(sroa,early-cse<>," CINCH_BRANCHES
    ",loop-mssa(loop-rotate,licm),loop(loop-unroll-full),sroa,early-cse<>," CINCH_CLEAN
    "," CINCH_BRANCHES ")),globaldce";
#undef CINCH_CLEAN
#undef CINCH_BRANCHES

using AddPasses = llvm::function_ref<void(llvm::PassBuilder&, llvm::ModulePassManager&)>;

void run(llvm::Module& module, llvm::TargetMachine& machine, AddPasses add_passes) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  // Freestanding: no call is known to be a library function.
  llvm::TargetLibraryInfoImpl library(llvm::Triple(module.getTargetTriple()));
  library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  add_passes(builder, passes);
  passes.run(module, modules);
}

}  // namespace

void initialize_target() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
  });
}

std::unique_ptr<llvm::TargetMachine> make_target_machine(const CinchClangRequest& request,
                                                         llvm::Module& module, std::string& log) {
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(module.getTargetTriple(), log);
  if (!target) return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.FunctionSections = true;  // the linker then takes only the helpers that are called
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      module.getTargetTriple(), processor_of(request).cpu, "", options, llvm::Reloc::PIC_,
      std::nullopt,
      request.optimization_level == 0 || request.is_quick != 0 ? llvm::CodeGenOptLevel::None
                                                               : llvm::CodeGenOptLevel::Default));
}

void run_passes(llvm::Module& module, llvm::TargetMachine& machine, const char* pipeline) {
  run(module, machine, [&](llvm::PassBuilder& builder, llvm::ModulePassManager& passes) {
    llvm::cantFail(builder.parsePassPipeline(passes, pipeline));
  });
}

void optimize(const CinchClangRequest& request, llvm::Module& module,
              llvm::TargetMachine& machine) {
  run(module, machine, [&](llvm::PassBuilder& builder, llvm::ModulePassManager& passes) {
    if (request.optimization_level == 0) {
      passes = builder.buildO0DefaultPipeline(llvm::OptimizationLevel::O0);
    } else {
      llvm::cantFail(
          builder.parsePassPipeline(passes, request.is_quick != 0 ? kQuickPasses : kPasses));
    }
    if (request.address_sanitizer) {
      passes.addPass(llvm::AddressSanitizerPass(llvm::AddressSanitizerOptions()));
    }
  });
}

Bytes emit_machine_code(const CinchClangRequest& request, llvm::Module& module,
                        llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const auto type = request.output == kCinchAssembly ? llvm::CodeGenFileType::AssemblyFile
                                                     : llvm::CodeGenFileType::ObjectFile;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type)) return {};
  passes.run(module);
  return Bytes(bytes.begin(), bytes.end());
}

std::string print_module(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

}  // namespace cinch::clang_backend
