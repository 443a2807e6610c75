// The facts of a compiled program that a planner needs.
#include "runtime/planner/planner.h"

#include "runtime/call/joins.h"
#include "runtime/call/parameters.h"
#include "runtime/call/tensor_facts.h"
#include "runtime/payload/payload.h"

namespace cinch::rt {
namespace {

bool can_cut(const ProgramInfo& info) {
  return !info.is_matrix && !info.has_sync && has_elementwise_states(info);
}

}  // namespace

CodecFacts codec_facts(const std::shared_ptr<const ProgramImage>& program, std::uint32_t world,
                       std::uint64_t step) {
  const ProgramInfo& info = program->info;
  CodecFacts facts;
  facts.name = info.name;
  facts.can_cut = can_cut(info);
  facts.has_sync = info.has_sync;
  facts.takes_partial_sums = info.takes_partial_sums();
  facts.has_narrow_fields = has_narrow_fields(info);
  facts.carrier = info.carrier;
  facts.is_linear = info.is_linear;
  facts.has_fixed_size = info.wire.counts.empty() && has_steady_wire(info);
  facts.bound = [program, world, step](std::int64_t rows,
                                       std::int64_t cols) -> Result<std::uint64_t> {
    const ProgramInfo& of = program->info;
    const TensorFacts tensor = facts_for(of, {rows, cols, world});
    const ParameterValues parameters(of);
    const auto most = payload_bound_over_steps(of, host_env(tensor, parameters, step));
    CINCH_TRY(most);
    return static_cast<std::uint64_t>(*most);
  };
  if (info.has_sync && has_fixed_rounds(*program)) {
    facts.sync_rounds = [program, world, step](std::int64_t rows, std::int64_t cols) {
      const ProgramInfo& of = program->info;
      const TensorFacts tensor = facts_for(of, {rows, cols, world});
      const ParameterValues parameters(of);
      return sync_rounds(*program, host_env(tensor, parameters, step));
    };
  }
  // The arrays of a sum have the same lengths in every step.
  const auto summed = SummedArrays::of(info, world);
  if (summed && !info.has_sync && has_steady_wire(info)) {
    facts.sum_arrays = [program, summed, world, step](
                           std::int64_t rows, std::int64_t cols) -> Result<std::vector<SumArray>> {
      const ProgramInfo& of = program->info;
      const TensorFacts tensor = facts_for(of, {rows, cols, world});
      const ParameterValues parameters(of);
      const auto found = payload_bound_layout(of, host_env(tensor, parameters, step));
      CINCH_TRY(found);
      return summed->arrays(*found);
    };
  }
  return facts;
}

}  // namespace cinch::rt
