// Clang's front end on buffers in memory: it reads no files and searches no headers.
#include <clang/Basic/DiagnosticOptions.h>
#include <clang/Basic/Version.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/FrontendActions.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Lex/PreprocessorOptions.h>
#include <clang/Serialization/ASTWriter.h>
#include <clang/Serialization/PCHContainerOperations.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/VirtualFileSystem.h>

#include "codegen/jit/clang/stages.h"

namespace cinch::clang_backend {
namespace {

constexpr const char* kPreludeFile = "/prelude.pch";

// Contraction is off, since the language rounds every operation. 512-bit vectors are requested
// explicitly: x86-64-v4's own tuning would split them.
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
  if (request.is_quick != 0) {
    args.insert(args.end(), {"-disable-lifetime-markers", "-relaxed-aliasing"});
  }
  if (request.emulation != kCinchNotEmulated) {
    // CUDA's rules apply, and shared variables get an address space of their own. At level 0,
    // functions that may be inlined could not be told from those that may not.
    args.insert(args.end(),
                {"-fcuda-is-device", "-ffake-address-space-map", "-O1", "-disable-lifetime-markers",
                 "-relaxed-aliasing", "-debug-info-kind=line-tables-only"});
  }
  if (request.address_sanitizer) {
    args.insert(args.end(), {"-fsanitize=address", "-debug-info-kind=line-tables-only"});
  }
  return args;
}

// Null with a message for `engine` if Clang does not know an argument.
std::shared_ptr<clang::CompilerInvocation> make_invocation(
    const CinchClangRequest& request, const CinchClangText& source,
    const std::vector<std::string>& more_args, clang::DiagnosticsEngine& engine) {
  std::vector<std::string> args = compiler_args(request);
  args.insert(args.end(), more_args.begin(), more_args.end());
  args.emplace_back(request.file_name);
  std::vector<const char*> arg_ptrs;
  arg_ptrs.reserve(args.size());
  for (const std::string& arg : args) arg_ptrs.push_back(arg.c_str());
  auto invocation = std::make_shared<clang::CompilerInvocation>();
  if (!clang::CompilerInvocation::CreateFromArgs(*invocation, arg_ptrs, engine)) return nullptr;
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(source.text, source.size),
                                                     request.file_name);
  invocation->getPreprocessorOpts().addRemappedFile(request.file_name, buffer.release());
  return invocation;
}

// Runs the action on the source and, if there is one, `prelude`: Clang finds no other file.
bool run(clang::FrontendAction& action, const CinchClangRequest& request,
         const CinchClangText& source, const std::vector<std::string>& more_args,
         std::string_view prelude, std::string& log) {
  llvm::raw_string_ostream log_stream(log);
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options(new clang::DiagnosticOptions);
  auto* printer = new clang::TextDiagnosticPrinter(log_stream, options.get());
  llvm::IntrusiveRefCntPtr<clang::DiagnosticIDs> ids(new clang::DiagnosticIDs);
  llvm::IntrusiveRefCntPtr<clang::DiagnosticsEngine> engine(
      new clang::DiagnosticsEngine(ids, options, printer, true));

  auto invocation = make_invocation(request, source, more_args, *engine);
  if (!invocation) return false;
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  (void)files->setCurrentWorkingDirectory("/");
  files->addFileNoOwn(kPreludeFile, 0, llvm::MemoryBufferRef(prelude, kPreludeFile));

  clang::CompilerInstance compiler;
  compiler.setVerboseOutputStream(log_stream);
  compiler.setInvocation(std::move(invocation));
  compiler.setDiagnostics(engine.get());
  compiler.createFileManager(std::move(files));
  return compiler.ExecuteAction(action);
}

// Writes to memory.
class PrecompileAction : public clang::GeneratePCHAction {
 public:
  std::shared_ptr<clang::PCHBuffer> buffer = std::make_shared<clang::PCHBuffer>();

 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler,
                                                        llvm::StringRef) override {
    return std::make_unique<clang::PCHGenerator>(
        compiler.getPreprocessor(), compiler.getModuleCache(), kPreludeFile, "", buffer,
        compiler.getFrontendOpts().ModuleFileExtensions, /*AllowASTWithErrors=*/false,
        /*IncludeTimestamps=*/false);
  }
};

}  // namespace

std::string clang_version() {
  return clang::getClangFullVersion();
}

Processor processor_of(const CinchClangRequest& request) {
  if (std::string_view(request.cpu) == "aarch64") return {"aarch64-unknown-linux-gnu", "generic"};
  return {"x86_64-unknown-linux-gnu", request.cpu};
}

std::unique_ptr<llvm::Module> run_front_end(const CinchClangRequest& request,
                                            const CinchClangText& source, std::string_view prelude,
                                            llvm::LLVMContext& context, std::string& log) {
  std::vector<std::string> args = {"-x", request.emulation == kCinchNotEmulated ? "c++" : "cuda"};
  if (!prelude.empty()) {
    args.insert(args.end(), {"-include-pch", kPreludeFile, "-fno-validate-pch"});
  }
  clang::EmitLLVMOnlyAction action(&context);
  const bool ok = run(action, request, source, args, prelude, log);
  return ok ? action.takeModule() : nullptr;
}

Bytes precompile(const CinchClangRequest& request, const CinchClangText& source, std::string& log) {
  initialize_target();
  PrecompileAction action;
  const bool ok =
      run(action, request, source, {"-x", "c++-header", "-fpch-instantiate-templates"}, {}, log);
  const auto& bytes = action.buffer->Data;
  return ok ? Bytes(bytes.begin(), bytes.end()) : Bytes();
}

}  // namespace cinch::clang_backend
