// Runs one source through the stages and measures them. Like LLVM, the stages are compiled without
// exceptions: an exception from exhausted memory passes through them and leaves half-made objects,
// whose destructors must not run.
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
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

}  // namespace cinch::clang_backend
