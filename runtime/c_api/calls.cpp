// Calls of the C API on many tensors, each described by itself.

#include "runtime/c_api/calls.h"

namespace cinch::c_api {

CallStatus Call::check_all() const {
  if (which == nullptr && count == session->list->size()) return rt::Ok{};
  return invalid(
      "a call on a GPU is on all tensors of the session, in their order: `which` is NULL "
      "and `count` is " +
      std::to_string(session->list->size()));
}

CallStatus Call::take_place(std::int32_t device_number, void* stream, bool is_first) const {
  if (!is_on_gpu()) return rt::Ok{};
  if (device_number != session->device_number) {
    return invalid("a tensor on GPU " + std::to_string(device_number) + ", the session is on GPU " +
                   std::to_string(session->device_number));
  }
  if (is_first) session->stream = stream;
  if (stream == session->stream) return rt::Ok{};
  return invalid("tensors of one call name different streams");
}

CallStatus Call::payload_bounds(std::size_t* bytes) const {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t tensor = tensor_at(i), size = session->list->size();
    if (tensor >= size) return fail_at(i, out_of_range("tensor", tensor, size));
    const auto bound = session->list->payload_bound(tensor, step);
    if (!bound) return fail_at(i, bound.error());
    bytes[i] = static_cast<std::size_t>(*bound);
  }
  return rt::Ok{};
}

CallStatus Call::take_floats(const char* what) const {
  session->floats.clear();
  for (const rt::TensorView& view : session->tensors) {
    if (view.dtype != kF32) {
      return fail_at(session->floats.size(),
                     {CINCH_INVALID_ARGUMENT, std::string(what) + " is not f32"});
    }
    session->floats.emplace_back(static_cast<float*>(view.data),
                                 static_cast<std::size_t>(view.num_elems));
  }
  return rt::Ok{};
}

rt::ListCall Call::on_list() const {
  session->list->use_stream(session->stream);
  if (which == nullptr) return {step, {}};
  return {step, {which, count}};
}

CallStatus Call::ended(const rt::ListStatus& status) const {
  if (status) return rt::Ok{};
  // The flag is valid for one call only.
  if (status.error().error.kind == rt::ErrorKind::Cancelled) session->cancelled.store(false);
  return fail_at(status.error().place, status.error().error);
}

CallStatus Call::encode() const {
  session->gradients.assign(session->tensors.begin(), session->tensors.end());
  return ended(session->list->encode(on_list(), session->gradients, session->slots));
}
CallStatus Call::decode() const {
  return ended(session->list->decode(on_list(), session->payloads, session->tensors));
}
CallStatus Call::decode_add() const {
  return ended(session->list->decode_add(on_list(), session->payloads, session->floats));
}
CallStatus Call::finish() const {
  return ended(session->list->finish(on_list(), session->floats, session->tensors));
}

namespace {

// Reads the entries of a call's arrays one by one into memory that is reused.
template <typename T, typename Read>
CallStatus read_all(std::vector<T>& to, std::size_t count, const Read& read) {
  to.clear();
  for (std::size_t i = 0; i < count; ++i) {
    auto value = read(i);
    if (!value) return fail_at(i, std::move(value.error()));
    to.push_back(std::move(*value));
  }
  return rt::Ok{};
}

CallResult<std::span<const std::uint8_t>> payload_bytes(const cinch_payload* payloads,
                                                        std::size_t index) {
  const auto payload = TRY(read_struct(entry(payloads, index), sizeof *payloads, "payload"));
  if (payload.data == nullptr) return invalid("a payload's data is null");
  return std::span(static_cast<const std::uint8_t*>(payload.data), payload.size);
}

CallResult<rt::PayloadSlot> payload_slot(const cinch_payload* payloads, std::size_t index) {
  const auto payload = TRY(read_struct(entry(payloads, index), sizeof *payloads, "payload"));
  if (payload.capacity > 0 && payload.data == nullptr) {
    return invalid("a payload has a capacity and no data");
  }
  return rt::PayloadSlot{{static_cast<std::uint8_t*>(payload.data), payload.capacity}, {}};
}

CallStatus read_payloads(const Call& call, const cinch_payload* from) {
  return read_all(call.session->payloads, call.count,
                  [&](std::size_t i) { return payload_bytes(from, i); });
}

// `is_first`: is this the first of the call's arrays of tensors?
CallStatus read_tensors(const Call& call, const cinch_tensor* from, bool is_first) {
  return read_all(
      call.session->tensors, call.count, [&](std::size_t i) -> CallResult<rt::TensorView> {
        const auto tensor = TRY(described_tensor(from, i, call.session->device));
        const cinch_tensor& given = tensor.given;
        CINCH_TRY(call.take_place(given.device_number, given.stream, is_first && i == 0));
        return view_of(tensor);
      });
}

CallStatus encode(const Call& call, const cinch_tensor* gradients, cinch_payload* payloads) {
  std::vector<rt::PayloadSlot>& slots = call.session->slots;
  CallStatus status = read_tensors(call, gradients, true);
  if (status) {
    status = read_all(slots, call.count, [&](std::size_t i) { return payload_slot(payloads, i); });
  }
  if (status) status = call.encode();
  if (call.is_on_gpu()) return status;
  for (std::size_t i = 0; i < call.count && status; ++i) {
    cinch_payload* const to = entry(payloads, i);
    // Points to memory that the caller only reads; the struct is used for both directions.
    to->data = const_cast<std::uint8_t*>(slots[i].bytes.data());
    to->size = slots[i].bytes.size();
  }
  return status;
}

std::optional<rt::EntryKind> entry_kind(cinch_call call) {
  switch (call) {
    case CINCH_CALL_ENCODE:
      return rt::EntryKind::Encode;
    case CINCH_CALL_DECODE:
      return rt::EntryKind::Decode;
    case CINCH_CALL_DECODE_ADD:
      return rt::EntryKind::DecodeAdd;
    case CINCH_CALL_FINISH:
      return rt::EntryKind::Finish;
  }
  return std::nullopt;
}

CallStatus collect(cinch_session& session, void* stream, cinch_outcome* outcomes) {
  session.list->use_stream(stream);
  const auto told = TRY(session.list->collect());
  session.messages.assign(told.size(), {});
  for (std::size_t i = 0; i < told.size(); ++i) {
    const rt::TensorOutcome& from = told[i];
    if (!from.status) session.messages[i] = from.status.error().message;
    cinch_outcome value{};
    value.status = from.status ? CINCH_OK : status_of(from.status.error().kind);
    value.is_non_finite = from.non_finite ? 1 : 0;
    value.payload_size = static_cast<std::size_t>(from.payload_bytes);
    value.message = session.messages[i].c_str();
    CallStatus status = write_struct(value, entry(outcomes, i), "outcome");
    if (!status) return fail_at(i, status.error());
  }
  return rt::Ok{};
}

}  // namespace
}  // namespace cinch::c_api

using namespace cinch::c_api;
namespace rt = cinch::rt;

cinch_status cinch_payload_bounds(cinch_session* session, uint64_t step, const size_t* which,
                                  size_t count, size_t* bytes, cinch_error* error) {
  const Call call{session, step, which, count};
  return guarded(error, [&]() -> CallStatus {
    if (session == nullptr) return invalid("session is null");
    if (count > 0 && bytes == nullptr) return invalid("bytes is null");
    return use_alone(session->in_use, [&] { return call.payload_bounds(bytes); });
  });
}

cinch_status cinch_encode(cinch_session* session, uint64_t step, const size_t* which, size_t count,
                          const cinch_tensor* gradients, cinch_payload* payloads,
                          cinch_error* error) {
  const Call call{session, step, which, count};
  return run_call(call, {gradients, payloads}, error,
                  [&] { return encode(call, gradients, payloads); });
}

cinch_status cinch_decode(cinch_session* session, uint64_t step, const size_t* which, size_t count,
                          const cinch_payload* payloads, const cinch_tensor* outputs,
                          cinch_error* error) {
  const Call call{session, step, which, count};
  return run_call(call, {payloads, outputs}, error, [&] {
    CallStatus status = read_payloads(call, payloads);
    if (status) status = read_tensors(call, outputs, true);
    return status ? call.decode() : status;
  });
}

cinch_status cinch_decode_add(cinch_session* session, uint64_t step, const size_t* which,
                              size_t count, const cinch_payload* payloads,
                              const cinch_tensor* outputs, cinch_error* error) {
  const Call call{session, step, which, count};
  return run_call(call, {payloads, outputs}, error, [&] {
    CallStatus status = read_payloads(call, payloads);
    if (status) status = read_tensors(call, outputs, true);
    if (status) status = call.take_floats("an output of decode-and-add");
    return status ? call.decode_add() : status;
  });
}

cinch_status cinch_finish(cinch_session* session, uint64_t step, const size_t* which, size_t count,
                          const cinch_tensor* sums, const cinch_tensor* updates,
                          cinch_error* error) {
  const Call call{session, step, which, count};
  return run_call(call, {sums, updates}, error, [&] {
    CallStatus status = read_tensors(call, sums, true);
    if (status) status = call.take_floats("a sum");
    if (status) status = read_tensors(call, updates, false);
    return status ? call.finish() : status;
  });
}

// Lists on CPUs return errors for both calls.

cinch_status cinch_prepare(cinch_session* session, cinch_call call, uint64_t step, void* stream,
                           cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (session == nullptr) return invalid("session is null");
    return use_alone(session->in_use, [&]() -> CallStatus {
      const auto kind = entry_kind(call);
      if (!kind) {
        return invalid("call " + std::to_string(static_cast<int>(call)));
      }
      session->list->use_stream(stream);
      return done(session->list->prepare(*kind, step));
    });
  });
}

cinch_status cinch_collect(cinch_session* session, void* stream, cinch_outcome* outcomes,
                           size_t count, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (session == nullptr) return invalid("session is null");
    const Call all{session, 0, nullptr, count};
    if (all.is_on_gpu()) {
      if (outcomes == nullptr) return invalid("outcomes is null");
      CINCH_TRY(all.check_all());
    }
    return use_alone(session->in_use, [&] { return collect(*session, stream, outcomes); });
  });
}

namespace cinch::c_api {
// Checks on tensor descriptors.

namespace {

constexpr std::int64_t kMaxElems = (std::int64_t{1} << 32) - 1;
constexpr std::int32_t kMaxDims = 64;

// A dimension of one element may have any stride.
CallStatus check_strides(const cinch_tensor& tensor) {
  std::int64_t dense = 1;
  for (std::int32_t d = tensor.num_dims - 1; d >= 0; --d) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != dense) {
      return invalid("dimension " + std::to_string(d) + " has stride " +
                     std::to_string(tensor.strides[d]) + ", a dense tensor has " +
                     std::to_string(dense));
    }
    dense *= tensor.shape[d];
  }
  return rt::Ok{};
}

}  // namespace

std::optional<DType> dtype_of(cinch_dtype type) {
  switch (type) {
    case CINCH_F32:
      return kF32;
    case CINCH_F16:
      return kF16;
    case CINCH_BF16:
      return kBF16;
  }
  return std::nullopt;
}

CallResult<Shape> shape_of(const cinch_tensor& tensor) {
  if (tensor.num_dims < 0 || tensor.num_dims > kMaxDims) {
    return invalid(std::to_string(tensor.num_dims) + " dimensions");
  }
  if (tensor.num_dims > 0 && tensor.shape == nullptr) {
    return invalid("shape is null");
  }
  Shape shape;
  bool is_empty = false;
  for (std::int32_t d = 0; d < tensor.num_dims; ++d) {
    const std::int64_t size = tensor.shape[d];
    std::int64_t& factor = d == 0 ? shape.rows : shape.cols;
    if (size < 0 || size > kMaxElems || __builtin_mul_overflow(factor, size, &factor)) {
      return invalid("dimension " + std::to_string(d) + " has size " + std::to_string(size));
    }
    is_empty |= size == 0;
  }
  const bool is_too_large = !is_empty && shape.cols > kMaxElems / shape.rows;
  if (is_too_large) return invalid("2^32 elements or more");
  const bool has_elems = !is_empty && tensor.num_dims > 0;
  if (has_elems && tensor.strides != nullptr) {
    CINCH_TRY(check_strides(tensor));
  }
  return shape;
}

CallStatus check_device(cinch_device given, cinch_device device) {
  if (given == device) return rt::Ok{};
  if (given != CINCH_CPU && given != CINCH_CUDA) {
    return fail(CINCH_UNAVAILABLE, "device " + std::to_string(given));
  }
  return invalid(device == CINCH_CPU ? "a tensor on a GPU, the program is for CPUs"
                                     : "a tensor on the CPU, the program is for a GPU");
}

CallResult<DescribedTensor> described_tensor(const cinch_tensor* tensors, std::size_t index,
                                             cinch_device device) {
  const auto tensor = TRY(read_struct(entry(tensors, index), sizeof *tensors, "tensor"));
  CINCH_TRY(check_device(tensor.device, device));
  const auto dtype = dtype_of(tensor.dtype);
  if (!dtype) return invalid("type " + std::to_string(tensor.dtype));
  const auto shape = TRY(shape_of(tensor));
  return DescribedTensor{tensor, *dtype, shape.rows * shape.cols};
}

CallResult<rt::TensorView> view_of(const DescribedTensor& tensor) {
  if (tensor.given.data == nullptr && tensor.num_elems > 0) {
    return invalid("data is null");
  }
  const auto size = static_cast<std::uintptr_t>(tensor.dtype.bits / 8);
  if (tensor.num_elems > 0 && reinterpret_cast<std::uintptr_t>(tensor.given.data) % size != 0) {
    return invalid("data is not aligned: its address is not a multiple of " + std::to_string(size) +
                   ", the bytes of an element");
  }
  return rt::TensorView(tensor.given.data, tensor.dtype, tensor.num_elems);
}

CallResult<rt::TensorView> tensor_view(const cinch_tensor* tensors, std::size_t index,
                                       cinch_device device) {
  return described_tensor(tensors, index, device).and_then(view_of);
}

}  // namespace cinch::c_api
