// The exported interface of cinch_clang: sources to objects to one shared object. See
// clang_backend.h.
#include <clang/Basic/Version.h>
#include <clang/Format/Format.h>
#include <clang/Tooling/Core/Replacement.h>
#include <llvm/Support/ErrorHandling.h>
#include <sys/mman.h>

#include <chrono>
#include <mutex>
#include <new>

#include "codegen/jit/clang/extern/read_extern.h"
#include "codegen/jit/clang/stages.h"

namespace cinch::clang_backend {
namespace {

struct Reply : CinchClangReply {
  Bytes storage;
  std::string log_text;
};

// Clang uses some blocks without checking that it got them, and the loader ends the process if a
// thread has no room for its variables. So nothing is begun with less address space than programs
// need, including two threads' heaps of 128 MiB.
constexpr std::size_t kRoomBytes = std::size_t{384} << 20;

bool has_room() {
  void* const room =
      ::mmap(nullptr, kRoomBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return room != MAP_FAILED && ::munmap(room, kRoomBytes) == 0;
}

bool compile_and_link(const CinchClangRequest& request, Reply& reply) {
  reply.fault = kCinchSourceFault;
  std::vector<Compiled> compiled = compile_sources(request);
  std::vector<std::string_view> objects;
  bool ok = true;
  for (const Compiled& one : compiled) {
    reply.log_text += one.log;
    reply.times.front_end_ms += one.times.front_end_ms;
    reply.times.optimizer_ms += one.times.optimizer_ms;
    reply.times.machine_code_ms += one.times.machine_code_ms;
    objects.push_back(one.bytes);
    ok = ok && !one.bytes.empty();
  }
  if (!ok) return false;
  if (request.output != kCinchSharedObject) {
    reply.storage = std::move(compiled[0].bytes);
    return true;
  }
  reply.fault = kCinchLinkFault;
  if (request.links_helpers) objects.push_back(helpers_object(request.cpu));
  const auto start = std::chrono::steady_clock::now();
  reply.storage = link_shared_object(objects, request.address_sanitizer, reply.log_text);
  const auto spent = std::chrono::steady_clock::now() - start;
  reply.times.link_ms = std::chrono::duration<double, std::milli>(spent).count();
  return !reply.storage.empty();
}

CinchClangReply* close_reply(Reply* reply, bool ok) {
  reply->ok = ok;
  reply->bytes = reinterpret_cast<const std::uint8_t*>(reply->storage.data());
  reply->size = reply->storage.size();
  reply->log = reply->log_text.c_str();
  return reply;
}

// Calls `work`, which returns success, unless memory has run out.
template <typename Work>
CinchClangReply* with_memory(const Work& work) {
  auto* reply = new Reply{};
  static std::once_flag once;
  std::call_once(once, [] {
    // LLVM itself would end the process.
    llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { throw std::bad_alloc(); });
  });
  if (has_run_out_of_memory()) {
    reply->fault = kCinchBroken;
    return close_reply(reply, false);
  }
  if (!has_room()) {
    reply->fault = kCinchNoMemory;
    return close_reply(reply, false);
  }
  try {
    return close_reply(reply, work(*reply));
  } catch (const std::bad_alloc&) {
    note_out_of_memory();
    reply->fault = kCinchNoMemory;
    return close_reply(reply, false);
  }
}

CinchClangReply* compile(const CinchClangRequest* request) {
  return with_memory([&](Reply& reply) { return compile_and_link(*request, reply); });
}

CinchClangReply* make_data(const char* cpu, const CinchClangBytes* data, std::size_t num_data) {
  return with_memory([&](Reply& reply) {
    reply.storage = make_data_object(cpu, {data, data + num_data}, reply.log_text);
    return !reply.storage.empty();
  });
}

CinchClangReply* link_objects(const CinchClangBytes* objects, std::size_t num_objects,
                              const char* soname, const char* const* exports,
                              std::size_t num_exports) {
  return with_memory([&](Reply& reply) {
    reply.fault = kCinchLinkFault;
    std::vector<std::string_view> texts;
    for (const CinchClangBytes& object : std::vector(objects, objects + num_objects))
      texts.emplace_back(reinterpret_cast<const char*>(object.bytes), object.size);
    reply.storage = link_library(texts, soname, {exports, exports + num_exports}, reply.log_text);
    return !reply.storage.empty();
  });
}

CinchClangReply* make_archive(const CinchClangBytes* members, std::size_t num_members) {
  return with_memory([&](Reply& reply) {
    reply.storage = make_archive_file({members, members + num_members}, reply.log_text);
    return !reply.storage.empty();
  });
}

CinchClangReply* format(const char* text, std::size_t size) {
  auto* reply = new Reply{};
  reply->storage = format_text(std::string_view(text, size), reply->log_text);
  return close_reply(reply, size == 0 || !reply->storage.empty());
}

CinchExternReply* read_function(const CinchExternRequest* request) {
  if (has_run_out_of_memory() || !has_room()) return no_memory_reply();
  try {
    return make_reply(read_extern(*request));
  } catch (const std::bad_alloc&) {
    note_out_of_memory();
    return no_memory_reply();
  }
}

void release(CinchClangReply* reply) {
  delete static_cast<Reply*>(reply);
}

}  // namespace
}  // namespace cinch::clang_backend

extern "C" __attribute__((visibility("default"))) const CinchClangBackend* cinch_clang_backend() {
  using namespace cinch::clang_backend;
  static const CinchClangBackend kBackend = {kCinchClangAbi,
                                             compile,
                                             format,
                                             make_data,
                                             link_objects,
                                             make_archive,
                                             release,
                                             read_function,
                                             release_extern,
                                             forget_headers,
                                             "clang " CLANG_VERSION_STRING,
                                             helpers_digest()};
  return &kBackend;
}

namespace cinch::clang_backend {
// Clang's format library in the style of this project, for source that people read.

Bytes format_text(std::string_view text, std::string& log) {
  clang::format::FormatStyle style =
      clang::format::getGoogleStyle(clang::format::FormatStyle::LK_Cpp);
  style.ColumnLimit = 100;
  style.SortIncludes = clang::format::FormatStyle::SI_Never;
  style.ReflowComments = false;
  const llvm::StringRef source(text.data(), text.size());
  const auto replacements = clang::format::reformat(
      style, source, {clang::tooling::Range(0, static_cast<unsigned>(text.size()))}, "kernels.cpp");
  auto formatted = clang::tooling::applyAllReplacements(source, replacements);
  if (!formatted) {
    log += llvm::toString(formatted.takeError());
    return {};
  }
  return *formatted;
}

}  // namespace cinch::clang_backend
