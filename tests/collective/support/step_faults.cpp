// Bodies of step_faults.h.
#include "tests/collective/support/step_faults.h"

#include <gtest/gtest.h>

#include <chrono>
#include <regex>

namespace cinch::testing {
namespace {

using Clock = std::chrono::steady_clock;

// Its state changes in every step; its exchanges are the two kinds that no plan has by itself.
constexpr const char* kProtocol = R"(
compressor protocol {
  state before: [f32; n] = 0
  sync(g: [f32; n]) {
    let said = broadcast(g, root: 0)
    let part = reduce_scatter(reshape(said[0..1], 1, 1) + reshape(iota(world * 2) as f32, world, 2))
    let update = allreduce(g + sum(part) * 0.0, sum) / world
    before = update
    update
  }
}
)";

std::string_view plan_with(rt::ExchangeKind kind) {
  switch (kind) {
    case rt::ExchangeKind::AllToAll:
      return "two_shot";
    case rt::ExchangeKind::Send:
    case rt::ExchangeKind::Receive:
      return "ring";
    case rt::ExchangeKind::AllReduce:
      return "allreduce";
    default:
      return "allgather";
  }
}

std::shared_ptr<const rt::LoadedProgram> program_with(rt::ExchangeKind kind, DType summed) {
  switch (kind) {
    case rt::ExchangeKind::AllReduce:
      return compiled_library(summed == kF16 ? "error_feedback(fp16)"
                                             : "error_feedback(randomk(ratio: 0.2))");
    case rt::ExchangeKind::ReduceScatter:
    case rt::ExchangeKind::Broadcast:
      return compiled_text("protocol", kProtocol);
    default:
      return compiled_library("ef_sign");
  }
}

}  // namespace

const char* fault_kind_name(FaultKind kind) {
  switch (kind) {
    case FaultKind::Fails:
      return "fails";
    case FaultKind::FailsLater:
      return "fails_later";
    case FaultKind::Deaf:
      return "deaf";
    case FaultKind::Dies:
      return "dies";
    case FaultKind::Hangs:
      return "hangs";
    case FaultKind::Stops:
      return "stops";
    case FaultKind::Killed:
      return "is_killed";
    case FaultKind::Late:
      return "is_late";
    case FaultKind::OtherSize:
      return "other_size";
    case FaultKind::Garbage:
      return "garbage";
    case FaultKind::GarbageInPayloads:
      return "garbage_in_payloads";
    case FaultKind::None:
      break;
  }
  return "none";
}

std::string StepFault::text() const {
  return std::string(fault_kind_name(kind)) + " in " + rt::exchange_kind_name(exchange);
}

bool is_found(const StepFault& fault) {
  if (fault.kind != FaultKind::Garbage) return true;
  return fault.exchange == rt::ExchangeKind::Receive ||
         fault.exchange == rt::ExchangeKind::AllGather ||
         fault.exchange == rt::ExchangeKind::AllToAll;
}

SyncCase case_with(rt::ExchangeKind kind, std::uint32_t world, DType summed) {
  rt::PlanRequest request;
  request.plan = plan_with(kind);
  request.world = world;
  request.piece_bytes = 8192;
  request.lengths = rt::LengthPolicy::Padded;
  request.tensors = {{"fc1", 5000, 1, 0}, {"fc2", 11, 1, 0}};
  SyncCase made = make_sync_case(program_with(kind, summed), request);
  made.timeout = std::chrono::milliseconds(20000);
  return made;
}

rt::Error error_of_fault(const SyncCase& one_case, rt::Transport& transport, const StepFault& fault,
                         const std::function<void()>& leave) {
  // Destroyed before the session, whose memory the others may be reading.
  FaultyTransport faulty(transport);
  const auto session = rt::SyncSession::open(sync_options(one_case, transport.rank()), faulty);
  if (!session) {
    ADD_FAILURE() << session.error().message;
    return {};
  }
  const std::uint32_t rank = transport.rank();
  Tensors updates;
  const auto step = [&](std::uint64_t number) {
    return step_on(**session, make_gradients(*one_case.plan, rank, number), updates, number);
  };
  const rt::Status sound = step(0);
  EXPECT_TRUE(sound) << fault.text() << ": " << sound.error().message;
  const States before = states_of(**session);
  EXPECT_FALSE(before.empty());
  if (rank == 1) faulty.arm(fault.kind, 0, fault.exchange);
  const Clock::time_point begin = Clock::now();
  const rt::Status status = step(1);
  EXPECT_TRUE(rank != 1 || faulty.has_struck()) << fault.text();
  if (rank == 1 && fault.kind == FaultKind::Dies) leave();
  EXPECT_LT(Clock::now() - begin, one_case.timeout + std::chrono::seconds(10)) << fault.text();
  EXPECT_EQ(states_of(**session), before) << fault.text() << ", rank " << rank;
  const rt::Status later = step(2);
  EXPECT_FALSE(later) << fault.text();
  return status ? rt::Error{rt::ErrorKind::Internal, ""} : status.error();
}

void check_error(const rt::Error& error, const StepFault& fault, std::uint32_t rank,
                 bool names_rank) {
  const std::string where =
      fault.text() + ", rank " + std::to_string(rank) + ": \"" + error.message + '"';
  ASSERT_NE(error.message, "") << where;
  const auto says = [&](const char* text) { return error.message.find(text) != std::string::npos; };
  // A phase: of a tensor, of a message with parts of no tensor, or one without a tensor.
  EXPECT_TRUE(says(" of fc") || says(" of nothing") || says("of step ")) << where;
  if (fault.kind == FaultKind::Hangs && rank == 1) {
    EXPECT_EQ(error.kind, rt::ErrorKind::TimedOut) << where;
  }
  if (rank == 1 || !names_rank) return;
  // In a ring a rank waits for the one before it, which waits for rank 1.
  const bool is_message =
      fault.exchange == rt::ExchangeKind::Send || fault.exchange == rt::ExchangeKind::Receive;
  const bool is_silent = fault.kind == FaultKind::Hangs || fault.kind == FaultKind::Stops ||
                         fault.kind == FaultKind::Killed;
  const std::regex named(is_message && is_silent ? "rank [0-9]" : "rank 1|ranks ([0-9]+, )*1");
  EXPECT_TRUE(std::regex_search(error.message, named)) << where;
  const bool is_told = fault.kind == FaultKind::Fails || fault.kind == FaultKind::FailsLater;
  if (is_told) EXPECT_TRUE(says("on fire")) << where;
}

void check_new_session(rt::Transport& transport) {
  const SyncCase one_case = case_with(rt::ExchangeKind::AllToAll, transport.world());
  auto session = rt::SyncSession::open(sync_options(one_case, transport.rank()), transport);
  ASSERT_TRUE(session) << session.error().message;
  Tensors updates;
  const rt::Status status =
      step_on(**session, make_gradients(*one_case.plan, transport.rank(), 0), updates, 0);
  EXPECT_TRUE(status) << status.error().message;
}

}  // namespace cinch::testing
