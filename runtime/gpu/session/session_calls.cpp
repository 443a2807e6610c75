// Calls of a session on a GPU: tables written and sent, launches enqueued.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/shape_text.h"
#include "runtime/gpu/session/session_impl.h"
#include "runtime/image/buffer_size.h"

namespace cinch::rt {
namespace {

constexpr GpuAddress kPayloadAlignment = 16;

Status check_count(std::size_t given, std::size_t wanted, const char* what) {
  if (given == wanted) return Ok{};
  return fail(ErrorKind::InvalidArgument,
              fmt::format("{} {}, the session has {} tensors", given, what, wanted));
}

}  // namespace

Status GpuSession::Impl::check_address(GpuAddress address, GpuAddress& checked, const char* what,
                                       std::size_t tensor) const {
  if (address == checked) return Ok{};
  Status status = device().check_memory(address);
  if (status) {
    checked = address;
  } else {
    status.error().message = fmt::format("{} {}: {}", what, tensor, status.error().message);
  }
  return status;
}

Status GpuSession::Impl::bind_tensors(EntryKind kind, std::span<const GpuAddress> gradients,
                                      std::span<const GpuAddress> outputs) {
  const bool is_sum = kind == EntryKind::Finish;
  const auto bind = [&](std::span<const GpuAddress> given, BufferRole role, DType dtype) -> Status {
    if (Status status = check_count(given.size(), num_tensors(), "addresses"); !status) {
      return status;
    }
    for (std::size_t t = 0; t < given.size(); ++t) {
      const auto align = static_cast<GpuAddress>(element_bytes(dtype));
      if (facts[t].num_elems() > 0 && (given[t] == 0 || given[t] % align != 0)) {
        return fail(ErrorKind::InvalidArgument,
                    fmt::format("tensor {} at address {:#x}: a multiple of {} is needed", t,
                                given[t], align));
      }
      Call& made = call_of(kind);
      auto& checked = role == BufferRole::Gradient ? made.checked_gradients : made.checked_outputs;
      if (facts[t].num_elems() > 0) {
        const Status status = check_address(given[t], checked[t], "tensor", t);
        if (!status) return status;
      }
      GpuTensorEntry entry = made.table.entry(t);
      const bool goes_through_scratch =
          dtype != kF32 || (kind == EntryKind::DecodeAdd && !has(EntryKind::DecodeAdd));
      if (goes_through_scratch) {
        entry.set_tensor(given[t]);
      } else {
        entry.set_buffer(buffer_of(role), given[t]);
      }
    }
    return Ok{};
  };
  // Of what goes through scratch a table has one place, at first the gradient's.
  if (kind != EntryKind::Encode) {
    const DType dtype = kind == EntryKind::DecodeAdd ? kF32 : options.dtype;
    if (Status status = bind(outputs, BufferRole::Output, dtype); !status) return status;
  }
  if (!takes_gradient(kind) && !is_sum) return Ok{};
  return bind(gradients, BufferRole::Gradient, is_sum ? kF32 : options.dtype);
}

// Kernels touch no more of a field than its place in the payload has.
Status GpuSession::Impl::check_fields(std::size_t tensor, const HostEnv& at) const {
  for (std::uint32_t i = 0; i < bound.fields.size(); ++i) {
    const BufferIndex b = buffer_of(BufferRole::Field, i);
    const auto bytes = buffer_bytes(image(), b, at);
    CINCH_TRY(bytes);
    if (*bytes <= bound.fields[i].size_bytes) continue;
    return fail(ErrorKind::Overflow,
                fmt::format("tensor {}: buffer {} takes {} bytes, there are {}", tensor,
                            image().buffers[b].name, *bytes, bound.fields[i].size_bytes));
  }
  return Ok{};
}

// Where fields lie in the caller's payloads while every count stands for its bound.
Status GpuSession::Impl::bind_payloads(EntryKind kind, std::span<const GpuPayload> payloads,
                                       std::uint64_t step) {
  if (Status status = check_count(payloads.size(), num_tensors(), "payloads"); !status) {
    return status;
  }
  call_of(kind).payloads.assign(payloads.begin(), payloads.end());
  const bool is_encode = kind == EntryKind::Encode;
  for (std::size_t t = 0; t < payloads.size(); ++t) {
    const GpuPayload& given = payloads[t];
    if (given.address == 0 || given.address % kPayloadAlignment != 0 || given.size_bytes < 0) {
      return fail(ErrorKind::InvalidArgument,
                  fmt::format("payload {} at address {:#x}: a multiple of {} is needed", t,
                              given.address, kPayloadAlignment));
    }
    GpuAddress& checked = call_of(kind).checked_payloads[t];
    if (Status status = check_address(given.address, checked, "payload", t); !status) return status;
    const HostEnv at = env(t, step);
    if (Status status = lay_out_payload_bound(info(), at, bound); !status) return status;
    if (Status status = check_fields(t, at); !status) return status;
    if (is_encode && given.size_bytes < bound.size_bytes) {
      return fail(ErrorKind::InvalidArgument,
                  fmt::format("payload {} has room for {} bytes, it may take {}", t,
                              given.size_bytes, bound.size_bytes));
    }
    GpuTensorEntry entry = call_of(kind).table.entry(t);
    entry.set_payload(given.address, static_cast<std::uint64_t>(given.size_bytes));
    for (std::uint32_t i = 0; i < bound.fields.size(); ++i) {
      if (!has_fixed_offset(info(), i) || (!is_encode && !has_fixed_size(info(), i))) continue;
      entry.set_buffer(buffer_of(BufferRole::Field, i),
                       given.address + static_cast<GpuAddress>(bound.fields[i].offset));
    }
  }
  return Ok{};
}

Result<std::int64_t> GpuSession::Impl::rounds_at(const PlannedBound& bound,
                                                 const HostEnv& at) const {
  auto end = info().exprs.eval_int(bound.end, at);
  if (!end || !bound.begin) return end;
  return info().exprs.eval_int(bound.begin, at).map([&](std::int64_t begin) {
    std::int64_t rounds = 0;
    return __builtin_sub_overflow(*end, begin, &rounds) ? INT64_MAX : rounds;
  });
}

// Parameters beyond the largest: fewer rounds than asked for would be a wrong result.
Status GpuSession::Impl::check_loops(const HostEnv& at, std::size_t tensor) const {
  for (const PlannedBound& bound : bounds) {
    const auto rounds = rounds_at(bound, at);
    CINCH_TRY(rounds);
    if (*rounds <= bound.most) continue;
    return fail(ErrorKind::OutOfRange,
                fmt::format("tensor {}: a loop of {} rounds, the session was opened for {}: "
                            "give the largest parameters there",
                            tensor, *rounds, bound.most));
  }
  return Ok{};
}

Status GpuSession::Impl::write_sizes(EntryKind kind, std::size_t tensor, std::uint64_t step) {
  GpuTensorEntry entry = call_of(kind).table.entry(tensor);
  const HostEnv at = env(tensor, step);
  const HostExprPool& pool = info().exprs;
  const bool is_empty = facts[tensor].num_elems() == 0;
  if (Status status = check_loops(at, tensor); !status) return status;
  for (std::size_t i = 0; i < image().size_exprs.size(); ++i) {
    const auto value = pool.eval(image().size_exprs[i], at);
    CINCH_TRY(value);
    entry.set_size(i, value->bits);
  }
  for (BufferIndex b = 0; b < image().buffers.size(); ++b) {
    const auto size = buffer_bytes(image(), b, at);
    CINCH_TRY(size);
    if (*size > capacities[tensor][b]) {
      return fail(ErrorKind::OutOfRange,
                  fmt::format("tensor {}: {} takes {} bytes, the session was opened for {}: give "
                              "the largest parameters there",
                              tensor, image().buffers[b].name, *size, capacities[tensor][b]));
    }
    // Of no elements nothing is moved, whatever the formulas say.
    entry.set_bytes(b, is_empty ? 0 : static_cast<std::uint64_t>(*size));
  }
  for (std::size_t k = 0; k < image().kernels.size(); ++k) {
    const auto groups = kernel_groups(image(), k, at);
    CINCH_TRY(groups);
    entry.set_groups(k, is_empty ? 0 : static_cast<std::uint64_t>(*groups));
  }
  const std::vector<std::uint64_t>& words = parameters.kernel_words();
  for (std::size_t i = 0; i < words.size(); ++i) entry.set_param(i, words[i]);
  return Ok{};
}

void GpuSession::Impl::write_step(EntryKind kind, std::size_t tensor, std::uint64_t step) {
  GpuTensorEntry entry = call_of(kind).table.entry(tensor);
  const PayloadHeader header =
      payload_header(info(), image().fingerprint, facts[tensor], parameters, step);
  const std::uint64_t said[] = {header.fingerprint[0], header.fingerprint[1], header.decode_hash,
                                static_cast<std::uint64_t>(header.rows),
                                static_cast<std::uint64_t>(header.cols)};
  for (std::size_t i = 0; i < std::size(said); ++i) entry.set_header(i, said[i]);
  const DrawWords draw = draw_words(facts[tensor], step);
  for (std::size_t i = 0; i < draw.size(); ++i) entry.set_draw(i, draw[i]);
}

Status GpuSession::Impl::write_facts(EntryKind kind, std::uint64_t step) {
  Call& made = call_of(kind);
  const bool are_known =
      made.sizes_version == parameters_version && (!sizes_follow_step || made.sizes_step == step);
  made.sizes_version.reset();
  for (std::size_t t = 0; t < num_tensors(); ++t) {
    if (!are_known) {
      if (Status status = write_sizes(kind, t, step); !status) return status;
    }
    write_step(kind, t, step);
  }
  made.sizes_version = parameters_version;
  made.sizes_step = step;
  return Ok{};
}

// Outside of branches and loops; the others are looked at on the device.
Status GpuSession::Impl::check_host_conditions(EntryKind kind, std::uint64_t step) const {
  const bool decodes = kind == EntryKind::DecodeAdd && !has(EntryKind::DecodeAdd);
  const EntryKind runs = decodes ? EntryKind::Decode : kind;
  for (const Step& check : image().entries[static_cast<std::size_t>(runs)].steps) {
    if (check.kind != StepKind::CheckHost) continue;
    for (std::size_t t = 0; t < num_tensors(); ++t) {
      if (facts[t].num_elems() == 0) continue;
      const auto value = info().exprs.eval(check.expr, env(t, step));
      CINCH_TRY(value);
      if (value->as_bool()) continue;
      return fail(ErrorKind::CheckFailed,
                  fmt::format("tensor {}: this does not hold for {}: {}", t,
                              shape_text(env(t, step)), image().messages[check.index]));
    }
  }
  return Ok{};
}

Result<bool> GpuSession::Impl::is_capturing(GpuStream stream) const {
  int capturing = 0;
  const GpuCode code = device().driver().stream_is_capturing(stream, &capturing);
  CINCH_TRY(device().status(code, "asking the stream"));
  return capturing != 0;
}

Status GpuSession::Impl::call(EntryKind kind, std::uint64_t step, GpuStream stream) {
  const GpuDevice::Scope scope(device());
  if (Status status = check_host_conditions(kind, step); !status) return status;
  const auto capturing = is_capturing(stream);
  CINCH_TRY(capturing);
  if (*capturing) return capture(kind, stream);
  if (Status status = write_facts(kind, step); !status) return status;
  return order.run(stream, [&]() -> Status {
    if (Status status = call_of(kind).table.send(device(), stream); !status) return status;
    // Of init no gradient or payload is bound.
    if (kind != EntryKind::Init) call_of(kind).was_made = true;
    return enqueue(kind, stream);
  });
}

// In a graph the facts of the step are those that prepare() sends before each replay.
Status GpuSession::Impl::capture(EntryKind kind, GpuStream stream) {
  if (call_of(kind).table.is_stale()) {
    return fail(ErrorKind::InvalidArgument,
                "a call can be captured after the same call was made with the same memory");
  }
  order.note_graph();
  return enqueue(kind, stream);
}

Status GpuSession::Impl::enqueue(EntryKind kind, GpuStream stream) {
  const std::vector<GpuBatch>& batches = plan_of(kind).batches;
  // A call that is one launch begins by itself.
  const bool is_one = batches.size() == 1 && batches[0].is_narrow;
  if (!is_one) {
    const GpuCode code =
        device().driver().fill(arena.address(call_words), 0, call_words_bytes, stream);
    if (Status status = device().status(code, "beginning a call"); !status) return status;
  }
  for (const GpuBatch& batch : batches) {
    if (Status status = launch(kind, batch, is_one, stream); !status) return status;
  }
  return Ok{};
}

Status GpuSession::Impl::launch(EntryKind kind, const GpuBatch& batch, bool begins_call,
                                GpuStream stream) {
  const Plan& plan = plan_of(kind);
  const PlannedLaunch& first = plan.steps[batch.begin];
  const std::size_t shape = shape_of(first);
  if (!batch.is_narrow && num_blocks[shape] == 0) return Ok{};
  GpuLaunch args;
  args.tensors = call_of(kind).table.address();
  args.swapped = arena.address(swapped);
  args.status = arena.address(call_words);
  args.outcomes = arena.address(outcomes);
  args.counts = arena.address(call_words) + std::size_t{4} * kStatusWords * num_tensors();
  if (!batch.is_narrow && first_blocks != GpuArena::kNone) {
    args.first_block = arena.address(first_blocks) + 4 * shape * (num_tensors() + 1);
  }
  args.num_tensors = static_cast<std::uint32_t>(num_tensors());
  args.num_states = static_cast<std::uint32_t>(info().states.size());
  args.num_counts = static_cast<std::uint32_t>(info().counts.size());
  args.num_steps = static_cast<std::uint32_t>(batch.size);
  args.has_block_per_tensor = batch.is_narrow ? 1 : 0;
  args.begins_call = begins_call ? 1 : 0;
  args.step = gpu_step(first);
  if (batch.size > 1) args.steps = arena.address(plan.table) + sizeof(GpuStep) * batch.begin;
  void* params[] = {&args};
  const LaunchedKernel kernel = launched_kernel(*program, first, batch.is_narrow);
  const std::uint32_t blocks = batch.is_narrow ? args.num_tensors : num_blocks[shape];
  const GpuCode code = device().driver().launch(kernel.function, blocks, 1, 1, kernel.threads, 1, 1,
                                                kernel.shared_bytes, stream, params, nullptr);
  if (code == kGpuSuccess) return Ok{};
  return device().status(code, ("launching " + std::string(kernel.symbol)).c_str());
}

}  // namespace cinch::rt
