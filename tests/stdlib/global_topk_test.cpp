// Compares gtopk and oktopk with simple C++ references, which follow the papers step by step on
// maps from index to value. Updates and residuals must have the same bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "runtime/core/sizes/host_expr.h"
#include "tests/stdlib/rank_steps.h"

namespace cinch::testing {
namespace {

using ::testing::ElementsAre;

using Sparse = std::map<std::size_t, float>;

// Returns the k elements of largest magnitude. Among equal magnitudes lower indices come first.
Sparse largest(const Sparse& x, std::size_t k) {
  std::vector<std::pair<std::size_t, float>> order(x.begin(), x.end());
  std::ranges::sort(order, [](const auto& a, const auto& b) {
    return std::pair(-std::fabs(a.second), a.first) < std::pair(-std::fabs(b.second), b.first);
  });
  order.resize(std::min(k, order.size()));
  return {order.begin(), order.end()};
}

Sparse all_of(const Values& x) {
  Sparse all;
  for (std::size_t i = 0; i < x.size(); ++i) all[i] = x[i];
  return all;
}

float kth_magnitude(const Sparse& x, std::size_t k) {
  const Sparse kept = largest(x, k);
  if (kept.size() < k) return 0;
  float least = INFINITY;
  for (const auto& [index, value] : kept) least = std::min(least, std::fabs(value));
  return least;
}

class Reference {
 public:
  Reference(std::size_t num_ranks, std::size_t length, std::size_t count)
      : residuals(num_ranks, Values(length)), world(num_ranks), n(length), k(count) {}
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  virtual ~Reference() = default;

  Values step(const ByRank& gradients) {
    ByRank x = gradients;
    for (std::size_t rank = 0; rank < world; ++rank) {
      for (std::size_t i = 0; i < n; ++i) x[rank][i] += residuals[rank][i];
    }
    std::vector<Sparse> own;
    const Sparse result = exchange(x, own);
    for (std::size_t rank = 0; rank < world; ++rank) {
      for (const auto& [index, value] : own[rank]) {
        if (result.contains(index)) x[rank][index] = 0;
      }
    }
    residuals = x;
    Values update(n);
    for (const auto& [index, value] : result) update[index] = value / static_cast<float>(world);
    return update;
  }

  ByRank residuals;

 protected:
  // Returns the sum that all ranks receive. Stores in `own`, for each rank, the elements that this
  // rank selected.
  virtual Sparse exchange(const ByRank& x, std::vector<Sparse>& own) = 0;

  const std::size_t world, n, k;
};

// Algorithm 2 of the gTop-k paper. A rank without a partner skips the round.
class GTopK : public Reference {
 public:
  using Reference::Reference;

 private:
  Sparse exchange(const ByRank& x, std::vector<Sparse>& own) override {
    for (const Values& each : x) own.push_back(largest(all_of(each), k));
    std::vector<Sparse> merged = own;
    for (std::size_t distance = 1; distance < world; distance *= 2) {
      for (std::size_t to = 0; to + distance < world; to += 2 * distance) {
        for (const auto& [index, value] : merged[to + distance]) merged[to][index] += value;
        merged[to] = largest(merged[to], k);
      }
    }
    return merged[0];
  }
};

// Algorithm 1 of the Ok-Topk paper.
class OkTopK : public Reference {
 public:
  OkTopK(std::size_t num_ranks, std::size_t length, std::size_t count, std::size_t thresholds,
         std::size_t regions)
      : Reference(num_ranks, length, count),
        thresholds_(thresholds),
        regions_(regions),
        own_threshold_(num_ranks) {}

 private:
  Sparse exchange(const ByRank& x, std::vector<Sparse>& own) override {
    const bool is_due = step_ % thresholds_ == 0;
    for (std::size_t rank = 0; rank < world; ++rank) {
      float& own_threshold = own_threshold_[rank];
      if (is_due || own_threshold == 0) own_threshold = kth_magnitude(all_of(x[rank]), k);
    }
    if (step_ % regions_ == 0 || threshold_ == 0) cut_regions(x);
    ++step_;
    for (std::size_t rank = 0; rank < world; ++rank) own.push_back(selected(x[rank], rank));
    std::vector<Sparse> sums = sums_of_owners(own);
    Sparse pool;
    for (const Sparse& each : sums) pool.insert(each.begin(), each.end());
    if (is_due || threshold_ == 0) threshold_ = kth_magnitude(pool, k);
    Sparse result;
    for (const Sparse& each : sums) {
      std::size_t kept = 0;
      for (const auto& [index, value] : each) {
        if (std::fabs(value) >= threshold_ && kept++ < most()) result[index] = value;
      }
    }
    return result;
  }

  std::size_t most() const { return std::min(2 * k, n); }

  void cut_regions(const ByRank& x) {
    begin_.assign(world, 0);
    for (std::size_t region = 1; region < world; ++region) {
      for (const Values& each : x) {
        const Sparse kept = largest(all_of(each), k);
        begin_[region] += std::next(kept.begin(), region * k / world)->first;
      }
      begin_[region] /= world;
    }
  }

  Sparse selected(const Values& x, std::size_t rank) const {
    Sparse kept;
    for (std::size_t i = 0; i < n && kept.size() < most(); ++i) {
      if (std::fabs(x[i]) >= own_threshold_[rank] && x[i] != 0) kept[i] = x[i];
    }
    return kept;
  }

  // Each owner adds up its region in the order of the program: its own part first, then that of the
  // rank before it, and so on. The order matters because the sums must have the same bits.
  std::vector<Sparse> sums_of_owners(const std::vector<Sparse>& own) const {
    std::vector<Sparse> sums(world);
    for (std::size_t owner = 0; owner < world; ++owner) {
      const std::size_t end = owner + 1 < world ? begin_[owner + 1] : n;
      for (std::size_t i = 0; i < world; ++i) {
        for (const auto& [index, value] : own[(owner + world - i) % world]) {
          if (index >= begin_[owner] && index < end) sums[owner][index] += value;
        }
      }
      std::erase_if(sums[owner], [](const auto& entry) { return entry.second == 0; });
    }
    return sums;
  }

  const std::size_t thresholds_, regions_;
  std::size_t step_ = 0;
  std::vector<float> own_threshold_;
  float threshold_ = 0;
  std::vector<std::size_t> begin_;
};

Values residual_of(const RankResult& rank) {
  return values_of<float>(rank.states.at(0));
}

void expect_same(const RankCase& one_case, const RankResults& results, Reference& reference) {
  ASSERT_EQ(results.size(), one_case.gradients.size());
  for (std::size_t step = 0; step < results.size(); ++step) {
    const Values update = reference.step(one_case.gradients[step]);
    for (std::size_t rank = 0; rank < results[step].size(); ++rank) {
      const RankResult& found = results[step][rank];
      ASSERT_EQ(found.error, "");
      ASSERT_EQ(found.update, update) << "step " << step << ", rank " << rank;
      ASSERT_EQ(residual_of(found), reference.residuals[rank])
          << "step " << step << ", rank " << rank;
    }
  }
}

constexpr std::size_t kLength = 500, kSelected = 25;

TEST(GTopK, MergesAsThePaperDoes) {
  const Loaded program = load_library("sparsify/gtopk.cinch", {{"ratio", 0.05}});
  for (const std::size_t world : {1, 2, 3, 4, 5, 8}) {
    for (const DataKind kind : {DataKind::Normal, DataKind::Sparse, DataKind::Constant}) {
      const RankCase one_case = steps_of(world, kLength, 5, kind);
      GTopK reference(world, kLength, kSelected);
      expect_same(one_case, results_of(program, one_case), reference);
    }
  }
}

TEST(OkTopK, SumsByRegionAsThePaperDoes) {
  const Loaded program = load_library(
      "sparsify/oktopk.cinch", {{"ratio", 0.05}, {"threshold_every", 2}, {"region_every", 4}});
  for (const std::size_t world : {1, 2, 3, 4, 5, 8}) {
    for (const DataKind kind : {DataKind::Normal, DataKind::Sparse}) {
      const RankCase one_case = steps_of(world, kLength, 7, kind);
      OkTopK reference(world, kLength, kSelected, 2, 4);
      expect_same(one_case, results_of(program, one_case), reference);
    }
  }
}

// Rank 0 selects 5 and -4, and rank 1 selects -6 and 4. The result holds the two largest, 5 and -6,
// divided by the number of ranks.
TEST(GlobalTopK, OfTwoRanks) {
  RankCase one_case;
  one_case.gradients = {{{5, -4, 1, 0, 3, 0}, {1, 0, 0, -6, 4, 2}}};
  for (const char* name : {"gtopk", "oktopk"}) {
    const RankResults results = results_of(
        load_library("sparsify/" + std::string(name) + ".cinch", {{"ratio", 0.33}}), one_case);
    ASSERT_EQ(results.size(), 1);
    for (const RankResult& rank : results[0]) {
      EXPECT_THAT(rank.update, ElementsAre(2.5f, 0, 0, -3, 0, 0));
    }
    EXPECT_THAT(residual_of(results[0][0]), ElementsAre(0, -4, 1, 0, 3, 0));
    EXPECT_THAT(residual_of(results[0][1]), ElementsAre(1, 0, 0, 0, 4, 2));
  }
}

}  // namespace
}  // namespace cinch::testing
