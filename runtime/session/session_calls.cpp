// Encode, decode and finish: bind buffers, run, assemble. States change only after everything else
// succeeded.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/core/sanitizer.h"
#include "runtime/session/session_impl.h"
#include "runtime/session/tensor_convert.h"

namespace cinch::rt {
namespace {

// With an address sanitizer each field gets an allocation of its own, so that a kernel that writes
// past a field is found. Otherwise fields are written directly into the payload.
constexpr bool kIsolateFields = kAddressSanitizer;

constexpr int kPoison = 0xa5;

template <typename T>
tl::unexpected<Error> error_of(const Result<T>& result) {
  return tl::unexpected<Error>(result.error());
}

}  // namespace

HostEnv Session::Impl::env(std::uint64_t step) const {
  HostEnv env = host_env(options.facts(), parameters, step);
  memo.bind(*info().exprs, env);
  env.memo = &memo;
  return env;
}

PayloadHeader Session::Impl::header(std::uint64_t step) const {
  return payload_header(info(), program->image().fingerprint, options.facts(), parameters, step);
}

Status Session::Impl::check_tensor(const void* data, DType dtype, std::int64_t elems) const {
  CINCH_TRY(check_tensor_dtype(dtype));
  if (elems != num_elems()) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("a tensor of {} elements, the session has {}", elems, num_elems()));
  }
  if (data == nullptr && elems > 0) return fail(ErrorKind::InvalidArgument, "a null tensor");
  return Ok{};
}

Status Session::Impl::reserve_f32(AlignedBuffer& buffer) const {
  return buffer.resize(f32_bytes());
}

// const_cast: the table of buffers has one type for all.
Status Session::Impl::bind_gradient(const float* gradient) {
  return buffers.bind(BufferRole::Gradient, 0, const_cast<float*>(gradient), f32_bytes());
}

Status Session::Impl::bind_output(float* to) {
  return buffers.bind(BufferRole::Output, 0, to, f32_bytes());
}

bool Session::Impl::needs_scratch(EntryKind kind, DType dtype, bool is_in_place) const {
  if (dtype != kF32) return true;
  if (kind == EntryKind::DecodeAdd) return !has(kind);
  // The program may read the sum after it wrote the update, so they must not share memory.
  return kind == EntryKind::Finish && has(kind) && is_in_place;
}

Status Session::Impl::reserve_copy(EntryKind kind, void* data, DType dtype, std::uint64_t step) {
  AlignedBuffer& copy = kind == EntryKind::Encode ? input : output;
  const BufferRole role = kind == EntryKind::Encode ? BufferRole::Gradient : BufferRole::Output;
  const std::int64_t parts_bytes = kPartBytes * runner.threads();
  narrow = {};
  // The update of `finish` may lie over the sum, of which other groups are still read.
  const bool has_parts = dtype != kF32 && kind != EntryKind::Finish && parts_bytes < f32_bytes();
  if (!has_parts) return reserve_f32(copy);
  const auto tiled = TRY(find_tiled(program->image(), kind, role, env(step)));
  if (tiled == kNoIndex) return reserve_f32(copy);
  CINCH_TRY(copy.resize(parts_bytes));
  narrow = {tiled, data, dtype, num_elems(), copy.bytes()};
  return Ok{};
}

Status Session::Impl::reserve(EntryKind kind, DType dtype, bool is_in_place, std::uint64_t step) {
  CINCH_TRY(check_call(kind));
  const bool is_encode = kind == EntryKind::Encode;
  CINCH_TRY(lay_out_payload_bound(info(), env(step), bound));
  if (is_encode) {
    CINCH_TRY(payload.resize(bound.size_bytes));
  }
  if (num_elems() == 0) return Ok{};
  if (needs_scratch(kind, dtype, is_in_place)) {
    CINCH_TRY(reserve_copy(kind, nullptr, dtype, step));
    narrow = {};
  }
  const EntryKind runs = kind == EntryKind::DecodeAdd && !has(kind) ? EntryKind::Decode : kind;
  CINCH_TRY(buffers.prepare(runs, env(step), options.poison_memory));
  return kind == EntryKind::Finish ? Status(Ok{}) : reserve_fields(is_encode);
}

// Reserves what bind_fields_for_encode and bind_fields_for_decode need.
Status Session::Impl::reserve_fields(bool is_encode) {
  if (!kIsolateFields) return Ok{};
  const auto& all = program->image().buffers;
  for (std::size_t b = 0; b < all.size(); ++b) {
    if (all[b].role != BufferRole::Field) continue;
    const std::uint32_t field = all[b].role_index;
    const std::int64_t held_bytes = bound.fields[field].size_bytes, bytes = buffers.bytes()[b];
    const std::int64_t wanted = is_encode ? held_bytes : std::max(held_bytes, bytes);
    CINCH_TRY(fields[field].resize(wanted));
  }
  return Ok{};
}

void Session::Impl::commit(EntryKind kind) {
  buffers.commit_states(kind);
  committed = kind;
}

CallInputs Session::Impl::inputs_of(std::uint64_t step) const {
  return {.env = env(step),
          .params = parameters.kernel_words(),
          .draw = draw_words(options.facts(), step),
          .buffers = buffers.pointers(),
          .buffer_bytes = buffers.bytes(),
          .narrow = narrow};
}

void Session::Impl::use_best_code() {
  auto best = program->code();
  if (best == code) return;
  code = std::move(best);
  executor.set_kernels(code->kernels);
}

Result<CallOutcome> Session::Impl::run(EntryKind kind, std::uint64_t step) {
  use_best_code();
  auto outcome = executor.run(kind, inputs_of(step));
  narrow = {};
  accesses = outcome ? std::move(outcome->accesses) : AccessCounts{};
  return outcome;
}

Result<const float*> Session::Impl::as_f32(ConstTensorView tensor) {
  if (tensor.dtype == kF32) return static_cast<const float*>(tensor.data);
  CINCH_TRY(reserve_f32(input));
  auto* copy = reinterpret_cast<float*>(input.data());
  const std::span<float> values(copy, static_cast<std::size_t>(num_elems()));
  CINCH_TRY(convert_to_f32(tensor, values, runner, options.cancelled));
  return copy;
}

Status Session::Impl::bind_fields_for_encode() {
  for (std::uint32_t i = 0; i < bound.fields.size(); ++i) {
    std::uint8_t* memory = payload.data() + bound.fields[i].offset;
    if (kIsolateFields) {
      CINCH_TRY(fields[i].resize(bound.fields[i].size_bytes));
      memory = fields[i].data();
    }
    if (options.poison_memory) {
      std::memset(memory, kPoison, static_cast<std::size_t>(bound.fields[i].size_bytes));
    }
    const std::int64_t held_bytes = bound.fields[i].size_bytes;
    CINCH_TRY(buffers.bind(BufferRole::Field, i, memory, held_bytes));
  }
  return Ok{};
}

Result<bool> Session::Impl::run_encode(ConstTensorView gradient, std::uint64_t step) {
  if (gradient.dtype == kF32) {
    CINCH_TRY(bind_gradient(static_cast<const float*>(gradient.data)));
  } else {
    // Kernels only read it.
    auto* const data = const_cast<void*>(gradient.data);
    CINCH_TRY(reserve_copy(EntryKind::Encode, data, gradient.dtype, step));
    const float* const values = goes_by_parts() ? nullptr : TRY(as_f32(gradient));
    CINCH_TRY(bind_gradient(values));
  }
  const auto outcome = run(EntryKind::Encode, step);
  if (outcome) return outcome->non_finite;
  if (outcome.error().kind != ErrorKind::CheckFailed) return error_of(outcome);
  // A check may fail because of a value that a later kernel would have reported as non-finite; that
  // takes precedence.
  const auto finite = TRY(all_finite(gradient, runner, options.cancelled));
  if (finite) return error_of(outcome);
  return true;
}

Status Session::Impl::read_counts() {
  for (std::uint32_t i = 0; i < counts.size(); ++i) {
    counts[i] = buffers.count(i);
    if (counts[i] <= bound.counts[i]) continue;
    return fail(ErrorKind::Internal,
                fmt::format("encode counted {} for {}, its bound is {}", counts[i],
                            info().wire.counts[i].name, bound.counts[i]));
  }
  return Ok{};
}

Result<std::span<const std::uint8_t>> Session::Impl::close_up(bool non_finite, std::uint64_t step) {
  counts.assign(info().wire.counts.size(), 0);
  if (!non_finite) {
    CINCH_TRY(read_counts());
  }
  CINCH_TRY(cinch::rt::lay_out_payload(info(), env(step), counts, closed));
  for (std::size_t i = 0; i < closed.fields.size(); ++i) {
    const FieldPlace& place = closed.fields[i];
    // Formulas in an image's file may fall as a count rises.
    if (place.size_bytes > bound.fields[i].size_bytes) {
      return fail(ErrorKind::Overflow, fmt::format("field {} takes {} bytes, its bound is {}",
                                                   info().wire.fields[i].name, place.size_bytes,
                                                   bound.fields[i].size_bytes));
    }
    std::uint8_t* to = payload.data() + place.offset;
    const auto size_bytes = static_cast<std::size_t>(place.size_bytes);
    const std::uint8_t* from =
        kIsolateFields ? fields[i].data() : payload.data() + bound.fields[i].offset;
    if (non_finite) {
      std::memset(to, 0, size_bytes);
    } else if (to != from && size_bytes > 0) {
      std::memmove(to, from, size_bytes);
    }
  }
  PayloadHeader frame = header(step);
  frame.flags = non_finite ? kPayloadNonFinite : 0;
  const auto bytes = payload.bytes().first(static_cast<std::size_t>(closed.size_bytes));
  write_payload_frame(bytes, frame, counts, closed);
  return bytes;
}

Result<std::span<const std::uint8_t>> Session::Impl::encode(ConstTensorView gradient,
                                                            std::uint64_t step) {
  narrow = {};
  CINCH_TRY(check_call(EntryKind::Encode));
  CINCH_TRY(check_tensor(gradient.data, gradient.dtype, gradient.num_elems));
  CINCH_TRY(given.use(step));
  CINCH_TRY(lay_out_payload_bound(info(), env(step), bound));
  CINCH_TRY(payload.resize(bound.size_bytes));
  if (num_elems() == 0) return close_up(false, step);

  CINCH_TRY(buffers.prepare(EntryKind::Encode, env(step), options.poison_memory));
  CINCH_TRY(bind_fields_for_encode());
  const auto non_finite = TRY(run_encode(gradient, step));
  auto bytes = close_up(non_finite, step);
  if (bytes && !non_finite) commit(EntryKind::Encode);
  return bytes;
}

Status Session::Impl::read(std::span<const std::uint8_t> bytes, std::uint64_t step) {
  const PayloadHeader expected = header(step);
  return read_payload(bytes, {&info(), expected.fingerprint, expected.decode_hash, env(step)},
                      view);
}

// Fields are read directly from the payload, though a field may have fewer bytes than its bound:
// kernels read no element beyond the counts. An isolated field ends where its memory ends.
Status Session::Impl::bind_fields_for_decode() {
  const auto& all = program->image().buffers;
  for (std::size_t b = 0; b < all.size(); ++b) {
    if (all[b].role != BufferRole::Field) continue;
    const std::uint32_t index = all[b].role_index;
    const auto field = view.fields[index];
    const auto size_bytes = static_cast<std::int64_t>(field.size());
    // Kernels of decode only read fields.
    auto* memory = const_cast<std::uint8_t*>(field.data());
    if (kIsolateFields) {
      AlignedBuffer& copy = fields[index];
      CINCH_TRY(copy.resize(std::max(buffers.bytes()[b], size_bytes)));
      memory = copy.data() + (copy.size_bytes() - size_bytes);
      if (size_bytes > 0) std::memcpy(memory, field.data(), field.size());
    }
    buffers.bind_field(static_cast<BufferIndex>(b), memory, size_bytes);
  }
  return Ok{};
}

Status Session::Impl::run_decode(EntryKind kind, float* out, std::uint64_t step) {
  CINCH_TRY(buffers.prepare(kind, env(step), options.poison_memory));
  CINCH_TRY(bind_fields_for_decode());
  for (std::uint32_t i = 0; i < view.counts.size(); ++i) buffers.set_count(i, view.counts[i]);
  CINCH_TRY(bind_output(out));
  CINCH_TRY(run(kind, step));
  return Ok{};
}

Status Session::Impl::decode(std::span<const std::uint8_t> bytes, TensorView out,
                             std::uint64_t step) {
  narrow = {};
  CINCH_TRY(check_call(EntryKind::Decode));
  CINCH_TRY(check_tensor(out.data, out.dtype, out.num_elems));
  CINCH_TRY(read(bytes, step));
  if (num_elems() == 0) return Ok{};
  if (view.header.is_non_finite()) return fill_nan(out, runner, options.cancelled);
  if (out.dtype == kF32) {
    return run_decode(EntryKind::Decode, static_cast<float*>(out.data), step);
  }
  const auto elems = static_cast<std::size_t>(num_elems());
  CINCH_TRY(reserve_copy(EntryKind::Decode, out.data, out.dtype, step));
  if (goes_by_parts()) return run_decode(EntryKind::Decode, nullptr, step);
  auto* values = reinterpret_cast<float*>(output.data());
  CINCH_TRY(run_decode(EntryKind::Decode, values, step));
  return convert_from_f32({values, elems}, out, runner, options.cancelled);
}

Status Session::Impl::decode_add(std::span<const std::uint8_t> bytes, std::span<float> out,
                                 std::uint64_t step) {
  narrow = {};
  CINCH_TRY(check_call(EntryKind::DecodeAdd));
  const auto elems = static_cast<std::int64_t>(out.size());
  CINCH_TRY(check_tensor(out.data(), kF32, elems));
  CINCH_TRY(read(bytes, step));
  if (elems == 0) return Ok{};
  // Adding NaN always gives NaN.
  if (view.header.is_non_finite()) return fill_nan(out, runner, options.cancelled);
  if (has(EntryKind::DecodeAdd)) return run_decode(EntryKind::DecodeAdd, out.data(), step);
  CINCH_TRY(reserve_f32(output));
  auto* values = reinterpret_cast<float*>(output.data());
  CINCH_TRY(run_decode(EntryKind::Decode, values, step));
  return add_f32(out, {values, out.size()}, runner, options.cancelled);
}

Status Session::Impl::run_finish(std::span<const float> sum, float* update, bool& non_finite,
                                 std::uint64_t step) {
  CINCH_TRY(buffers.prepare(EntryKind::Finish, env(step), options.poison_memory));
  CINCH_TRY(bind_gradient(sum.data()));
  CINCH_TRY(bind_output(update));
  const auto outcome = run(EntryKind::Finish, step);
  if (outcome) {
    non_finite = outcome->non_finite;
    return Ok{};
  }
  if (outcome.error().kind != ErrorKind::CheckFailed) return error_of(outcome);
  const auto finite = TRY(all_finite(sum, runner, options.cancelled));
  if (finite) return error_of(outcome);
  non_finite = true;
  return Ok{};
}

Status Session::Impl::finish(std::span<const float> sum, TensorView update, std::uint64_t step) {
  narrow = {};
  CINCH_TRY(check_call(EntryKind::Finish));
  const auto elems = static_cast<std::int64_t>(sum.size());
  CINCH_TRY(check_tensor(sum.data(), kF32, elems));
  CINCH_TRY(check_tensor(update.data, update.dtype, update.num_elems));
  if (elems == 0) return Ok{};
  const bool is_custom = has(EntryKind::Finish);
  if (is_custom) CINCH_TRY(given.use(step));
  const bool has_scratch =
      needs_scratch(EntryKind::Finish, update.dtype, update.data == sum.data());
  auto* values = static_cast<float*>(update.data);
  if (has_scratch) {
    CINCH_TRY(reserve_f32(output));
    values = reinterpret_cast<float*>(output.data());
  }
  bool non_finite = false;
  Status status = is_custom ? run_finish(sum, values, non_finite, step)
                            : divide_f32(sum, static_cast<float>(options.world),
                                         {values, sum.size()}, runner, options.cancelled);
  if (!status) return status;
  if (non_finite) return fill_nan(update, runner, options.cancelled);
  if (has_scratch) {
    status = convert_from_f32({values, sum.size()}, update, runner, options.cancelled);
  }
  if (status && is_custom) commit(EntryKind::Finish);
  return status;
}

}  // namespace cinch::rt
