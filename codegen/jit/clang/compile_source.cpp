// Compiles one source: runs it through the stages and measures them; makes private names, data and
// archives of libraries. Like LLVM, the stages are compiled without exceptions: a failure is a
// value of the reply.
#include <llvm/IR/Constants.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Target/TargetMachine.h>

#include <chrono>

#include "codegen/jit/clang/stages.h"

namespace cinch::clang_backend {
namespace {

// Milliseconds since the last call.
class Lap {
 public:
  double take() {
    const auto now = std::chrono::steady_clock::now();
    const double ms = std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
    return ms;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

constexpr unsigned kDataAlignment = 16;

}  // namespace

Compiled compile_source(const CinchClangRequest& request, const CinchClangText& source,
                        std::string_view prelude) {
  initialize_target();
  Compiled compiled;
  std::string complaints;
  llvm::LLVMContext context;
  Lap lap;
  auto module = run_front_end(request, source, prelude, context, compiled.log);
  compiled.times.front_end_ms = lap.take();
  if (!module) return compiled;
  auto machine = make_target_machine(request, *module, compiled.log);
  if (!machine) return compiled;
  if (request.symbol_prefix != nullptr) make_private(*module, request.symbol_prefix);
  if (request.emulation == kCinchNotEmulated) {
    optimize(request, *module, *machine);
  } else if (!make_emulated(request, source, *module, *machine, compiled.log)) {
    return compiled;
  } else {
    watch_frames(*module, complaints);
  }
  compiled.times.optimizer_ms = lap.take();
  if (request.output == kCinchLlvmIr) {
    compiled.bytes = print_module(*module);
    return compiled;
  }
  compiled.bytes = emit_machine_code(request, *module, *machine);
  compiled.times.machine_code_ms = lap.take();
  if (!complaints.empty()) {
    compiled.log += complaints;
    compiled.bytes.clear();
  }
  return compiled;
}

// The parts of a library besides kernels: private names, data, archives.

void make_private(llvm::Module& module, std::string_view prefix) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    if (function.getName() == "memcpy" || function.getName() == "memset") {
      // In a static library, ours would be used by the whole program that links it.
      function.deleteBody();
      function.setComdat(nullptr);
      function.setVisibility(llvm::GlobalValue::DefaultVisibility);
    } else if (function.hasLocalLinkage()) {
      continue;
    } else if (function.hasDefaultVisibility()) {
      function.setName(llvm::Twine(llvm::StringRef(prefix)) + function.getName());
      function.setVisibility(llvm::GlobalValue::HiddenVisibility);
    } else {
      function.setComdat(nullptr);
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  }
  for (llvm::GlobalVariable& variable : module.globals()) {
    if (variable.isDeclaration() || variable.hasLocalLinkage()) continue;
    variable.setComdat(nullptr);
    variable.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
}

Bytes make_data_object(const char* cpu, const std::vector<CinchClangBytes>& data,
                       std::string& log) {
  initialize_target();
  CinchClangRequest request{.cpu = cpu, .output = kCinchObject, .optimization_level = 1};
  llvm::LLVMContext context;
  llvm::Module module("data", context);
  module.setTargetTriple(processor_of(request).triple);
  auto machine = make_target_machine(request, module, log);
  if (!machine) return {};
  module.setDataLayout(machine->createDataLayout());
  for (const CinchClangBytes& item : data) {
    auto* bytes =
        llvm::ConstantDataArray::get(context, llvm::ArrayRef<std::uint8_t>(item.bytes, item.size));
    auto* variable = new llvm::GlobalVariable(module, bytes->getType(), true,
                                              llvm::GlobalValue::ExternalLinkage, bytes, item.name);
    variable->setVisibility(llvm::GlobalValue::HiddenVisibility);
    variable->setAlignment(llvm::Align(kDataAlignment));
  }
  return emit_machine_code(request, module, *machine);
}

Bytes make_archive_file(const std::vector<CinchClangBytes>& members, std::string& log) {
  std::vector<llvm::NewArchiveMember> list;
  list.reserve(members.size());
  for (const CinchClangBytes& member : members) {
    const llvm::StringRef bytes(reinterpret_cast<const char*>(member.bytes), member.size);
    list.emplace_back(llvm::MemoryBufferRef(bytes, member.name));
  }
  auto archive = llvm::writeArchiveToBuffer(list, llvm::SymtabWritingMode::NormalSymtab,
                                            llvm::object::Archive::K_GNU, /*Deterministic=*/true,
                                            /*Thin=*/false);
  if (archive) return (*archive)->getBuffer().str();
  log += llvm::toString(archive.takeError());
  return {};
}

}  // namespace cinch::clang_backend
