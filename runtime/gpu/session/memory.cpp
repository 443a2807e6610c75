// Opening a session on a GPU: launches planned, memory measured and made, constants and states
// sent.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/call/joins.h"
#include "runtime/gpu/session/session_impl.h"

namespace cinch::rt {
namespace {

bool is_callers(BufferRole role) {
  return role == BufferRole::Gradient || role == BufferRole::Output || role == BufferRole::Field ||
         role == BufferRole::Count || role == BufferRole::Constant;
}

Status set_parameters(GpuSessionCore& core) {
  for (const auto& [name, value] : core.options.parameters) {
    CINCH_TRY(core.parameters.set(name, value));
    CINCH_TRY(core.largest.set(name, value));
  }
  for (const auto& [name, value] : core.options.largest_parameters) {
    CINCH_TRY(core.largest.set(name, value));
  }
  return Ok{};
}

}  // namespace

// A state's memory is as large as the state, which is read and written whole.
Status GpuSessionMemory::check_states(std::size_t tensor) const {
  for (BufferIndex b = 0; b < image().buffers.size(); ++b) {
    const BufferInfo& buffer = image().buffers[b];
    if (!is_state(buffer.role)) continue;
    for (const ParameterValues* values : {&core().parameters, &core().largest}) {
      const HostEnv at = host_env(core().facts[tensor], *values, 0);
      const auto bytes = TRY(rt::state_bytes(info(), info().states[buffer.role_index], at));
      const auto held = TRY(buffer_bytes(image(), b, at));
      if (held == bytes) continue;
      return fail(ErrorKind::Internal, fmt::format("state buffer {} of {} bytes, its state has {}",
                                                   buffer.name, held, bytes));
    }
  }
  return Ok{};
}

Status GpuSessionMemory::measure_buffer(std::size_t tensor, BufferIndex b) {
  const BufferInfo& buffer = image().buffers[b];
  const auto size = TRY(core().over_steps(buffer.size_bytes, core().facts[tensor]));
  capacities_[tensor][b] = std::max<std::int64_t>(size.most, 0);
  if (size.most <= kMaxBufferBytes) return Ok{};
  const auto name = [this](std::uint32_t i) { return info().params[i].name; };
  return fail(ErrorKind::OutOfMemory,
              fmt::format("tensor {}: {} may take {} bytes at some step: `{}`", tensor, buffer.name,
                          size.most, info().exprs->print(buffer.size_bytes, name)));
}

Status GpuSessionMemory::measure_tensor(std::size_t tensor) {
  const auto& buffers = image().buffers;
  CINCH_TRY(check_states(tensor));
  pieces_[tensor].assign(buffers.size(), GpuArena::kNone);
  capacities_[tensor].assign(buffers.size(), 0);
  for (BufferIndex b = 0; b < buffers.size(); ++b) {
    CINCH_TRY(measure_buffer(tensor, b));
    const bool is_staged =
        buffers[b].role == BufferRole::Field && !(has_fixed_offset(info(), buffers[b].role_index) &&
                                                  has_fixed_size(info(), buffers[b].role_index));
    const bool is_left_out = core().options.only_decodes && is_state(buffers[b].role);
    if (is_staged || !(is_callers(buffers[b].role) || is_left_out)) {
      const bool holds_state = is_state(buffers[b].role);
      pieces_[tensor][b] = arena_.add(static_cast<std::size_t>(capacities_[tensor][b]),
                                      holds_state ? MemoryUse::State : MemoryUse::Workspace);
    }
  }
  const auto f32_bytes = static_cast<std::size_t>(core().facts[tensor].num_elems()) * 4;
  const bool adds_apart = has(EntryKind::Decode) && !has(EntryKind::DecodeAdd);
  if (!is_f32()) scratch_in_[tensor] = arena_.add(f32_bytes);
  if (!is_f32() || adds_apart) scratch_out_[tensor] = arena_.add(f32_bytes);
  return Ok{};
}

// The most bytes of every buffer of every tensor, as pieces of the arena.
Status GpuSessionMemory::measure() {
  pieces_.resize(num_tensors());
  capacities_.resize(num_tensors());
  scratch_in_.assign(num_tensors(), GpuArena::kNone);
  scratch_out_.assign(num_tensors(), GpuArena::kNone);
  for (std::size_t t = 0; t < num_tensors(); ++t) {
    CINCH_TRY(measure_tensor(t));
  }
  for (const auto& bytes : image().constants) constants_.emplace_back(arena_.add(bytes.size()));
  for (std::size_t kind = 0; kind < kNumEntries; ++kind) {
    if (core().calls[kind])
      table_pieces_[kind] = arena_.add(core().calls[kind]->table.size_bytes());
  }
  const std::size_t counts = info().counts.size();
  call_words_bytes_ = 4 * (kStatusWords + counts) * num_tensors();
  call_words_ = arena_.add(call_words_bytes_);
  swapped_ = arena_.add(4 * std::max<std::size_t>(info().states.size() * num_tensors(), 1));
  outcomes_ = arena_.add(sizeof(GpuOutcome) * num_tensors());
  return Ok{};
}

// Of an error: which memory the steps to come may need.
std::string GpuSessionMemory::largest_that_follows_step() const {
  std::int64_t most = 0;
  std::string text;
  for (std::size_t t = 0; t < num_tensors(); ++t) {
    for (BufferIndex b = 0; b < image().buffers.size(); ++b) {
      const BufferInfo& buffer = image().buffers[b];
      const bool follows = info().exprs->depends_on(buffer.size_bytes, HostOp::Step);
      if (!follows || is_callers(buffer.role) || capacities_[t][b] <= most) continue;
      most = capacities_[t][b];
      text = fmt::format("; for the largest of all steps {} of tensor {} takes {} bytes",
                         buffer.name, t, most);
    }
  }
  return text;
}

Status GpuSessionMemory::place(GpuStream stream) {
  if (Status status = arena_.allocate(core().program->device(), stream, core().options.memory);
      !status) {
    if (status.error().kind == ErrorKind::OutOfMemory) {
      status.error().message += largest_that_follows_step();
    }
    return status;
  }
  for (std::size_t kind = 0; kind < kNumEntries; ++kind) {
    if (core().calls[kind]) core().calls[kind]->table.place(arena_.address(table_pieces_[kind]));
  }
  return Ok{};
}

Status GpuSessionMemory::clear(GpuArena::Piece piece, GpuStream stream) const {
  if (arena_.address(piece) == 0) return Ok{};
  return device().status(
      device().driver().fill(arena_.address(piece), 0, arena_.size_bytes(piece), stream),
      "clearing memory");
}

Status GpuSessionMemory::send_constants(GpuStream stream) {
  for (std::size_t i = 0; i < constants_.size(); ++i) {
    CINCH_TRY(device().write(arena_.address(constants_[i]), image().constants[i], stream));
  }
  for (GpuArena::Piece piece : {swapped_, outcomes_}) {
    CINCH_TRY(clear(piece, stream));
  }
  for (std::size_t t = 0; t < num_tensors(); ++t) {
    for (BufferIndex b = 0; b < image().buffers.size(); ++b) {
      const BufferRole role = image().buffers[b].role;
      if (role != BufferRole::State && role != BufferRole::StateInPlace) continue;
      CINCH_TRY(clear(pieces_[t][b], stream));
    }
  }
  return Ok{};
}

GpuAddress GpuSessionMemory::own_address(std::size_t tensor, BufferIndex b) const {
  const BufferInfo& buffer = image().buffers[b];
  if (buffer.role == BufferRole::Constant) return arena_.address(constants_[buffer.role_index]);
  if (buffer.role == BufferRole::Count) {
    return counts() + 4 * (tensor * info().counts.size() + buffer.role_index);
  }
  return arena_.address(pieces_[tensor][b]);
}

// Addresses that no call changes.
void GpuSessionMemory::place_buffers(EntryKind kind) {
  for (std::size_t t = 0; t < num_tensors(); ++t) {
    GpuTensorEntry entry = core().call_of(kind).table.entry(t);
    for (BufferIndex b = 0; b < image().buffers.size(); ++b) {
      entry.set_buffer(b, own_address(t, b));
    }
    const bool adds_apart = kind == EntryKind::DecodeAdd && !has(EntryKind::DecodeAdd);
    if (scratch_in_[t] != GpuArena::kNone && takes_gradient(kind)) {
      entry.set_buffer(buffer_of(BufferRole::Gradient), arena_.address(scratch_in_[t]));
    }
    if (scratch_out_[t] != GpuArena::kNone && (adds_apart || (!is_f32() && gives_output(kind)))) {
      entry.set_buffer(buffer_of(BufferRole::Output), arena_.address(scratch_out_[t]));
    }
  }
}

Status GpuSessionMemory::make(GpuStream stream) {
  CINCH_TRY(place(stream));
  CINCH_TRY(send_constants(stream));
  for (std::size_t kind = 0; kind < kNumEntries; ++kind) {
    if (core().calls[kind]) place_buffers(static_cast<EntryKind>(kind));
  }
  return Ok{};
}

// ---- where it is ----

GpuAddress GpuSessionMemory::counts() const {
  return status_words() + std::size_t{4} * kStatusWords * num_tensors();
}

Status GpuSessionMemory::begin_call(GpuStream stream) const {
  const GpuCode code = device().driver().fill(status_words(), 0, call_words_bytes_, stream);
  return device().status(code, "beginning a call");
}

GpuSessionCore::GpuSessionCore(std::shared_ptr<const GpuProgram> loaded, GpuSessionOptions opts)
    : program(std::move(loaded)),
      options(std::move(opts)),
      tuning(options.tuning ? *options.tuning : gpu_tuning(program->device()->arch())),
      layout(gpu_tensor_layout(program->image())),
      parameters(program->info()),
      largest(program->info()),
      order(program->device()) {
  for (const ListTensor& shape : options.tensors) {
    facts.push_back(facts_for(program->info(),
                              {shape.rows, shape.cols, options.world, options.worker, options.seed,
                               shape.tensor, shape.piece, options.machine_ranks}));
  }
  memos.resize(facts.size());
  given.resize(facts.size(), GivenInputs(program->info()));
}

BufferIndex GpuSessionCore::buffer_of(BufferRole role, std::uint32_t role_index) const {
  const auto& buffers = image().buffers;
  for (BufferIndex b = 0; b < buffers.size(); ++b) {
    if (buffers[b].role == role && buffers[b].role_index == role_index) return b;
  }
  return kNoIndex;
}

HostEnv GpuSessionCore::env(std::size_t tensor, std::uint64_t step) const {
  HostEnv env = host_env(facts[tensor], parameters, step);
  memos[tensor].bind(*info().exprs, env);
  env.memo = &memos[tensor];
  return env;
}

Result<StepBounds> GpuSessionCore::over_steps(const HostExprPool& pool, HostExprId expr,
                                              const TensorFacts& tensor) const {
  const auto first = TRY(bounds_over_steps(pool, expr, host_env(tensor, parameters, 0)));
  const auto second = TRY(bounds_over_steps(pool, expr, host_env(tensor, largest, 0)));
  return StepBounds{std::min(first.least, second.least), std::max(first.most, second.most)};
}

Status GpuSession::Impl::open(GpuStream stream) {
  const DType dtype = core.options.dtype;
  if (dtype != kF32 && dtype != kF16 && dtype != kBF16) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("tensors of {}: f32, f16 and bf16 are taken", dtype_name(dtype)));
  }
  core.stream = stream;
  views.reserve();
  CINCH_TRY(set_parameters(core));
  CINCH_TRY(plan_calls(core));
  for (GpuCallPlan& plan : core.plans) plan.kernels = &core.program->kernels();
  CINCH_TRY(memory.measure());
  blocks.measure();
  states.measure();
  CINCH_TRY(blocks.count());
  blocks.batch_steps();
  CINCH_TRY(core.order.open());
  CINCH_TRY(core.order.run(stream, [&]() -> Status {
    const GpuDevice::Scope scope(core.device());
    CINCH_TRY(memory.make(stream));
    return blocks.send(stream);
  }));
  calls.note_what_follows_step();
  if (core.plan_of(EntryKind::Init).steps.empty()) return Ok{};
  return calls.call(EntryKind::Init, 0, stream);
}

}  // namespace cinch::rt
