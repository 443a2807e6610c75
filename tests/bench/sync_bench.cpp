// bench_sync, a shared object for peers.py: one program's `sync` in a world of one rank. The C API
// has no `sync`.
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "runtime/image/image_file.h"
#include "runtime/session/session.h"

namespace {

using namespace cinch;

struct Rank {
  explicit Rank(rt::Session opened) : session(std::move(opened)) {}

  rt::Session session;
  rt::LoneRank alone;
  std::uint64_t step = 0;
};

void print(const rt::Error& error) {
  std::fprintf(stderr, "bench_sync: %s\n", error.message.c_str());
}

}  // namespace

extern "C" {

/// Null on failure: standard error says why. `image` is the path of an image file.
void* sync_open(const char* image, std::int64_t rows, std::int64_t columns, std::uint32_t threads) {
  auto program = rt::load_image(image);
  if (!program) return print(program.error()), nullptr;
  rt::SessionOptions options;
  options.rows = rows;
  options.cols = columns;
  options.threads = threads;
  auto session = rt::Session::open(std::move(*program), options);
  if (!session) return print(session.error()), nullptr;
  return std::make_unique<Rank>(std::move(*session)).release();
}

/// Seconds of `repeats` calls, one step after the other; negative if one failed.
double sync_time(void* handle, const float* gradient, float* update, int repeats) {
  Rank& rank = *static_cast<Rank*>(handle);
  const std::int64_t elements = rank.session.num_elems();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) {
    const rt::Status status = rank.session.sync({gradient, kF32, elements},
                                                {update, kF32, elements}, rank.step++, rank.alone);
    if (!status) return print(status.error()), -1;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void sync_close(void* handle) {
  delete static_cast<Rank*>(handle);
}

}  // extern "C"
