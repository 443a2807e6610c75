// Opening a session on a GPU: launches planned, memory measured and made, constants and states
// sent.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/call/entries.h"
#include "runtime/gpu/session/session_impl.h"
#include "runtime/image/buffer_size.h"
#include "runtime/tuning/tuning.h"

namespace cinch::rt {
namespace {

TensorFacts facts_of(const ProgramInfo& info, const GpuSessionOptions& options,
                     const ListTensor& shape) {
  return facts_for(info, {shape.rows, shape.cols, options.world, options.worker, options.seed,
                          shape.tensor, shape.piece});
}

bool is_callers(BufferRole role) {
  return role == BufferRole::Gradient || role == BufferRole::Output || role == BufferRole::Field ||
         role == BufferRole::Count || role == BufferRole::Constant;
}

PlannedLaunch service(GpuService which, std::uint32_t arg0 = kNoIndex,
                      std::uint32_t arg1 = kNoIndex) {
  return {.is_service = true,
          .index = static_cast<std::uint32_t>(which),
          .arg0 = arg0,
          .arg1 = arg1,
          .is_guarded = false};
}

}  // namespace

GpuSession::Impl::Impl(std::shared_ptr<const GpuProgram> loaded, GpuSessionOptions opts)
    : program(std::move(loaded)),
      options(std::move(opts)),
      tuning(options.tuning ? *options.tuning : gpu_tuning(program->device()->arch())),
      layout(gpu_tensor_layout(program->image())),
      parameters(program->info()),
      largest(program->info()),
      order(program->device()) {
  for (const ListTensor& shape : options.tensors) {
    facts.push_back(facts_of(program->info(), options, shape));
  }
  memos.resize(facts.size());
}

Status GpuSession::Impl::open(GpuStream stream) {
  if (options.dtype != kF32 && options.dtype != kF16 && options.dtype != kBF16) {
    return fail(
        ErrorKind::InvalidArgument,
        fmt::format("tensors of {}: f32, f16 and bf16 are taken", dtype_name(options.dtype)));
  }
  this->stream = stream;
  for (auto* addresses : {&read_from, &read_to}) addresses->reserve(num_tensors());
  read_payloads.reserve(num_tensors());
  if (Status status = set_parameters(); !status) return status;
  for (const EntryKind kind : {EntryKind::Encode, EntryKind::Decode, EntryKind::DecodeAdd,
                               EntryKind::Finish, EntryKind::Sync}) {
    if (Status status = plan(kind); !status) return status;
  }
  if (Status status = measure(); !status) return status;
  if (Status status = count_blocks(); !status) return status;
  batch_steps();
  if (Status status = order.open(); !status) return status;
  if (Status status = order.run(stream, [&] { return make_memory(stream); }); !status) {
    return status;
  }
  return run_init(stream);
}

Status GpuSession::Impl::make_memory(GpuStream stream) {
  const GpuDevice::Scope scope(device());
  if (Status status = place_memory(stream); !status) return status;
  if (Status status = send_constants(stream); !status) return status;
  if (Status status = send_blocks(stream); !status) return status;
  for (std::size_t kind = 0; kind < kNumEntries; ++kind) {
    if (calls[kind]) place_buffers(static_cast<EntryKind>(kind));
  }
  note_what_follows_step();
  return Ok{};
}

Status GpuSession::Impl::set_parameters() {
  for (const auto& [name, value] : options.parameters) {
    if (Status status = parameters.set(name, value); !status) return status;
    if (Status status = largest.set(name, value); !status) return status;
  }
  for (const auto& [name, value] : options.largest_parameters) {
    if (Status status = largest.set(name, value); !status) return status;
  }
  return Ok{};
}

BufferIndex GpuSession::Impl::buffer_of(BufferRole role, std::uint32_t role_index) const {
  const auto& buffers = image().buffers;
  for (BufferIndex b = 0; b < buffers.size(); ++b) {
    if (buffers[b].role == role && buffers[b].role_index == role_index) return b;
  }
  return kNoIndex;
}

Result<StepBounds> GpuSession::Impl::over_steps(const HostExprPool& pool, HostExprId expr,
                                                const TensorFacts& tensor) const {
  auto first = bounds_over_steps(pool, expr, host_env(tensor, parameters, 0));
  auto second = bounds_over_steps(pool, expr, host_env(tensor, largest, 0));
  if (!first) return first;
  if (!second) return second;
  return StepBounds{std::min(first->least, second->least), std::max(first->most, second->most)};
}

Result<std::int64_t> GpuSession::Impl::most_rounds(HostExprId begin, HostExprId end) const {
  // As one expression: both are of the same parameters and the same step.
  HostExprPool pool = info().exprs;
  const HostExprId rounds = begin ? pool.sub(end, begin) : end;
  std::int64_t most = 0;
  for (const TensorFacts& tensor : facts) {
    const auto bounds = over_steps(pool, rounds, tensor);
    CINCH_TRY(bounds);
    most = std::max(most, bounds->most);
  }
  return most;
}

Status GpuSession::Impl::plan(EntryKind kind) {
  // Decode serves where a program has no decode-add of its own; a default finish divides.
  const bool is_possible = kind == EntryKind::DecodeAdd ? has(EntryKind::Decode)
                           : kind == EntryKind::Finish  ? has(EntryKind::Decode)
                                                        : has(kind);
  if (!is_possible || !check_call(image(), kind, options.only_decodes)) return Ok{};
  auto& made = calls[static_cast<std::size_t>(kind)];
  made = std::make_unique<Call>(layout, num_tensors());
  switch (kind) {
    case EntryKind::Encode:
      return plan_encode(plan_of(kind));
    case EntryKind::Finish:
      return plan_finish(plan_of(kind));
    case EntryKind::Sync:
      return plan_sync(plan_of(kind));
    default:
      return plan_decode(kind, plan_of(kind));
  }
}

Status GpuSession::Impl::plan_entry(EntryKind runs, Plan& plan) {
  const Entry& entry = image().entries[static_cast<std::size_t>(runs)];
  const bool folds = std::ranges::any_of(facts, [this](const TensorFacts& tensor) {
    return tensor.num_elems() > tuning.fold_elements;
  });
  const auto rounds = [this](HostExprId begin, HostExprId end) { return most_rounds(begin, end); };
  return plan_steps(image(), entry.steps, rounds, folds, plan.steps, bounds);
}

Status GpuSession::Impl::plan_encode(Plan& plan) {
  const std::uint32_t type = options.dtype == kF16 ? 1 : 2;
  const BufferIndex gradient = buffer_of(BufferRole::Gradient);
  if (!is_f32()) plan.steps.push_back(service(GpuService::Widen, gradient, type));
  if (Status status = plan_entry(EntryKind::Encode, plan); !status) return status;
  if (!image().messages.empty()) {
    plan.steps.push_back(service(GpuService::FindNonFinite, gradient));
  }
  plan.steps.push_back(service(GpuService::Seal));
  return has(EntryKind::Init) ? plan_init(plan_of(EntryKind::Init)) : Ok{};
}

Status GpuSession::Impl::plan_sync(Plan& plan) {
  const BufferIndex gradient = buffer_of(BufferRole::Gradient),
                    output = buffer_of(BufferRole::Output);
  const std::uint32_t type = options.dtype == kF16 ? 1 : 2;
  if (!is_f32()) plan.steps.push_back(service(GpuService::Widen, gradient, type));
  Plan entry;
  if (Status status = plan_entry(EntryKind::Sync, entry); !status) return status;
  entry.steps.push_back({.meeting = PlannedMeeting::Agree});
  for (PlannedLaunch& step : entry.steps) {
    // A rank tells the others which it is: failed, or non-finite.
    if (step.meeting != PlannedMeeting::None && !image().messages.empty()) {
      plan.steps.push_back(service(GpuService::FindNonFinite, gradient));
    }
    plan.steps.push_back(std::move(step));
  }
  plan.steps.push_back(
      service(GpuService::Commit, output, static_cast<std::uint32_t>(EntryKind::Sync)));
  if (!is_f32()) {
    PlannedLaunch narrow = service(GpuService::Narrow, output, type);
    narrow.value = 1;
    plan.steps.push_back(narrow);
  }
  return has(EntryKind::Init) ? plan_init(plan_of(EntryKind::Init)) : Ok{};
}

Status GpuSession::Impl::plan_init(Plan& plan) {
  if (Status status = plan_entry(EntryKind::Init, plan); !status) return status;
  plan.steps.push_back(
      service(GpuService::Commit, kNoIndex, static_cast<std::uint32_t>(EntryKind::Init)));
  return Ok{};
}

Status GpuSession::Impl::plan_decode(EntryKind kind, Plan& plan) {
  const BufferIndex output = buffer_of(BufferRole::Output);
  const bool is_own = kind == EntryKind::Decode || has(EntryKind::DecodeAdd);
  plan.steps.push_back(service(GpuService::Open));
  if (Status status = plan_entry(is_own ? kind : EntryKind::Decode, plan); !status) return status;
  plan.steps.push_back(service(GpuService::Fill, output));
  if (!is_own) plan.steps.push_back(service(GpuService::AddTo, output));
  if (kind == EntryKind::Decode && !is_f32()) {
    plan.steps.push_back(service(GpuService::Narrow, output, options.dtype == kF16 ? 1 : 2));
  }
  return Ok{};
}

Status GpuSession::Impl::plan_finish(Plan& plan) {
  const BufferIndex sum = buffer_of(BufferRole::Gradient), output = buffer_of(BufferRole::Output);
  if (has(EntryKind::Finish)) {
    if (Status status = plan_entry(EntryKind::Finish, plan); !status) return status;
    if (!image().messages.empty()) {
      plan.steps.push_back(service(GpuService::FindNonFinite, sum));
    }
    plan.steps.push_back(
        service(GpuService::Commit, output, static_cast<std::uint32_t>(EntryKind::Finish)));
  } else {
    PlannedLaunch divide = service(GpuService::Divide, output, sum);
    divide.value = gpu_factor(static_cast<float>(options.world));
    plan.steps.push_back(divide);
  }
  if (!is_f32()) {
    PlannedLaunch narrow = service(GpuService::Narrow, output, options.dtype == kF16 ? 1 : 2);
    narrow.value = 1;
    plan.steps.push_back(narrow);
  }
  return Ok{};
}

// The most bytes of every buffer of every tensor, as pieces of the arena.
Status GpuSession::Impl::measure() {
  pieces.resize(num_tensors());
  capacities.resize(num_tensors());
  scratch_in.assign(num_tensors(), GpuArena::kNone);
  scratch_out.assign(num_tensors(), GpuArena::kNone);
  for (std::size_t t = 0; t < num_tensors(); ++t) {
    if (Status status = measure_tensor(t); !status) return status;
  }
  for (const auto& bytes : image().constants) constants.emplace_back(arena.add(bytes.size()));
  for (std::size_t kind = 0; kind < kNumEntries; ++kind) {
    if (calls[kind]) table_pieces[kind] = arena.add(calls[kind]->table.size_bytes());
  }
  const std::size_t counts = info().counts.size();
  call_words_bytes = 4 * (kStatusWords + counts) * num_tensors();
  call_words = arena.add(call_words_bytes);
  swapped = arena.add(4 * std::max<std::size_t>(info().states.size() * num_tensors(), 1));
  outcomes = arena.add(sizeof(GpuOutcome) * num_tensors());
  if (num_tensors() > 1) {
    first_blocks = arena.add(4 * num_shapes() * (num_tensors() + 1));
  }
  measure_kept_states();
  return Ok{};
}

Status GpuSession::Impl::measure_tensor(std::size_t tensor) {
  const auto& buffers = image().buffers;
  if (Status status = check_states(tensor); !status) return status;
  pieces[tensor].assign(buffers.size(), GpuArena::kNone);
  capacities[tensor].assign(buffers.size(), 0);
  for (BufferIndex b = 0; b < buffers.size(); ++b) {
    if (Status status = measure_buffer(tensor, b); !status) return status;
    const bool is_staged =
        buffers[b].role == BufferRole::Field && !(has_fixed_offset(info(), buffers[b].role_index) &&
                                                  has_fixed_size(info(), buffers[b].role_index));
    const bool is_left_out = options.only_decodes && is_state(buffers[b].role);
    if (is_staged || !(is_callers(buffers[b].role) || is_left_out)) {
      const bool holds_state = is_state(buffers[b].role);
      pieces[tensor][b] = arena.add(static_cast<std::size_t>(capacities[tensor][b]),
                                    holds_state ? MemoryUse::State : MemoryUse::Workspace);
    }
  }
  const auto f32_bytes = static_cast<std::size_t>(facts[tensor].num_elems()) * 4;
  const bool adds_apart = has(EntryKind::Decode) && !has(EntryKind::DecodeAdd);
  if (!is_f32()) scratch_in[tensor] = arena.add(f32_bytes);
  if (!is_f32() || adds_apart) scratch_out[tensor] = arena.add(f32_bytes);
  return Ok{};
}

Status GpuSession::Impl::measure_buffer(std::size_t tensor, BufferIndex b) {
  const BufferInfo& buffer = image().buffers[b];
  const auto size = over_steps(buffer.size_bytes, facts[tensor]);
  CINCH_TRY(size);
  capacities[tensor][b] = std::max<std::int64_t>(size->most, 0);
  if (size->most <= kMaxBufferBytes) return Ok{};
  const auto name = [this](std::uint32_t i) { return info().params[i].name; };
  return fail(ErrorKind::OutOfMemory,
              fmt::format("tensor {}: {} may take {} bytes at some step: `{}`", tensor, buffer.name,
                          size->most, info().exprs.print(buffer.size_bytes, name)));
}

// Of an error: which memory the steps to come may need.
std::string GpuSession::Impl::largest_that_follows_step() const {
  std::int64_t most = 0;
  std::string text;
  for (std::size_t t = 0; t < num_tensors(); ++t) {
    for (BufferIndex b = 0; b < image().buffers.size(); ++b) {
      const BufferInfo& buffer = image().buffers[b];
      const bool follows = info().exprs.depends_on(buffer.size_bytes, HostOp::Step);
      if (!follows || is_callers(buffer.role) || capacities[t][b] <= most) continue;
      most = capacities[t][b];
      text = fmt::format("; for the largest of all steps {} of tensor {} takes {} bytes",
                         buffer.name, t, most);
    }
  }
  return text;
}

Status GpuSession::Impl::place_memory(GpuStream stream) {
  if (Status status = arena.allocate(program->device(), stream, options.memory); !status) {
    if (status.error().kind == ErrorKind::OutOfMemory) {
      status.error().message += largest_that_follows_step();
    }
    return status;
  }
  for (std::size_t kind = 0; kind < kNumEntries; ++kind) {
    if (calls[kind]) calls[kind]->table.place(arena.address(table_pieces[kind]));
  }
  return Ok{};
}

Status GpuSession::Impl::send_constants(GpuStream stream) {
  for (std::size_t i = 0; i < constants.size(); ++i) {
    Status status = device().write(arena.address(constants[i]), image().constants[i], stream);
    if (!status) return status;
  }
  const auto clear = [&](GpuArena::Piece piece) -> Status {
    if (arena.address(piece) == 0) return Ok{};
    return device().status(
        device().driver().fill(arena.address(piece), 0, arena.size_bytes(piece), stream),
        "clearing memory");
  };
  for (GpuArena::Piece piece : {swapped, outcomes}) {
    if (Status status = clear(piece); !status) return status;
  }
  for (std::size_t t = 0; t < num_tensors(); ++t) {
    for (BufferIndex b = 0; b < image().buffers.size(); ++b) {
      const BufferRole role = image().buffers[b].role;
      if (role != BufferRole::State && role != BufferRole::StateInPlace) continue;
      if (Status status = clear(pieces[t][b]); !status) return status;
    }
  }
  return Ok{};
}

GpuAddress GpuSession::Impl::own_address(std::size_t tensor, BufferIndex b) const {
  const BufferInfo& buffer = image().buffers[b];
  if (buffer.role == BufferRole::Constant) return arena.address(constants[buffer.role_index]);
  if (buffer.role == BufferRole::Count) {
    const std::size_t counts = info().counts.size();
    return arena.address(call_words) +
           4 * (kStatusWords * num_tensors() + tensor * counts + buffer.role_index);
  }
  return arena.address(pieces[tensor][b]);
}

// Addresses that no call changes.
void GpuSession::Impl::place_buffers(EntryKind kind) {
  for (std::size_t t = 0; t < num_tensors(); ++t) {
    GpuTensorEntry entry = call_of(kind).table.entry(t);
    for (BufferIndex b = 0; b < image().buffers.size(); ++b) {
      entry.set_buffer(b, own_address(t, b));
    }
    const bool adds_apart = kind == EntryKind::DecodeAdd && !has(EntryKind::DecodeAdd);
    if (scratch_in[t] != GpuArena::kNone && takes_gradient(kind)) {
      entry.set_buffer(buffer_of(BufferRole::Gradient), arena.address(scratch_in[t]));
    }
    if (scratch_out[t] != GpuArena::kNone && (adds_apart || (!is_f32() && gives_output(kind)))) {
      entry.set_buffer(buffer_of(BufferRole::Output), arena.address(scratch_out[t]));
    }
  }
}

void GpuSession::Impl::note_what_follows_step() {
  const auto follows = [this](HostExprId expr) {
    return info().exprs.depends_on(expr, HostOp::Step);
  };
  sizes_follow_step = std::ranges::any_of(image().size_exprs, follows);
  for (const BufferInfo& buffer : image().buffers) {
    sizes_follow_step = sizes_follow_step || follows(buffer.size_bytes);
  }
  for (const KernelInfo& kernel : image().kernels) {
    sizes_follow_step = sizes_follow_step || follows(kernel.num_groups);
  }
  for (const FieldInfo& field : info().wire.fields) {
    for (int i = 0; i < field.type.rank; ++i) {
      sizes_follow_step = sizes_follow_step || follows(field.type.dims[i]);
    }
  }
}

Status GpuSession::Impl::run_init(GpuStream stream) {
  if (plan_of(EntryKind::Init).steps.empty()) return Ok{};
  return call(EntryKind::Init, 0, stream);
}

}  // namespace cinch::rt
