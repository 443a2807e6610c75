// Entries of a program: what each must store, and the steps that do.
#include "compiler/kernelize/kernelize.h"

#include <algorithm>
#include <iterator>

#include "codegen/kir/cost.h"
#include "codegen/kir/verifier.h"
#include "codegen/passes/run.h"
#include "compiler/kernelize/kernel_emitter.h"
#include "compiler/kernelize/plan_region.h"

namespace cinch::codegen {
namespace {

using ir::OpKind;
using Steps = std::vector<rt::Step>;

std::vector<StoreRequest> encode_requests(ProgramContext& pc, const ir::Function& fn) {
  std::vector<StoreRequest> requests;
  requests.reserve(fn.results.fields.size());
  for (std::uint32_t i = 0; i < fn.results.fields.size(); ++i)
    requests.push_back({fn.results.fields[i], pc.field(i), false});
  for (std::uint32_t i = 0; i < fn.results.counts.size(); ++i) {
    requests.push_back({fn.results.counts[i], pc.count(i), false});
  }
  return requests;
}

void add_state_requests(ProgramContext& pc, const ir::Function& fn,
                        std::vector<StoreRequest>& requests) {
  for (std::uint32_t i = 0; i < fn.results.states.size(); ++i) {
    const auto v = fn.results.states[i];
    const auto& op = fn.ops[fn.values[v.index()].def.index()];
    if (op.kind == OpKind::state && op.attrs.index == i) continue;
    requests.push_back({v, pc.state_next(i), false});
  }
}

void touch(const kir::KernelProgram& program, const Steps& steps,
           std::set<rt::BufferIndex>& buffers) {
  for (const auto& step : steps) {
    if (step.kind == rt::StepKind::Launch) {
      for (const auto& section : program.kernels[step.index].sections) {
        for (const auto& instr : section.instrs)
          buffers.insert(instr.buffers.begin(), instr.buffers.end());
      }
    } else if (step.kind != rt::StepKind::CheckHost) {
      buffers.insert(step.index);
      if (step.has_source()) buffers.insert(step.index2);
      buffers.insert(step.scalars.begin(), step.scalars.end());
    }
    touch(program, step.cond, buffers);
    touch(program, step.body, buffers);
    touch(program, step.orelse, buffers);
  }
}

void set_entry(ProgramContext& pc, rt::EntryKind kind, Steps steps) {
  auto& entry = pc.out.entries[static_cast<std::size_t>(kind)];
  entry.present = true;
  std::ranges::move(steps, std::back_inserter(entry.steps));
  std::set<rt::BufferIndex> buffers;
  touch(pc.out, entry.steps, buffers);
  entry.buffers.assign(buffers.begin(), buffers.end());
}

Steps emit_function(ProgramContext& pc, rt::EntryKind kind, const ir::Function& fn,
                    const std::vector<StoreRequest>& requests, bool flag_nonfinite) {
  FunctionContext cx{pc, fn, {}, nullptr};
  auto& results = pc.out.results[static_cast<std::size_t>(kind)];
  for (const auto& r : requests) {
    if (!r.adds_to_buffer) results.push_back({r.buffer, pc.version_of(fn, r.value)});
  }
  return emit_region(cx, fn.body, requests, flag_nonfinite);
}

void emit_entries(ProgramContext& pc) {
  const auto& program = pc.program;
  for (std::uint32_t i = 0; i < program.state_inits.size(); ++i) {
    const auto& fn = program.state_inits[i];
    set_entry(pc, rt::EntryKind::Init,
              emit_function(pc, rt::EntryKind::Init, fn,
                            {{fn.results.output, pc.state_next(i), false}}, false));
  }
  if (const auto* fn = program.find(ir::FunctionKind::Encode)) {
    auto requests = encode_requests(pc, *fn);
    add_state_requests(pc, *fn, requests);
    set_entry(pc, rt::EntryKind::Encode,
              emit_function(pc, rt::EntryKind::Encode, *fn, requests, true));
  }
  if (const auto* fn = program.find(ir::FunctionKind::Decode)) {
    for (const bool adds : {false, true}) {
      const auto kind = adds ? rt::EntryKind::DecodeAdd : rt::EntryKind::Decode;
      set_entry(pc, kind,
                emit_function(pc, kind, *fn, {{fn->results.output, pc.output(), adds}}, false));
    }
  }
  if (const auto* fn = program.find(ir::FunctionKind::Finish)) {
    std::vector<StoreRequest> requests = {{fn->results.output, pc.output(), false}};
    add_state_requests(pc, *fn, requests);
    set_entry(pc, rt::EntryKind::Finish,
              emit_function(pc, rt::EntryKind::Finish, *fn, requests, true));
  }
  if (const auto* fn = program.find(ir::FunctionKind::Sync)) {
    std::vector<StoreRequest> requests = {{fn->results.output, pc.output(), false}};
    add_state_requests(pc, *fn, requests);
    set_entry(pc, rt::EntryKind::Sync, emit_function(pc, rt::EntryKind::Sync, *fn, requests, true));
  }
}

}  // namespace

kir::KernelProgram kernelize(const ir::Program& program, const KernelizeOptions& options) {
  ProgramContext pc(program);
  if (options.steps != nullptr) pc.steps = *options.steps;
  emit_entries(pc);
  kir::check_versions(pc.out, "kernelize");
  run_kernel_passes(pc.out, options.states, pc.steps);
  kir::annotate_costs(pc.out);
  if (options.steps != nullptr) *options.steps = pc.steps;
  if (options.apart != nullptr) *options.apart = std::move(pc.apart);
  return std::move(pc.out);
}

}  // namespace cinch::codegen
