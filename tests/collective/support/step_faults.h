// A fault of one rank in the middle of a step, over any transport, and what all ranks must report.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/collective/support/faulty_transport.h"
#include "tests/collective/support/sync_ranks.h"

namespace cinch::testing {

/// A fault of rank 1, in its first exchange of a kind in step 1.
struct StepFault {
  FaultKind kind = FaultKind::Fails;
  rt::ExchangeKind exchange = rt::ExchangeKind::Send;

  std::string text() const;
};
const char* fault_kind_name(FaultKind kind);

inline constexpr rt::ExchangeKind kExchangeKinds[] = {
    rt::ExchangeKind::Send,          rt::ExchangeKind::Receive,   rt::ExchangeKind::AllReduce,
    rt::ExchangeKind::ReduceScatter, rt::ExchangeKind::AllGather, rt::ExchangeKind::AllToAll,
    rt::ExchangeKind::Broadcast};

inline constexpr FaultKind kStepFaults[] = {FaultKind::Fails,     FaultKind::FailsLater,
                                            FaultKind::Dies,      FaultKind::Hangs,
                                            FaultKind::OtherSize, FaultKind::Garbage};
/// Can anyone notice it? Sums, and bytes that are not payloads, may have any value.
bool is_found(const StepFault& fault);

/// A synchronisation with exchanges of the kind. `summed`: the type that all-reduces add, f16 or
/// f32.
SyncCase case_with(rt::ExchangeKind kind, std::uint32_t world, DType summed = kF16);

/// Runs one rank: takes a sound step, then one with the fault. Checks that it fails in time, that
/// states are those after the sound step and that no more steps are taken. `leave` closes the
/// transport of a rank that dies.
rt::Error error_of_fault(const SyncCase& one_case, rt::Transport& transport, const StepFault& fault,
                         const std::function<void()>& leave);

/// Checks an error of one rank: it names rank 1, a tensor and a phase, or the end of a step.
/// `names_rank` is false if the transport cannot know which rank it is.
void check_error(const rt::Error& error, const StepFault& fault, std::uint32_t rank,
                 bool names_rank);

/// Checks, on one rank, that a new session works.
void check_new_session(rt::Transport& transport);

}  // namespace cinch::testing
