// prove_aggregation: finds out whether payloads may be added field by field, and whether `finish`
// is linear in the sum. It changes only the program's facts.
//
//   before:  wire counts 0 { value: [f32; k] by sum }    after:  aggregation sum_proved
//            aggregation gather
#include "compiler/analysis/proofs.h"
#include "compiler/passes/passes.h"

namespace cinch::passes {

void prove_aggregation(ir::Program& program, PassContext& context) {
  const bool is_linear = analysis::is_finish_linear(program);
  if (is_linear != program.info.is_finish_linear && context.may_rewrite()) {
    program.info.is_finish_linear = is_linear;
  }
  program.info.is_linear = analysis::is_linear(program);
  const rt::Aggregation found = analysis::find_aggregation(program);
  if (found == program.info.aggregation || !context.may_rewrite()) return;
  program.info.aggregation = found;
  if (found == rt::Aggregation::SumToTest) {
    context.remark({}, "neither decode nor encode was seen to be linear");
  }
}

}  // namespace cinch::passes
