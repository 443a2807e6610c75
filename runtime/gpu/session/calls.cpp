// Faults that kernels report, as errors.
#include <fmt/format.h>

#include "runtime/call/joins.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/gpu/session/core.h"

namespace cinch::rt {
// Outside of branches and loops; the others are looked at on the device.
Status GpuCalls::check_host_conditions(EntryKind kind, std::uint64_t step) const {
  const bool decodes = kind == EntryKind::DecodeAdd && !has(EntryKind::DecodeAdd);
  const EntryKind runs = decodes ? EntryKind::Decode : kind;
  for (const Step& check : image().entries[static_cast<std::size_t>(runs)].steps) {
    if (check.kind != StepKind::CheckHost) continue;
    for (std::size_t t = 0; t < num_tensors(); ++t) {
      if (core().facts[t].num_elems() == 0) continue;
      if (TRY(info().exprs->eval(check.expr, env(t, step))).as_bool()) continue;
      return fail(ErrorKind::CheckFailed,
                  fmt::format("tensor {}: this does not hold for {}: {}", t,
                              shape_text(env(t, step)), image().messages[check.index]));
    }
  }
  return Ok{};
}

Result<bool> GpuCalls::is_capturing(GpuStream stream) const {
  int capturing = 0;
  const GpuCode code = device().driver().stream_is_capturing(stream, &capturing);
  CINCH_TRY(device().status(code, "asking the stream"));
  return capturing != 0;
}

Status GpuCalls::launch(EntryKind kind, const GpuBatch& batch, bool begins_call, GpuStream stream) {
  const GpuCallPlan& plan = core().plan_of(kind);
  const PlannedLaunch& first = plan.steps[batch.begin];
  const std::uint32_t num_blocks =
      batch.is_narrow ? static_cast<std::uint32_t>(num_tensors()) : blocks_.num_blocks(first);
  if (num_blocks == 0) return Ok{};
  GpuLaunch args{.tensors = core().call_of(kind).table.address(),
                 .swapped = memory_.swapped(),
                 .status = memory_.status_words(),
                 .outcomes = memory_.outcomes(),
                 .counts = memory_.counts()};
  if (!batch.is_narrow) args.first_block = blocks_.first_block(first);
  args.num_tensors = static_cast<std::uint32_t>(num_tensors());
  args.num_states = static_cast<std::uint32_t>(info().states.size());
  args.num_counts = static_cast<std::uint32_t>(info().counts.size());
  args.num_steps = static_cast<std::uint32_t>(batch.size);
  args.has_block_per_tensor = batch.is_narrow ? 1 : 0;
  args.begins_call = begins_call ? 1 : 0;
  args.step = gpu_step(first);
  if (batch.size > 1) {
    args.steps = memory_.arena().address(plan.table) + sizeof(GpuStep) * batch.begin;
  }
  void* params[] = {&args};
  const LaunchedKernel kernel = launched_kernel(image(), *plan.kernels, first, batch.is_narrow);
  const GpuCode code = device().driver().launch(kernel.function, num_blocks, 1, 1, kernel.threads,
                                                1, 1, kernel.shared_bytes, stream, params, nullptr);
  if (code == kGpuSuccess) return Ok{};
  return device().status(code, ("launching " + std::string(kernel.symbol)).c_str());
}

Status GpuCalls::enqueue(EntryKind kind, GpuStream stream) {
  const std::vector<GpuBatch>& batches = core().plan_of(kind).batches;
  // A call that is one launch begins by itself.
  const bool is_one = batches.size() == 1 && batches[0].is_narrow;
  if (!is_one) {
    CINCH_TRY(memory_.begin_call(stream));
  }
  for (const GpuBatch& batch : batches) {
    CINCH_TRY(launch(kind, batch, is_one, stream));
  }
  return Ok{};
}

// A captured call keeps the kernels of the call before: the driver loads a kernel when it is first
// launched, and not during a capture.
void GpuCalls::take_best_kernels(EntryKind kind) {
  core().plan_of(kind).kernels = &core().program->kernels();
}

// In a graph the facts of the step are those that prepare() sends before each replay.
Status GpuCalls::capture(EntryKind kind, GpuStream stream) {
  if (core().call_of(kind).table.is_stale()) {
    return fail(ErrorKind::InvalidArgument,
                "a call can be captured after the same call was made with the same memory");
  }
  core().order.note_graph();
  return enqueue(kind, stream);
}

Status GpuCalls::call(EntryKind kind, std::uint64_t step, GpuStream stream) {
  const GpuDevice::Scope scope(device());
  CINCH_TRY(check_host_conditions(kind, step));
  if (TRY(is_capturing(stream))) return capture(kind, stream);
  take_best_kernels(kind);
  CINCH_TRY(write_facts(kind, step));
  return core().order.run(stream, [&]() -> Status {
    CINCH_TRY(core().call_of(kind).table.send(device(), stream));
    // Of init no gradient or payload is bound.
    if (kind != EntryKind::Init) core().call_of(kind).was_made = true;
    return enqueue(kind, stream);
  });
}

Status GpuCalls::call_with(EntryKind kind, const GpuCallArrays& arrays, std::uint64_t step,
                           GpuStream on) {
  Status status = check_call(image(), kind, core().options.only_decodes);
  if (status) status = check_step(step);
  if (status && kind != EntryKind::Decode && kind != EntryKind::DecodeAdd)
    status = use_inputs(kind, step);
  if (status) status = bind_tensors(kind, arrays.from, arrays.to);
  if (status && kind != EntryKind::Finish) status = bind_payloads(kind, arrays.payloads, step);
  return status ? call(kind, step, on) : status;
}

Status GpuCalls::use_inputs(EntryKind kind, std::uint64_t step) {
  if (kind == EntryKind::Finish && !has(EntryKind::Finish)) return Ok{};
  for (std::size_t t = 0; t < num_tensors(); ++t) {
    Status status = core().given[t].use(step);
    if (status) continue;
    if (num_tensors() > 1)
      status.error().message = fmt::format("tensor {}: {}", t, status.error().message);
    return status;
  }
  return Ok{};
}

Status GpuCalls::prepare(EntryKind kind, std::uint64_t step, GpuStream stream) {
  CINCH_TRY(check_step(step));
  const auto& made = core().calls[static_cast<std::size_t>(kind)];
  if (!made || !made->was_made) {
    return fail(ErrorKind::InvalidArgument, "no call of this kind was made before");
  }
  if (kind != EntryKind::Decode && kind != EntryKind::DecodeAdd) CINCH_TRY(use_inputs(kind, step));
  const GpuDevice::Scope scope(device());
  CINCH_TRY(check_host_conditions(kind, step));
  if (!made->payloads.empty()) {
    const std::vector<GpuPayload> payloads = made->payloads;
    CINCH_TRY(bind_payloads(kind, payloads, step));
  }
  CINCH_TRY(write_facts(kind, step));
  return core().order.run(stream,
                          [&] { return core().call_of(kind).table.send(device(), stream); });
}

Result<std::vector<TensorOutcome>> GpuCalls::collect(GpuStream from) {
  CINCH_TRY(core().order.enter(from));
  std::vector<GpuOutcome> words(num_tensors());
  const GpuAddress at = memory_.outcomes();
  auto* bytes = reinterpret_cast<std::uint8_t*>(words.data());
  const std::span<std::uint8_t> all(bytes, sizeof(GpuOutcome) * words.size());
  CINCH_TRY(device().read(all, at, from));
  std::vector<TensorOutcome> told;
  bool has_failed = false;
  for (GpuOutcome& word : words) {
    told.push_back({gpu_fault(image(), word.failed), (word.flags & kFlagNonFinite) != 0,
                    static_cast<std::int64_t>(word.payload_bytes)});
    has_failed = has_failed || word.failed != 0;
    word.failed = 0;
  }
  if (!has_failed) return told;
  CINCH_TRY(device().write(at, all, from));
  return told;
}

namespace {

Status payload_fault(const ProgramInfo& info, PayloadFault fault, std::size_t part) {
  const auto name_of = [&](const auto& list) {
    return part < list.size() ? list[part].name : std::to_string(part);
  };
  const auto corrupt = [](std::string what) {
    return fail(ErrorKind::CorruptPayload, "payload on the device: " + std::move(what));
  };
  const auto in_field = [&](const char* what) {
    return corrupt(fmt::format("field {}: {}", name_of(info.wire.fields), what));
  };
  switch (fault) {
    case kFaultMagic:
      return corrupt("no magic at its start");
    case kFaultVersion:
      return fail(ErrorKind::VersionMismatch, "payload on the device: another format version");
    case kFaultFlags:
      return corrupt("unknown flags");
    case kFaultLength:
      return corrupt("its length is not what its header, shape and counts make");
    case kFaultFingerprint:
      return corrupt("its fingerprint is not that of " + info.name + " with its constants");
    case kFaultShape:
      return corrupt("a tensor of another shape");
    case kFaultDecodeHash:
      return corrupt("decode hash: another parameter, step, seed or number of ranks");
    case kFaultCount:
      return corrupt(fmt::format("count {} is above its bound", name_of(info.wire.counts)));
    case kFaultCheckWord:
      return corrupt("check word: its header or a count was changed");
    case kFaultPadding:
      return in_field("bytes before it are not zero");
    case kFaultLastBits:
      return in_field("bits behind its last element are not zero");
    case kFaultIndexLimit:
      return in_field("an index is not below its limit");
    case kFaultIndexOrder:
      return in_field("indices do not ascend");
  }
  return fail(ErrorKind::Internal, "a payload fault of an unknown kind");
}

}  // namespace

Status gpu_fault(const ProgramImage& image, std::uint32_t failed) {
  if (failed == 0) return Ok{};
  if ((failed & kPayloadFaultBit) != 0) {
    const std::uint32_t word = failed & ~kPayloadFaultBit;
    return payload_fault(image.info, static_cast<PayloadFault>(word & 0xff), word >> 8);
  }
  if ((failed & kRankFaultBit) != 0) return fail(ErrorKind::CheckFailed, "another rank failed");
  if ((failed & kConditionBit) != 0) {
    const Status named = gpu_fault(image, failed & ~kConditionBit);
    return fail(named.error().kind, "this does not hold: " + named.error().message);
  }
  if (failed > image.messages.size()) {
    return fail(ErrorKind::Internal, "a kernel failed with a number that stands for no message");
  }
  return fail(ErrorKind::CheckFailed, image.messages[failed - 1]);
}

}  // namespace cinch::rt
