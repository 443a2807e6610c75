// threshold, topk, graddrop, dgc.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include "draws.h"
#include "select.h"

namespace loops {
namespace {

// Parts of the gradient with a histogram of their own: a few for each core, none of them small.
constexpr std::size_t kMostParts = 16;
constexpr std::size_t kLeastTasks = 2;  // of 16 tiles

/// tile(histogram, begin, count) gives the largest bits of the gradient's tile; the histograms
/// join.
template <class F>
std::uint32_t fill_histogram(const Job& job, Histogram& all, F tile) {
  const std::size_t tasks = num_tasks(job);
  const std::size_t parts = std::clamp(tasks / kLeastTasks, std::size_t{1}, kMostParts);
  std::mutex mutex;
  std::uint32_t largest = 0;
  parallel(parts, [&](std::size_t part) {
    Histogram histogram;
    std::uint32_t most = 0;
    for (std::size_t task = part * tasks / parts; task < (part + 1) * tasks / parts; ++task) {
      each_tile(job, task, [&](std::size_t at, auto count) {
        most = std::max(most, tile(histogram, at, count));
      });
    }
    const std::lock_guard lock(mutex);
    all.join(histogram);
    largest = std::max(largest, most);
  });
  return largest;
}

// A keyed permutation of 0 … n - 1: a Feistel network whose images beyond n are permuted again.
class Permutation {
 public:
  Permutation(const Draws& draws, std::size_t n) : last_(static_cast<std::uint32_t>(n - 1)) {
    std::uint32_t* key = key_;
    for (std::uint32_t block = 0; block < 2; ++block) {
      std::uint32_t words[4];
      draw_block(draws, kPermutationPlane, block, words);
      key = std::copy(words, words + 4, key);
    }
    const int bits = std::max(32 - __builtin_clz(last_ | 1), 10);
    right_bits_ = bits - bits / 2;
    left_mask_ = (1u << bits / 2) - 1;
    right_mask_ = (1u << right_bits_) - 1;
  }
  std::uint32_t operator()(std::uint32_t j) const {
    do j = permute(j);
    while (j > last_);
    return j;
  }

 private:
  static std::uint32_t mix(std::uint32_t half, std::uint32_t key) {
    std::uint32_t v = (half + key) * 0x9e3779b1u;
    v = (v ^ v >> 15) * 0x85ebca77u;
    return v ^ v >> 13;
  }
  std::uint32_t permute(std::uint32_t x) const {
    std::uint32_t left = x >> right_bits_, right = x & right_mask_;
    for (int i = 0; i < 8; i += 2) {
      left ^= mix(right, key_[i]) & left_mask_;
      right ^= mix(left, key_[i + 1]) & right_mask_;
    }
    return left << right_bits_ | right;
  }
  std::uint32_t key_[8];
  std::uint32_t last_;
  int right_bits_;
  std::uint32_t left_mask_, right_mask_;
};

// The threshold that a sample of gradient plus residual gives.
std::uint32_t sampled_threshold(const Job& job) {
  // As in the program: about a hundred samples reach the threshold.
  const auto least = static_cast<std::size_t>(std::ceil(100 / job.ratio));
  const std::size_t samples = share_of(job.sample, job.n, std::min<std::size_t>(least, job.n));
  const Permutation permutation(Draws(job.step), job.n);
  std::vector<std::uint32_t> keys(samples);
  parallel(divide_up(samples, kTile), [&](std::size_t task) {
    // Computes all indices of a tile first, so that many loads wait at once.
    const std::size_t first = task * kTile, count = std::min(samples - first, kTile);
    std::uint32_t index[kTile];
    for (std::size_t j = 0; j < count; ++j) {
      index[j] = permutation(static_cast<std::uint32_t>(first + j));
    }
    for (std::size_t j = 0; j < count; ++j) {
      keys[first + j] = magnitude_bits(saturate(job.gradient[index[j]] + job.state[0][index[j]]));
    }
  });
  return kth_largest(keys, share_of(job.ratio, samples));
}

}  // namespace

extern "C" {

int threshold_encode(Job& job) {
  std::atomic<bool> non_finite{false};
  Counts counts(num_tasks(job));
  parallel(counts.size(), [&](std::size_t task) {
    std::uint32_t largest = 0;
    each_tile(job, task, [&](std::size_t at, auto count) {
      const float* g = job.gradient + at;
      largest = std::max(largest, largest_bits(g, count));
      keep_large(job, g, at, count, bits_of(job.tau), task, counts[task]);
    });
    if (largest >= kInfinity) non_finite = true;
  });
  if (mark_non_finite(job, non_finite ? kInfinity : 0)) return 1;
  write_payload(job, counts, job.capacity);
  return 0;
}

int topk_encode(Job& job) {
  Histogram histogram;
  const std::uint32_t largest =
      fill_histogram(job, histogram, [&](Histogram& part, std::size_t at, auto count) {
        part.add(job.gradient + at, count);
        return largest_bits(job.gradient + at, count);
      });
  if (mark_non_finite(job, largest)) return 1;
  write_top_k(job, job.gradient, histogram, share_of(job.ratio, job.n));
  return 0;
}

int graddrop_encode(Job& job) {
  std::atomic<bool> non_finite{false};
  // A sample of zeros selects nonzero elements only.
  const std::uint32_t least = std::max(sampled_threshold(job), 1u);
  Counts counts(num_tasks(job));
  parallel(counts.size(), [&](std::size_t task) {
    std::uint32_t largest = 0;
    each_tile(job, task, [&](std::size_t at, auto count) {
      const float* __restrict g = job.gradient + at;
      const float* __restrict residual = job.state[0] + at;
      float* __restrict next = job.next_state[0] + at;
      largest = std::max(largest, largest_bits(g, count));
      for (std::size_t i = 0; i < count; ++i) next[i] = saturate(g[i] + residual[i]);
      keep_large(job, next, at, count, least, task, counts[task]);
    });
    if (largest >= kInfinity) non_finite = true;
  });
  if (mark_non_finite(job, non_finite ? kInfinity : 0)) return 1;
  write_payload(job, counts, std::min(2 * share_of(job.ratio, job.n), std::size_t{job.n}));
  for (std::size_t i = 0; i < header_of(job).count; ++i) job.next_state[0][indices_of(job)[i]] = 0;
  swap_states(job);
  return 0;
}

// States: velocity, pending.
int dgc_encode(Job& job) {
  Histogram histogram;
  const std::uint32_t non_finite =
      fill_histogram(job, histogram, [&](Histogram& part, std::size_t at, auto count) {
        const float* __restrict g = job.gradient + at;
        const float* __restrict velocity = job.state[0] + at;
        const float* __restrict pending = job.state[1] + at;
        float* __restrict next_velocity = job.next_state[0] + at;
        float* __restrict next_pending = job.next_state[1] + at;
        const float momentum = job.momentum;
        for (std::size_t i = 0; i < count; ++i) {
          const float v = saturate(momentum * velocity[i] + g[i]);
          next_velocity[i] = v;
          next_pending[i] = saturate(pending[i] + v);
        }
        part.add(next_pending, count);
        return largest_bits(g, count);
      });
  if (mark_non_finite(job, non_finite)) return 1;
  write_top_k(job, job.next_state[1], histogram, share_of(job.ratio, job.n));
  for (std::size_t i = 0; i < header_of(job).count; ++i) {
    job.next_state[0][indices_of(job)[i]] = 0;
    job.next_state[1][indices_of(job)[i]] = 0;
  }
  swap_states(job);
  return 0;
}

int threshold_decode(Job& job) {
  return decode_selection(job);
}
int topk_decode(Job& job) {
  return decode_selection(job);
}
int graddrop_decode(Job& job) {
  return decode_selection(job);
}
int dgc_decode(Job& job) {
  return decode_selection(job);
}

}  // extern "C"

}  // namespace loops
