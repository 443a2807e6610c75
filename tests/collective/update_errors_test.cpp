// Errors of updates against a reference of its own: gradients added up in f32 in the order of
// ranks, norms in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/planner/planner.h"
#include "tests/collective/support/sync_ranks.h"

namespace cinch::testing {
namespace {

SyncCase two_tensors(std::string_view plan, std::uint32_t world) {
  SyncCase made;
  made.programs = {compiled_library("topk(ratio: 0.1)")};
  rt::PlanRequest request;
  request.plan = plan;
  request.world = world;
  request.codecs.push_back(rt::codec_facts(rt::image_of(made.programs[0]), world));
  request.tensors = {{"weight", 3000, 1, 0}, {"none", 0, 1, 0}, {"bias", 7, 1, rt::kDense}};
  made.plan = std::make_shared<rt::Plan>(*rt::build_plan(request));
  return made;
}

// As update_errors.h says.
double wanted_error(const SyncCase& of, std::uint64_t step, std::size_t tensor,
                    std::span<const float> update, std::size_t first, double divisor, float scale) {
  std::vector<float> sums;
  for (std::uint32_t rank = 0; rank < of.plan->world(); ++rank) {
    const auto gradient = gradients_of(of, rank, step)[tensor];
    if (sums.empty()) sums.resize(gradient.size());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += gradient[i] * scale;
  }
  double squares = 0, differences = 0;
  for (std::size_t i = 0; i < update.size(); ++i) {
    const double mean = sums[first + i] / divisor;
    squares += mean * mean;
    differences += (update[i] - mean) * (update[i] - mean);
  }
  return differences == 0 ? 0 : std::sqrt(differences / squares);
}

class Ranks {
 public:
  explicit Ranks(SyncCase of) : of_(std::move(of)) {}

  using Change = std::function<void(std::uint32_t rank, Tensors&)>;
  // One step on all ranks; `look` gets the report of each, and its updates.
  void step(const rt::StepOptions& options, const Change& change,
            const std::function<void(std::uint32_t, const nlohmann::json&, const Tensors&)>& look) {
    rt::LoopbackWorld world(of_.plan->world());
    run_ranks(world, of_.plan->world(), [&](const RankBody& own) {
      auto session = rt::SyncSession::open(sync_options(of_, own.rank), own.transport);
      ASSERT_TRUE(session) << session.error().message;
      Tensors tensors = gradients_of(of_, own.rank, 0);
      change(own.rank, tensors);
      std::vector<rt::ConstTensorView> from;
      std::vector<rt::TensorView> to;
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        const auto part = rt::updated_part(of_.plan->tensors[t], own.rank);
        from.push_back(rt::TensorView(tensors[t]));
        to.emplace_back(tensors[t].data() + part.first, kF32, part.num_elems);
      }
      const auto outcome = (*session)->step(from, to, 0, options);
      ASSERT_TRUE(outcome) << outcome.error().message;
      const auto report = (*session)->report();
      ASSERT_TRUE(report) << report.error().message;
      look(own.rank, nlohmann::json::parse(*report), tensors);
    });
  }

  const SyncCase& of() const { return of_; }

 private:
  SyncCase of_;
};

void unchanged(std::uint32_t /*rank*/, Tensors& /*gradients*/) {}

TEST(UpdateErrors, AreThoseOfTheReference) {
  for (const std::string_view plan : {"two_shot", "ring", "allgather"}) {
    Ranks ranks(two_tensors(plan, 3));
    ranks.step({.measures_errors = true}, unchanged,
               [&](std::uint32_t /*rank*/, const nlohmann::json& report, const Tensors& updates) {
                 const auto& told = report["tensors"];
                 const double error = told[0]["error"];
                 EXPECT_GT(error, 0.1) << plan;
                 EXPECT_DOUBLE_EQ(error, wanted_error(ranks.of(), 0, 0, updates[0], 0, 3, 1));
                 EXPECT_EQ(told[1]["error"], 0.0);
                 EXPECT_LT(told[2]["error"], 1e-6);
                 EXPECT_EQ(report["memory_bytes"]["gradients"], 4 * (3000 + 7 + 7));
               });
  }
}

TEST(UpdateErrors, KnowScalesSumsAndParts) {
  Ranks ranks(two_tensors("reduce_scatter", 2));
  const auto scale_up = [](std::uint32_t /*rank*/, Tensors& gradients) {
    for (float& value : gradients[0]) value *= 8;
  };
  ranks.step({.scale = 8, .is_sum = true, .measures_errors = true}, scale_up,
             [&](std::uint32_t rank, const nlohmann::json& report, const Tensors& updates) {
               const auto part = rt::updated_part(ranks.of().plan->tensors[0], rank);
               const auto first = static_cast<std::size_t>(part.first);
               const auto found =
                   std::span(updates[0]).subspan(first, static_cast<std::size_t>(part.num_elems));
               const double error = report["tensors"][0]["error"];
               EXPECT_GT(error, 0.1);
               EXPECT_DOUBLE_EQ(error, wanted_error(ranks.of(), 0, 0, found, first, 1, 8));
             });
}

TEST(UpdateErrors, AreNullWhereThereIsNone) {
  Ranks ranks(two_tensors("two_shot", 2));
  const auto spoil = [](std::uint32_t rank, Tensors& gradients) {
    if (rank == 1) gradients[0][5] = std::numeric_limits<float>::infinity();
  };
  ranks.step({.measures_errors = true}, spoil,
             [](std::uint32_t /*rank*/, const nlohmann::json& report, const Tensors& /*updates*/) {
               EXPECT_TRUE(report["tensors"][0]["error"].is_null());
               EXPECT_LT(report["tensors"][2]["error"], 1e-6);
             });
  // A step that is skipped has no updates, and others are not measured.
  for (const bool skips : {true, false}) {
    ranks.step({.skips_non_finite = skips, .measures_errors = skips}, skips ? spoil : unchanged,
               [](std::uint32_t /*rank*/, const nlohmann::json& report, const Tensors& /*u*/) {
                 EXPECT_FALSE(report["tensors"][0].contains("error"));
               });
  }
}

}  // namespace
}  // namespace cinch::testing
