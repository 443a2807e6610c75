// Options of a step on tensors in device memory: scales, sums, skipped steps and unused tensors
// give the same results as on CPUs, bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "runtime/planner/planner.h"
#include "runtime/session/tensor_convert.h"
#include "tests/collective/support/emulated_ranks.h"
#include "tests/environment.h"

namespace cinch::testing {
namespace {

constexpr std::uint32_t kNumRanks = 2;
constexpr std::uint32_t kUnused = 2;  // a tensor that no rank uses in the last step
using Bytes = std::vector<std::uint8_t>;

const std::vector<std::string> kPrograms = {"powersgd(rank: 2)", "ef_sign", "topk(ratio: 0.1)"};

struct ModelPlan {
  const char* plan;
  bool offloads = false;  // every other tensor to the ranks' CPUs
};

SyncCase model_case(const ModelPlan& of) {
  const char* const plan = of.plan;
  const bool is_scattered = std::string_view(plan) == "reduce_scatter";
  SyncCase made;
  rt::PlanRequest request;
  request.plan = plan;
  request.world = kNumRanks;
  request.piece_bytes = 4096;
  for (const std::string& program : kPrograms) {
    made.programs.push_back(compiled_library(program));
  }
  request.codecs = facts_of(made.programs, kNumRanks);
  request.tensors = {{"head", 30, 20, is_scattered ? 1U : 0U},
                     {"bias", 21, 1, rt::kDense},
                     {"large", 3001, 1, 1},
                     {"none", 0, 1, 1},
                     {"sparse", 1500, 1, is_scattered ? 1U : 2U},
                     {"last", 1100, 1, rt::kDense}};
  if (of.offloads) {
    request.routes = {{.plan = plan, .piece_bytes = 4096},
                      {.plan = plan, .piece_bytes = 4096, .device = rt::OptionDevice::Cpu}};
    request.route_of = {0, 1, 1, 1, 0, 0};
  }
  made.plan = std::make_shared<rt::Plan>(*rt::build_plan(request));
  return made;
}

// A tensor's values in `dtype`.
Bytes bytes_of(const std::vector<float>& values, DType dtype) {
  Bytes bytes(values.size() * static_cast<std::size_t>(dtype.bits) / 8);
  rt::TaskRunner runner(1);
  const rt::TensorView view(bytes.data(), dtype, static_cast<std::int64_t>(values.size()));
  EXPECT_TRUE(rt::convert_from_f32(values, view, runner, nullptr));
  return bytes;
}

// Arrays of a rank in the host's memory, or in that of the ranks' device.
class Arrays {
 public:
  Arrays(EmulatedRanks* ranks, std::vector<Bytes> values)
      : ranks_(ranks), host_(std::move(values)) {
    if (ranks_ == nullptr) return;
    const std::lock_guard lock(ranks_->turns());
    for (const Bytes& bytes : host_) {
      memory_.push_back(*rt::GpuMemory::allocate(ranks_->gpu(), bytes.size()));
      EXPECT_TRUE(ranks_->gpu()->write(memory_.back().address(), bytes, nullptr));
    }
  }
  ~Arrays() {
    if (ranks_ == nullptr) return;
    const std::lock_guard lock(ranks_->turns());
    memory_.clear();
  }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;

  rt::TensorView view(std::size_t i, DType dtype) {
    const auto elems = static_cast<std::int64_t>(host_[i].size() * 8 / dtype.bits);
    if (ranks_ == nullptr) return {host_[i].data(), dtype, elems};
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return {reinterpret_cast<void*>(memory_[i].address()), dtype, elems};
  }
  std::vector<Bytes> read() {
    if (ranks_ == nullptr) return host_;
    const std::lock_guard lock(ranks_->turns());
    for (std::size_t i = 0; i < host_.size(); ++i) {
      EXPECT_TRUE(ranks_->gpu()->read(host_[i], memory_[i].address(), nullptr));
    }
    return host_;
  }

 private:
  EmulatedRanks* ranks_;
  std::vector<Bytes> host_;
  std::vector<rt::GpuMemory> memory_;
};

struct Step {
  rt::StepOptions options;
  float strange = 0;  // replaces one value of one tensor of rank 1, if it is not 0
  bool is_skipped = false;
  bool leaves_one_out = false;
};

std::vector<Step> all_steps() {
  const float infinity = std::numeric_limits<float>::infinity();
  return {
      {.options = {.scale = 3, .is_sum = true}},
      {.options = {.scale = 0.3, .skips_non_finite = true}},
      {.options = {.skips_non_finite = true}, .strange = infinity, .is_skipped = true},
      {.options = {.scale = 65536, .skips_non_finite = true},
       .strange = std::bit_cast<float>(0xffc12345u),
       .is_skipped = true},
      // Divided by the scale it is no longer finite.
      {.options = {.scale = 1e-3, .skips_non_finite = true}, .strange = 6e37F, .is_skipped = true},
      {.options = {.skips_non_finite = true}},
      {.options = {.scale = 2}, .strange = -infinity},
      {.options = {.is_sum = true}, .leaves_one_out = true}};
}

struct RankRun {
  std::vector<std::vector<Bytes>> updates;  // by step; empty for a skipped one
  std::vector<bool> is_skipped;
  std::vector<States> states;
};

std::vector<Bytes> updates_of(const rt::Plan& plan, std::uint32_t rank, DType dtype) {
  std::vector<Bytes> updates;
  for (const rt::PlanTensor& tensor : plan.tensors) {
    const std::int64_t elems = rt::updated_part(tensor, rank).num_elems;
    updates.emplace_back(static_cast<std::size_t>(elems * dtype.bits / 8));
  }
  return updates;
}

std::vector<Bytes> gradients_of(const rt::Plan& plan, std::uint32_t rank, std::uint64_t number,
                                const Step& step, DType dtype) {
  Tensors values = make_gradients(plan, rank, number);
  if (step.strange != 0 && rank == 1) values[number % 2 == 0 ? 5 : 4][17] = step.strange;
  if (step.leaves_one_out) std::ranges::fill(values[kUnused], 0.0F);
  std::vector<Bytes> gradients;
  for (const auto& tensor : values) gradients.push_back(bytes_of(tensor, dtype));
  return gradients;
}

// Types of gradients and updates.
struct Types {
  DType from = kF32, to = kF32;
};

RankRun run_rank(const SyncCase& model, const RankBody& own, Types types, EmulatedRanks* ranks) {
  RankRun run;
  auto opened = rt::SyncSession::open(sync_options(model, own.rank), own.transport);
  EXPECT_TRUE(opened) << opened.error().message;
  if (!opened) return run;
  rt::SyncSession& session = **opened;
  const std::vector<Step> steps = all_steps();
  for (std::uint64_t number = 0; number < steps.size(); ++number) {
    const Step& step = steps[number];
    Arrays from(ranks, gradients_of(*model.plan, own.rank, number, step, types.from));
    Arrays to(ranks, updates_of(*model.plan, own.rank, types.to));
    EXPECT_TRUE(session.begin_step(number, step.options));
    for (std::uint32_t t = 0; t < model.plan->tensors.size(); ++t) {
      const bool is_used = !step.leaves_one_out || t != kUnused;
      EXPECT_TRUE(session.set_ready(t, from.view(t, types.from), to.view(t, types.to), is_used));
    }
    const auto outcome = session.finish_step();
    EXPECT_TRUE(outcome) << "step " << number << ": " << outcome.error().message;
    if (!outcome) return run;
    run.is_skipped.push_back(outcome->is_skipped);
    run.updates.push_back(outcome->is_skipped ? std::vector<Bytes>{} : to.read());
    run.states.push_back(states_of(session));
  }
  return run;
}

std::vector<RankRun> run_all(const SyncCase& model, Types types, EmulatedRanks* ranks) {
  std::vector<RankRun> runs(kNumRanks);
  rt::LoopbackWorld world(kNumRanks);
  run_ranks(world, kNumRanks,
            [&](const RankBody& own) { runs[own.rank] = run_rank(model, own, types, ranks); });
  return runs;
}

void check_plan(const ModelPlan& plan, Types types) {
  SyncCase model = model_case(plan);
  const auto wanted = run_all(model, types, nullptr);
  const auto& tasks = model.plan->ranks[0].tasks;
  EXPECT_EQ(std::ranges::count(tasks, rt::Lane::Cpus, &rt::Task::lane) > 0, plan.offloads);
  EmulatedRanks ranks;
  model.devices.assign(kNumRanks, ranks.device(kPrograms));
  for (auto& device : model.devices) device->has_tensors = true;
  const auto found = run_all(model, types, &ranks);
  const std::vector<Step> steps = all_steps();
  for (std::uint32_t rank = 0; rank < kNumRanks; ++rank) {
    ASSERT_EQ(found[rank].states.size(), steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      SCOPED_TRACE(std::string(plan.plan) + ", step " + std::to_string(i) + ", rank " +
                   std::to_string(rank));
      EXPECT_EQ(wanted[rank].is_skipped[i], found[rank].is_skipped[i]);
      // 6e37 is already infinite in f16.
      EXPECT_EQ(found[rank].is_skipped[i], steps[i].is_skipped);
      EXPECT_TRUE(wanted[rank].updates[i] == found[rank].updates[i]);
      EXPECT_TRUE(wanted[rank].states[i] == found[rank].states[i]);
      if (steps[i].is_skipped) EXPECT_TRUE(found[rank].states[i] == found[rank].states[i - 1]);
    }
  }
}

TEST(DeviceOptions, GiveWhatTheyGiveOnCpus) {
  std::vector<const char*> plans = {"ring", "two_shot", "reduce_scatter"};
  if (is_sample_run()) plans.resize(1);
  for (const char* plan : plans) check_plan({plan}, {});
}

// Of a tensor on CPUs nothing may show where it was encoded.
TEST(DeviceOptions, GiveWhatTheyGiveWhereCpusOfTheRankEncode) {
  check_plan({"ring", true}, {});
  check_plan({"allgather", true}, {kF16, kF16});
  check_plan({"two_shot", true}, {kBF16, kF32});
}

TEST(DeviceOptions, GiveThatOfHalves) {
  check_plan({"two_shot"}, {kF16, kF16});
  check_plan({"two_shot"}, {kBF16, kBF16});
}

TEST(DeviceOptions, TensorsOfTheHostAreRefusedWhereTheyAreScaled) {
  SyncCase model = model_case({"two_shot"});
  EmulatedRanks ranks;
  model.devices.assign(kNumRanks, ranks.device(kPrograms));
  for (auto& device : model.devices) device->has_tensors = true;
  rt::LoopbackWorld world(kNumRanks);
  run_ranks(world, kNumRanks, [&](const RankBody& own) {
    auto session = rt::SyncSession::open(sync_options(model, own.rank), own.transport);
    ASSERT_TRUE(session) << session.error().message;
    const Tensors gradients = make_gradients(*model.plan, own.rank, 0);
    Tensors updates = gradients;
    EXPECT_FALSE((*session)->begin_step(0, {.measures_errors = true}));
    ASSERT_TRUE((*session)->begin_step(0, {.scale = 2}));
    for (std::uint32_t t = 0; t < gradients.size(); ++t) {
      (void)(*session)->set_ready(t, gradients[t], updates[t]);
    }
    const auto outcome = (*session)->finish_step();
    ASSERT_FALSE(outcome);
    EXPECT_NE(outcome.error().message.find("is not memory of a GPU"), std::string::npos)
        << outcome.error().message;
  });
}

}  // namespace
}  // namespace cinch::testing
