// The exported door of cinch_clang: sources to objects to one shared object. See clang_backend.h.
#include "codegen/jit/clang_backend.h"

#include <clang/Basic/Version.h>

#include <chrono>
#include <system_error>
#include <thread>

#include "codegen/jit/clang/stages.h"

namespace cinch::clang_backend {
namespace {

struct Reply : CinchClangReply {
  Bytes storage;
  std::string log_text;
};

// Each source on a thread, the first on this one; a thread that cannot be had does not matter.
std::vector<Compiled> compile_sources(const CinchClangRequest& request) {
  std::vector<Compiled> compiled(request.num_sources);
  const auto compile_one = [&](std::size_t i) {
    compiled[i] = compile_source(request, request.sources[i]);
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < request.num_sources; ++i) {
    try {
      threads.emplace_back(compile_one, i);
    } catch (const std::system_error&) {
      compile_one(i);
    }
  }
  compile_one(0);
  for (std::thread& thread : threads) thread.join();
  return compiled;
}

bool compile_and_link(const CinchClangRequest& request, Reply& reply) {
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

CinchClangReply* compile(const CinchClangRequest* request) {
  auto* reply = new Reply{};
  const bool ok = compile_and_link(*request, *reply);
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

constexpr CinchClangBackend kBackend = {
    kCinchClangAbi, compile, format, release, "clang " CLANG_VERSION_STRING, kCinchHelpersDigest};

}  // namespace
}  // namespace cinch::clang_backend

extern "C" __attribute__((visibility("default"))) const CinchClangBackend* cinch_clang_backend() {
  return &cinch::clang_backend::kBackend;
}
