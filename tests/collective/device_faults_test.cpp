// Ranks on an emulated GPU that fail or receive garbage. Their states are restored; their tensors
// lie on the device or are narrower than f32.
#include <gtest/gtest.h>

#include "runtime/planner/planner.h"
#include "runtime/session/tensor_convert.h"
#include "tests/collective/support/emulated_ranks.h"
#include "tests/collective/support/faulty_transport.h"
#include "tests/collective/support/plan_cases.h"

namespace cinch::testing {
namespace {

constexpr std::uint32_t kWorld = 2;

SyncCase device_case(EmulatedRanks& ranks, const std::string& program, const std::string& plan,
                     rt::LengthPolicy lengths = rt::LengthPolicy::Exchanged) {
  SyncCase made = case_of({program, plan, kWorld, 1501, 4096, lengths});
  made.devices.assign(
      kWorld, ranks.device(program.empty() ? std::vector<std::string>{} : std::vector{program}));
  return made;
}

// The same, with the first tensor on the ranks' CPUs.
SyncCase offloaded_case(EmulatedRanks& ranks, const std::string& program, const std::string& plan) {
  rt::PlanRequest request;
  request.world = kWorld;
  request.tensors = {{"a", 1501, 1, 0}, {"b", 700, 1, 0}};
  request.routes = {{.plan = plan, .device = rt::OptionDevice::Cpu}, {.plan = plan}};
  request.route_of = {0, 1};
  SyncCase made = make_sync_case(compiled_library(program), request);
  made.devices.assign(kWorld, ranks.device({program}));
  return made;
}

struct FaultRun {
  std::vector<std::string> errors = std::vector<std::string>(kWorld);  // of the step with the fault
  std::vector<States> before = std::vector<States>(kWorld);            // before that step
  bool has_struck = false;
};

// Step 0 is sound; in step 1 rank 1's exchange number `at` has the fault.
FaultRun run_fault(const SyncCase& one_case, FaultKind kind, std::uint64_t at) {
  FaultRun run;
  rt::LoopbackWorld world(kWorld);
  run_ranks(world, kWorld, [&](const RankBody& own) {
    FaultyTransport transport(own.transport);
    auto session = rt::SyncSession::open(sync_options(one_case, own.rank), transport);
    ASSERT_TRUE(session) << session.error().message;
    Tensors updates;
    ASSERT_TRUE(step_on(**session, make_gradients(*one_case.plan, own.rank, 0), updates, 0));
    run.before[own.rank] = states_of(**session);
    if (own.rank == 1) transport.arm(kind, at);
    const rt::Status status =
        step_on(**session, make_gradients(*one_case.plan, own.rank, 1), updates, 1);
    if (own.rank == 1) run.has_struck = transport.has_struck();
    if (status) return;
    run.errors[own.rank] = status.error().message;
    EXPECT_EQ(states_of(**session), run.before[own.rank]) << "rank " << own.rank;
  });
  return run;
}

// Not for programs that compress the common result again.
bool takes_ring(std::string_view program) {
  return !program.starts_with("two_way");
}

TEST(DeviceFaults, StatesAreTakenBackAndThoseOfCpus) {
  for (const char* program : {"ef_sign", "two_way(topk(ratio: 0.1))"}) {
    const std::pair<const char*, bool> plans[] = {
        {"two_shot", false}, {takes_ring(program) ? "ring" : "ps", false}, {"two_shot", true}};
    for (const auto& [plan, offloads] : plans) {
      EmulatedRanks ranks;
      const SyncCase one_case =
          offloads ? offloaded_case(ranks, program, plan) : device_case(ranks, program, plan);
      SyncCase on_cpus = one_case;
      on_cpus.devices.clear();
      for (const std::uint64_t at : {0, 3}) {
        const FaultRun found = run_fault(one_case, FaultKind::Fails, at);
        const FaultRun wanted = run_fault(on_cpus, FaultKind::Fails, at);
        EXPECT_TRUE(found.has_struck) << program << ", " << plan;
        EXPECT_FALSE(found.before[0].empty());
        for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
          EXPECT_NE(found.errors[rank], "") << program << ", " << plan;
          EXPECT_EQ(found.before[rank], wanted.before[rank]) << program << ", " << plan;
        }
      }
    }
  }
}

TEST(DeviceFaults, GarbageIsFoundAndNamed) {
  EmulatedRanks ranks;
  const SyncCase one_case = device_case(ranks, "topk(ratio: 0.1)", "allgather");
  // A length, then a payload.
  for (const std::uint64_t at : {0, 1}) {
    const FaultRun run = run_fault(one_case, FaultKind::Garbage, at);
    EXPECT_TRUE(run.has_struck);
    EXPECT_NE(run.errors[1].find("large"), std::string::npos) << run.errors[1];
    EXPECT_NE(run.errors[0].find("rank 1 gave up"), std::string::npos) << run.errors[0];
  }
}

// The device finds faults that the host cannot see: bytes after the header.
TEST(DeviceFaults, ACorruptPayloadIsFoundOnTheDevice) {
  EmulatedRanks ranks;
  const SyncCase one_case =
      device_case(ranks, "topk(ratio: 0.1)", "allgather", rt::LengthPolicy::Padded);
  rt::LoopbackWorld world(kWorld);
  run_ranks(world, kWorld, [&](const RankBody& own) {
    FaultyTransport transport(own.transport);
    auto session = rt::SyncSession::open(sync_options(one_case, own.rank), transport);
    ASSERT_TRUE(session) << session.error().message;
    // Every payload that this rank receives has other words after its header.
    if (own.rank == 1) transport.arm(FaultKind::GarbageInPayloads, 0);
    Tensors updates;
    const rt::Status status =
        step_on(**session, make_gradients(*one_case.plan, own.rank, 0), updates, 0);
    ASSERT_FALSE(status);
    const std::string& message = status.error().message;
    EXPECT_NE(message.find("payload on the device"), std::string::npos) << message;
    EXPECT_NE(message.find("decode_add of large"), std::string::npos) << message;
  });
}

// ---- the user's tensors ----

// A rank's tensors in `dtype`, on the host.
using HalfTensors = std::vector<std::vector<std::uint16_t>>;

HalfTensors halves_of(const Tensors& tensors, DType dtype) {
  HalfTensors halves;
  rt::TaskRunner runner(1);
  for (const auto& values : tensors) {
    auto& half = halves.emplace_back(values.size());
    const rt::TensorView view(half.data(), dtype, static_cast<std::int64_t>(half.size()));
    EXPECT_TRUE(rt::convert_from_f32(values, view, runner, nullptr));
  }
  return halves;
}

// The updates of one step, written over the gradients.
std::vector<HalfTensors> run_halves(const SyncCase& one_case, DType dtype) {
  std::vector<HalfTensors> results(kWorld);
  rt::LoopbackWorld world(kWorld);
  run_ranks(world, kWorld, [&](const RankBody& own) {
    auto session = rt::SyncSession::open(sync_options(one_case, own.rank), own.transport);
    ASSERT_TRUE(session) << session.error().message;
    HalfTensors& tensors = results[own.rank];
    tensors = halves_of(make_gradients(*one_case.plan, own.rank, 0), dtype);
    std::vector<rt::ConstTensorView> from;
    std::vector<rt::TensorView> to;
    for (auto& half : tensors) {
      from.emplace_back(half.data(), dtype, static_cast<std::int64_t>(half.size()));
      to.emplace_back(half.data(), dtype, static_cast<std::int64_t>(half.size()));
    }
    const rt::Status status = (*session)->step(from, to, 0);
    ASSERT_TRUE(status) << status.error().message;
  });
  return results;
}

TEST(DeviceTensors, MayBeNarrow) {
  for (const char* program : {"", "ef_sign", "terngrad_shared"}) {
    for (const DType dtype : {kF16, kBF16}) {
      EmulatedRanks ranks;
      const SyncCase one_case = device_case(ranks, program, "two_shot");
      SyncCase on_cpus = one_case;
      on_cpus.devices.clear();
      EXPECT_EQ(run_halves(one_case, dtype), run_halves(on_cpus, dtype)) << program;
    }
  }
}

// Memory of the device for one rank's tensors.
class DeviceTensors {
 public:
  DeviceTensors(EmulatedRanks& ranks, const Tensors& values) : ranks_(ranks) {
    const std::lock_guard lock(ranks_.turns());
    for (const auto& tensor : values) {
      const std::size_t bytes = 4 * tensor.size();
      memory_.push_back(*rt::GpuMemory::allocate(ranks_.gpu(), bytes));
      const auto* from = reinterpret_cast<const std::uint8_t*>(tensor.data());
      EXPECT_TRUE(ranks_.gpu()->write(memory_.back().address(), {from, bytes}, nullptr));
      sizes_.push_back(tensor.size());
    }
  }
  ~DeviceTensors() {
    const std::lock_guard lock(ranks_.turns());
    memory_.clear();
  }
  DeviceTensors(const DeviceTensors&) = delete;
  DeviceTensors& operator=(const DeviceTensors&) = delete;

  std::vector<rt::TensorView> views() const {
    std::vector<rt::TensorView> all;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      all.emplace_back(reinterpret_cast<void*>(memory_[i].address()), kF32,
                       static_cast<std::int64_t>(sizes_[i]));
    }
    return all;
  }
  Tensors read() const {
    const std::lock_guard lock(ranks_.turns());
    Tensors values;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      auto& tensor = values.emplace_back(sizes_[i]);
      auto* to = reinterpret_cast<std::uint8_t*>(tensor.data());
      EXPECT_TRUE(ranks_.gpu()->read({to, 4 * tensor.size()}, memory_[i].address(), nullptr));
    }
    return values;
  }

 private:
  EmulatedRanks& ranks_;
  std::vector<rt::GpuMemory> memory_;
  std::vector<std::size_t> sizes_;
};

TEST(DeviceTensors, MayLieOnTheDevice) {
  for (const char* program : {"", "ef_sign", "terngrad_shared", "two_way(topk(ratio: 0.1))"}) {
    for (const char* plan : {"allgather", "two_shot", takes_ring(program) ? "ring" : "ps"}) {
      EmulatedRanks ranks;
      SyncCase one_case = device_case(ranks, program, plan);
      SyncCase on_cpus = one_case;
      on_cpus.devices.clear();
      const auto wanted = run_steps(on_cpus);
      for (auto& device : one_case.devices) device->has_tensors = true;
      rt::LoopbackWorld world(kWorld);
      run_ranks(world, kWorld, [&](const RankBody& own) {
        auto session = rt::SyncSession::open(sync_options(one_case, own.rank), own.transport);
        ASSERT_TRUE(session) << session.error().message;
        for (std::uint64_t step = 0; step < one_case.num_steps; ++step) {
          // Updates are written over the gradients.
          const DeviceTensors tensors(ranks, make_gradients(*one_case.plan, own.rank, step));
          std::vector<rt::ConstTensorView> from;
          for (const auto& view : tensors.views()) {
            from.emplace_back(view.data, view.dtype, view.num_elems);
          }
          const rt::Status status = (*session)->step(from, tensors.views(), step);
          ASSERT_TRUE(status) << program << ", " << plan << ": " << status.error().message;
          EXPECT_TRUE(are_same(tensors.read(), wanted[step].updates[own.rank]))
              << program << ", " << plan << ", step " << step;
        }
      });
    }
  }
}

TEST(DeviceTensors, OfTheHostAreRefused) {
  EmulatedRanks ranks;
  SyncCase one_case = device_case(ranks, "ef_sign", "allgather");
  for (auto& device : one_case.devices) device->has_tensors = true;
  const auto results = run_steps(one_case);
  for (const std::string& error : results[0].errors) {
    EXPECT_NE(error.find("is not memory of a GPU"), std::string::npos) << error;
  }
}

TEST(DeviceRanks, NeedAProgramForTheDevice) {
  EmulatedRanks ranks;
  SyncCase one_case = device_case(ranks, "", "allgather");
  for (auto& device : one_case.devices) device->plain = nullptr;
  const auto results = run_steps(one_case);
  for (const std::string& error : results[0].errors) {
    EXPECT_NE(error.find("needs some program"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace cinch::testing
