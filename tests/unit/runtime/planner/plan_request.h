// Tensors and compressors for tests of plans, and what they cost.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/planner/exchange_options.h"
#include "runtime/planner/plan_cost.h"
#include "runtime/planner/planner.h"

namespace cinch::rt {

// Codec 0 may be cut and has payloads of known length; codec 1 has neither property; codec 2 has a
// `sync` whose collectives are unknown, codec 3 one with three collectives.
inline PlanRequest mixed_request(const std::string& plan, std::uint32_t world) {
  const auto half = [](std::int64_t rows, std::int64_t cols) -> Result<std::uint64_t> {
    return 64 + 2 * static_cast<std::uint64_t>(rows * cols);
  };
  const auto rounds = [world](std::int64_t rows, std::int64_t) -> Result<std::vector<SyncRound>> {
    const std::uint64_t bytes = 4 * static_cast<std::uint64_t>(rows);
    return std::vector<SyncRound>{
        {{CollectiveKind::AllReduce, RankReduction::Sum, 0}, {}, kF32, bytes, bytes},
        {{CollectiveKind::AllGather, RankReduction::None, 0},
         {},
         kF16,
         7,
         7 * std::uint64_t{world}},
        {{CollectiveKind::Broadcast, RankReduction::None, world - 1}, {}, kF32, bytes, bytes}};
  };
  PlanRequest request;
  request.plan = plan;
  request.world = world;
  request.codecs = {{"cuts", true, false, true, half},
                    {"whole", false, false, false, half},
                    {"meets", false, true, true, half, {}, {}},
                    {"meets_in_parts", false, true, true, half, {}, rounds}};
  request.tensors = {
      {"bias", 10, 1, kDense},    {"scalar", 1, 1, kDense}, {"large", 100000, 1, 0},
      {"small", 3, 1, 0},         {"empty", 0, 1, 0},       {"matrix", 300, 40, 1},
      {"little_matrix", 3, 5, 1}, {"protocol", 30, 40, 2},  {"dense_large", 50001, 1, kDense},
      {"parts", 20, 40, 3},       {"no_parts", 0, 40, 3}};
  request.piece_bytes = 64 << 10;
  return request;
}

// Without the tensor whose exchanges a plan does not know.
inline PlanRequest known_request(std::string_view plan, std::uint32_t world) {
  PlanRequest request = mixed_request(std::string(plan), world);
  if (plan == "hierarchical" && world % 2 == 0) request.ranks_per_machine = 2;
  std::erase_if(request.tensors, [](const PlanTensor& tensor) { return tensor.codec == 2; });
  return request;
}

// One tensor of a program whose payload has as many bytes as the gradient.
inline PlanRequest exact_request(const std::string& plan, std::uint32_t world, std::int64_t bytes) {
  PlanRequest request = mixed_request(plan, world);
  request.codecs[0].bound = [](std::int64_t rows, std::int64_t cols) -> Result<std::uint64_t> {
    return 4 * static_cast<std::uint64_t>(rows * cols);
  };
  request.tensors = {{"gradient", bytes / 4, 1, 0}};
  request.piece_bytes = std::uint64_t{1} << 40;
  return request;
}

inline CostCurve nanoseconds_each(double nanoseconds) {
  return {{{0, 0}, {1, nanoseconds * 1e-9}}};
}

// Times of such a program, and a network of a gigabyte a second.
inline CostInputs export_inputs(std::uint32_t world, std::size_t num_codecs) {
  CostInputs inputs;
  inputs.network = shaped_network(world, {1e-6, 1e9});
  CodecSpeed speed{nanoseconds_each(7),
                   nanoseconds_each(3),
                   nanoseconds_each(4),
                   nanoseconds_each(2),
                   nanoseconds_each(1),
                   nanoseconds_each(1),
                   1};
  speed.parts = {nanoseconds_each(5), nanoseconds_each(6)};
  inputs.codecs.assign(num_codecs, speed);
  inputs.dense = speed;
  inputs.clear = nanoseconds_each(1);
  return inputs;
}

inline Plan plan_of(const PlanRequest& request) {
  const auto plan = build_plan(request);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message);
  return plan ? *plan : Plan();
}

}  // namespace cinch::rt
