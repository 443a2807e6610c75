// Passes that choose where values lie: in place, or in buffers that several of them share.
#pragma once
#include <vector>

#include "codegen/kir/kir.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {

/// Makes states that encode updates overwrite their present values. That saves a buffer as large as
/// the state. It costs a sweep over the gradient if nothing else reads all of it before the update:
/// a non-finite value must be found before the first write.
///
///   before:  launch 0   encode_sweep      reads g, state; writes state', fields; checks finite
///   after:   launch 1   encode_check      reads g; checks finite
///            launch 0   encode_sweep      reads g, state; writes state, fields
///
/// A state is updated in place if
/// - one kernel, launched once, writes all its new values, each after the same lane has read the
/// present values that it needs, and nothing else reads present values later;
/// - no check of the program can fail in that kernel or later;
/// - it has whole elements, and only encode changes it.
/// From the first such kernel on, the call runs to its end even if its caller cancels it.
///
/// Counts one step for each state.
void update_in_place(kir::KernelProgram& program, rt::StepLimit& steps);

/// Writes values that a loop carries in place, if one thread computes them from everything that it
/// reads.
///
///   before:  for @1 {                      after:  for @1 {
///             launch 3   reads @5,                  launch 3   reads @5, writes @5
///                        writes @6                 }
///             copy @5 from @6
///            }
///
/// Only for scalars: a kernel of a single group that loads, computes and stores, and is the last of
/// a round to use the carried values. Its stores move behind its loads. Counts one step for each
/// copy that is saved.
void carry_in_place(kir::KernelProgram& program, rt::StepLimit& steps);

/// Merges workspace buffers that are never in use at the same time, like register allocation: by
/// live ranges over the steps of an entry.
///
///   before:  launch 0   writes @7          after:  launch 0   writes @7
///            launch 1   reads @7                   launch 1   reads @7
///            launch 2   writes @9                  launch 2   writes @7
///
/// Only arrays of the same element type and number of elements; never a step's private data (a
/// condition, a counter, what ranks exchange). A buffer that a loop uses is in use in the whole
/// loop. Counts one step for each buffer that is saved.
void share_workspace(kir::KernelProgram& program, rt::StepLimit& steps);

/// Replaces every use of buffer b by to[b]. Drops the replaced buffers, and renumbers the rest in
/// order.
void rename_buffers(kir::KernelProgram& program, const std::vector<rt::BufferIndex>& to);

}  // namespace cinch::codegen
