#include "select.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace loops {
namespace {

// Elements that are tested together: most groups contain nothing to keep.
constexpr std::size_t kBlock = 64;

bool holds_large(const float* __restrict x, std::uint32_t least) {
  std::uint32_t largest = 0;
#pragma clang loop vectorize(enable) interleave_count(4)
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::uint32_t bits = magnitude_bits(x[i]);
    largest = bits > largest ? bits : largest;
  }
  return largest >= least;
}

// The bin that holds the k-th largest, and how many are above it.
struct Cut {
  std::size_t bin = kBins, above = 0;
};
Cut find_cut(const Histogram& histogram, std::size_t k) {
  Cut cut;
  for (std::size_t reached = 0; reached < k;) {
    cut.above = reached;
    reached += histogram.at(--cut.bin);
  }
  return cut;
}

bool ascends_below(const std::uint32_t* index, std::size_t count, std::size_t n) {
  for (std::size_t i = 1; i < count; ++i) {
    if (index[i] <= index[i - 1]) return false;
  }
  return count == 0 || index[count - 1] < n;
}

}  // namespace

void Histogram::add(const float* x, std::size_t count) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (std::size_t j = 0; j < 4; ++j) ++counts_[j][magnitude_bits(x[i + j]) >> kBinShift];
  }
  for (; i < count; ++i) ++counts_[0][magnitude_bits(x[i]) >> kBinShift];
}

void Histogram::join(const Histogram& other) {
  for (std::size_t j = 0; j < 4; ++j) {
    for (std::size_t i = 0; i < kBins; ++i) counts_[j][i] += other.counts_[j][i];
  }
}

std::uint64_t Histogram::at(std::size_t bin) const {
  return std::uint64_t{counts_[0][bin]} + counts_[1][bin] + counts_[2][bin] + counts_[3][bin];
}

std::size_t share_of(double ratio, std::size_t n, std::size_t least) {
  const auto share = static_cast<std::size_t>(std::ceil(ratio * static_cast<double>(n)));
  return std::clamp(share, least, n);
}

void keep_large(const Job& job, const float* x, std::size_t at, std::size_t count,
                std::uint32_t least, std::size_t task, std::size_t& kept) {
  std::uint32_t* index = job.workspace + task * kTile * kTilesPerTask;
  std::uint32_t* value = index + job.n;
  for (std::size_t b = 0; b < count; b += kBlock) {
    const std::size_t end = std::min(b + kBlock, count);
    if (end == b + kBlock && !holds_large(x + b, least)) continue;
    for (std::size_t i = b; i < end; ++i) {
      if (magnitude_bits(x[i]) < least) continue;
      index[kept] = static_cast<std::uint32_t>(at + i);
      value[kept++] = bits_of(x[i]);
    }
  }
}

Counts keep_large(const Job& job, const float* x, std::uint32_t least) {
  Counts counts(num_tasks(job));
  parallel(counts.size(), [&](std::size_t task) {
    const std::size_t at = task * kTile * kTilesPerTask;
    const std::size_t count = std::min(kTile * kTilesPerTask, job.n - at);
    keep_large(job, x + at, at, count, least, task, counts[task]);
  });
  return counts;
}

void write_payload(Job& job, const Counts& counts, std::size_t limit) {
  std::vector<std::size_t> begins(counts.size());
  std::size_t total = 0;
  for (std::size_t t = 0; t < counts.size(); ++t) {
    begins[t] = total;
    total = std::min(total + counts[t], limit);
  }
  parallel(counts.size(), [&](std::size_t task) {
    const std::uint32_t* kept = job.workspace + task * kTile * kTilesPerTask;
    const std::size_t begin = begins[task];
    const std::size_t bytes = std::min(counts[task], total - begin) * sizeof(std::uint32_t);
    std::memcpy(indices_of(job) + begin, kept, bytes);
    std::memcpy(values_of(job) + begin, kept + job.n, bytes);
  });
  header_of(job).count = static_cast<std::uint32_t>(total);
}

std::uint32_t kth_largest(std::vector<std::uint32_t>& keys, std::size_t k) {
  const auto place = keys.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(keys.begin(), place, keys.end(), std::greater<>());
  return *place;
}

void write_top_k(Job& job, const float* x, const Histogram& histogram, std::size_t k) {
  const Cut cut = find_cut(histogram, k);
  const Counts counts = keep_large(job, x, static_cast<std::uint32_t>(cut.bin << kBinShift));
  std::vector<std::uint32_t> keys;
  keys.reserve(histogram.at(cut.bin));
  each_kept(job, counts, [&](std::uint32_t, float value) {
    const std::uint32_t key = magnitude_bits(value);
    if (key >> kBinShift == cut.bin) keys.push_back(key);
  });
  const std::uint32_t last = kth_largest(keys, k - cut.above);
  const auto larger = std::count_if(keys.begin(), keys.end(), [=](auto key) { return key > last; });
  std::size_t ties = k - cut.above - static_cast<std::size_t>(larger), kept = 0;
  each_kept(job, counts, [&](std::uint32_t index, float value) {
    const std::uint32_t key = magnitude_bits(value);
    if (key < last || (key == last && ties == 0)) return;
    if (key == last) --ties;
    indices_of(job)[kept] = index;
    values_of(job)[kept++] = value;
  });
  header_of(job).count = static_cast<std::uint32_t>(kept);
}

int decode_selection(const Job& job) {
  if (decode_marked(job)) return 0;
  const std::uint32_t* index = indices_of(job);
  const std::size_t count = header_of(job).count;
  if (!ascends_below(index, count, job.n)) return 1;
  parallel(num_tasks(job), [&](std::size_t task) {
    const std::size_t begin = task * kTile * kTilesPerTask;
    const std::size_t end = std::min(begin + kTile * kTilesPerTask, std::size_t{job.n});
    std::fill(job.out + begin, job.out + end, 0.0f);
    const std::uint32_t* first = std::lower_bound(index, index + count, begin);
    for (; first != index + count && *first < end; ++first) {
      job.out[*first] = values_of(job)[first - index];
    }
  });
  return 0;
}

}  // namespace loops
