// Calls of the C API on many tensors: all of them, or none as far as states go.
#include <vector>

#include "runtime/c_api/handles.h"
#include "runtime/c_api/support.h"
#include "runtime/c_api/tensors.h"

namespace cinch::c_api {
namespace {

// What a call changes beside its outputs. States that changed are taken back where a later tensor
// of the call fails.
enum class Effect { None, States };

// The tensors of a call: `which` of the session, each at most once.
class Batch {
 public:
  static CallResult<Batch> make(cinch_session* session, const std::size_t* which,
                                std::size_t count) {
    if (session == nullptr) return fail(CINCH_INVALID_ARGUMENT, "session is null");
    Batch batch(*session);
    std::vector<bool> is_taken(session->tensors.size(), false);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t tensor = which == nullptr ? i : which[i];
      if (tensor >= is_taken.size()) {
        return at(i, fail(CINCH_OUT_OF_RANGE, "tensor " + std::to_string(tensor) + " of " +
                                                  std::to_string(is_taken.size())));
      }
      if (is_taken[tensor]) {
        return at(i, fail(CINCH_INVALID_ARGUMENT,
                          "tensor " + std::to_string(tensor) + " stands twice in one call"));
      }
      is_taken[tensor] = true;
      batch.numbers_.push_back(tensor);
    }
    return batch;
  }

  /// Runs each(session, place) for every tensor, until one fails.
  template <typename Each>
  CallStatus run(Effect effect, const Each& each) {
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      CallStatus status = run_one(each, i);
      if (status) continue;
      for (std::size_t ran = 0; ran < i && effect == Effect::States; ++ran) tensor(ran).take_back();
      // The flag is for one call.
      if (status.error().status == CINCH_CANCELLED) session_->cancelled.store(false);
      return at(i, tl::unexpected<CallError>(status.error()));
    }
    return rt::Ok{};
  }

 private:
  explicit Batch(cinch_session& session) : session_(&session) {}

  rt::Session& tensor(std::size_t i) { return session_->tensors[numbers_[i]]; }

  template <typename Each>
  CallStatus run_one(const Each& each, std::size_t i) {
    if (session_->cancelled.load()) return fail(CINCH_CANCELLED, "cancelled");
    return each(tensor(i), i);
  }

  static tl::unexpected<CallError> at(std::size_t i, tl::unexpected<CallError> error) {
    error.value().tensor = i;
    return error;
  }

  cinch_session* session_;
  std::vector<std::size_t> numbers_;
};

// Runs `each` on the tensors of a call after its arrays were looked at.
template <typename Each>
cinch_status run_call(Effect effect, cinch_session* session, const std::size_t* which,
                      std::size_t count, std::initializer_list<const void*> arrays,
                      cinch_error* error, const Each& each) {
  return guarded(error, [&]() -> CallStatus {
    const bool is_missing = std::any_of(arrays.begin(), arrays.end(),
                                        [](const void* array) { return array == nullptr; });
    if (count > 0 && is_missing)
      return fail(CINCH_INVALID_ARGUMENT, "an array of the call is null");
    auto batch = Batch::make(session, which, count);
    if (!batch) return tl::unexpected<CallError>(batch.error());
    return batch->run(effect, each);
  });
}

CallResult<std::span<const std::uint8_t>> payload_bytes(const cinch_payload* payloads,
                                                        std::size_t index) {
  const auto payload = read_struct(entry(payloads, index), sizeof *payloads, "payload");
  if (!payload) return tl::unexpected<CallError>(payload.error());
  if (payload->data == nullptr) return fail(CINCH_INVALID_ARGUMENT, "a payload's data is null");
  return std::span(static_cast<const std::uint8_t*>(payload->data), payload->size);
}

// Copies into the caller's memory, or lends.
CallStatus give_payload(std::span<const std::uint8_t> bytes, cinch_payload* to) {
  to->size = bytes.size();
  if (to->capacity == 0) {
    // Lent to be read; the struct serves both ways.
    to->data = const_cast<std::uint8_t*>(bytes.data());
    return rt::Ok{};
  }
  if (to->capacity < bytes.size()) {
    return fail(CINCH_INVALID_ARGUMENT, "the payload takes " + std::to_string(bytes.size()) +
                                            " bytes, there are " + std::to_string(to->capacity));
  }
  std::memcpy(to->data, bytes.data(), bytes.size());
  return rt::Ok{};
}

CallStatus encode_one(rt::Session& session, std::uint64_t step, const cinch_tensor* gradients,
                      cinch_payload* payloads, std::size_t i) {
  const auto gradient = tensor_view(gradients, i);
  if (!gradient) return tl::unexpected<CallError>(gradient.error());
  cinch_payload* const payload = entry(payloads, i);
  const auto checked = read_struct(payload, sizeof *payload, "payload");
  if (!checked) return tl::unexpected<CallError>(checked.error());
  if (checked->capacity > 0 && checked->data == nullptr) {
    return fail(CINCH_INVALID_ARGUMENT, "a payload has a capacity and no data");
  }
  const auto bytes = session.encode({gradient->data, gradient->dtype, gradient->num_elems}, step);
  if (!bytes) return fail(bytes.error());
  CallStatus given = give_payload(*bytes, payload);
  if (!given) session.take_back();
  return given;
}

CallResult<std::span<float>> f32_elements(const cinch_tensor* tensors, std::size_t i,
                                          const char* what) {
  const auto view = tensor_view(tensors, i);
  if (!view) return tl::unexpected<CallError>(view.error());
  if (view->dtype != kF32) return fail(CINCH_INVALID_ARGUMENT, std::string(what) + " is not f32");
  return std::span(static_cast<float*>(view->data), static_cast<std::size_t>(view->num_elems));
}

}  // namespace
}  // namespace cinch::c_api

using namespace cinch::c_api;
namespace rt = cinch::rt;

cinch_status cinch_payload_bounds(cinch_session* session, uint64_t step, const size_t* which,
                                  size_t count, size_t* bytes, cinch_error* error) {
  return run_call(Effect::None, session, which, count, {bytes}, error,
                  [&](const rt::Session& tensor, std::size_t i) -> CallStatus {
                    const auto bound = tensor.payload_bound(step);
                    if (!bound) return fail(bound.error());
                    bytes[i] = static_cast<std::size_t>(*bound);
                    return rt::Ok{};
                  });
}

cinch_status cinch_encode(cinch_session* session, uint64_t step, const size_t* which, size_t count,
                          const cinch_tensor* gradients, cinch_payload* payloads,
                          cinch_error* error) {
  return run_call(Effect::States, session, which, count, {gradients, payloads}, error,
                  [&](rt::Session& tensor, std::size_t i) {
                    return encode_one(tensor, step, gradients, payloads, i);
                  });
}

cinch_status cinch_decode(cinch_session* session, uint64_t step, const size_t* which, size_t count,
                          const cinch_payload* payloads, const cinch_tensor* outputs,
                          cinch_error* error) {
  return run_call(Effect::None, session, which, count, {payloads, outputs}, error,
                  [&](rt::Session& tensor, std::size_t i) -> CallStatus {
                    const auto bytes = payload_bytes(payloads, i);
                    if (!bytes) return tl::unexpected<CallError>(bytes.error());
                    const auto output = tensor_view(outputs, i);
                    if (!output) return tl::unexpected<CallError>(output.error());
                    return done(tensor.decode(*bytes, *output, step));
                  });
}

cinch_status cinch_decode_add(cinch_session* session, uint64_t step, const size_t* which,
                              size_t count, const cinch_payload* payloads,
                              const cinch_tensor* outputs, cinch_error* error) {
  return run_call(Effect::None, session, which, count, {payloads, outputs}, error,
                  [&](rt::Session& tensor, std::size_t i) -> CallStatus {
                    const auto bytes = payload_bytes(payloads, i);
                    if (!bytes) return tl::unexpected<CallError>(bytes.error());
                    const auto output = f32_elements(outputs, i, "an output of decode-and-add");
                    if (!output) return tl::unexpected<CallError>(output.error());
                    return done(tensor.decode_add(*bytes, *output, step));
                  });
}

cinch_status cinch_finish(cinch_session* session, uint64_t step, const size_t* which, size_t count,
                          const cinch_tensor* sums, const cinch_tensor* updates,
                          cinch_error* error) {
  return run_call(Effect::States, session, which, count, {sums, updates}, error,
                  [&](rt::Session& tensor, std::size_t i) -> CallStatus {
                    const auto sum = f32_elements(sums, i, "a sum");
                    if (!sum) return tl::unexpected<CallError>(sum.error());
                    const auto update = tensor_view(updates, i);
                    if (!update) return tl::unexpected<CallError>(update.error());
                    return done(tensor.finish(*sum, *update, step));
                  });
}
