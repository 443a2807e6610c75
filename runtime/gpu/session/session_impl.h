// The inside of a session on a GPU: parts for each job, over what all share. Tables are written on
// the host, sent where they changed, and then all launches of a call are enqueued.
#pragma once
#include "runtime/gpu/session/blocks.h"
#include "runtime/gpu/session/calls.h"
#include "runtime/gpu/session/core.h"
#include "runtime/gpu/session/memory.h"
#include "runtime/gpu/session/session.h"
#include "runtime/gpu/session/states.h"
#include "runtime/gpu/session/sync.h"
#include "runtime/gpu/session/views.h"

namespace cinch::rt {

struct GpuSession::Impl {
  Impl(std::shared_ptr<const GpuProgram> program, const GpuSessionOptions& options)
      : core(std::move(program), options) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status open(GpuStream stream);
  Status make_memory(GpuStream stream);

  GpuSessionCore core;
  GpuSessionMemory memory{core};
  GpuBlocks blocks{core, memory};
  GpuCalls calls{core, memory, blocks};
  GpuStates states{core, memory};
  GpuSync sync{core, memory, calls};
  GpuViews views{core, calls};
};

// Plans what each kind of call does, when a session opens: the steps of the program's entry, and
// the services around them.

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
