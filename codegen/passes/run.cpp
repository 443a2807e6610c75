// See run.h.
#include "codegen/passes/run.h"

#include "codegen/kir/check_versions.h"
#include "codegen/passes/carry_in_place.h"
#include "codegen/passes/check_facts.h"
#include "codegen/passes/count_truths.h"
#include "codegen/passes/mark_alike.h"
#include "codegen/passes/mark_beside.h"
#include "codegen/passes/mark_compact.h"
#include "codegen/passes/mark_foldable.h"
#include "codegen/passes/round_to_integers.h"
#include "codegen/passes/share_workspace.h"
#include "codegen/passes/update_in_place.h"

namespace cinch::codegen {

void run_kernel_passes(kir::KernelProgram& program, StateUpdate states, rt::StepLimit& steps) {
  if (states == StateUpdate::InPlace) {
    update_in_place(program, steps);
    kir::check_versions(program, "update_in_place");
  }
  carry_in_place(program, steps);
  kir::check_versions(program, "carry_in_place");
  count_truths(program, steps);
  round_to_integers(program, steps);
  mark_alike(program);
  mark_compact(program);
  mark_foldable(program);  // before other values share the buffers of partials
  share_workspace(program, steps);
  mark_beside(program);
  kir::check_versions(program, "share_workspace");
  check_facts(program, "share_workspace");
}

}  // namespace cinch::codegen
