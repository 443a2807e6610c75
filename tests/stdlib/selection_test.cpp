// Tests exact selection. topk must select what a sort selects, both on data where a sample predicts
// the k-th largest magnitude well and on data where it does not. The tests also count the bytes
// that a selection reads and writes while it runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/payload/npy.h"
#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/sessions.h"
#include "tests/stdlib/golden.h"

namespace cinch::testing {
namespace {

Loaded load_counting(const std::string& name) {
  return load(library_program("sparsify/" + name + ".cinch"), true);
}

std::vector<float> real_gradient() {
  const auto array =
      rt::read_npy(std::string(CINCH_STDLIB_DIR) + "/../examples/data/resnet-step40.npy");
  EXPECT_TRUE(array) << (array ? "" : array.error().message);
  return array ? values_of<float>(array->bytes) : std::vector<float>();
}

struct Data {
  const char* name;
  std::vector<float> gradient;
};

std::vector<Data> data_of_all_kinds() {
  std::vector<Data> all = {{"real", real_gradient()}};
  constexpr std::int64_t kSize = 300007;
  for (const DataKind kind : {DataKind::Normal, DataKind::HeavyTailed, DataKind::Sparse,
                              DataKind::Constant, DataKind::Zeros, DataKind::Subnormal}) {
    all.push_back({data_kind_name(kind), make_gradient(kind, kSize, 5)});
  }
  all.push_back({"ascending", make_gradient(DataKind::Normal, kSize, 6)});
  std::ranges::sort(all.back().gradient);
  // Large values lie at regular places. A sample with a regular stride could see too many or too
  // few of them.
  Data periodic{"periodic", std::vector<float>(kSize)};
  for (std::size_t i = 0; i < periodic.gradient.size(); ++i) {
    periodic.gradient[i] = (i % 19 == 0 ? 1.0f : 0.01f) * static_cast<float>(1 + i % 1009);
  }
  all.push_back(std::move(periodic));
  for (const std::int64_t size : {1, 17, 1000, 20000}) {
    all.push_back({"short", make_gradient(DataKind::Normal, size, 7)});
  }
  return all;
}

// Returns all indices, sorted by falling magnitude. Equal magnitudes are sorted by index.
std::vector<int> places_by_magnitude(const std::vector<float>& gradient) {
  std::vector<int> order(gradient.size());
  std::iota(order.begin(), order.end(), 0);
  const auto magnitude = [&](int i) { return std::abs(gradient[static_cast<std::size_t>(i)]); };
  std::ranges::sort(order, [&](int a, int b) {
    const float x = magnitude(a), y = magnitude(b);
    return x > y || (x == y && a < b);
  });
  return order;
}

// Returns the first k indices of `by_magnitude` in ascending order.
std::vector<int> largest(const std::vector<int>& by_magnitude, std::size_t k) {
  std::vector<int> first(by_magnitude.begin(), by_magnitude.begin() + static_cast<long>(k));
  std::ranges::sort(first);
  return first;
}

struct Outcome {
  std::vector<std::uint8_t> payload;
  double read_per_element = 0, written_per_element = 0;
};

Outcome encode(rt::Session& session, const std::vector<float>& gradient, std::uint64_t step) {
  const auto payload = session.encode(gradient, step);
  EXPECT_TRUE(payload) << (payload ? "" : payload.error().message);
  if (!payload) return {};
  const auto num = static_cast<double>(gradient.size());
  const rt::AccessCounts counts = session.last_accesses().value();
  return {{payload->begin(), payload->end()},
          static_cast<double>(counts.bytes_read) / num,
          static_cast<double>(counts.bytes_written) / num};
}

std::unique_ptr<rt::Session> open_on(const Loaded& loaded, std::size_t num_elems,
                                     unsigned threads) {
  rt::SessionOptions options;
  options.rows = static_cast<std::int64_t>(num_elems);
  options.threads = threads;
  return open(loaded, options);
}

// Reads the indices from a payload that holds k values and then packed indices.
std::vector<int> indices_of(const std::vector<std::uint8_t>& payload, std::size_t k,
                            std::size_t num_elems) {
  const std::size_t offset = (80 + 4 * k + 15) / 16 * 16;
  EXPECT_LE(offset, payload.size());
  if (offset > payload.size()) return {};
  return rice_indices(std::span(payload).subspan(offset), k, num_elems);
}

constexpr double kRatios[] = {0.0001, 0.001, 0.01, 0.04, 0.1, 0.5, 1.0};

TEST(Selection, TopkIsExactHoweverTheSampleGuesses) {
  const Loaded loaded = load_counting("topk");
  ASSERT_NE(loaded, nullptr);
  for (const Data& data : data_of_all_kinds()) {
    const auto session = open_on(loaded, data.gradient.size(), 2);
    const std::vector<int> by_magnitude = places_by_magnitude(data.gradient);
    std::uint64_t step = 0;
    for (const double ratio : kRatios) {
      ASSERT_TRUE(session->set_parameter("ratio", ratio));
      const auto num = static_cast<double>(data.gradient.size());
      const auto k = std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(ratio * num)), 1,
                                             data.gradient.size());
      const Outcome outcome = encode(*session, data.gradient, step++);
      EXPECT_EQ(indices_of(outcome.payload, k, data.gradient.size()), largest(by_magnitude, k))
          << data.name << " of " << data.gradient.size() << ", ratio " << ratio;
    }
  }
}

// Bounds on the bytes that an encode reads per element, for one kind of data and one ratio.
struct Figure {
  const char* data;
  float ratio;
  double least, most;
};

TEST(Selection, TopkSweepsOnceWhereASampleTellsAndFiveTimesAtWorst) {
  const Loaded loaded = load_counting("topk");
  ASSERT_NE(loaded, nullptr);
  constexpr Figure kFigures[] = {
      {"real", 0.001f, 4, 6},  // one sweep over all, the sample three times, the list
      {"real", 0.01f, 4, 6},
      {"real", 0.1f, 8, 15},  // and a second sweep to select
      {"normal", 0.001f, 4, 6},
      {"constant", 0.01f, 20, 22},  // all are ties, so the list overflows
      {"zeros", 0.01f, 20, 22},
      {"constant", 1.0f, 20, 76},  // also reads 53 B per kept element for the payload
  };
  const auto all = data_of_all_kinds();
  for (const Figure& figure : kFigures) {
    const auto data = std::ranges::find_if(
        all, [&](const Data& d) { return std::strcmp(d.name, figure.data) == 0; });
    ASSERT_NE(data, all.end()) << figure.data;
    const auto session = open_on(loaded, data->gradient.size(), 1);
    ASSERT_TRUE(session->set_parameter("ratio", figure.ratio));
    const Outcome outcome = encode(*session, data->gradient, 0);
    EXPECT_GE(outcome.read_per_element, figure.least) << figure.data << " " << figure.ratio;
    EXPECT_LE(outcome.read_per_element, figure.most) << figure.data << " " << figure.ratio;
  }
}

TEST(Selection, DgcUpdatesItsStateInTheSweepThatSelects) {
  const Loaded loaded = load_counting("dgc");
  ASSERT_NE(loaded, nullptr);
  const std::vector<float> gradient = real_gradient();
  const auto session = open_on(loaded, gradient.size(), 1);
  for (std::uint64_t step = 0; step < 3; ++step) {
    const Outcome outcome = encode(*session, gradient, step);
    EXPECT_LE(outcome.read_per_element + outcome.written_per_element, 24);
  }
}

}  // namespace
}  // namespace cinch::testing
