// A fault of one rank in the middle of a step, over any transport: what all ranks must find then.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/collective/support/faulty_transport.h"
#include "tests/collective/support/sync_ranks.h"

namespace cinch::testing {

/// Of rank 1, in its first exchange of a kind in step 1.
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
/// Can anyone see it? What is added up, or is no payload, may be anything.
bool is_found(const StepFault& fault);

/// A synchronisation that has exchanges of the kind. `summed`: what all-reduces add, f16 or f32.
SyncCase case_with(rt::ExchangeKind kind, std::uint32_t world, DType summed = kF16);

/// One rank: takes a sound step, then one with the fault; checks that it fails in time, that states
/// are those of the sound one and that no more steps are taken. `leave` closes the transport of a
/// rank that dies.
rt::Error error_of_fault(const SyncCase& one_case, rt::Transport& transport, const StepFault& fault,
                         const std::function<void()>& leave);

/// One rank: an error that names rank 1, a tensor and a phase, or the end of the step; `names_rank`
/// is false where the transport cannot know which rank it is.
void check_error(const rt::Error& error, const StepFault& fault, std::uint32_t rank,
                 bool names_rank);

/// One rank: a new session goes on.
void check_new_session(rt::Transport& transport);

}  // namespace cinch::testing
