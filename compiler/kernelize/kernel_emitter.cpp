// A kernel as a whole: phases in order, finishing steps, and its description for explain.
#include "compiler/kernelize/kernel_emitter.h"

#include <algorithm>

#include "runtime/core/check.h"

namespace cinch::codegen {

using ir::OpKind;
using KirValue = kir::ValueId;

std::vector<rt::Step> KernelEmitter::emit() {
  if (kp_.domain.kind == kir::GroupKind::Single) {
    emit_single();
  } else {
    int last_phase = 0;
    for (const int id : kp_.sinks) last_phase = std::max(last_phase, plan_.sinks[id].phase);
    for (int phase = 0; phase <= last_phase; ++phase) emit_phase(phase);
  }
  describe();
  const auto sweep = b_.finish();
  auto steps = std::move(before_);
  steps.push_back({.kind = rt::StepKind::Launch, .index = sweep});
  if (const auto finish = finish_reductions(sweep)) {
    steps.push_back({.kind = rt::StepKind::Launch, .index = *finish});
  }
  return steps;
}

bool KernelEmitter::begin_positions(int phase) {
  bool has_elements = false;
  for (const int id : kp_.sinks) {
    const Sink& s = plan_.sinks[id];
    if (s.phase != phase || s.is_row_level) continue;
    if (!begins_with_zero(s)) {
      has_elements = true;
      continue;
    }
    const kir::ComputeType summed = kir::compute_type(type(cx_.op(s.op).operands[0]).dtype);
    positions_[id].prefix = b_.zero(unsigned_of(summed));
  }
  return has_elements;
}

void KernelEmitter::emit_phase(int phase) {
  phase_ = phase;
  b_.group();
  for (const int id : kp_.sinks) {
    const auto& s = plan_.sinks[id];
    if (s.phase != phase || !s.is_row_level) continue;
    current_ = id;
    emit_row_store(s);
  }
  if (!begin_positions(phase)) return;
  b_.group();
  b_.elements();
  element_memo_.clear();
  for (auto& [id, position] : positions_) position.rank_phase = -1;
  emit_element_sinks(phase);
  b_.group();
  after_elements(phase);
}

void KernelEmitter::emit_element_sinks(int phase) {
  for (const int id : kp_.sinks) {
    const auto& s = plan_.sinks[id];
    if (s.phase != phase || s.is_row_level) continue;
    current_ = id;
    switch (s.kind) {
      case SinkKind::Store:
        s.compaction >= 0 ? emit_compact_store(s) : emit_store(s);
        break;
      case SinkKind::Reduce:
        emit_reduce(id, domain_place());
        break;
      case SinkKind::RowReduce:
        emit_row_reduce(id);
        break;
      case SinkKind::RowTransform:
        emit_row_transform(id);
        break;
      case SinkKind::RowPlaces:
        emit_row_places(s);
        break;
      case SinkKind::RunningSum:
        if (!begins_with_zero(s)) emit_running_sum(id);
        break;
      case SinkKind::Nonzero:
        emit_nonzero(id);
        break;
      case SinkKind::Scatter:
        emit_scatter(s);
        break;
      case SinkKind::ScatterAdd:
      case SinkKind::ScatterSum:
        emit_scatter_add(s);
        break;
      case SinkKind::Histogram:
        emit_histogram(s);
        break;
      case SinkKind::Check:  // of an array: every element must hold
      case SinkKind::CheckIndex:
        emit_check(s, pull(cx_.op(s.op).operands[0], domain_place()));
        break;
      case SinkKind::NonFinite:
        emit_nonfinite(s);
        break;
      default:
        CINCH_BUG("sink in the wrong kernel");
    }
  }
}

void KernelEmitter::after_elements(int phase) {
  for (const int id : kp_.sinks) {
    const auto& s = plan_.sinks[id];
    if (s.phase != phase) continue;
    current_ = id;
    if (s.kind == SinkKind::Reduce) store_partials(id);
    if (s.kind == SinkKind::RowReduce) keep_row_results(id);
    if (s.kind == SinkKind::RowTransform) finish_row_transform(id);
    const bool is_running = s.kind == SinkKind::RunningSum && !begins_with_zero(s);
    if (is_running || s.kind == SinkKind::Nonzero) {
      auto& p = positions_[id];
      p.prefix = sum_before(p);
      if (s.kind == SinkKind::Nonzero) place_nonzero(id);
    }
  }
}

void KernelEmitter::emit_single() {
  for (const int id : kp_.sinks) {
    const auto& s = plan_.sinks[id];
    current_ = id;
    if (s.kind == SinkKind::Store) {
      declare_store(s);
      b_.store_at(s.buffer, b_.const_i64(0), pull_scalar(s.value));
    } else {
      emit_check(s, pull_scalar(cx_.op(s.op).operands[0]));
    }
  }
}

// One finishing kernel reduces the partials of all whole-array reductions of the sweep.
std::optional<std::uint32_t> KernelEmitter::finish_reductions(std::uint32_t) {
  if (partials_.empty()) return std::nullopt;
  const KernelPlan single{Domain{}, kp_.level, {}};
  KernelEmitter f(cx_, plan_, single);
  const auto tiles =
      pc_.exprs().ceil_div(kp_.domain.extent, pc_.exprs().const_int(kir::kTileElems));
  for (const auto& [id, partials] : partials_) {
    std::vector<rt::BufferIndex> buffers;
    for (const auto& [buffer, version] : partials) {
      buffers.push_back(buffer);
      f.b_.reads(buffer, version);
    }
    const auto& s = plan_.sinks[id];
    const auto& op = cx_.op(s.op);
    f.current_ = id;
    const auto combiner = f.make_combiner(op);
    const auto results =
        f.with_init(op, f.b_.finish_reduce(f.host_value(tiles), buffers, combiner));
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      f.b_.writes(s.results[i], pc_.version_of(cx_.fn, op.results[i]));
      f.b_.store_at(s.results[i], f.b_.const_i64(0), results[i]);
    }
    f.b_.kernel().info.fused.push_back("finish " + fused_name(s));
  }
  return f.b_.finish();
}

std::string KernelEmitter::fused_name(const Sink& s) const {
  const auto named = [&](ir::ValueId v) {
    return cx_.value(v).name.empty() ? std::string("value") : cx_.value(v).name;
  };
  if (s.kind == SinkKind::Store) {
    const auto& buffer = pc_.buffer(s.buffer);
    return std::string(s.compaction >= 0  ? "select "
                       : s.adds_to_buffer ? "add to "
                                          : "store ") +
           buffer.name;
  }
  if (s.kind == SinkKind::NonFinite) return "check finite";
  const auto& op = cx_.op(s.op);
  std::string text(ir::op_info(op.kind).name);
  if (op.attrs.combiner.is_valid()) {
    const auto& c = cx_.fn.combiners[op.attrs.combiner.index()];
    if (c.op) text += "." + std::string(scalar_op_info(*c.op).name);
  }
  if (!op.results.empty() && !cx_.value(op.results[0]).name.empty())
    text += " " + named(op.results[0]);
  return text;
}

void KernelEmitter::describe() {
  for (const int id : kp_.sinks) b_.kernel().info.fused.push_back(fused_name(plan_.sinks[id]));
}

}  // namespace cinch::codegen
