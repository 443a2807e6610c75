// Many steps: memory use is constant after the first ones, and steps allocate nothing.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <new>
#include <optional>

#include "tests/collective/support/sync_ranks.h"
#include "tests/collective/support/thread_worlds.h"
#include "tests/environment.h"

namespace {

std::atomic<std::uint64_t> num_allocations{0};
std::atomic<std::int64_t> live_bytes{0};

void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  ++num_allocations;
  live_bytes += static_cast<std::int64_t>(malloc_usable_size(memory));
  return memory;
}

void uncounted(void* memory) {
  if (memory != nullptr) live_bytes -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(std::malloc(size > 0 ? size : 1));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  void* memory = nullptr;
  const auto least = std::max(static_cast<std::size_t>(alignment), sizeof(void*));
  const int failed = posix_memalign(&memory, least, size);
  return counted(failed == 0 ? memory : nullptr);
}
void operator delete(void* memory) noexcept {
  uncounted(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  uncounted(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  uncounted(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  uncounted(memory);
}

namespace cinch::testing {
namespace {

struct Setting {
  std::string program;
  std::string_view plan;
  std::uint32_t world = 3;
  std::int64_t elements = 200000;
};

SyncCase make_case(const Setting& of) {
  rt::PlanRequest request;
  request.plan = of.plan;
  request.world = of.world;
  request.piece_bytes = 1 << 19;
  request.lengths = rt::LengthPolicy::Exchanged;
  request.tensors = {{"fc1", of.elements, 1, 0},
                     {"fc2", of.elements, 1, rt::kDense},
                     {"bias", 11, 1, rt::kDense},
                     {"fc3", 300, 1, 0}};
  return make_sync_case(compiled_library(of.program), request);
}

// Transports whose steps allocate nothing: loopback and, if available, UCX.
std::vector<ThreadWorld> quiet_worlds() {
  std::vector<ThreadWorld> found;
  for (const ThreadWorld& each : thread_worlds()) {
    const std::string_view name = each.name;
    if (name == "loopback" || name.starts_with("ucx")) found.push_back(each);
  }
  return found;
}

// The step at once, or in parts: tensors become ready in an order that turns from step to step and
// is another one on every rank.
rt::Status take_step(rt::SyncSession& session, const std::vector<rt::ConstTensorView>& gradients,
                     const std::vector<rt::TensorView>& updates, std::uint64_t step,
                     std::optional<std::uint32_t> in_parts_as) {
  if (!in_parts_as) return session.step(gradients, updates, step);
  if (rt::Status status = session.begin_step(step); !status) return status;
  const std::size_t count = gradients.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto tensor = static_cast<std::uint32_t>((i + step + *in_parts_as) % count);
    const rt::Status status = session.set_ready(tensor, gradients[tensor], updates[tensor]);
    if (!status) return status;
  }
  const auto outcome = session.finish_step();
  if (!outcome) return tl::unexpected<rt::Error>(outcome.error());
  return {};
}

enum class Steps { AtOnce, InParts };

// Calls `before_step` between the steps, while no rank does anything.
void run(const ThreadWorld& over, const SyncCase& one_case, std::uint64_t num_steps,
         const std::function<void(std::uint64_t)>& before_step, Steps steps = Steps::AtOnce) {
  const std::uint32_t world = one_case.plan->world();
  std::barrier all(world);
  const auto body = [&](rt::Transport& transport, const Leave&) {
    const std::uint32_t rank = transport.rank();
    auto session = rt::SyncSession::open(
        {.plan = one_case.plan, .programs = one_case.programs, .threads = 1, .seed = 17},
        transport);
    ASSERT_TRUE(session) << session.error().message;
    const Tensors gradients = make_gradients(*one_case.plan, rank, 0);
    Tensors updates = gradients;
    const std::vector<rt::ConstTensorView> from(gradients.begin(), gradients.end());
    const std::vector<rt::TensorView> to(updates.begin(), updates.end());
    bool is_sound = true;
    for (std::uint64_t step = 0; step <= num_steps; ++step) {
      all.arrive_and_wait();
      if (rank == 0) before_step(step);
      all.arrive_and_wait();
      if (step == num_steps || !is_sound) continue;
      const auto as = steps == Steps::InParts ? std::optional(rank) : std::nullopt;
      const rt::Status status = take_step(**session, from, to, step, as);
      EXPECT_TRUE(status) << status.error().message;
      is_sound = status.has_value();
    }
  };
  over.run(world, body, Sums::RankOrder);
}

class EachPlan : public ::testing::TestWithParam<std::string_view> {};

// The most steps in a row in which no rank allocates anything.
std::uint64_t quiet_steps(const ThreadWorld& over, const SyncCase& one_case,
                          std::uint64_t num_steps) {
  std::uint64_t longest = 0, in_a_row = 0, before = 0;
  run(over, one_case, num_steps, [&](std::uint64_t step) {
    const std::uint64_t now = num_allocations;
    if (step > 0) in_a_row = now == before ? in_a_row + 1 : 0;
    longest = std::max(longest, in_a_row);
    before = now;
  });
  return longest;
}

// Loopback keeps memory for the exchanges that are under way at once. Their number varies, so a
// later step may still be the first with so many, or with a longer one in a short one's place.
// Memory that steps themselves needed they would allocate in each.
TEST_P(EachPlan, AllocatesNothingAfterTheFirstSteps) {
  const ThreadWorld& loopback = thread_worlds().front();
  for (const char* const program : {"ef_sign", "topk(ratio: 0.1)", "fp16", "qsgd",
                                    "ef21(topk(ratio: 0.1))", "terngrad_shared"}) {
    // Its finish has a state, and takes no partial sums.
    const bool is_partial = GetParam() == "ring" || GetParam() == "tree";
    if (is_partial && std::string_view(program).starts_with("ef21")) continue;
    const SyncCase one_case = make_case({program, GetParam()});
    if (quiet_steps(loopback, one_case, 60) >= 5) continue;
    // The fewer cores a rank has for itself, the later the first step with the most exchanges
    // comes.
    EXPECT_GE(quiet_steps(loopback, one_case, 1000), 5U) << program;
  }
}

TEST(Soak, NoTransportAllocatesAfterTheFirstSteps) {
  for (const ThreadWorld& over : quiet_worlds()) {
    for (const std::string_view plan : {"two_shot", "ring"}) {
      const SyncCase one_case = make_case({"topk(ratio: 0.1)", plan});
      if (quiet_steps(over, one_case, 60) >= 5) continue;
      EXPECT_GE(quiet_steps(over, one_case, 1000), 5U) << over.name << ", " << plan;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Soak, EachPlan,
                         ::testing::Values("allreduce", "allgather", "two_shot", "ring", "ps",
                                           "tree", "hierarchical"),
                         [](const auto& each) { return std::string(each.param); });

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// CINCH_LONG=1: ten thousand steps.
void check_flat_memory(const ThreadWorld& over, std::string_view plan, Steps steps) {
  const std::uint64_t num_steps = is_long_run() ? 10000 : 500;
  const SyncCase one_case =
      make_case({.program = "topk(ratio: 0.1)", .plan = plan, .elements = 5000});
  std::int64_t live = 0, resident = 0;
  const auto look = [&](std::uint64_t step) {
    if (step == 100) {
      live = live_bytes;
      resident = resident_bytes();
    }
    if (step < num_steps) return;
    EXPECT_LE(live_bytes - live, 1 << 14) << over.name << ", " << plan;
    EXPECT_LE(resident_bytes() - resident, 1 << 22) << over.name << ", " << plan;
  };
  run(over, one_case, num_steps, look, steps);
}

TEST(Soak, MemoryStaysFlat) {
  for (const ThreadWorld& over : quiet_worlds()) {
    check_flat_memory(over, "two_shot", Steps::InParts);
    check_flat_memory(over, "ring", Steps::InParts);
    check_flat_memory(over, "ring", Steps::AtOnce);
  }
}

}  // namespace
}  // namespace cinch::testing
