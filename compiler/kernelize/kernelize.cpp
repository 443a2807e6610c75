// Entries of a program: what each must store, and the steps that do.
#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "codegen/kir/compute_type.h"
#include "codegen/kir/cost.h"
#include "codegen/kir/verifier.h"
#include "compiler/kernelize/kernel_emitter.h"
#include "runtime/core/check.h"

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
    if (program.info.states[i].is_input) continue;
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
      set_entry(
          pc, kind,
          emit_function(pc, kind, *fn, {{fn->results.output, pc.output(), adds, true}}, false));
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

// Buffers and slots of a program under kernelization.

namespace {

template <typename T>
void append(std::vector<std::uint8_t>& bytes, T value) {
  std::uint8_t raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  bytes.insert(bytes.end(), raw, raw + sizeof(T));
}

// A table holds floats as f64 bits and integers as i64; kernels read f32, f64 or whole integers.
void append_element(std::vector<std::uint8_t>& bytes, DType storage, std::uint64_t bits) {
  if (storage == kF32) return append(bytes, static_cast<float>(std::bit_cast<double>(bits)));
  switch (element_bytes(storage)) {
    case 1:
      return append(bytes, static_cast<std::uint8_t>(bits));
    case 2:
      return append(bytes, static_cast<std::uint16_t>(bits));
    case 4:
      return append(bytes, static_cast<std::uint32_t>(bits));
    default:
      return append(bytes, bits);
  }
}

}  // namespace

ProgramContext::ProgramContext(const ir::Program& p) : program(p) {
  out.info = p.info;
  auto& pool = exprs();
  const auto one = pool.const_int(1);
  gradient_ = add_buffer({"gradient", kF32, 32, pool.n(), rt::BufferRole::Gradient, 0, {}});
  output_ = add_buffer({"output", kF32, 32, pool.n(), rt::BufferRole::Output, 0, {}});
  for (std::uint32_t i = 0; i < out.info.wire.fields.size(); ++i) {
    const auto& f = out.info.wire.fields[i];
    fields_.push_back(add_buffer({f.name,
                                  f.type.dtype,
                                  f.type.dtype.bits,
                                  pool.upper_bound(num_elems(f.type)),
                                  rt::BufferRole::Field,
                                  i,
                                  {}}));
  }
  for (std::uint32_t i = 0; i < out.info.counts.size(); ++i) {
    counts_.push_back(
        add_buffer({out.info.counts[i].name, kU32, 32, one, rt::BufferRole::Count, i, {}}));
  }
  for (std::uint32_t i = 0; i < out.info.states.size(); ++i) {
    const auto& s = out.info.states[i];
    const auto elems = num_elems(s.type);
    states_.push_back(
        add_buffer({s.name, s.type.dtype, s.type.dtype.bits, elems, rt::BufferRole::State, i, {}}));
    // Nobody writes an input.
    if (s.is_input) {
      states_next_.push_back(rt::kNoIndex);
      continue;
    }
    states_next_.push_back(add_buffer(
        {s.name + "'", s.type.dtype, s.type.dtype.bits, elems, rt::BufferRole::StateNext, i, {}}));
  }
}

rt::BufferIndex ProgramContext::add_buffer(rt::BufferInfo info) {
  auto& pool = exprs();
  const auto bits = pool.mul(info.num_elems, pool.const_int(info.storage_bits));
  info.size_bytes = pool.ceil_div(bits, pool.const_int(8));
  out.buffers.push_back(std::move(info));
  return static_cast<rt::BufferIndex>(out.buffers.size() - 1);
}

rt::BufferIndex ProgramContext::add_workspace(const std::string& name, DType dtype,
                                              HostExprId num_elems) {
  return add_buffer({name,
                     dtype,
                     kir::whole_element_bits(dtype),
                     exprs().upper_bound(num_elems),
                     rt::BufferRole::Workspace,
                     0,
                     {}});
}

rt::BufferIndex ProgramContext::table(std::uint32_t index) {
  if (const auto it = tables_.find(index); it != tables_.end()) return it->second;
  const auto& t = program.tables.at(index);
  std::vector<std::uint8_t> bytes;
  // Narrow floats are kept as f32: the same values, without conversion in the loop.
  const DType storage = is_float(t.type.dtype) && t.type.dtype != kF64 ? kF32 : t.type.dtype;
  for (const auto bits : t.bits) append_element(bytes, storage, bits);
  out.constants.push_back(std::move(bytes));
  rt::BufferInfo info{"table" + std::to_string(index),
                      storage,
                      kir::whole_element_bits(storage),
                      num_elems(t.type),
                      rt::BufferRole::Constant,
                      static_cast<std::uint32_t>(out.constants.size() - 1),
                      {}};
  return tables_[index] = add_buffer(std::move(info));
}

bool ProgramContext::is_packed(rt::BufferIndex index) const {
  const auto bits = buffer(index).storage_bits;
  return bits != 8 && bits != 16 && bits != 32 && bits != 64;
}

std::uint32_t ProgramContext::message(const std::string& text) {
  for (std::uint32_t i = 0; i < out.messages.size(); ++i) {
    if (out.messages[i] == text) return i;
  }
  out.messages.push_back(text);
  return static_cast<std::uint32_t>(out.messages.size() - 1);
}

HostExprId ProgramContext::num_elems(const ir::Type& type) {
  auto& pool = exprs();
  if (type.rank == 0) return pool.const_int(1);
  return type.rank == 1 ? type.dims[0] : pool.mul(type.dims[0], type.dims[1]);
}

bool ProgramContext::is_const(HostExprId id, std::int64_t value) const {
  return const_int(id) == value;
}

std::optional<std::int64_t> ProgramContext::const_int(HostExprId id) const {
  const auto& pool = *out.info.exprs;
  if (!pool.is_const(id) || pool.type(id) != HostType::Int) return std::nullopt;
  return pool.const_value(id).as_int();
}

bool ProgramContext::is_at_most_constant(HostExprId id) const {
  if (const_int(id)) return true;
  const HostExprNode node = out.info.exprs->node(id);
  return node.op == HostOp::Min && (const_int(node.args[0]) || const_int(node.args[1]));
}

std::string ProgramContext::unique_symbol(const std::string& stem) {
  const int uses = symbol_uses_[stem]++;
  return uses == 0 ? stem : stem + "_" + std::to_string(uses);
}

kir::Version ProgramContext::version_of(const ir::Function& fn, ir::ValueId v) {
  const auto& op = fn.ops[fn.values[v.index()].def.index()];
  const auto given = [&](rt::BufferIndex b) { return kir::given_version(buffer(b)); };
  switch (op.kind) {
    case ir::OpKind::gradient:
      return given(gradient());
    case ir::OpKind::state:
      return given(state(op.attrs.index));
    case ir::OpKind::field:
      return given(field(op.attrs.index));
    case ir::OpKind::const_array:
      return given(table(op.attrs.index));
    case ir::OpKind::count_value:
      return count_version(fn, op.attrs.index);
    case ir::OpKind::keep:
      return version_of(fn, op.operands[0]);
    case ir::OpKind::nonzero:
      if (fn.values[v.index()].result_index == 1) return count_version(fn, op.attrs.index);
      break;
    default:
      break;
  }
  const auto [at, is_new] = versions_.try_emplace({&fn, v.index()}, next_version_);
  if (is_new) ++next_version_;
  return at->second;
}

void ProgramContext::set_version(const ir::Function& fn, ir::ValueId v, kir::Version version) {
  versions_[{&fn, v.index()}] = version;
}

kir::Version ProgramContext::count_version(const ir::Function& fn, std::uint64_t index) {
  auto& found = found_counts_[&fn];
  if (found.empty()) {
    for (const ir::Op& op : fn.ops) {
      if (op.kind == ir::OpKind::nonzero) found.insert(op.attrs.index);
    }
  }
  if (!found.contains(index))
    return kir::given_version(buffer(count(static_cast<std::uint32_t>(index))));
  const auto [at, is_new] = count_versions_.try_emplace({&fn, index}, next_version_);
  if (is_new) ++next_version_;
  return at->second;
}

}  // namespace cinch::codegen
