// Clang's front end on a buffer in memory: no file is read, no header is searched.
#include <clang/Basic/DiagnosticOptions.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Lex/PreprocessorOptions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "codegen/jit/clang/stages.h"

namespace cinch::clang_backend {
namespace {

// Contraction off: the language rounds every operation. 512-bit vectors are asked for by name,
// since x86-64-v4's own tuning would split them.
std::vector<std::string> compiler_args(const CinchClangRequest& request) {
  const Processor processor = processor_of(request);
  std::vector<std::string> args = {
      "-triple",
      processor.triple,
      "-target-cpu",
      processor.cpu,
      "-emit-llvm-only",
      "-disable-llvm-passes",
      "-disable-llvm-verifier",
      "-x",
      "c++",
      "-std=c++20",
      "-O" + std::to_string(request.optimization_level),
      "-ffp-contract=off",
      "-ffreestanding",
      "-nostdsysteminc",
      "-nobuiltininc",
      "-fvisibility=hidden",
      "-mrelocation-model",
      "pic",
      "-pic-level",
      "2",
      "-fno-rtti",
      "-fno-threadsafe-statics",
      "-mprefer-vector-width=512",
      "-Wno-psabi",
      "-Wno-pass-failed",
      "-DCINCH_LANES=" + std::to_string(request.lanes),
      request.address_sanitizer ? "-mframe-pointer=all" : "-mframe-pointer=none"};
  if (request.address_sanitizer) {
    args.insert(args.end(), {"-fsanitize=address", "-debug-info-kind=line-tables-only"});
  }
  args.emplace_back(request.file_name);
  return args;
}

}  // namespace

Processor processor_of(const CinchClangRequest& request) {
  if (std::string_view(request.cpu) == "aarch64") return {"aarch64-unknown-linux-gnu", "generic"};
  return {"x86_64-unknown-linux-gnu", request.cpu};
}

std::unique_ptr<llvm::Module> run_front_end(const CinchClangRequest& request,
                                            const CinchClangText& source,
                                            llvm::LLVMContext& context, std::string& log) {
  llvm::raw_string_ostream log_stream(log);
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options(new clang::DiagnosticOptions);
  auto* printer = new clang::TextDiagnosticPrinter(log_stream, options.get());
  llvm::IntrusiveRefCntPtr<clang::DiagnosticIDs> ids(new clang::DiagnosticIDs);
  llvm::IntrusiveRefCntPtr<clang::DiagnosticsEngine> engine(
      new clang::DiagnosticsEngine(ids, options, printer, true));

  const std::vector<std::string> args = compiler_args(request);
  std::vector<const char*> arg_ptrs;
  arg_ptrs.reserve(args.size());
  for (const std::string& arg : args) arg_ptrs.push_back(arg.c_str());
  auto invocation = std::make_shared<clang::CompilerInvocation>();
  if (!clang::CompilerInvocation::CreateFromArgs(*invocation, arg_ptrs, *engine)) return nullptr;
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(source.text, source.size),
                                                     request.file_name);
  invocation->getPreprocessorOpts().addRemappedFile(request.file_name, buffer.release());

  clang::CompilerInstance compiler;
  compiler.setVerboseOutputStream(log_stream);
  compiler.setInvocation(std::move(invocation));
  compiler.setDiagnostics(engine.get());
  clang::EmitLLVMOnlyAction action(&context);
  const bool ok = compiler.ExecuteAction(action);
  return ok ? action.takeModule() : nullptr;
}

}  // namespace cinch::clang_backend
