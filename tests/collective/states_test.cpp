// States that are saved, and restored by sessions with the same plan, another plan, or another
// number of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "runtime/call/state_file.h"
#include "tests/collective/support/faulty_transport.h"
#include "tests/collective/support/sync_ranks.h"

namespace cinch::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Saved = std::vector<Bytes>;  // by rank

struct Setting {
  std::string program = "ef_sign";
  std::string_view plan = "two_shot";
  std::uint32_t world = 3;
  std::uint64_t piece_bytes = 8192;
  std::int64_t elements = 50000;
};

SyncCase make_case(const Setting& of) {
  rt::PlanRequest request;
  request.plan = of.plan;
  request.world = of.world;
  request.piece_bytes = of.piece_bytes;
  request.tensors = {{"fc1", of.elements, 1, 0}, {"fc2", 11, 1, 0}};
  return make_sync_case(compiled_library(of.program), request);
}

struct Outcome {
  std::vector<Tensors> updates;  // by rank, of the last step
  Saved saved;
  std::vector<rt::RestoreReport> reports;
  std::vector<std::string> errors;  // of restoring
};

// Restores `from` if there is anything, takes the steps and saves.
Outcome run(const SyncCase& one_case, std::uint64_t first_step, std::uint64_t num_steps,
            const Saved& from = {}) {
  const std::uint32_t world = one_case.plan->world();
  Outcome outcome;
  outcome.updates.resize(world);
  outcome.saved.resize(world);
  outcome.reports.resize(world);
  outcome.errors.resize(world);
  rt::LoopbackWorld loopback(world);
  run_ranks(loopback, world, [&](const RankBody& own) {
    auto session = rt::SyncSession::open(
        {.plan = one_case.plan, .programs = one_case.programs, .threads = 1, .seed = 17},
        own.transport);
    ASSERT_TRUE(session) << session.error().message;
    if (!from.empty()) {
      const auto report = (*session)->restore_states(from);
      if (report) outcome.reports[own.rank] = *report;
      if (!report) outcome.errors[own.rank] = report.error().message;
    }
    for (std::uint64_t step = first_step; step < first_step + num_steps; ++step) {
      const Tensors gradients = make_gradients(*one_case.plan, own.rank, step);
      const rt::Status status = step_on(**session, gradients, outcome.updates[own.rank], step);
      ASSERT_TRUE(status) << status.error().message;
    }
    auto bytes = (*session)->save_states();
    ASSERT_TRUE(bytes) << bytes.error().message;
    outcome.saved[own.rank] = std::move(*bytes);
  });
  return outcome;
}

// The bytes of a tensor's states at a site, in the order of its elements: independent of pieces
// and, for owners, of ranks.
Bytes tensor_states(const Saved& saved, const std::string& tensor, rt::Site site,
                    std::uint32_t rank) {
  std::map<std::int64_t, Bytes> by_first;
  for (const Bytes& bytes : saved) {
    const auto checkpoint = rt::read_checkpoint(bytes);
    EXPECT_TRUE(checkpoint) << checkpoint.error().message;
    if (!checkpoint) return {};
    if (site == rt::Site::Worker && checkpoint->rank != rank) continue;
    for (const rt::SavedSite& of : checkpoint->sites) {
      if (of.tensor != tensor || of.site != site) continue;
      const auto parsed = rt::parse_states(of.states);
      EXPECT_TRUE(parsed);
      if (!parsed) return {};
      EXPECT_EQ(parsed->states.size(), 1u);
      by_first[of.first].assign(parsed->states[0].bytes.begin(), parsed->states[0].bytes.end());
    }
  }
  Bytes all;
  for (const auto& [first, bytes] : by_first) all.insert(all.end(), bytes.begin(), bytes.end());
  return all;
}

class StatesOfPlan : public ::testing::TestWithParam<std::string_view> {};

// Bit for bit as if the run had never ended.
TEST_P(StatesOfPlan, GoesOnAsIfNothingHadHappened) {
  const SyncCase one_case = make_case({.plan = GetParam()});
  const Outcome whole = run(one_case, 0, 4);
  const Outcome first = run(one_case, 0, 2);
  const Outcome second = run(one_case, 2, 2, first.saved);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(second.errors[rank], "");
    EXPECT_EQ(second.reports[rank].next_step, 2u);
    EXPECT_EQ(second.reports[rank].num_joined, 0u);
    EXPECT_EQ(second.reports[rank].num_reset, 0u);
    EXPECT_GT(second.reports[rank].num_kept, 0u);
    EXPECT_TRUE(are_same(second.updates[rank], whole.updates[rank]));
    EXPECT_EQ(second.saved[rank], whole.saved[rank]);
  }
  // States matter here.
  EXPECT_FALSE(are_same(run(one_case, 2, 2).updates[0], whole.updates[0]));
}

INSTANTIATE_TEST_SUITE_P(States, StatesOfPlan,
                         ::testing::Values("allgather", "two_shot", "ring", "ps", "tree",
                                           "hierarchical"),
                         [](const auto& each) { return std::string(each.param); });

TEST(States, AreCutAnewForOtherPiecesAndPlans) {
  const Outcome before = run(make_case({}), 0, 2);
  for (const Setting& setting : {Setting{.piece_bytes = 20000}, Setting{.plan = "ring"},
                                 Setting{.plan = "allgather", .piece_bytes = 1 << 20}}) {
    const Outcome after = run(make_case(setting), 2, 0, before.saved);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(after.errors[rank], "");
      for (const char* const tensor : {"fc1", "fc2"}) {
        const Bytes states = tensor_states(before.saved, tensor, rt::Site::Worker, rank);
        EXPECT_FALSE(states.empty());
        EXPECT_EQ(tensor_states(after.saved, tensor, rt::Site::Worker, rank), states)
            << setting.plan << " " << tensor;
      }
    }
  }
}

TEST(States, OfOwnersGoWithTheElements) {
  const Outcome before = run(make_case({}), 0, 2);
  for (const std::uint32_t world : {1U, 2U, 5U}) {
    const Outcome after = run(make_case({.world = world}), 2, 0, before.saved);
    for (const char* const tensor : {"fc1", "fc2"}) {
      const Bytes states = tensor_states(before.saved, tensor, rt::Site::Owner, 0);
      EXPECT_FALSE(states.empty());
      EXPECT_EQ(tensor_states(after.saved, tensor, rt::Site::Owner, 0), states) << world;
    }
  }
}

bool has_note(const rt::RestoreReport& report, const std::string& text) {
  return std::ranges::any_of(
      report.notes, [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

TEST(States, WhatCannotGoOnIsTold) {
  const Outcome before = run(make_case({}), 0, 2);
  // One rank too many, one rank too few.
  const Outcome more = run(make_case({.world = 4}), 2, 1, before.saved);
  EXPECT_TRUE(has_note(more.reports[3], "@worker begins anew: nothing was saved"));
  EXPECT_EQ(more.reports[2].num_reset, 0u);
  const Outcome fewer = run(make_case({.world = 2}), 2, 1, before.saved);
  EXPECT_TRUE(has_note(fewer.reports[0], "rank 2: its states are left out"));
  // Partial sums under another plan.
  const Outcome ring = run(make_case({.plan = "ring"}), 2, 1, before.saved);
  EXPECT_TRUE(has_note(ring.reports[0], "@hop begins anew: partial sums of two_shot on 3 ranks"));
  // Another program, another shape.
  const Outcome other = run(make_case({.program = "error_feedback(onebit)"}), 2, 1, before.saved);
  EXPECT_TRUE(has_note(other.reports[0], "begins anew: saved by another program"));
  const Outcome longer = run(make_case({.elements = 50001}), 2, 1, before.saved);
  EXPECT_TRUE(has_note(longer.reports[0], "@worker begins anew: the tensor had another shape"));
  EXPECT_FALSE(has_note(longer.reports[0], "fc2"));
  // A tensor that no longer exists, and one whose program keeps no states.
  Setting setting;
  SyncCase renamed = make_case(setting);
  rt::Plan plan = *renamed.plan;
  plan.tensors[0].name = "fc0";
  renamed.plan = std::make_shared<rt::Plan>(std::move(plan));
  const Outcome gone = run(renamed, 2, 1, before.saved);
  EXPECT_TRUE(has_note(gone.reports[1], "fc1@worker is left over: there is no such tensor"));
  EXPECT_TRUE(has_note(gone.reports[1], "fc0@worker begins anew: nothing was saved"));
  EXPECT_FALSE(has_note(gone.reports[1], "fc2"));
  const Outcome stateless = run(make_case({.program = "onebit"}), 2, 1, before.saved);
  EXPECT_TRUE(
      has_note(stateless.reports[2], "fc2@worker is left over: the tensor keeps no states"));
}

// The states of `finish` are with whoever finishes a piece, and those of a `sync` with the ranks
// that took part.
TEST(States, ThatFollowSumsGoOnOnlyTogether) {
  const auto updates_of = [](const Outcome& outcome) { return outcome.updates[0]; };
  const SyncCase cut = make_case({.program = "ef21(topk)"});
  const Outcome before = run(cut, 0, 2);
  EXPECT_EQ(updates_of(run(cut, 2, 1, before.saved)), updates_of(run(cut, 0, 3)));
  const SyncCase other = make_case({.program = "ef21(topk)", .piece_bytes = 20000});
  const Outcome anew = run(other, 2, 1, before.saved);
  EXPECT_TRUE(has_note(anew.reports[0], "fc1@worker begins anew: ranks had divided its finish"));
  EXPECT_EQ(updates_of(anew)[0], updates_of(run(other, 2, 1))[0]);  // fc2 is one piece in both
  // Where every rank finishes everything, other pieces are joined.
  const Outcome everywhere = run(make_case({.program = "ef21(topk)", .plan = "allgather"}), 0, 2);
  const Outcome joined =
      run(make_case({.program = "ef21(topk)", .plan = "allgather", .piece_bytes = 20000}), 2, 1,
          everywhere.saved);
  EXPECT_EQ(joined.reports[0].num_reset, 0u);
  for (const char* const program : {"ef21(topk)", "powersgd(rank: 1)"}) {
    const Outcome three = run(make_case({.program = program, .plan = "allgather"}), 0, 2);
    for (const std::uint32_t world : {2U, 5U}) {
      const SyncCase others = make_case({.program = program, .plan = "allgather", .world = world});
      const Outcome after = run(others, 2, 1, three.saved);
      EXPECT_TRUE(has_note(after.reports[0], "its states go with those of all 3 ranks")) << program;
      EXPECT_EQ(updates_of(after), updates_of(run(others, 2, 1))) << program;
    }
  }
}

TEST(States, SavedAgainBeforeAStepAreOfTheSameStep) {
  const SyncCase one_case = make_case({.world = 2, .elements = 3000});
  const Outcome before = run(one_case, 0, 2);
  EXPECT_EQ(run(one_case, 2, 0, before.saved).saved, before.saved);
}

// Tensors of such programs are never cut, so that other pieces and plans change nothing.
TEST(States, ThatAreNoSlicesStayWhole) {
  for (const char* const program : {"error_feedback(sidco)", "powersgd(rank: 1)"}) {
    const SyncCase one_case = make_case({.program = program, .plan = "allgather"});
    const Outcome before = run(one_case, 0, 2);
    const SyncCase other = make_case({.program = program, .piece_bytes = 20000});
    const Outcome after = run(other, 2, 0, before.saved);
    EXPECT_EQ(after.reports[0].num_kept, 2u) << program;
    EXPECT_EQ(after.reports[0].num_joined, 0u) << program;
  }
}

TEST(States, DamagedBytesChangeNothing) {
  const SyncCase one_case = make_case({.world = 2, .elements = 3000});
  const Outcome before = run(one_case, 0, 2);
  const Bytes& sound = before.saved[1];
  const Saved fresh = run(one_case, 0, 0).saved;
  for (std::size_t at = 0; at < sound.size(); at += sound.size() / 23 + 1) {
    Saved damaged = before.saved;
    damaged[1][at] ^= 0x10;
    const Outcome flipped = run(one_case, 0, 0, damaged);
    damaged[1] = Bytes(sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(at));
    const Outcome cut = run(one_case, 0, 0, damaged);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      EXPECT_NE(flipped.errors[rank], "") << at;
      EXPECT_NE(cut.errors[rank], "") << at;
      EXPECT_EQ(flipped.saved[rank], fresh[rank]);
      EXPECT_EQ(cut.saved[rank], fresh[rank]);
    }
  }
}

// A description with a valid checksum and impossible values.
TEST(States, DescriptionsAreNotTrusted) {
  const auto checkpoint = *rt::read_checkpoint(run(make_case({.world = 1}), 0, 1).saved[0]);
  EXPECT_EQ(*rt::read_checkpoint(rt::write_checkpoint(checkpoint)), checkpoint);
  rt::RankCheckpoint wrong = checkpoint;
  wrong.rank = 1;
  EXPECT_FALSE(rt::read_checkpoint(rt::write_checkpoint(wrong)));
  wrong = checkpoint;
  wrong.sites[0].first = -5;
  EXPECT_FALSE(rt::read_checkpoint(rt::write_checkpoint(wrong)));
  wrong = checkpoint;
  wrong.sites[0].first = INT64_MAX;
  EXPECT_FALSE(rt::read_checkpoint(rt::write_checkpoint(wrong)));
  // More elements than the states have.
  wrong = checkpoint;
  wrong.sites[0].first = 1;
  const Outcome outcome = run(make_case({.world = 1}), 1, 0, {rt::write_checkpoint(wrong)});
  EXPECT_GT(outcome.reports[0].num_reset, 0u);
}

TEST(States, RanksMustBringTheSame) {
  const SyncCase one_case = make_case({.world = 2, .elements = 3000});
  const Outcome before = run(one_case, 0, 2), later = run(one_case, 0, 3);
  const Outcome mixed = run(one_case, 2, 0, {before.saved[0], later.saved[1]});
  const Outcome twice = run(one_case, 2, 0, {before.saved[0], before.saved[0]});
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_NE(mixed.errors[rank].find("before step"), std::string::npos) << mixed.errors[rank];
    EXPECT_EQ(twice.errors[rank], "saved twice by rank 0");
  }
  std::vector<std::string> errors(2);
  rt::LoopbackWorld loopback(2);
  run_ranks(loopback, 2, [&](const RankBody& own) {
    auto session = rt::SyncSession::open(
        {.plan = one_case.plan, .programs = one_case.programs, .threads = 1}, own.transport);
    ASSERT_TRUE(session);
    const auto report = (*session)->restore_states(own.rank == 0 ? before.saved : later.saved);
    ASSERT_FALSE(report);
    errors[own.rank] = report.error().message;
  });
  EXPECT_NE(errors[0].find("saved states"), std::string::npos) << errors[0];
  EXPECT_EQ(errors[0].empty(), errors[1].empty());
}

// ---- a step that succeeded on some ranks only ----

struct LastExchange {
  FaultKind fault = FaultKind::Deaf;  // of rank 2
  bool has_unused = false, is_skipped = false;
};

// Takes three steps. In the exchange that ends the last one, rank 2 has a fault; the others learn
// of it in the next step.
std::vector<std::string> run_with_fault(const SyncCase& one_case, const LastExchange& last,
                                        Saved& saved) {
  constexpr std::uint64_t kLast = 2;
  std::vector<std::string> errors(3);
  rt::LoopbackWorld world(3);
  run_ranks(world, 3, [&](const RankBody& own) {
    FaultyTransport transport(own.transport);
    auto session = rt::SyncSession::open(sync_options(one_case, own.rank), transport);
    ASSERT_TRUE(session) << session.error().message;
    std::vector<std::string> failures(kLast + 2);
    for (std::uint64_t step = 0; step <= kLast + (last.fault == FaultKind::None ? 0 : 1); ++step) {
      // A ring sends messages only, up to the end of the step.
      if (own.rank == 2 && step == kLast) transport.arm(last.fault, 0, rt::ExchangeKind::AllGather);
      Tensors gradients = gradients_of(one_case, own.rank, step), updates = gradients;
      if (last.is_skipped && step == kLast && own.rank == 0) {
        gradients[0][7] = std::numeric_limits<float>::infinity();
      }
      if (!(*session)->begin_step(step, {.skips_non_finite = last.is_skipped})) break;
      for (std::uint32_t t = 0; t < gradients.size(); ++t) {
        const bool is_used = !last.has_unused || t != 0 || step != kLast;
        if (!is_used) std::ranges::fill(gradients[t], 0.0F);
        ASSERT_TRUE((*session)->set_ready(t, gradients[t], updates[t], is_used));
      }
      const auto outcome = (*session)->finish_step();
      if (!outcome) failures[step] = outcome.error().message;
    }
    errors[own.rank] = failures[kLast];
    saved[own.rank] = *(*session)->save_states();
  });
  return errors;
}

// A residual that no rank encodes again is lost, and must not count as taken: that of an inner rank
// of a tree, which adds its gradient as it is, and those of owners where no sum is encoded.
TEST(States, ThatNoRankTakesAreTold) {
  struct Change {
    const char *from, *to;
    bool is_lost;
  };
  for (const Change& change :
       {Change{"allgather", "two_shot", false}, Change{"allgather", "allgather", false},
        Change{"tree", "tree", false}, Change{"ring", "ring", false},
        Change{"allgather", "tree", true}, Change{"allgather", "ring", true},
        Change{"ring", "allgather", true}, Change{"two_shot", "allgather", true}}) {
    const std::string program = "error_feedback(topk(ratio: 0.1))";
    const auto of = [&](const char* plan) { return make_case({.program = program, .plan = plan}); };
    const Outcome before = run(of(change.from), 0, 2);
    const Outcome after = run(of(change.to), 2, 0, before.saved);
    std::size_t num_left = 0;
    std::string notes;
    for (const rt::RestoreReport& report : after.reports) {
      num_left += report.num_left;
      for (const std::string& note : report.notes) notes += note + "\n";
    }
    EXPECT_EQ(num_left > 0, change.is_lost) << change.from << " to " << change.to << ": " << notes;
    EXPECT_EQ(notes.find("left over") != std::string::npos, change.is_lost) << notes;
  }
}

TEST(States, OfAStepThatARankDidNotLearnTheEndOfGoTogether) {
  const SyncCase one_case = make_case({.plan = "ring"});
  for (const LastExchange& last :
       {LastExchange{}, LastExchange{.has_unused = true}, LastExchange{.is_skipped = true}}) {
    Saved wanted(3), saved(3);
    LastExchange sound = last;
    sound.fault = FaultKind::None;
    for (const std::string& error : run_with_fault(one_case, sound, wanted)) EXPECT_EQ(error, "");
    const auto errors = run_with_fault(one_case, last, saved);
    EXPECT_EQ(errors[0] + errors[1], "");
    EXPECT_NE(errors[2].find("end of step 2"), std::string::npos) << errors[2];
    EXPECT_EQ(rt::read_checkpoint(saved[2])->next_step, 2U);
    const Outcome restored = run(one_case, 3, 0, saved);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(restored.errors[rank], "");
      EXPECT_EQ(restored.reports[rank].next_step, 3U);
      EXPECT_EQ(restored.reports[rank].num_reset, 0U);
      ASSERT_EQ(restored.reports[rank].notes.size(), 1U);
      EXPECT_EQ(restored.reports[rank].notes[0],
                "rank 2 did not learn how step 2 ended: its states are those after it, since rank "
                "0 completed it");
      EXPECT_EQ(restored.saved[rank], wanted[rank]);
    }
  }
}

// Nobody has completed the step, so all go back.
TEST(States, OfAStepThatNobodyCompletedAreThoseBefore) {
  const SyncCase one_case = make_case({.plan = "ring"});
  Saved saved(3);
  for (const std::string& error : run_with_fault(one_case, {.fault = FaultKind::Dies}, saved)) {
    EXPECT_NE(error, "");
  }
  const Outcome before = run(one_case, 0, 2), restored = run(one_case, 2, 0, saved);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(restored.errors[rank], "");
    EXPECT_EQ(restored.reports[rank].next_step, 2U);
    EXPECT_EQ(restored.saved[rank], before.saved[rank]);
  }
}

// ---- by a rank alone ----

SyncCase plain_case() {
  rt::PlanRequest request;
  request.plan = "two_shot";
  request.world = 2;
  request.tensors = {{"fc1", 5000, 1, 0}, {"bias", 11, 1, rt::kDense}, {"fc2", 300, 1, 0}};
  return make_sync_case(compiled_library("ef_sign"), request);
}

// Every rank with a session.
void with_sessions(const SyncCase& one_case,
                   const std::function<void(rt::SyncSession&, std::uint32_t rank)>& body) {
  rt::LoopbackWorld world(one_case.plan->world());
  run_ranks(world, one_case.plan->world(), [&](const RankBody& own) {
    auto session = rt::SyncSession::open(sync_options(one_case, own.rank), own.transport);
    ASSERT_TRUE(session) << session.error().message;
    body(**session, own.rank);
  });
}

TEST(OwnStates, GoOnByARankAlone) {
  const SyncCase one_case = plain_case();
  std::vector<std::vector<std::uint8_t>> saved(2);
  std::vector<Tensors> wanted(2), found(2);
  with_sessions(one_case, [&](rt::SyncSession& session, std::uint32_t rank) {
    Tensors updates;
    ASSERT_TRUE(step_on(session, gradients_of(one_case, rank, 0), updates, 0));
    saved[rank] = *session.save_states();
    ASSERT_TRUE(step_on(session, gradients_of(one_case, rank, 1), wanted[rank], 1));
  });
  with_sessions(one_case, [&](rt::SyncSession& session, std::uint32_t rank) {
    const auto other = session.restore_own_states(saved[1 - rank]);
    ASSERT_FALSE(other) << "of another rank";
    EXPECT_NE(other.error().message.find("needs the states of all ranks"), std::string::npos);
    const auto report = session.restore_own_states(saved[rank]);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->next_step, 1U);
    ASSERT_TRUE(step_on(session, gradients_of(one_case, rank, 1), found[rank], 1));
  });
  EXPECT_TRUE(are_same(found[0], wanted[0]) && are_same(found[1], wanted[1]));
}

// A session goes back to an earlier step, by the states of all ranks or by its own.
TEST(States, AreRestoredBetweenSteps) {
  const SyncCase one_case = plain_case();
  std::vector<std::vector<std::uint8_t>> saved(2);
  with_sessions(one_case, [&](rt::SyncSession& session, std::uint32_t rank) {
    Tensors updates, wanted, found;
    ASSERT_TRUE(step_on(session, gradients_of(one_case, rank, 0), updates, 0));
    saved[rank] = *session.save_states();
    ASSERT_TRUE(step_on(session, gradients_of(one_case, rank, 1), wanted, 1));
    const auto later = session.save_states();
    ASSERT_TRUE(session.restore_own_states(saved[rank]));
    EXPECT_EQ(*session.save_states(), saved[rank]);
    ASSERT_TRUE(step_on(session, gradients_of(one_case, rank, 1), found, 1));
    EXPECT_TRUE(are_same(found, wanted));
    EXPECT_EQ(*session.save_states(), *later);
    // Both ranks have saved before they took step 1 together.
    const auto report = session.restore_states(saved);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->next_step, 1U);
    ASSERT_TRUE(step_on(session, gradients_of(one_case, rank, 1), found, 1));
    EXPECT_TRUE(are_same(found, wanted));
  });
}

TEST(OwnStates, OfDifferentStepsAreNamed) {
  const SyncCase one_case = plain_case();
  with_sessions(one_case, [&](rt::SyncSession& session, std::uint32_t rank) {
    Tensors updates;
    ASSERT_TRUE(step_on(session, gradients_of(one_case, rank, 0), updates, 0));
    const auto saved = *session.save_states();
    ASSERT_TRUE(step_on(session, gradients_of(one_case, rank, 1), updates, 1));
    if (rank == 1) ASSERT_TRUE(session.restore_own_states(saved));
    const rt::Status status = step_on(session, gradients_of(one_case, rank, 2), updates, 2);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, rt::ErrorKind::InvalidArgument);
    EXPECT_EQ(status.error().message,
              "states of different steps were loaded: rank 1 has those before step 1, rank 0 has "
              "those before step 2");
  });
}

TEST(OwnStates, WhatWasNotSavedBeginsAnewBetweenStepsToo) {
  const SyncCase one_case = plain_case();
  with_sessions(one_case, [&](rt::SyncSession& session, std::uint32_t rank) {
    Tensors wanted, found;
    const auto fresh = session.save_states();
    ASSERT_TRUE(step_on(session, gradients_of(one_case, rank, 0), wanted, 0));
    auto without = *rt::read_checkpoint(*fresh);
    for (auto& site : without.sites) {
      auto states = *rt::parse_states(site.states);
      ++states.key.fingerprint[0];  // of another program
      site.states = rt::write_states(states.key, states.states);
    }
    const auto report = session.restore_own_states(rt::write_checkpoint(without));
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_GT(report->num_reset, 0U);
    ASSERT_TRUE(step_on(session, gradients_of(one_case, rank, 0), found, 0));
    EXPECT_TRUE(are_same(found, wanted));
  });
}

TEST(OwnStates, ATensorThatIsNotThereIsNamed) {
  const SyncCase one_case = plain_case();
  with_sessions(one_case, [&](rt::SyncSession& session, std::uint32_t) {
    auto renamed = *rt::read_checkpoint(*session.save_states());
    for (auto& site : renamed.sites) site.tensor = "_orig_mod." + site.tensor;
    const auto report = session.restore_own_states(rt::write_checkpoint(renamed));
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().message,
              "states of the tensor _orig_mod.fc1 were saved, and no tensor has this name");
  });
}

TEST(OwnStates, OneTensorBeginsAnew) {
  const SyncCase one_case = plain_case();
  with_sessions(one_case, [&](rt::SyncSession& session, std::uint32_t rank) {
    const States first = states_of(session);
    Tensors updates;
    ASSERT_TRUE(step_on(session, gradients_of(one_case, rank, 0), updates, 0));
    const States before = states_of(session);
    ASSERT_TRUE(session.reset_states(2));
    EXPECT_FALSE(session.reset_states(3));
    for (const auto& [key, bytes] : states_of(session)) {
      const bool is_reset = one_case.plan->pieces[key.first].tensor == 2;
      EXPECT_EQ(bytes, is_reset ? first.at(key) : before.at(key));
    }
    EXPECT_NE(before, states_of(session));
  });
}

TEST(OwnStates, AreArraysByTensorAndSite) {
  const SyncCase one_case = plain_case();
  with_sessions(one_case, [&](rt::SyncSession& session, std::uint32_t rank) {
    Tensors updates;
    ASSERT_TRUE(step_on(session, gradients_of(one_case, rank, 0), updates, 0));
    const auto arrays = session.state_arrays();
    ASSERT_TRUE(arrays);
    std::int64_t worker_elems = 0;
    for (std::size_t i = 0; i < arrays->size(); ++i) {
      const rt::StateArray& array = (*arrays)[i];
      EXPECT_NE(array.tensor, 1U) << "exact tensors have none";
      EXPECT_EQ(array.dtype, "f32");
      EXPECT_EQ(array.bytes.size(), static_cast<std::size_t>(4 * array.num_elems));
      if (array.site == rt::Site::Worker) worker_elems += array.num_elems;
      ASSERT_TRUE(session.set_state_array(i, std::vector<std::uint8_t>(array.bytes.size(), 0)));
    }
    EXPECT_EQ(worker_elems, 5300);
    const auto zeroed = session.state_arrays();
    ASSERT_TRUE(zeroed);
    for (const rt::StateArray& array : *zeroed) {
      EXPECT_TRUE(std::ranges::all_of(array.bytes, [](std::uint8_t byte) { return byte == 0; }));
    }
    EXPECT_FALSE(session.set_state_array(arrays->size(), {}));
    EXPECT_FALSE(session.set_state_array(0, std::vector<std::uint8_t>(3)));
  });
}

}  // namespace
}  // namespace cinch::testing
