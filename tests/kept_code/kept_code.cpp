// A replacement for the interface of cinch_clang (codegen/jit/clang_backend.h) in front of the real
// one. A request that any process has compiled before is answered from a file. The key is the whole
// request and the real library's build ID, so an answer is never that of another compiler. Failures
// are not kept.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "codegen/jit/clang_backend.h"
#include "runtime/core/hash.h"
#include "tests/kept_code/entry_file.h"

namespace cinch::kept_code {
namespace {

struct Real {
  const CinchClangBackend* functions = nullptr;
  std::string identity;
};

Real open_real() {
  Real real;
  void* handle = ::dlopen(CINCH_REAL_CLANG, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return real;
  using Door = const CinchClangBackend* (*)();
  const auto door = reinterpret_cast<Door>(::dlsym(handle, "cinch_clang_backend"));
  if (door == nullptr) return real;
  real.identity = build_id(handle);
  if (!real.identity.empty()) real.functions = door();
  return real;
}

const Real& real() {
  static const Real kReal = open_real();
  return kReal;
}

std::string folder() {
  const char* given = std::getenv("CINCH_KEPT_CODE");
  return given != nullptr && *given != '\0' ? given : CINCH_KEPT_FOLDER;
}

std::string path_of(const CinchClangRequest& request) {
  Hasher hasher;
  hasher.add(std::string_view(real().identity));
  hasher.add(std::uint64_t{request.num_sources});
  for (std::size_t i = 0; i < request.num_sources; ++i) {
    hasher.add(std::string_view(request.sources[i].text, request.sources[i].size));
  }
  hasher.add(std::string_view(request.file_name)).add(std::string_view(request.cpu));
  for (const int number :
       {request.links_helpers, request.lanes, request.output, request.address_sanitizer,
        request.optimization_level, request.is_quick, request.emulation}) {
    hasher.add(static_cast<std::uint64_t>(number));
  }
  hasher.add(std::uint64_t{request.emulated_text_begin});
  hasher.add(std::uint64_t{request.emulated_text_size});
  hasher.add(std::string_view(request.symbol_prefix != nullptr ? request.symbol_prefix : ""));
  return folder() + "/" + to_hex(hasher.finish128());
}

// A reply and what it points to. A reply that was not kept is the real library's.
struct OwnReply : CinchClangReply {
  Bytes kept;
  CinchClangReply* theirs = nullptr;
};

// Times lie before the output in an entry.
Bytes entry_of(const CinchClangReply& reply) {
  Bytes entry(sizeof reply.times + reply.size);
  std::memcpy(entry.data(), &reply.times, sizeof reply.times);
  std::memcpy(entry.data() + sizeof reply.times, reply.bytes, reply.size);
  return entry;
}

CinchClangReply* compile(const CinchClangRequest* request) {
  auto own = std::make_unique<OwnReply>();
  auto entry = find_or_make(path_of(*request), [&]() -> std::optional<Bytes> {
    CinchClangReply* reply = real().functions->compile(request);
    if (!reply->ok) {
      own->theirs = reply;
      return std::nullopt;
    }
    Bytes made = entry_of(*reply);
    real().functions->release(reply);
    return made;
  });
  static_cast<CinchClangReply&>(*own) = own->theirs != nullptr ? *own->theirs : CinchClangReply{};
  if (entry) {
    own->kept = std::move(*entry);
    own->ok = 1;
    own->log = "";
    std::memcpy(&own->times, own->kept.data(), sizeof own->times);
    own->bytes = own->kept.data() + sizeof own->times;
    own->size = own->kept.size() - sizeof own->times;
  }
  return own.release();
}

// A reply that the real library must release.
CinchClangReply* passed_on(CinchClangReply* theirs) {
  auto own = std::make_unique<OwnReply>();
  own->theirs = theirs;
  static_cast<CinchClangReply&>(*own) = *theirs;
  return own.release();
}

CinchClangReply* format(const char* text, std::size_t size) {
  return passed_on(real().functions->format(text, size));
}

CinchClangReply* make_data(const char* cpu, const CinchClangBytes* data, std::size_t num_data) {
  return passed_on(real().functions->make_data(cpu, data, num_data));
}

CinchClangReply* link_library(const CinchClangBytes* objects, std::size_t num_objects,
                              const char* soname, const char* const* exports,
                              std::size_t num_exports) {
  return passed_on(
      real().functions->link_library(objects, num_objects, soname, exports, num_exports));
}

CinchClangReply* make_archive(const CinchClangBytes* members, std::size_t num_members) {
  return passed_on(real().functions->make_archive(members, num_members));
}

void release(CinchClangReply* reply) {
  const std::unique_ptr<OwnReply> own(static_cast<OwnReply*>(reply));
  if (own && own->theirs != nullptr) real().functions->release(own->theirs);
}

CinchClangBackend make_backend() {
  CinchClangBackend backend{};
  // Without a version, so that whoever opens it rejects it
  if (real().functions == nullptr) return backend;
  std::error_code ignored;
  std::filesystem::create_directories(folder(), ignored);
  backend = *real().functions;
  backend.compile = compile;
  backend.format = format;
  backend.make_data = make_data;
  backend.link_library = link_library;
  backend.make_archive = make_archive;
  backend.release = release;
  return backend;
}

}  // namespace
}  // namespace cinch::kept_code

extern "C" const CinchClangBackend* cinch_clang_backend() {
  static const CinchClangBackend kBackend = cinch::kept_code::make_backend();
  return &kBackend;
}
