#include "codegen/jit/library.h"

#include <dlfcn.h>

#include <new>

#include "runtime/core/check.h"
#include "runtime/module/shared_object.h"

namespace cinch::codegen {
namespace {

// Searched where CINCH_CLANG_LIBRARY says, else in library_paths.
constexpr const char* kFileName = "libcinch_clang.so";

rt::Result<OpenedBackend> open_backend() {
  auto opened = TRY(rt::open_first_library(
      rt::library_paths(kFileName, "CINCH_CLANG_LIBRARY"), RTLD_NOW | RTLD_LOCAL,
      "cinch_clang_backend", "compiler library", [](void* entry) -> const void* {
        const auto* const backend = reinterpret_cast<const CinchClangBackend* (*)()>(entry)();
        return backend->abi == kCinchClangAbi ? backend : nullptr;
      }));
  return OpenedBackend{static_cast<const CinchClangBackend*>(opened.table), opened.path};
}

[[noreturn]] void throw_compile_error(std::span<const KernelSource> sources, const char* log) {
  InternalError error(InternalErrorKind::Bug,
                      std::string("emitted source does not compile:\n") + log, "codegen/emit");
  std::string text;
  for (const KernelSource& source : sources) text += source.text;
  error.attach("compile", text);
  throw error;
}

}  // namespace

const rt::Result<OpenedBackend>& clang_backend() {
  static const rt::Result<OpenedBackend> kBackend = open_backend();
  return kBackend;
}

std::vector<std::uint8_t> bytes_of(const ReplyPtr& reply) {
  return {reply->bytes, reply->bytes + reply->size};
}

CompileTimes times_of(const CinchClangReply& reply) {
  return {reply.times.front_end_ms, reply.times.optimizer_ms, reply.times.machine_code_ms,
          reply.times.link_ms};
}

tl::unexpected<rt::Error> refusal(std::span<const KernelSource> sources,
                                  const CinchClangReply& reply) {
  switch (reply.fault) {
    case kCinchNoMemory:
      throw std::bad_alloc();
    case kCinchBroken:
      return rt::fail(
          rt::ErrorKind::Unavailable,
          "the compiler ran out of memory before and is not used again in this process");
    case kCinchLinkFault:
      return rt::fail(rt::ErrorKind::Unavailable,
                      std::string("kernels cannot be linked: ") + reply.log);
    default:
      throw_compile_error(sources, reply.log);
  }
}

}  // namespace cinch::codegen
