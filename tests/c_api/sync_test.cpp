// Ranks of the C API: threads that average gradients, callback transports, states that are
// restored, errors that all ranks get.
#include <cinch_sync.h>
#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <span>
#include <thread>

#include "../two_threads.h"
#include "support.h"

namespace cinch::testing {
namespace {

using ::testing::HasSubstr;

struct ReleaseSync {
  void operator()(cinch_sync* sync) const { cinch_sync_release(sync); }
  void operator()(cinch_transport* transport) const { cinch_transport_release(transport); }
  void operator()(cinch_loopback* loopback) const { cinch_loopback_release(loopback); }
};
using Sync = std::unique_ptr<cinch_sync, ReleaseSync>;
using Transport = std::unique_ptr<cinch_transport, ReleaseSync>;
using Loopback = std::unique_ptr<cinch_loopback, ReleaseSync>;

constexpr std::size_t kLarge = 5003, kSmall = 17;

cinch_sync_tensor described(const char* name, std::size_t elements, std::int32_t program,
                            std::int32_t priority = 0) {
  auto tensor = sized<cinch_sync_tensor>();
  tensor.name = name;
  tensor.rows = static_cast<std::int64_t>(elements);
  tensor.columns = 1;
  tensor.program = program;
  tensor.priority = priority;
  return tensor;
}

struct RankResult {
  std::array<std::vector<float>, 2> updates;
  std::string error, states;
};

struct RankRun {
  const char* plan = "two_shot";
  std::uint32_t world = 3;
  std::uint64_t first_step = 0, num_steps = 2;
  std::vector<std::string> saved = {};
};

std::string states_of(cinch_sync* sync) {
  std::size_t size = 0;
  EXPECT_EQ(CINCH_OK, cinch_sync_states_save(sync, nullptr, &size, nullptr));
  std::string bytes(size, '\0');
  EXPECT_EQ(CINCH_OK, cinch_sync_states_save(sync, bytes.data(), &size, nullptr));
  return bytes;
}

void restore(cinch_sync* sync, const std::vector<std::string>& saved) {
  std::vector<const void*> data;
  std::vector<std::size_t> sizes;
  for (const std::string& bytes : saved) {
    data.push_back(bytes.data());
    sizes.push_back(bytes.size());
  }
  auto restored = sized<cinch_sync_restored>();
  auto error = sized<cinch_error>();
  ASSERT_EQ(CINCH_OK, cinch_sync_states_load(sync, data.data(), sizes.data(), saved.size(),
                                             &restored, &error))
      << error.message;
  EXPECT_GT(restored.num_kept, 0u);
  EXPECT_EQ(restored.num_reset, 0u) << restored.notes;
  EXPECT_STREQ(restored.notes, "");
}

struct Opened {
  Sync sync;  // null if opening failed
  std::string error;
};

// Of tensors that nothing compresses, with the defaults of all options.
Sync open_exact(cinch_transport* transport, std::span<const cinch_sync_tensor> tensors) {
  cinch_sync* opened = nullptr;
  EXPECT_EQ(CINCH_OK, cinch_sync_open(transport, nullptr, 0, tensors.data(), tensors.size(),
                                      nullptr, &opened, nullptr));
  return Sync(opened);
}

Opened open_pair(const Program& program, const cinch_sync_options& options,
                 cinch_transport* transport) {
  const std::array tensors = {described("large", kLarge, 0),
                              described("small", kSmall, CINCH_EXACT, 1)};
  const cinch_program* const programs[] = {program.get()};
  auto error = sized<cinch_error>();
  cinch_sync* opened = nullptr;
  const cinch_status status =
      cinch_sync_open(transport, programs, 1, tensors.data(), 2, &options, &opened, &error);
  EXPECT_EQ(status == CINCH_OK, opened != nullptr);
  return {Sync(opened), error.message};
}

void take_steps(const Program& program, const RankRun& run, cinch_transport* transport,
                RankResult& result) {
  auto options = sized<cinch_sync_options>();
  options.plan = run.plan;
  options.threads = 1;
  options.seed = 5;
  const auto [sync, failure] = open_pair(program, options, transport);
  result.error = failure;
  if (sync == nullptr) return;
  auto error = sized<cinch_error>();
  if (!run.saved.empty()) restore(sync.get(), run.saved);
  for (std::uint64_t step = run.first_step; step < run.first_step + run.num_steps; ++step) {
    const auto scale = static_cast<float>(1 + cinch_transport_rank(transport) + 10 * step);
    Tensor large(kLarge, scale), small(kSmall, -scale), large_out(kLarge, 0), small_out(kSmall, 0);
    const std::array gradients = {large.view(), small.view()};
    const std::array updates = {large_out.view(), small_out.view()};
    ASSERT_EQ(CINCH_OK,
              cinch_sync_step(sync.get(), step, gradients.data(), updates.data(), 2, &error))
        << error.message;
    result.updates = {large_out.values(), small_out.values()};
  }
  EXPECT_THAT(cinch_sync_plan(sync.get()), HasSubstr(run.plan));
  EXPECT_EQ(0, cinch_sync_is_stopping(sync.get()));
  result.states = states_of(sync.get());
}

Loopback open_loopback(std::uint32_t world) {
  cinch_loopback* loopback = nullptr;
  EXPECT_EQ(CINCH_OK, cinch_loopback_open(world, &loopback, nullptr));
  return Loopback(loopback);
}

Transport transport_of(const Loopback& loopback, std::uint32_t rank) {
  cinch_transport* transport = nullptr;
  EXPECT_EQ(CINCH_OK, cinch_transport_of_loopback(loopback.get(), rank, &transport, nullptr));
  return Transport(transport);
}

void on_ranks(std::uint32_t world,
              const std::function<void(std::uint32_t, cinch_transport*)>& body) {
  const Loopback loopback = open_loopback(world);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] { body(rank, transport_of(loopback, rank).get()); });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<RankResult> run_ranks(const Program& program, const RankRun& run) {
  std::vector<RankResult> results(run.world);
  on_ranks(run.world, [&](std::uint32_t rank, cinch_transport* transport) {
    take_steps(program, run, transport, results[rank]);
  });
  return results;
}

TEST(CApiSync, AllRanksHoldTheMean) {
  const Program program = compile("fp16");
  for (const char* const plan :
       {"allreduce", "allgather", "two_shot", "ring", "ps", "tree", "hierarchical"}) {
    const auto results = run_ranks(program, {.plan = plan});
    for (const RankResult& result : results) {
      EXPECT_EQ(result.error, "");
      EXPECT_EQ(result.updates, results[0].updates) << plan;
    }
    // The gradients of the last step are scaled by 11, 12 and 13.
    Tensor mean(kSmall, -12);
    ASSERT_EQ(results[0].updates[1].size(), kSmall);
    for (std::size_t i = 0; i < kSmall; ++i) {
      EXPECT_NEAR(results[0].updates[1][i], mean.values()[i], 1e-4f) << plan;
    }
  }
}

void open_auto(const Program& program, const cinch_tensor* samples, cinch_transport* transport,
               std::string& choice, std::string& plan) {
  auto options = sized<cinch_sync_options>();
  options.plan = "auto";
  options.threads = 1;
  options.samples = samples;
  const auto [sync, error] = open_pair(program, options, transport);
  choice = sync != nullptr ? cinch_sync_choice(sync.get()) : error;
  plan = cinch_sync_plan(sync.get());
}

TEST(CApiSync, TheFastestPlanIsChosen) {
  const Program program = compile("onebit");
  Tensor large(kLarge, 3), small(kSmall, 1);
  const std::array samples = {large.view(), small.view()};
  for (const cinch_tensor* const given :
       {static_cast<const cinch_tensor*>(nullptr), samples.data()}) {
    std::array<std::string, 2> choices, plans;
    on_ranks(2, [&](std::uint32_t rank, cinch_transport* transport) {
      open_auto(program, given, transport, choices[rank], plans[rank]);
    });
    EXPECT_THAT(choices[0], HasSubstr(" ms"));
    EXPECT_EQ(choices[1], "");
    EXPECT_EQ(plans[0].substr(0, plans[0].find(',')), plans[1].substr(0, plans[1].find(',')));
  }
  const std::array wrong = {small.view(), small.view()};
  std::array<std::string, 2> errors, plans;
  on_ranks(2, [&](std::uint32_t rank, cinch_transport* transport) {
    open_auto(program, wrong.data(), transport, errors[rank], plans[rank]);
  });
  EXPECT_THAT(errors[0], HasSubstr("a sample of another size than its tensor"));
}

TEST(CApiSync, StatesGoOn) {
  const Program program = compile("ef_sign");
  const auto whole = run_ranks(program, {.num_steps = 4});
  const auto first = run_ranks(program, {.num_steps = 2});
  RankRun rest{.first_step = 2, .num_steps = 2};
  for (const RankResult& result : first) rest.saved.push_back(result.states);
  const auto second = run_ranks(program, rest);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(second[rank].updates, whole[rank].updates);
    EXPECT_EQ(second[rank].states, whole[rank].states);
  }
}

TEST(CApiSync, RanksThatDifferAreToldOfEachOther) {
  const Program one = compile("fp16"), other = compile("bf16");
  std::vector<RankResult> results(2);
  on_ranks(2, [&](std::uint32_t rank, cinch_transport* transport) {
    take_steps(rank == 0 ? one : other, {.world = 2}, transport, results[rank]);
  });
  for (const RankResult& result : results)
    EXPECT_THAT(result.error, HasSubstr("rank 1 has program"));
}

TEST(CApiSync, AutoOnOneRankAloneIsAnErrorOnAll) {
  const Program program = compile("fp16");
  std::vector<RankResult> results(2);
  on_ranks(2, [&](std::uint32_t rank, cinch_transport* transport) {
    take_steps(program, {.plan = rank == 0 ? "two_shot" : "auto", .world = 2}, transport,
               results[rank]);
  });
  for (const RankResult& result : results)
    EXPECT_THAT(result.error, HasSubstr("rank 1 has plan auto"));
}

TEST(CApiSync, ARankThatCannotOpenEndsTheOthers) {
  const Program program = compile("fp16");
  std::vector<RankResult> results(2);
  on_ranks(2, [&](std::uint32_t rank, cinch_transport* transport) {
    take_steps(program, {.plan = rank == 0 ? "two_shot" : "nonsense"}, transport, results[rank]);
  });
  EXPECT_THAT(results[1].error, HasSubstr("there is no plan nonsense; there are allreduce"));
  EXPECT_THAT(results[0].error, HasSubstr("rank 1 gave up"));
}

// ---- lent collectives ----

// A host of one rank, whose collectives return their inputs.
struct Host {
  int num_exchanges = 0, num_abandoned = 0;
  std::int32_t fails_with = 0;

  static std::int32_t start(void* context, const cinch_exchange* exchange, std::uint64_t* ticket) {
    auto& host = *static_cast<Host*>(context);
    if (host.fails_with != 0) return host.fails_with;
    const std::uint64_t at =
        exchange->kind == CINCH_EXCHANGE_ALL_GATHER ? exchange->received_offsets[0] : 0;
    auto* const output = static_cast<char*>(exchange->output) + at;
    if (exchange->input_bytes > 0 && exchange->kind != CINCH_EXCHANGE_ALL_TO_ALL) {
      std::memmove(output, exchange->input, exchange->input_bytes);
    }
    *ticket = static_cast<std::uint64_t>(host.num_exchanges++);
    return 0;
  }
  static std::int32_t test(void*, std::uint64_t, std::int32_t* is_over) {
    *is_over = 1;
    return 0;
  }
  static void abandon(void* context, const char*) { ++static_cast<Host*>(context)->num_abandoned; }
  static void error_text(void*, std::int32_t error, char* text, std::size_t room) {
    std::snprintf(text, room, "the host's error %d", error);
  }

  cinch_transport_calls calls() {
    auto calls = sized<cinch_transport_calls>();
    calls.context = this;
    calls.world = 1;
    calls.sums_in_rank_order = 1;
    calls.start = start;
    calls.test = test;
    calls.abandon = abandon;
    calls.error_text = error_text;
    return calls;
  }
};

TEST(CApiSync, CollectivesAreLent) {
  const Program program = compile("fp16");
  Host host;
  const cinch_transport_calls calls = host.calls();
  cinch_transport* opened = nullptr;
  ASSERT_EQ(CINCH_OK, cinch_transport_of_calls(&calls, &opened, nullptr));
  const Transport transport(opened);
  EXPECT_EQ(1u, cinch_transport_world(transport.get()));
  RankResult result;
  take_steps(program, {.plan = "allgather"}, transport.get(), result);
  EXPECT_EQ(result.error, "");
  EXPECT_GT(host.num_exchanges, 4);
  ASSERT_EQ(result.updates[1].size(), kSmall);
  EXPECT_NEAR(result.updates[1][3], Tensor(kSmall, -11).values()[3], 1e-4f);

  host.fails_with = 77;
  RankResult failed;
  take_steps(program, {.plan = "allgather"}, transport.get(), failed);
  EXPECT_THAT(failed.error, HasSubstr("the host's error 77"));
  EXPECT_GT(host.num_abandoned, 0);
}

// ---- arguments ----

cinch_status open_with(cinch_transport* transport, const std::vector<cinch_sync_tensor>& tensors,
                       const cinch_sync_options* options, cinch_error* error) {
  cinch_sync* sync = nullptr;
  const cinch_status status =
      cinch_sync_open(transport, nullptr, 0, tensors.data(), tensors.size(), options, &sync, error);
  cinch_sync_release(sync);
  return status;
}

std::string refusal_of(const std::vector<cinch_sync_tensor>& tensors,
                       const cinch_sync_options* options = nullptr) {
  const Loopback loopback = open_loopback(1);
  const Transport transport = transport_of(loopback, 0);
  auto error = sized<cinch_error>();
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, open_with(transport.get(), tensors, options, &error));
  return error.message;
}

TEST(CApiSync, WrongArgumentsAreRefused) {
  EXPECT_THAT(refusal_of({described(nullptr, 5, CINCH_EXACT)}), HasSubstr("has no name"));
  EXPECT_THAT(refusal_of({described("a", 5, 0)}), HasSubstr("a: there is no program 0"));
  EXPECT_THAT(refusal_of({described("a", 5, CINCH_EXACT), described("a", 6, CINCH_EXACT)}),
              HasSubstr("two tensors are named a"));
  auto huge = described("a", 1, CINCH_EXACT);
  huge.rows = std::int64_t{1} << 40;
  huge.columns = std::int64_t{1} << 40;
  EXPECT_THAT(refusal_of({huge}), HasSubstr("2^32 elements or more"));
  auto options = sized<cinch_sync_options>();
  options.lengths = static_cast<cinch_lengths>(9);
  EXPECT_THAT(refusal_of({}, &options), HasSubstr("lengths"));
  const auto none = cinch_sync_options{};
  EXPECT_THAT(refusal_of({}, &none), HasSubstr("struct_size"));
}

// Fails before it looks for MPI.
TEST(CApiSync, WrongOptionsOfMpiAreRefused) {
  auto options = sized<cinch_mpi_options>();
  options.cuda_aware = static_cast<cinch_cuda_aware>(3);
  cinch_transport* transport = nullptr;
  auto error = sized<cinch_error>();
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_transport_of_mpi(&options, &transport, &error));
  EXPECT_THAT(error.message, HasSubstr("cuda_aware"));
  EXPECT_EQ(nullptr, transport);
}

TEST(CApiSync, NullIsRefusedOrNothing) {
  auto error = sized<cinch_error>();
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, open_with(nullptr, {}, nullptr, &error));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_sync_step(nullptr, 0, nullptr, nullptr, 0, &error));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_sync_set(nullptr, 0, "x", 1, &error));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_sync_states_save(nullptr, nullptr, nullptr, &error));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_loopback_open(0, nullptr, &error));
  cinch_loopback* loopback = nullptr;
  for (const std::uint32_t world : {0U, UINT32_MAX}) {
    EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_loopback_open(world, &loopback, &error));
    EXPECT_THAT(error.message, HasSubstr("1 to 1024"));
  }
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_transport_of_calls(nullptr, nullptr, &error));
  cinch_sync_release(nullptr);
  cinch_transport_release(nullptr);
  cinch_loopback_release(nullptr);
  cinch_sync_stop(nullptr);
  EXPECT_EQ(0u, cinch_transport_world(nullptr));
  EXPECT_STREQ("", cinch_sync_plan(nullptr));
}

TEST(CApiSync, WrongArgumentsOfOneRankEndTheStepOfAll) {
  std::array<std::string, 2> errors;
  on_ranks(2, [&](std::uint32_t rank, cinch_transport* transport) {
    const auto tensor = described("a", kSmall, CINCH_EXACT);
    const Sync sync = open_exact(transport, {&tensor, 1});
    Tensor gradient(kSmall), update(kSmall);
    const auto from = gradient.view(), to = update.view();
    auto error = sized<cinch_error>();
    EXPECT_NE(CINCH_OK,
              cinch_sync_step(sync.get(), 0, rank == 1 ? nullptr : &from, &to, 1, &error));
    errors[rank] = error.message;
    EXPECT_NE(CINCH_OK, cinch_sync_step(sync.get(), 0, &from, &to, 1, &error));
  });
  EXPECT_EQ(errors[1], "gradients or updates is null");
  EXPECT_THAT(errors[0], HasSubstr("rank 1 gave up: gradients or updates is null"));
}

TEST(CApiSync, OneCallAtATime) {
  const Program program = compile("ef_sign");
  const Loopback loopback = open_loopback(1);
  const Transport transport = transport_of(loopback, 0);
  auto options = sized<cinch_sync_options>();
  options.threads = 1;
  const auto [sync, failure] = open_pair(program, options, transport.get());
  ASSERT_NE(sync, nullptr) << failure;
  call_from_two_threads(30, [&](int thread, int turn) {
    auto error = sized<cinch_error>();
    Tensor large(kLarge), small(kSmall), large_out(kLarge, 0), small_out(kSmall, 0);
    const std::array gradients = {large.view(), small.view()};
    const std::array updates = {large_out.view(), small_out.view()};
    std::size_t size = 0;
    (void)cinch_transport_sent_bytes(transport.get());
    const cinch_status status = (turn + thread) % 2 == 0
                                    ? cinch_sync_step(sync.get(), static_cast<std::uint64_t>(turn),
                                                      gradients.data(), updates.data(), 2, &error)
                                    : cinch_sync_states_save(sync.get(), nullptr, &size, &error);
    if (status == CINCH_OK) return true;
    EXPECT_EQ(status, CINCH_INVALID_ARGUMENT);
    EXPECT_THAT(error.message, HasSubstr("in use by another thread"));
    return false;
  });
}

// Priorities move tensors in the plan; the caller's numbers stay.
TEST(CApiSync, AStepInParts) {
  on_ranks(2, [&](std::uint32_t rank, cinch_transport* transport) {
    const std::array tensors = {described("a", kSmall, CINCH_EXACT, 0),
                                described("b", kLarge, CINCH_EXACT, 1)};
    const Sync sync = open_exact(transport, tensors);
    auto error = sized<cinch_error>();
    auto options = sized<cinch_step_options>();
    options.scale = 4;
    options.is_sum = 1;
    options.skips_non_finite = 1;
    options.measures_errors = 1;
    for (std::uint64_t step = 0; step < 3; ++step) {
      // As a caller of the previous version has it.
      if (step == 2) options.struct_size = offsetof(cinch_step_options, measures_errors);
      Tensor small(kSmall, static_cast<float>(rank + 1)),
          large(kLarge, static_cast<float>(rank + 1));
      const std::vector<float> first = small.values();
      const std::array views = {small.view(), large.view()};
      ASSERT_EQ(CINCH_OK, cinch_sync_begin(sync.get(), step, &options, &error)) << error.message;
      EXPECT_EQ(0, cinch_sync_is_done(sync.get(), 0));
      EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_sync_wait(sync.get(), 0, &error));
      EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_sync_begin(sync.get(), step, nullptr, &error));
      for (const std::size_t tensor : {(rank + step) % 2, (rank + step + 1) % 2}) {
        ASSERT_EQ(CINCH_OK,
                  cinch_sync_ready(sync.get(), tensor, &views[tensor], &views[tensor], 1, &error))
            << error.message;
      }
      EXPECT_EQ(CINCH_OK, cinch_sync_wait(sync.get(), 1, &error)) << error.message;
      auto outcome = sized<cinch_step_outcome>();
      ASSERT_EQ(CINCH_OK, cinch_sync_finish(sync.get(), &outcome, &error)) << error.message;
      EXPECT_EQ(outcome.is_skipped, 0);
      EXPECT_EQ(1, cinch_sync_is_done(sync.get(), 0));
      // The other rank's gradients differ by a known factor.
      const float share =
          static_cast<float>(3 - static_cast<int>(rank) - 1) / static_cast<float>(rank + 1);
      EXPECT_FLOAT_EQ(small.values()[3], first[3] * (1 + share));
      std::size_t length = 4096;
      std::string report(length, ' ');
      ASSERT_EQ(CINCH_OK, cinch_sync_report(sync.get(), report.data(), &length, &error));
      EXPECT_EQ(report.find("\"error\":") != std::string::npos, step < 2) << report;
    }
    EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_sync_finish(sync.get(), nullptr, &error));
    EXPECT_THAT(error.message, HasSubstr("no step is under way"));
  });
}

TEST(CApiSync, FaultsOfAStepInPartsAreNamedOnAllRanks) {
  on_ranks(2, [&](std::uint32_t rank, cinch_transport* transport) {
    const auto tensor = described("weights", kSmall, CINCH_EXACT);
    const Sync sync = open_exact(transport, {&tensor, 1});
    const Sync second = open_exact(transport, {&tensor, 1});
    Tensor gradient(kSmall);
    const auto view = gradient.view();
    auto error = sized<cinch_error>();
    ASSERT_EQ(CINCH_OK, cinch_sync_begin(sync.get(), 0, nullptr, &error));
    EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_sync_begin(second.get(), 0, nullptr, &error));
    EXPECT_THAT(error.message, HasSubstr("another step is under way over this transport"));
    std::size_t size = 0, count = 0;
    EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_sync_states_save(sync.get(), nullptr, &size, &error));
    EXPECT_THAT(error.message, HasSubstr("a step is under way"));
    EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_sync_states_count(sync.get(), &count, &error));
    const std::size_t number = rank == 1 ? 7 : 0;
    const cinch_status status = cinch_sync_ready(sync.get(), number, &view, &view, 1, &error);
    EXPECT_EQ(status == CINCH_OK, rank == 0) << error.message;
    EXPECT_NE(CINCH_OK, cinch_sync_finish(sync.get(), nullptr, &error));
    EXPECT_THAT(error.message, HasSubstr("tensor 7"));
    EXPECT_NE(CINCH_OK, cinch_sync_begin(sync.get(), 1, nullptr, &error));
  });
}

TEST(CApiSync, StatesOneByOne) {
  const Program program = compile("ef_sign");
  on_ranks(2, [&](std::uint32_t rank, cinch_transport* transport) {
    auto options = sized<cinch_sync_options>();
    options.threads = 1;
    const auto [sync, failure] = open_pair(program, options, transport);
    ASSERT_NE(sync, nullptr) << failure;
    auto error = sized<cinch_error>();
    const std::string first = states_of(sync.get());
    Tensor large(kLarge, static_cast<float>(1 + rank)), small(kSmall);
    const std::array views = {large.view(), small.view()};
    ASSERT_EQ(CINCH_OK, cinch_sync_step(sync.get(), 0, views.data(), views.data(), 2, &error));
    std::size_t length = 0;
    ASSERT_EQ(CINCH_OK, cinch_sync_report(sync.get(), nullptr, &length, &error)) << error.message;
    std::string report(length, ' ');
    ASSERT_EQ(CINCH_OK, cinch_sync_report(sync.get(), report.data(), &length, &error));
    EXPECT_THAT(report, HasSubstr("\"phase\":\"all_to_all\""));
    EXPECT_THAT(report, HasSubstr("\"memory_bytes\""));
    EXPECT_EQ(CINCH_OK, cinch_sync_trace(sync.get(), nullptr, &length, &error));
    std::size_t count = 0;
    ASSERT_EQ(CINCH_OK, cinch_sync_states_count(sync.get(), &count, &error)) << error.message;
    ASSERT_GT(count, 0U);
    auto state = sized<cinch_sync_state>();
    std::size_t size = 0;
    ASSERT_EQ(CINCH_OK, cinch_sync_states_get(sync.get(), 0, &state, nullptr, &size, &error));
    EXPECT_STREQ(state.dtype, "f32");
    EXPECT_EQ(state.size, size);
    EXPECT_EQ(state.site, CINCH_SITE_WORKER);
    std::vector<std::uint8_t> bytes(size);
    ASSERT_EQ(CINCH_OK, cinch_sync_states_get(sync.get(), 0, &state, bytes.data(), &size, &error));
    EXPECT_THAT(bytes, ::testing::Contains(::testing::Ne(0)));
    ASSERT_EQ(CINCH_OK, cinch_sync_states_set(sync.get(), 0, bytes.data(), size, &error));
    EXPECT_EQ(CINCH_INVALID_ARGUMENT,
              cinch_sync_states_set(sync.get(), 0, bytes.data(), size - 1, &error));
    EXPECT_EQ(CINCH_OUT_OF_RANGE,
              cinch_sync_states_get(sync.get(), count, &state, nullptr, &size, &error));
    ASSERT_EQ(CINCH_OK, cinch_sync_states_reset(sync.get(), 0, &error)) << error.message;
    ASSERT_EQ(CINCH_OK, cinch_sync_states_get(sync.get(), 0, &state, bytes.data(), &size, &error));
    EXPECT_THAT(bytes, ::testing::Each(0));
    ASSERT_EQ(CINCH_OK, cinch_sync_states_load_own(sync.get(), first.data(), first.size(), &error))
        << "after a step: " << error.message;
    EXPECT_EQ(states_of(sync.get()), first);
    EXPECT_EQ(CINCH_OUT_OF_RANGE, cinch_sync_states_reset(sync.get(), 2, &error));
  });
}

TEST(CApiSync, OneRankStopsAll) {
  on_ranks(2, [&](std::uint32_t rank, cinch_transport* transport) {
    const auto tensor = described("a", kSmall, CINCH_EXACT);
    const Sync sync = open_exact(transport, {&tensor, 1});
    Tensor gradient(kSmall), update(kSmall);
    const auto from = gradient.view(), to = update.view();
    ASSERT_EQ(CINCH_OK, cinch_sync_step(sync.get(), 0, &from, &to, 1, nullptr));
    EXPECT_EQ(0, cinch_sync_is_stopping(sync.get()));
    if (rank == 1) cinch_sync_stop(sync.get());
    ASSERT_EQ(CINCH_OK, cinch_sync_step(sync.get(), 1, &from, &to, 1, nullptr));
    EXPECT_EQ(1, cinch_sync_is_stopping(sync.get()));
  });
}

}  // namespace
}  // namespace cinch::testing
