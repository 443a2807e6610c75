// Plans what each kind of call does, when a session opens: the steps of the program's entry, and
// the services around them.
#pragma once
#include "runtime/gpu/session/core.h"

namespace cinch::rt {

class GpuPlanning : public GpuSessionPart {
 public:
  using GpuSessionPart::GpuSessionPart;
  /// Fills the tables, plans and bounds of the core. Errors: as of GpuSession::open.
  Status plan();

 private:
  Status plan_kind(EntryKind kind);
  Status plan_entry(EntryKind runs, GpuCallPlan& plan);
  Status plan_encode(GpuCallPlan& plan);
  Status plan_init(GpuCallPlan& plan);
  Status plan_decode(EntryKind kind, GpuCallPlan& plan);
  Status plan_finish(GpuCallPlan& plan);
  Status plan_sync(GpuCallPlan& plan);
  Result<std::int64_t> most_rounds(HostExprId begin, HostExprId end) const;
};

}  // namespace cinch::rt
