#include "codegen/passes/run.h"

#include "codegen/kir/verifier.h"
#include "codegen/passes/marks.h"
#include "codegen/passes/places.h"
#include "codegen/passes/rewrites.h"

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
