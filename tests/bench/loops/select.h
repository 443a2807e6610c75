// Selections: each task stores what it keeps in its own part of the workspace, in order.
#pragma once
#include <functional>
#include <vector>

#include "loops.h"

namespace loops {

/// How many elements each task kept.
using Counts = std::vector<std::size_t>;

/// A histogram of magnitudes by their upper bits: exponent and three more bits.
constexpr int kBinShift = 20;
constexpr std::size_t kBins = std::size_t{1} << (31 - kBinShift);
class Histogram {
 public:
  void add(const float* x, std::size_t count);
  void join(const Histogram& other);
  std::uint64_t at(std::size_t bin) const;

 private:
  // Four histograms, since neighbours often fall into the same bin.
  std::uint32_t counts_[4][kBins] = {};
};

/// A share of n, at least 1 and at most n, as the language computes it.
std::size_t share_of(double ratio, std::size_t n, std::size_t least = 1);

/// Appends elements of x, which begin at element `at`, to those that the task keeps, if the bits of
/// their magnitudes are at least `least`.
void keep_large(const Job& job, const float* x, std::size_t at, std::size_t count,
                std::uint32_t least, std::size_t task, std::size_t& kept);
/// The same for a whole array: n elements.
Counts keep_large(const Job& job, const float* x, std::uint32_t least);

/// Calls take(index, value) for the kept elements, in order of the indices.
template <class F>
void each_kept(const Job& job, const Counts& counts, F take) {
  for (std::size_t task = 0; task < counts.size(); ++task) {
    const std::uint32_t* index = job.workspace + task * kTile * kTilesPerTask;
    for (std::size_t i = 0; i < counts[task]; ++i) take(index[i], float_of(index[job.n + i]));
  }
}

/// Writes the payload's elements, without those beyond `limit`.
void write_payload(Job& job, const Counts& counts, std::size_t limit);
/// Writes the k largest of x by magnitude, ties to lower indices, to the payload.
void write_top_k(Job& job, const float* x, const Histogram& histogram, std::size_t k);
/// Writes zeros and the payload's values. Returns 1 if indices are out of range or do not ascend.
int decode_selection(const Job& job);

/// The k-th largest of the keys, k from 1 on; reorders the keys.
std::uint32_t kth_largest(std::vector<std::uint32_t>& keys, std::size_t k);

inline std::uint32_t* indices_of(const Job& job) {
  return field_of<std::uint32_t>(job);
}
inline float* values_of(const Job& job) {
  return field_of<float>(job) + job.capacity;
}

}  // namespace loops
