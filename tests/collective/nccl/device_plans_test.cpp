// Ranks that compute on GPUs and exchange from their memory, over the double of NCCL: the bits are
// those of the sequential oracle, messages stay on the devices, and after calls that fail or hang
// memory can be given back.
#include <gtest/gtest.h>

#include "tests/collective/emulated_ranks.h"
#include "tests/collective/faulty_transport.h"
#include "tests/collective/nccl/computing_double.h"
#include "tests/collective/plan_cases.h"
#include "tests/collective/sync_oracle.h"
#include "tests/environment.h"

namespace cinch::testing {
namespace {

const std::string kPrograms[] = {
    "",     "onebit",          "ef_sign", "topk(ratio: 0.1)", "threshold(tau: 0.5)",
    "qsgd", "terngrad_shared", "fp16",    "count_sketch"};

std::vector<Combination> all_combinations() {
  std::vector<Combination> all;
  for (const std::string& program : kPrograms) {
    for (const std::string_view plan : rt::plan_names()) {
      for (const std::uint32_t world : {1, 2, 3, 5}) {
        if (plan == "hierarchical" && world == 1) continue;
        for (const std::int64_t size : {0, 1, 333, 1501}) {
          for (const rt::LengthPolicy lengths :
               {rt::LengthPolicy::Padded, rt::LengthPolicy::Exchanged}) {
            all.push_back({program, std::string(plan), world, size, 4096, lengths});
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

// Rank 1 meets the fault in its first exchange of a step.
NcclRun run_over_nccl(const SyncCase& one_case, const NcclDouble& library,
                      FaultKind fault = FaultKind::None) {
  const std::uint32_t world = one_case.plan->world();
  NcclRun run{std::vector(one_case.num_steps, std::vector<Tensors>(world)),
              std::vector<std::string>(world)};
  rt::NcclOptions options;
  options.is_exact = true;
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
      const auto gradients = make_gradients(*one_case.plan, rank, step);
      const rt::Status status = step_on(**session, gradients, run.updates[step][rank], step);
      if (status) continue;
      run.errors[rank] = status.error().message;
      return;
    }
  };
  run_nccl_ranks(library, world, body, options);
  return run;
}

void check_run(const SyncCase& one_case, const NcclDouble& library, const std::string& text) {
  const NcclRun run = run_over_nccl(one_case, library);
  SyncOracle oracle(*one_case.plan, one_case.programs, one_case.seed);
  for (std::uint64_t step = 0; step < one_case.num_steps; ++step) {
    std::vector<Tensors> gradients;
    for (std::uint32_t rank = 0; rank < one_case.plan->world(); ++rank) {
      gradients.push_back(make_gradients(*one_case.plan, rank, step));
    }
    const Tensors wanted = oracle.step(gradients, step);
    for (std::uint32_t rank = 0; rank < one_case.plan->world(); ++rank) {
      ASSERT_EQ(run.errors[rank], "") << text << ", rank " << rank;
      ASSERT_TRUE(are_same(run.updates[step][rank], wanted))
          << text << ", step " << step << ", rank " << rank;
    }
  }
}

TEST(NcclDevicePlans, GiveWhatTheOracleGives) {
  const auto combinations = covering_combinations(all_combinations());
  const std::size_t stride = is_long_run() ? 1 : is_sample_run() ? 9 : 3;
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

// What goes between host and devices in a step, of `elements` in all tensors.
std::uint64_t copied_in_a_step(const std::string& program, std::string_view plan,
                               rt::LengthPolicy lengths) {
  constexpr std::uint32_t kWorld = 2;
  const ComputingDouble nccl;
  SyncCase one_case = case_of({program, std::string(plan), kWorld, 20001, 16384, lengths});
  place(one_case, program, nccl.library());
  one_case.num_steps = 1;
  const std::uint64_t first = nccl.num_copied_bytes();
  check_run(one_case, nccl.library(), program);
  const std::uint64_t once = nccl.num_copied_bytes() - first;
  one_case.num_steps = 2;
  check_run(one_case, nccl.library(), program);
  return nccl.num_copied_bytes() - first - 2 * once;
}

// Each rank's gradient goes to its device, the update comes back; else there are tables only.
TEST(NcclDevicePlans, MessagesStayOnTheDevices) {
  constexpr std::uint64_t kTensors = std::uint64_t{16} * (20001 + 7 + 40 + 6), kTables = 140000;
  using enum rt::LengthPolicy;
  for (const auto& [program, plan, lengths] : {std::tuple{"", "two_shot", Padded},
                                               {"fp16", "ring", Padded},
                                               {"topk(ratio: 0.5)", "allgather", Padded},
                                               {"topk(ratio: 0.5)", "two_shot", Exchanged}}) {
    const std::uint64_t copied = copied_in_a_step(program, plan, lengths);
    EXPECT_GE(copied, kTensors);
    EXPECT_LE(copied, kTensors + kTables) << program << ", " << plan;
  }
}

// Nobody waits for a decoder: what it finds is told when the step ends, and to all.
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
        one_case.timeout = std::chrono::milliseconds(3000);
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
