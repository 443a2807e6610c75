// Ranks on an emulated GPU: every rank's update equals the sequential oracle's, bit for bit,
// whether all ranks or only some compute there.
#include <gtest/gtest.h>

#include <limits>

#include "runtime/planner/planner.h"
#include "tests/collective/support/emulated_ranks.h"
#include "tests/collective/support/plan_cases.h"
#include "tests/environment.h"

namespace cinch::testing {
namespace {

// The combinations that an emulated device finishes in time, in pieces of one size.
std::vector<Combination> device_combinations() {
  std::vector<Combination> all = all_combinations();
  std::erase_if(all, [](const Combination& one) {
    return one.world > 5 || one.size > 2000 || one.piece_bytes != 1024;
  });
  return all;
}

// Every `each`-th rank is on the device.
void place(SyncCase& one_case, const std::string& program, EmulatedRanks& ranks,
           std::uint32_t each) {
  const rt::SyncDevice device =
      ranks.device(program.empty() ? std::vector<std::string>{} : std::vector{program});
  one_case.devices.resize(one_case.plan->world());
  for (std::uint32_t rank = 0; rank < one_case.plan->world(); rank += each) {
    one_case.devices[rank] = device;
  }
  one_case.timeout = std::chrono::milliseconds(120000);
}

TEST(DevicePlans, GiveWhatTheOracleGives) {
  const auto combinations =
      is_long_run() ? device_combinations() : covering_combinations(all_combinations());
  // Emulated devices are slow; CPUs run all of these (plans_test).
  const std::size_t stride = is_long_run() ? 1 : is_sample_run() ? 11 : 7;
  for (std::size_t i = 0; i < combinations.size(); i += stride) {
    EmulatedRanks ranks({.schedule_seed = i});
    SyncCase one_case = case_of(combinations[i]);
    const std::uint32_t each = 1 + static_cast<std::uint32_t>(i / stride % 2);
    place(one_case, combinations[i].program, ranks, each);
    check_steps(one_case, combinations[i].text() + (each == 1 ? "" : ", every other on a device"));
    if (HasFatalFailure()) return;
  }
  RecordProperty("combinations", static_cast<int>(combinations.size()));
}

// Some tensors on the GPU, others on CPUs of the same ranks, beside ranks without a GPU. A tensor's
// plan is the other one's, too, so that both meet in every kind of exchange.
TEST(DevicePlans, GiveThatWhereCpusEncodeSomeTensors) {
  std::uint32_t number = 0;
  for (const std::string program : {"ef_sign", "threshold(tau: 0.5)", "count_sketch",
                                    "momentum(error_feedback(minmax))", "terngrad_shared"}) {
    for (const std::string_view plan : rt::plan_names()) {
      const std::uint32_t each = 1 + ++number % 2;
      if (!is_long_run() && number % 3 == 0) continue;
      EmulatedRanks ranks({.schedule_seed = number});
      rt::PlanRequest request;
      request.world = 4;
      request.ranks_per_machine = 2;
      request.tensors = {{"a", 700, 1, 0},          {"b", 40, 1, 0}, {"none", 0, 1, 0},
                         {"c", 333, 1, rt::kDense}, {"d", 1, 1, 0},  {"e", 1100, 1, 0}};
      const std::string other = number % 2 == 0 ? "allgather" : "two_shot";
      request.routes = {{.plan = std::string(plan), .piece_bytes = 1024},
                        {.plan = std::string(plan),
                         .piece_bytes = 2048,
                         .lengths = rt::LengthPolicy::Exchanged,
                         .device = rt::OptionDevice::Cpu},
                        {.plan = other, .device = rt::OptionDevice::Cpu}};
      request.route_of = {0, 1, 1, 1, 2, 1};
      SyncCase one_case = make_sync_case(compiled_library(program), request);
      ASSERT_NE(one_case.plan, nullptr);
      place(one_case, program, ranks, each);
      check_steps(one_case, program + ", " + std::string(plan) + " on both", 2);
      if (HasFatalFailure()) return;
    }
  }
}

// In parts or as one task: with matrices, with collectives of integers and of counted arrays, and
// with one rank's gradient not finite.
TEST(DevicePlans, RunProtocolsBesideRanksOnCpus) {
  for (const std::string program :
       {"powersgd(rank: 2)", "terngrad_shared", "thc(block: 64)", "onebit_adam(freeze: 1)",
        "gtopk(ratio: 0.1)", "oktopk(ratio: 0.1)"}) {
    for (const std::uint32_t each : {1U, 2U}) {
      EmulatedRanks ranks({.schedule_seed = each});
      rt::PlanRequest request;
      request.plan = "two_shot";
      request.world = 3;
      request.tensors = {{"a", 12, 20, 0}, {"bias", 20, 1, rt::kDense}, {"b", 8, 40, 0}};
      SyncCase one_case = make_sync_case(compiled_library(program), request);
      place(one_case, program, ranks, each);
      one_case.num_steps = 3;
      one_case.change_gradients = [](std::uint32_t rank, std::uint64_t step, Tensors& gradients) {
        if (rank == step && step > 0) gradients[2][100] = std::numeric_limits<float>::infinity();
      };
      check_steps(one_case, program + ", every " + std::to_string(each));
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace cinch::testing
