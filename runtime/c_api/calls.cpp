// Calls of the C API on many tensors: their arrays are read first, then all run at once.
#include <vector>

#include "runtime/c_api/handles.h"
#include "runtime/c_api/support.h"
#include "runtime/c_api/tensors.h"

namespace cinch::c_api {
namespace {

// The entries of a call's arrays, read one by one into kept memory.
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
  const auto payload = read_struct(entry(payloads, index), sizeof *payloads, "payload");
  if (!payload) return tl::unexpected<CallError>(payload.error());
  if (payload->data == nullptr) return fail(CINCH_INVALID_ARGUMENT, "a payload's data is null");
  return std::span(static_cast<const std::uint8_t*>(payload->data), payload->size);
}

CallResult<rt::PayloadSlot> payload_slot(const cinch_payload* payloads, std::size_t index) {
  const auto payload = read_struct(entry(payloads, index), sizeof *payloads, "payload");
  if (!payload) return tl::unexpected<CallError>(payload.error());
  if (payload->capacity > 0 && payload->data == nullptr) {
    return fail(CINCH_INVALID_ARGUMENT, "a payload has a capacity and no data");
  }
  return rt::PayloadSlot{{static_cast<std::uint8_t*>(payload->data), payload->capacity}, {}};
}

CallResult<std::span<float>> f32_elements(const cinch_tensor* tensors, std::size_t i,
                                          const char* what) {
  const auto view = tensor_view(tensors, i);
  if (!view) return tl::unexpected<CallError>(view.error());
  if (view->dtype != kF32) return fail(CINCH_INVALID_ARGUMENT, std::string(what) + " is not f32");
  return std::span(static_cast<float*>(view->data), static_cast<std::size_t>(view->num_elems));
}

// What all calls are given.
struct Call {
  cinch_session* session;
  std::uint64_t step;
  const std::size_t* which;
  std::size_t count;

  bool is_on_gpu() const { return session->on_gpu != nullptr; }
  /// A call on a GPU serves all tensors. Errors: INVALID_ARGUMENT.
  CallStatus check_all() const {
    if (which == nullptr && count == session->num_tensors()) return rt::Ok{};
    return fail(CINCH_INVALID_ARGUMENT,
                "a call on a GPU is on all tensors of the session, in their order: `which` is NULL "
                "and `count` is " +
                    std::to_string(session->num_tensors()));
  }

  rt::ListCall of_list() const {
    if (which == nullptr) return {step, {}};
    return {step, {which, count}};
  }

  CallStatus read_payloads(const cinch_payload* from) const {
    return read_all(session->payloads, count,
                    [&](std::size_t i) { return payload_bytes(from, i); });
  }
  CallStatus read_tensors(const cinch_tensor* from) const {
    return read_all(session->tensors, count, [&](std::size_t i) { return tensor_view(from, i); });
  }
  CallStatus read_floats(const cinch_tensor* from, const char* what) const {
    return read_all(session->floats, count,
                    [&](std::size_t i) { return f32_elements(from, i, what); });
  }
};

CallStatus call_ended(cinch_session& session, const rt::ListStatus& status) {
  if (status) return rt::Ok{};
  // The flag is for one call.
  if (status.error().error.kind == rt::ErrorKind::Cancelled) session.cancelled.store(false);
  return fail_at(status.error().place, fail(status.error().error).value());
}

// Runs `body` after the call's arrays were looked at.
template <typename Body>
cinch_status run_call(const Call& call, std::initializer_list<const void*> arrays,
                      cinch_error* error, const Body& body) {
  return guarded(error, [&]() -> CallStatus {
    const bool is_missing = std::any_of(arrays.begin(), arrays.end(),
                                        [](const void* array) { return array == nullptr; });
    if (call.count > 0 && is_missing)
      return fail(CINCH_INVALID_ARGUMENT, "an array of the call is null");
    if (call.session == nullptr) return fail(CINCH_INVALID_ARGUMENT, "session is null");
    if (call.is_on_gpu()) {
      if (CallStatus status = call.check_all(); !status) return status;
    }
    return use_alone(call.session->in_use, body);
  });
}

CallStatus encode(const Call& call, const cinch_tensor* gradients, cinch_payload* payloads) {
  cinch_session& session = *call.session;
  if (call.is_on_gpu()) return session.on_gpu->encode(call.step, gradients, payloads);
  CallStatus read = read_all(session.gradients, call.count, [&](std::size_t i) {
    return tensor_view(gradients, i).map([](const rt::TensorView& view) {
      return rt::ConstTensorView(view.data, view.dtype, view.num_elems);
    });
  });
  if (!read) return read;
  read =
      read_all(session.slots, call.count, [&](std::size_t i) { return payload_slot(payloads, i); });
  if (!read) return read;
  CallStatus status =
      call_ended(session, session.list->encode(call.of_list(), session.gradients, session.slots));
  for (std::size_t i = 0; i < call.count && status; ++i) {
    cinch_payload* const to = entry(payloads, i);
    // Lent to be read; the struct serves both ways.
    to->data = const_cast<std::uint8_t*>(session.slots[i].bytes.data());
    to->size = session.slots[i].bytes.size();
  }
  return status;
}

CallStatus check_on_gpu(const cinch_session* session) {
  if (session == nullptr) return fail(CINCH_INVALID_ARGUMENT, "session is null");
  if (session->on_gpu != nullptr) return rt::Ok{};
  return fail(CINCH_INVALID_ARGUMENT,
              "the session is on the CPU: its calls end when they are done");
}

CallResult<std::size_t> payload_bound(const cinch_session& session, std::size_t tensor,
                                      std::uint64_t step) {
  if (tensor >= session.num_tensors()) {
    return tl::unexpected<CallError>(no_tensor(tensor, session.num_tensors()));
  }
  if (session.on_gpu != nullptr) return session.on_gpu->payload_bound(tensor, step);
  const auto bound = (*session.list)[tensor].payload_bound(step);
  if (!bound) return fail(bound.error());
  return static_cast<std::size_t>(*bound);
}

CallStatus payload_bounds(const Call& call, std::size_t* bytes) {
  if (call.session == nullptr) return fail(CINCH_INVALID_ARGUMENT, "session is null");
  if (call.count > 0 && bytes == nullptr) return fail(CINCH_INVALID_ARGUMENT, "bytes is null");
  return use_alone(call.session->in_use, [&]() -> CallStatus {
    for (std::size_t i = 0; i < call.count; ++i) {
      const std::size_t tensor = call.which == nullptr ? i : call.which[i];
      auto bound = payload_bound(*call.session, tensor, call.step);
      if (!bound) return fail_at(i, std::move(bound.error()));
      bytes[i] = *bound;
    }
    return rt::Ok{};
  });
}

}  // namespace
}  // namespace cinch::c_api

using namespace cinch::c_api;
namespace rt = cinch::rt;

cinch_status cinch_payload_bounds(cinch_session* session, uint64_t step, const size_t* which,
                                  size_t count, size_t* bytes, cinch_error* error) {
  const Call call{session, step, which, count};
  return guarded(error, [&] { return payload_bounds(call, bytes); });
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
  return run_call(call, {payloads, outputs}, error, [&]() -> CallStatus {
    if (call.is_on_gpu()) return session->on_gpu->decode(step, payloads, outputs);
    if (CallStatus status = call.read_payloads(payloads); !status) return status;
    if (CallStatus status = call.read_tensors(outputs); !status) return status;
    return call_ended(*session,
                      session->list->decode(call.of_list(), session->payloads, session->tensors));
  });
}

cinch_status cinch_decode_add(cinch_session* session, uint64_t step, const size_t* which,
                              size_t count, const cinch_payload* payloads,
                              const cinch_tensor* outputs, cinch_error* error) {
  const Call call{session, step, which, count};
  return run_call(call, {payloads, outputs}, error, [&]() -> CallStatus {
    if (call.is_on_gpu()) return session->on_gpu->decode_add(step, payloads, outputs);
    if (CallStatus status = call.read_payloads(payloads); !status) return status;
    CallStatus read = call.read_floats(outputs, "an output of decode-and-add");
    if (!read) return read;
    return call_ended(
        *session, session->list->decode_add(call.of_list(), session->payloads, session->floats));
  });
}

cinch_status cinch_finish(cinch_session* session, uint64_t step, const size_t* which, size_t count,
                          const cinch_tensor* sums, const cinch_tensor* updates,
                          cinch_error* error) {
  const Call call{session, step, which, count};
  return run_call(call, {sums, updates}, error, [&]() -> CallStatus {
    if (call.is_on_gpu()) return session->on_gpu->finish(step, sums, updates);
    if (CallStatus status = call.read_floats(sums, "a sum"); !status) return status;
    if (CallStatus status = call.read_tensors(updates); !status) return status;
    return call_ended(*session,
                      session->list->finish(call.of_list(), session->floats, session->tensors));
  });
}

cinch_status cinch_prepare(cinch_session* session, cinch_call call, uint64_t step, void* stream,
                           cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (CallStatus status = check_on_gpu(session); !status) return status;
    return use_alone(session->in_use, [&] { return session->on_gpu->prepare(call, step, stream); });
  });
}

cinch_status cinch_collect(cinch_session* session, void* stream, cinch_outcome* outcomes,
                           size_t count, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (CallStatus status = check_on_gpu(session); !status) return status;
    if (outcomes == nullptr) return fail(CINCH_INVALID_ARGUMENT, "outcomes is null");
    const Call all{session, 0, nullptr, count};
    if (CallStatus status = all.check_all(); !status) return status;
    return use_alone(session->in_use, [&] { return session->on_gpu->collect(stream, outcomes); });
  });
}
