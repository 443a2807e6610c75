// What the comparison needs besides the loops: a gradient, and the difference of two decoded
// gradients.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "loops.h"

extern "C" {

struct Difference {
  std::uint64_t differing;  // elements that are not equal; NaN equals NaN
  std::uint64_t far;        // differ by more than the tolerance
  std::uint64_t nonzero[2];
  std::uint64_t both_nonzero;
  std::uint64_t unequal_where_both;  // differ where both are nonzero
};

/// A call of libcinch.so's cinch_encode or cinch_decode on one tensor.
struct CinchCall {
  int (*function)(void* session, std::uint64_t step, const std::size_t* which, std::size_t count,
                  const void* in, void* out, void* error);
  void* session;
  std::uint64_t step, steps_per_call;
  const void* in;
  void* out;
  void* error;
};

// Seconds of `repeats` calls; negative if one failed. This is C, so that Python's overhead does not
// hide short calls.
double time_cinch(CinchCall& call, int repeats) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) {
    const int status =
        call.function(call.session, call.step, nullptr, 1, call.in, call.out, call.error);
    if (status != 0) return -1;
    call.step += call.steps_per_call;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
double time_loop(int (*function)(Job&), Job& job, int repeats, int steps_per_call) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) {
    if (function(job) != 0) return -1;
    job.step += static_cast<std::uint64_t>(steps_per_call);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Normal with standard deviation 0.01; repeats after 2^20 elements, as in `cinch bench`.
void make_gradient(float* g, std::uint64_t n) {
  constexpr std::uint64_t kPeriod = 1 << 20;
  std::mt19937_64 engine(1);
  std::normal_distribution<float> normal(0.0f, 0.01f);
  for (std::uint64_t i = 0; i < std::min(n, kPeriod); ++i) g[i] = normal(engine);
  for (std::uint64_t i = kPeriod; i < n; ++i) g[i] = g[i - kPeriod];
}

/// `tolerance` is relative.
void compare(const float* a, const float* b, std::uint64_t n, float tolerance, Difference& result) {
  result = {};
  for (std::uint64_t i = 0; i < n; ++i) {
    const bool equal = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    const bool near =
        equal || std::fabs(a[i] - b[i]) <= tolerance * std::max(std::fabs(a[i]), std::fabs(b[i]));
    const bool both = a[i] != 0 && b[i] != 0;
    result.differing += equal ? 0 : 1;
    result.far += near ? 0 : 1;
    result.nonzero[0] += a[i] != 0 ? 1 : 0;
    result.nonzero[1] += b[i] != 0 ? 1 : 0;
    result.both_nonzero += both ? 1 : 0;
    result.unequal_where_both += both && !equal ? 1 : 0;
  }
}

}  // extern "C"
