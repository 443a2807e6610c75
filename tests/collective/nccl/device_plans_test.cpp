// Ranks that compute on GPUs and exchange from their memory, over the fake of NCCL: the bits equal
// the sequential oracle's, messages stay on the devices, and after calls that fail or hang memory
// can be freed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/collective/nccl/double_world.h"
#include "tests/collective/support/emulated_ranks.h"
#include "tests/collective/support/faulty_transport.h"
#include "tests/collective/support/plan_cases.h"
#include "tests/collective/support/sync_oracle.h"
#include "tests/environment.h"

namespace cinch::testing {
namespace {

const std::string kPrograms[] = {
    "",     "onebit",          "ef_sign", "topk(ratio: 0.1)", "threshold(tau: 0.5)",
    "qsgd", "terngrad_shared", "fp16",    "count_sketch"};

std::vector<Combination> all_combinations() {
  std::vector<Combination> all;
  for (const std::string& program : kPrograms) {
    for (const std::string& plan : tested_plans()) {
      for (const std::uint32_t world : {1, 2, 3, 5}) {
        if (plan == "hierarchical" && world == 1) continue;
        for (const std::int64_t size : {0, 1, 333, 1501}) {
          for (const rt::LengthPolicy lengths :
               {rt::LengthPolicy::Padded, rt::LengthPolicy::Exchanged}) {
            all.push_back({program, plan, world, size, 4096, lengths});
          }
        }
      }
    }
  }
  return all;
}

// Every `each`-th rank is on a device of its own.
void place(SyncCase& one_case, const std::string& program, const NcclDouble& library,
           std::uint32_t each = 1) {
  one_case.devices.resize(one_case.plan->world());
  for (std::uint32_t rank = 0; rank < one_case.plan->world(); rank += each) {
    one_case.devices[rank] = sync_device_on(
        library.device(rank), program.empty() ? std::vector<std::string>{} : std::vector{program});
  }
}

struct NcclRun {
  std::vector<std::vector<Tensors>> updates;  // by step, then rank
  std::vector<std::string> errors;            // by rank
};

// Rank 1 has the fault in its first exchange of a step. Unless it must be exact, the library adds
// floats in an order of its own.
NcclRun run_over_nccl(const SyncCase& one_case, const NcclDouble& library,
                      FaultKind fault = FaultKind::None, bool is_exact = true) {
  const std::uint32_t world = one_case.plan->world();
  NcclRun run{std::vector(one_case.num_steps, std::vector<Tensors>(world)),
              std::vector<std::string>(world)};
  rt::NcclOptions options;
  options.is_exact = is_exact;
  options.neighbours = std::make_shared<rt::NcclNeighbours>();
  const auto body = [&](rt::Transport& nccl) {
    const std::uint32_t rank = nccl.rank();
    FaultyTransport transport(nccl);
    auto session = rt::SyncSession::open(sync_options(one_case, rank), transport);
    if (!session) {
      run.errors[rank] = session.error().message;
      return;
    }
    if (rank == 1) transport.arm(fault, 0);
    for (std::uint64_t step = 0; step < one_case.num_steps; ++step) {
      const auto gradients = gradients_of(one_case, rank, step);
      const rt::Status status = step_on(**session, gradients, run.updates[step][rank], step);
      if (status) continue;
      run.errors[rank] = status.error().message;
      return;
    }
  };
  run_nccl_ranks(library, world, body, options);
  return run;
}

void check_updates(const NcclRun& run, std::uint64_t step, const Tensors& wanted,
                   const std::string& text) {
  for (std::uint32_t rank = 0; rank < run.errors.size(); ++rank) {
    ASSERT_EQ(run.errors[rank], "") << text << ", rank " << rank;
    ASSERT_TRUE(are_same(run.updates[step][rank], wanted))
        << text << ", step " << step << ", rank " << rank;
  }
}

void check_run(const SyncCase& one_case, const NcclDouble& library, const std::string& text) {
  const NcclRun run = run_over_nccl(one_case, library);
  SyncOracle oracle(*one_case.plan, one_case.programs, one_case.seed);
  for (std::uint64_t step = 0; step < one_case.num_steps; ++step) {
    std::vector<Tensors> gradients;
    for (std::uint32_t rank = 0; rank < one_case.plan->world(); ++rank) {
      gradients.push_back(gradients_of(one_case, rank, step));
    }
    check_updates(run, step, oracle.step(gradients, step), text);
  }
}

// With the library's sums: compared with ranks on CPUs.
void check_against_cpus(const SyncCase& one_case, const NcclDouble& library,
                        const std::string& text) {
  SyncCase on_cpus = one_case;
  on_cpus.devices.clear();
  const NcclRun wanted = run_over_nccl(on_cpus, library, FaultKind::None, false);
  const NcclRun run = run_over_nccl(one_case, library, FaultKind::None, false);
  for (std::uint64_t step = 0; step < one_case.num_steps; ++step) {
    check_updates(wanted, step, wanted.updates[step][0], text + ", on CPUs");
    check_updates(run, step, wanted.updates[step][0], text);
  }
}

TEST(NcclDevicePlans, GiveWhatTheOracleGives) {
  const auto combinations = covering_combinations(all_combinations());
  const std::size_t stride = is_long_run() ? 1 : is_sample_run() ? 11 : 7;
  for (std::size_t i = 0; i < combinations.size(); i += stride) {
    const ComputingDouble nccl({.schedule_seed = i});
    SyncCase one_case = case_of(combinations[i]);
    const std::uint32_t each = 1 + static_cast<std::uint32_t>(i / stride % 3 / 2);
    place(one_case, combinations[i].program, nccl.library(), each);
    check_run(one_case, nccl.library(),
              combinations[i].text() + (each == 1 ? "" : ", every other on a device"));
    if (HasFatalFailure()) return;
  }
  RecordProperty("combinations", static_cast<int>(combinations.size()));
}

// Payloads that NCCL adds up, of a tensor of several pieces and small ones that share a message: on
// devices and beside ranks on CPUs, and with one rank's gradient not finite.
TEST(NcclDevicePlans, AddPayloadsUpOnTheDevices) {
  for (const std::string program : {"fp16", "bf16", "randomk(ratio: 0.2)"}) {
    for (const std::uint32_t each : {1U, 2U}) {
      const ComputingDouble nccl({.schedule_seed = each});
      SyncCase one_case = case_of({program, "allreduce", 3, 2501, 4096, rt::LengthPolicy::Padded});
      place(one_case, program, nccl.library(), each);
      one_case.num_steps = 3;
      one_case.change_gradients = [](std::uint32_t rank, std::uint64_t step, Tensors& gradients) {
        if (step > 0 && rank < step) gradients[0][7] = std::numeric_limits<float>::infinity();
      };
      const std::string text = program + ", every " + std::to_string(each);
      check_run(one_case, nccl.library(), text);
      check_against_cpus(one_case, nccl.library(), text);
      if (HasFatalFailure()) return;
      EXPECT_EQ(nccl.num_lost_writes(), 0U) << text;
    }
  }
}

// What CPUs encode travels from the host's memory, beside what stays on the devices.
TEST(NcclDevicePlans, GiveThatWhereCpusEncodeSomeTensors) {
  for (const std::string program : {"ef_sign", "threshold(tau: 0.5)", "fp16"}) {
    for (const std::uint32_t each : {1U, 2U}) {
      const ComputingDouble nccl({.schedule_seed = each});
      rt::PlanRequest request;
      request.world = 3;
      request.tensors = {{"a", 700, 1, 0}, {"b", 40, 1, 0}, {"c", 1501, 1, 0}};
      const std::string plan = program == "fp16" ? "allreduce" : "two_shot";
      request.routes = {{.plan = plan, .piece_bytes = 2048},
                        {.plan = plan, .piece_bytes = 2048, .device = rt::OptionDevice::Cpu}};
      request.route_of = {0, 1, 1};
      SyncCase one_case = make_sync_case(compiled_library(program), request);
      place(one_case, program, nccl.library(), each);
      check_run(one_case, nccl.library(), program + ", every " + std::to_string(each));
      if (HasFatalFailure()) return;
      EXPECT_EQ(nccl.num_lost_writes(), 0U) << program;
    }
  }
}

// In parts or as one task: with matrices, with collectives of integers and of counted arrays, and
// with one rank's gradient not finite.
TEST(NcclDevicePlans, RunProtocols) {
  for (const std::string program : {"powersgd(rank: 2)", "terngrad_shared", "thc(block: 64)",
                                    "gtopk(ratio: 0.1)", "oktopk(ratio: 0.1)"}) {
    for (const std::uint32_t each : {1U, 2U}) {
      const ComputingDouble nccl({.schedule_seed = each});
      rt::PlanRequest request;
      request.plan = "two_shot";
      request.world = 3;
      request.tensors = {{"a", 12, 20, 0}, {"bias", 20, 1, rt::kDense}, {"b", 8, 40, 0}};
      SyncCase one_case = make_sync_case(compiled_library(program), request);
      place(one_case, program, nccl.library(), each);
      one_case.num_steps = 3;
      one_case.change_gradients = [](std::uint32_t rank, std::uint64_t step, Tensors& gradients) {
        if (rank == step && step > 0) gradients[2][100] = std::numeric_limits<float>::infinity();
      };
      const std::string text = program + ", every " + std::to_string(each);
      check_run(one_case, nccl.library(), text);
      check_against_cpus(one_case, nccl.library(), text);
      if (HasFatalFailure()) return;
    }
  }
}

// Bytes between host and devices in a step.
std::uint64_t copied_in_a_step(SyncCase one_case, const std::string& program, bool is_exact) {
  const ComputingDouble nccl;
  place(one_case, program, nccl.library());
  const auto copied_in = [&](std::uint64_t num_steps) {
    one_case.num_steps = num_steps;
    const std::uint64_t before = nccl.num_copied_bytes();
    const NcclRun run = run_over_nccl(one_case, nccl.library(), FaultKind::None, is_exact);
    EXPECT_THAT(run.errors, ::testing::Each("")) << program;
    return nccl.num_copied_bytes() - before;
  };
  const std::uint64_t once = copied_in(1);
  return copied_in(2) - once;
}

// Each rank's gradient goes to its device, and the update comes back; otherwise only tables move.
TEST(NcclDevicePlans, MessagesStayOnTheDevices) {
  constexpr std::uint64_t kTensors = std::uint64_t{16} * (20001 + 7 + 40 + 6), kTables = 140000;
  using enum rt::LengthPolicy;
  for (const auto& [program, plan, lengths] : {std::tuple{"", "two_shot", Padded},
                                               {"fp16", "ring", Padded},
                                               {"topk(ratio: 0.5)", "allgather", Padded},
                                               {"topk(ratio: 0.5)", "two_shot", Exchanged}}) {
    const std::uint64_t copied =
        copied_in_a_step(case_of({program, plan, 2, 20001, 16384, lengths}), program, true);
    EXPECT_GE(copied, kTensors);
    EXPECT_LE(copied, kTensors + kTables) << program << ", " << plan;
  }
}

// Also exchanges in which NCCL adds: payloads, or data of a `sync` body.
TEST(NcclDevicePlans, SumsStayOnTheDevices) {
  rt::PlanRequest request;
  request.world = 2;
  request.tensors = {{"a", 300, 200, 0}, {"b", 100, 100, 0}};
  constexpr std::uint64_t kTensors = std::uint64_t{16} * 70000, kTables = 140000;
  for (const auto& [program, plan] : {std::pair{"fp16", "allreduce"},
                                      {"bf16", "allreduce"},
                                      {"count_sketch", "allreduce"},
                                      {"terngrad_shared", "allgather"},
                                      {"powersgd(rank: 16)", "allgather"}}) {
    request.plan = plan;
    const SyncCase one_case = make_sync_case(compiled_library(program), request);
    const std::uint64_t copied = copied_in_a_step(one_case, program, false);
    EXPECT_GE(copied, kTensors);
    EXPECT_LE(copied, kTensors + kTables) << program << ", " << plan;
  }
}

// No rank waits for a decoder: its errors reach all ranks at the end of the step.
TEST(NcclDevicePlans, ACorruptPayloadIsNamedAtTheStepsEnd) {
  const ComputingDouble nccl;
  SyncCase one_case =
      case_of({"topk(ratio: 0.1)", "allgather", 2, 1501, 4096, rt::LengthPolicy::Padded});
  place(one_case, "topk(ratio: 0.1)", nccl.library());
  const NcclRun run = run_over_nccl(one_case, nccl.library(), FaultKind::GarbageInPayloads);
  EXPECT_NE(run.errors[1].find("payload on the device"), std::string::npos) << run.errors[1];
  EXPECT_NE(run.errors[1].find("decode_add of large"), std::string::npos) << run.errors[1];
  EXPECT_NE(run.errors[0].find("rank 1 gave up"), std::string::npos) << run.errors[0];
}

TEST(NcclDevicePlans, MemoryIsFreeAfterAFault) {
  for (const char* plan : {"two_shot", "ring"}) {
    const ComputingDouble nccl;
    SyncCase one_case = case_of({"onebit", plan, 3, 1501, 4096, rt::LengthPolicy::Padded});
    place(one_case, "onebit", nccl.library());
    for (const int fault : {kDoubleFails, kDoubleFailsLater, kDoubleHangs}) {
      for (const std::uint64_t call : {3, 7}) {
        one_case.timeout = std::chrono::milliseconds(1500);
        nccl.library().plant(1, fault, call);
        for (const std::string& error : run_over_nccl(one_case, nccl.library()).errors) {
          EXPECT_NE(error, "") << plan << ", " << fault << " at " << call;
        }
      }
    }
    one_case.timeout = std::chrono::milliseconds(30000);
    check_run(one_case, nccl.library(), plan);
    EXPECT_EQ(nccl.num_lost_writes(), 0U) << plan;
  }
}

}  // namespace
}  // namespace cinch::testing
