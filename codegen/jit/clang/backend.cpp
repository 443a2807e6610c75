// The exported door of cinch_clang: joins the stages and times them. See clang_backend.h.
#include "codegen/jit/clang_backend.h"

#include <clang/Basic/Version.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <chrono>

#include "codegen/jit/clang/stages.h"

namespace cinch::clang_backend {
namespace {

struct Reply : CinchClangReply {
  Bytes storage;
  std::string log_text;
};

// Milliseconds since it was last asked.
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

bool compile_stages(const CinchClangRequest& request, Reply& reply) {
  llvm::LLVMContext context;
  Lap lap;
  auto module = run_front_end(request, context, reply.log_text);
  reply.times.front_end_ms = lap.take();
  if (!module) return false;
  auto machine = make_target_machine(request, *module, reply.log_text);
  if (!machine) return false;
  optimize(request, *module, *machine);
  reply.times.optimizer_ms = lap.take();
  if (request.output == kCinchLlvmIr) {
    reply.storage = print_module(*module);
    return true;
  }
  reply.storage = emit_machine_code(request, *module, *machine);
  reply.times.machine_code_ms = lap.take();
  if (request.output == kCinchSharedObject) {
    reply.storage = link_shared_object(reply.storage, reply.log_text);
    reply.times.link_ms = lap.take();
  }
  return !reply.storage.empty();
}

CinchClangReply* close_reply(Reply* reply, bool ok) {
  reply->ok = ok;
  reply->bytes = reinterpret_cast<const std::uint8_t*>(reply->storage.data());
  reply->size = reply->storage.size();
  reply->log = reply->log_text.c_str();
  return reply;
}

CinchClangReply* compile(const CinchClangRequest* request) {
  auto* reply = new Reply{};
  const bool ok = compile_stages(*request, *reply);
  return close_reply(reply, ok);
}

CinchClangReply* format(const char* text, std::size_t size) {
  auto* reply = new Reply{};
  reply->storage = format_text(std::string_view(text, size), reply->log_text);
  return close_reply(reply, size == 0 || !reply->storage.empty());
}

void release(CinchClangReply* reply) {
  delete static_cast<Reply*>(reply);
}

constexpr CinchClangBackend kBackend = {kCinchClangAbi, compile, format, release,
                                        "clang " CLANG_VERSION_STRING};

}  // namespace
}  // namespace cinch::clang_backend

extern "C" __attribute__((visibility("default"))) const CinchClangBackend* cinch_clang_backend() {
  return &cinch::clang_backend::kBackend;
}
