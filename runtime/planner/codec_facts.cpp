// Bodies of codec_facts.h.
#include "runtime/planner/codec_facts.h"

#include "runtime/payload/payload.h"
#include "runtime/session/parameters.h"
#include "runtime/session/state_slices.h"
#include "runtime/session/tensor_facts.h"

namespace cinch::rt {
namespace {

bool can_cut(const ProgramInfo& info) {
  return !info.is_matrix && !info.has_sync && has_elementwise_states(info);
}

}  // namespace

CodecFacts codec_facts(const std::shared_ptr<const LoadedProgram>& program, std::uint32_t world,
                       std::uint64_t step) {
  const ProgramInfo& info = program->info();
  CodecFacts facts;
  facts.name = info.name;
  facts.can_cut = can_cut(info);
  facts.has_sync = info.has_sync;
  facts.has_fixed_size = info.wire.counts.empty();
  facts.bound = [program, world, step](std::int64_t rows,
                                       std::int64_t cols) -> Result<std::uint64_t> {
    const ProgramInfo& of = program->info();
    const TensorFacts tensor = facts_for(of, {rows, cols, world});
    const ParameterValues parameters(of);
    const HostEnv env = host_env(tensor, parameters, step);
    const auto layout = payload_bound_layout(of, env);
    if (!layout) return tl::unexpected<Error>(layout.error());
    return static_cast<std::uint64_t>(layout->size_bytes);
  };
  return facts;
}

}  // namespace cinch::rt
