// Regions as steps: kernels, and control flow as host steps over small buffers.
#include <algorithm>

#include "compiler/kernelize/kernel_emitter.h"
#include "compiler/kernelize/walk_pulls.h"

namespace cinch::codegen {
namespace {

using ir::OpKind;
using ir::ValueId;
using Steps = std::vector<rt::Step>;

void append(Steps& to, Steps from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

rt::RankReduction reduction_of(const ir::Function& fn, const ir::Op& op) {
  const auto& joined = fn.combiners[op.attrs.combiner.index()].op;
  if (joined == ScalarOp::min) return rt::RankReduction::Min;
  if (joined == ScalarOp::max) return rt::RankReduction::Max;
  return op.attrs.mean ? rt::RankReduction::Mean : rt::RankReduction::Sum;
}

rt::CollectiveInfo collective_of(const ir::Function& fn, const ir::Op& op) {
  switch (op.kind) {
    case OpKind::all_reduce:
      return {rt::CollectiveKind::AllReduce, reduction_of(fn, op)};
    case OpKind::all_gather:
      return {rt::CollectiveKind::AllGather};
    case OpKind::all_to_all:
      return {rt::CollectiveKind::AllToAll};
    case OpKind::reduce_scatter:
      return {rt::CollectiveKind::ReduceScatter, reduction_of(fn, op)};
    case OpKind::broadcast_from:
      return {rt::CollectiveKind::BroadcastFrom};
    case OpKind::send_receive:
      return {rt::CollectiveKind::SendReceive};
    case OpKind::all_gather_counted:
      return {rt::CollectiveKind::AllGatherCounted};
    case OpKind::send_receive_counted:
      return {rt::CollectiveKind::SendReceiveCounted};
    default:
      return {.kind = rt::CollectiveKind::Broadcast,
              .root = static_cast<std::uint32_t>(op.attrs.index)};
  }
}

class RegionEmitter {
 public:
  RegionEmitter(FunctionContext& cx, ir::RegionId region, const std::vector<StoreRequest>& requests,
                bool flag_nonfinite)
      : cx_(cx), plan_(plan_region(cx, region, requests, flag_nonfinite)) {}

  Steps emit() {
    Steps steps;
    for (const auto& kernel : plan_.kernels) {
      const int first = kernel.sinks.front();
      switch (plan_.sinks[first].kind) {
        case SinkKind::Control:
          append(steps, emit_control(first));
          break;
        case SinkKind::CheckHost: {
          const auto& op = cx_.op(plan_.sinks[first].op);
          steps.push_back({.kind = rt::StepKind::CheckHost,
                           .index = cx_.program.message(op.attrs.text),
                           .expr = op.attrs.size});
        } break;
        case SinkKind::Scan:
          append(steps, emit_scan(cx_, plan_, first));
          break;
        case SinkKind::CheckUnique:
          append(steps, emit_check_unique(cx_, plan_, first));
          break;
        case SinkKind::Argsort:
          append(steps, emit_argsort(cx_, plan_, first));
          break;
        case SinkKind::Kept:
          break;
        case SinkKind::Collective:
          append(steps, emit_collective(first));
          break;
        default:
          append(steps, emit_kernel(kernel));
      }
    }
    return steps;
  }

 private:
  Steps emit_kernel(const KernelPlan& kernel) {
    Steps steps = KernelEmitter(cx_, plan_, kernel).emit();
    const auto launched = std::ranges::find_if(
        steps, [](const rt::Step& step) { return step.kind == rt::StepKind::Launch; });
    const auto& info = cx_.program.out.kernels[launched->index].info;
    if (info.role != rt::KernelRole::Sweep) return steps;
    if (last_sweep_ != nullptr) {
      SweepsApart apart = why_apart(cx_, plan_, *last_sweep_, kernel);
      apart.first = last_symbol_;
      apart.second = info.symbol;
      cx_.program.apart.push_back(std::move(apart));
    }
    last_sweep_ = &kernel;
    last_symbol_ = info.symbol;
    return steps;
  }

  Steps emit_collective(int sink) {
    const auto& s = plan_.sinks[sink];
    const auto& op = cx_.op(s.op);
    rt::Step step{.kind = rt::StepKind::Collective,
                  .index = s.results[1],
                  .index2 = s.results[0],
                  .expr = op.attrs.size,
                  .expr2 = op.attrs.size2,
                  .collective = collective_of(cx_.fn, op)};
    if (rt::names_rank(step.collective.kind)) {
      step.message = cx_.program.message(op.attrs.text);
    }
    for (const int scalar : s.scalars) step.scalars.push_back(plan_.sinks[scalar].buffer);
    const kir::Version made = version(op.results[0]);
    declare_step(step.index, step.index2, version(op.operands[0]), kir::kNothing, made);
    for (std::size_t i = 0; i < step.scalars.size(); ++i) {
      declare_step(step.index, step.scalars[i], version(op.operands[i + 1]), kir::kNothing, made);
    }
    if (op.results.size() > 1) {
      step.scalars.push_back(s.results[2]);
      declare_step(step.index, s.results[2], kir::kNothing, kir::kNothing, version(op.results[1]));
    }
    return {std::move(step)};
  }

  static Steps store_all(FunctionContext& cx, const std::vector<StoreRequest>& requests) {
    if (requests.empty()) return {};
    return RegionEmitter(cx, ir::RegionId(), requests, false).emit();
  }

  kir::Version version(ValueId v) const { return cx_.program.version_of(cx_.fn, v); }
  void declare_step(rt::BufferIndex step, rt::BufferIndex buffer, kir::Version first,
                    kir::Version second, kir::Version made) {
    cx_.program.out.step_touches.push_back({step, buffer, first, second, made});
  }

  std::vector<ValueId> yields(ir::RegionId region) const {
    const auto& ops = cx_.fn.regions[region.index()].ops;
    return cx_.op(ops.back()).operands;
  }

  rt::BufferIndex flag_buffer() {
    return cx_.program.add_workspace("condition", kBool, cx_.program.exprs().const_int(1));
  }

  Steps emit_control(int sink) {
    const auto& s = plan_.sinks[sink];
    // The context in which regions of a control operator see outer values.
    FunctionContext inner = cx_.inner();
    for (const auto& e : s.edges) {
      const auto& t = plan_.sinks[e.from];
      if (t.kind == SinkKind::Store) inner.in_buffer[t.value.index()] = t.buffer;
    }
    switch (cx_.op(s.op).kind) {
      case OpKind::if_else:
        return emit_if(s, inner);
      case OpKind::for_loop:
        return emit_for(s, inner);
      default:
        return emit_while(s, inner);
    }
  }

  Steps emit_if(const Sink& s, FunctionContext& inner) {
    const auto& op = cx_.op(s.op);
    const auto condition = flag_buffer();
    Steps steps = store_all(inner, {{op.operands[0], condition, false}});
    rt::Step step{.kind = rt::StepKind::If, .index = condition};
    step.body = emit_branch(inner, op.regions[0], s.results);
    step.orelse = emit_branch(inner, op.regions[1], s.results);
    for (std::size_t i = 0; i < s.results.size(); ++i) {
      declare_step(condition, s.results[i], version(yields(op.regions[0])[i]),
                   version(yields(op.regions[1])[i]), version(op.results[i]));
    }
    steps.push_back(std::move(step));
    return steps;
  }

  Steps emit_branch(const FunctionContext& outer, ir::RegionId region,
                    const std::vector<rt::BufferIndex>& results) {
    FunctionContext inner = outer.inner();
    std::vector<StoreRequest> requests;
    const auto values = yields(region);
    requests.reserve(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      requests.push_back({values[i], results[i], false});
    return RegionEmitter(inner, region, requests, false).emit();
  }

  // Carried values of a loop lie in the buffers of its results; a body writes the next values to
  // other buffers.
  Steps store_inits(const ir::Op& op, const Sink& s, FunctionContext& inner) {
    std::vector<StoreRequest> requests;
    requests.reserve(op.operands.size());
    for (std::size_t i = 0; i < op.operands.size(); ++i)
      requests.push_back({op.operands[i], s.results[i], false});
    return store_all(inner, requests);
  }

  // Counts found in a round have the same version in all regions of a loop, and after it.
  void carry(rt::BufferIndex step, const ir::Op& op, const Sink& s, ir::RegionId body) {
    const auto& fn = cx_.fn;
    for (std::size_t i = 0; i < s.results.size(); ++i) {
      for (const auto region : op.regions) {
        const auto& args = fn.regions[region.index()].args;
        cx_.program.set_version(fn, args[args.size() - s.results.size() + i],
                                version(op.results[i]));
      }
    }
    // A round may pass one carried value on as another.
    for (std::size_t i = 0; i < s.results.size(); ++i) {
      declare_step(step, s.results[i], version(op.operands[i]), version(yields(body)[i]),
                   version(op.results[i]));
    }
  }

  // A round that only stores to some elements of a carried array leaves the others where they are.
  bool changes_in_place(ir::RegionId region, ValueId carried, ValueId next,
                        rt::BufferIndex buffer) {
    if (!cx_.value(next).def.is_valid()) return false;
    const ir::Op& op = cx_.def(next);
    const bool is_store = op.kind == OpKind::scatter && op.operands[0] == carried;
    if (!is_store || is_bool(cx_.value(next).type.dtype) || cx_.program.is_packed(buffer))
      return false;
    std::size_t num_uses = std::ranges::count(yields(region), carried);
    for (const ir::OpId id : cx_.fn.regions[region.index()].ops) {
      for_each_used_value(cx_.fn, id, [&](ValueId v) { num_uses += v == carried ? 1 : 0; });
    }
    return num_uses == 1 && std::ranges::count(yields(region), next) == 1 &&
           cx_.program.steps.may_take();
  }

  // Steps that the loop needs before it go to `before`. The next values of an array with a counted
  // length begin as zeros, since copies take the whole buffer and a round writes only its elements.
  Steps emit_body(const FunctionContext& outer, ir::RegionId region, const Sink& s,
                  std::size_t first_carried, Steps& before) {
    FunctionContext inner = outer.inner();
    const auto& args = cx_.fn.regions[region.index()].args;
    for (std::size_t i = 0; i < s.results.size(); ++i)
      inner.in_buffer[args[first_carried + i].index()] = s.results[i];
    std::vector<StoreRequest> requests;
    Steps copies;
    const auto values = yields(region);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] == args[first_carried + i]) continue;
      if (changes_in_place(region, args[first_carried + i], values[i], s.results[i])) {
        requests.push_back({values[i], s.results[i], false});
        continue;
      }
      const auto& info = cx_.program.buffer(s.results[i]);
      const auto next = cx_.program.add_workspace(info.name + "_next", info.dtype, info.num_elems);
      const ir::Type& type = cx_.fn.values[values[i].index()].type;
      const bool has_counted_size =
          std::any_of(type.dims, type.dims + type.rank,
                      [&](HostExprId dim) { return cx_.program.exprs().has_count(dim); });
      if (has_counted_size) {
        before.push_back({.kind = rt::StepKind::Zero, .index = next});
      }
      requests.push_back({values[i], next, false});
      copies.push_back({.kind = rt::StepKind::Copy, .index = s.results[i], .index2 = next});
    }
    Steps steps = RegionEmitter(inner, region, requests, false).emit();
    append(steps, std::move(copies));
    return steps;
  }

  Steps emit_for(const Sink& s, FunctionContext& inner) {
    const auto& op = cx_.op(s.op);
    Steps steps = store_inits(op, s, inner);
    const auto counter = cx_.program.add_workspace("i", kI64, cx_.program.exprs().const_int(1));
    const auto region = op.regions[0];
    const auto number = cx_.fn.regions[region.index()].args[0];
    inner.in_buffer[number.index()] = counter;
    declare_step(counter, counter, kir::kNothing, kir::kNothing, version(number));
    carry(counter, op, s, region);
    rt::Step step{.kind = rt::StepKind::For,
                  .index = counter,
                  .expr = op.attrs.size,
                  .expr2 = op.attrs.size2};
    step.body = emit_body(inner, region, s, 1, steps);
    steps.push_back(std::move(step));
    return steps;
  }

  Steps emit_while(const Sink& s, FunctionContext& inner) {
    const auto& op = cx_.op(s.op);
    Steps steps = store_inits(op, s, inner);
    const auto condition = flag_buffer();
    rt::Step step{.kind = rt::StepKind::While, .index = condition, .expr = op.attrs.size};
    carry(condition, op, s, op.regions[1]);
    FunctionContext in_condition = inner.inner();
    const auto& args = cx_.fn.regions[op.regions[0].index()].args;
    for (std::size_t i = 0; i < s.results.size(); ++i)
      in_condition.in_buffer[args[i].index()] = s.results[i];
    step.cond = RegionEmitter(in_condition, op.regions[0],
                              {{yields(op.regions[0])[0], condition, false}}, false)
                    .emit();
    step.body = emit_body(inner, op.regions[1], s, 0, steps);
    steps.push_back(std::move(step));
    return steps;
  }

  FunctionContext& cx_;
  RegionPlan plan_;
  const KernelPlan* last_sweep_ = nullptr;
  std::string last_symbol_;
};

}  // namespace

std::vector<rt::Step> emit_region(FunctionContext& cx, ir::RegionId region,
                                  const std::vector<StoreRequest>& requests, bool flag_nonfinite) {
  return RegionEmitter(cx, region, requests, flag_nonfinite).emit();
}

}  // namespace cinch::codegen
