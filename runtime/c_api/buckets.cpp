// Calls of the C API on buffers of many tensors: what cinch.h says of the buffers becomes
// descriptors, and the calls on those do the rest.
#include "runtime/call/bucket.h"

#include "runtime/c_api/handles.h"
#include "runtime/c_api/support.h"
#include "runtime/c_api/tensors.h"

namespace cinch::c_api {
namespace {

// Which tensors a call is on.
struct BucketCall {
  cinch_session* session;
  std::uint64_t step;
  const std::size_t* which;
  std::size_t count;
};

CallStatus found(const rt::ListStatus& status) {
  if (status) return rt::Ok{};
  return fail_at(status.error().place, fail(status.error().error).value());
}

CallStatus begin(const BucketCall& call) {
  FlatArrays& flat = call.session->flat;
  flat.num_elems.clear();
  for (std::size_t i = 0; i < call.count; ++i) {
    const std::size_t tensor = call.which == nullptr ? i : call.which[i];
    const std::size_t num_tensors = call.session->num_tensors();
    if (tensor >= num_tensors) return fail_at(i, no_tensor(tensor, num_tensors));
    flat.num_elems.push_back(call.session->num_elems(tensor));
  }
  return rt::Ok{};
}

// Descriptors of a bucket's tensors, whose shapes are flat.num_elems.
CallStatus describe(const BucketCall& call, const cinch_bucket* bucket,
                    std::vector<cinch_tensor>& to) {
  FlatArrays& flat = call.session->flat;
  const auto given = read_struct(bucket, sizeof *bucket, "bucket");
  if (!given) return tl::unexpected<CallError>(given.error());
  const auto dtype = dtype_of(given->dtype);
  if (!dtype) return fail(CINCH_INVALID_ARGUMENT, "type " + std::to_string(given->dtype));
  if (given->data == nullptr && given->num_elements > 0) {
    return fail(CINCH_INVALID_ARGUMENT, "a bucket's data is null");
  }
  rt::Bucket flat_bucket{given->data, *dtype, given->num_elements, {}};
  if (given->offsets != nullptr) flat_bucket.offsets = {given->offsets, call.count};
  CallStatus status = found(rt::bucket_tensors(flat_bucket, flat.num_elems, flat.views));
  if (!status) return status;
  to.clear();
  for (std::size_t i = 0; i < call.count; ++i) {
    cinch_tensor tensor{};
    tensor.struct_size = sizeof tensor;
    tensor.data = flat.views[i].data;
    tensor.dtype = given->dtype;
    tensor.device = given->device;
    tensor.device_number = given->device_number;
    tensor.num_dims = 1;
    tensor.shape = &flat.num_elems[i];
    tensor.stream = given->stream;
    to.push_back(tensor);
  }
  return rt::Ok{};
}

CallResult<rt::PayloadArena> read_arena(const BucketCall& call, const cinch_arena* arena) {
  const auto given = read_struct(arena, sizeof *arena, "arena");
  if (!given) return tl::unexpected<CallError>(given.error());
  const bool has_arrays = given->offsets != nullptr && given->sizes != nullptr;
  if (call.count > 0 && (given->data == nullptr || !has_arrays)) {
    return fail(CINCH_INVALID_ARGUMENT, "an arena's data, offsets or sizes are null");
  }
  return rt::PayloadArena{static_cast<std::uint8_t*>(given->data),
                          given->capacity,
                          {given->offsets, call.count},
                          {given->sizes, call.count}};
}

void describe_payload(std::vector<cinch_payload>& to, const std::uint8_t* data, std::size_t size) {
  cinch_payload payload{};
  payload.struct_size = sizeof payload;
  payload.data = const_cast<std::uint8_t*>(data);
  payload.capacity = payload.size = size;
  to.push_back(payload);
}

CallStatus make_rooms(const BucketCall& call, const rt::PayloadArena& arena) {
  FlatArrays& flat = call.session->flat;
  flat.bounds.resize(call.count);
  cinch_error error{};
  error.struct_size = sizeof error;
  const cinch_status status = cinch_payload_bounds(call.session, call.step, call.which, call.count,
                                                   flat.bounds.data(), &error);
  if (status != CINCH_OK) return fail_at(error.tensor, {status, error.message});
  if (CallStatus made = done(rt::arena_rooms(arena, flat.bounds, flat.rooms)); !made) return made;
  flat.payloads.clear();
  for (const std::span<std::uint8_t> room : flat.rooms) {
    describe_payload(flat.payloads, room.data(), room.size());
  }
  return rt::Ok{};
}

CallStatus find_payloads(const BucketCall& call, const cinch_arena* payloads) {
  FlatArrays& flat = call.session->flat;
  const auto arena = read_arena(call, payloads);
  if (!arena) return tl::unexpected<CallError>(arena.error());
  CallStatus status = found(rt::arena_payloads(*arena, flat.pieces));
  if (!status) return status;
  flat.payloads.clear();
  for (const rt::PayloadBytes piece : flat.pieces) {
    describe_payload(flat.payloads, piece.data(), piece.size());
  }
  return rt::Ok{};
}

// Runs `run`, a call on descriptors, after `prepare` made them of what the caller gave.
template <typename Prepare, typename Run>
cinch_status run_bucket_call(const BucketCall& call, cinch_error* error, const Prepare& prepare,
                             const Run& run) {
  if (call.session == nullptr) return report(CINCH_INVALID_ARGUMENT, "session is null", error);
  cinch_status status = CINCH_OK;
  const cinch_status begun = guarded(error, [&]() -> CallStatus {
    return use_alone(call.session->flat_in_use, [&]() -> CallStatus {
      if (CallStatus found = begin(call); !found) return found;
      if (CallStatus prepared = prepare(); !prepared) return prepared;
      status = run(call.session->flat);  // which has told its error
      return rt::Ok{};
    });
  });
  return begun == CINCH_OK ? status : begun;
}

// `decode`: cinch_decode or cinch_decode_add.
cinch_status decode_bucket(const BucketCall& call, const cinch_arena* payloads,
                           const cinch_bucket* outputs, cinch_error* error,
                           decltype(cinch_decode)* decode) {
  const auto prepare = [&]() -> CallStatus {
    CallStatus described = describe(call, outputs, call.session->flat.tensors);
    return described ? find_payloads(call, payloads) : described;
  };
  return run_bucket_call(call, error, prepare, [&](FlatArrays& flat) {
    return decode(call.session, call.step, call.which, call.count, flat.payloads.data(),
                  flat.tensors.data(), error);
  });
}

}  // namespace
}  // namespace cinch::c_api

using namespace cinch::c_api;
namespace rt = cinch::rt;

cinch_status cinch_encode_bucket(cinch_session* session, uint64_t step, const size_t* which,
                                 size_t count, const cinch_bucket* gradients, cinch_arena* payloads,
                                 cinch_error* error) {
  const BucketCall call{session, step, which, count};
  rt::PayloadArena arena;
  const auto prepare = [&]() -> CallStatus {
    CallStatus described = describe(call, gradients, session->flat.tensors);
    if (!described) return described;
    const auto given = read_arena(call, payloads);
    if (!given) return tl::unexpected<CallError>(given.error());
    arena = *given;
    return make_rooms(call, arena);
  };
  return run_bucket_call(call, error, prepare, [&](FlatArrays& flat) {
    const cinch_status status =
        cinch_encode(session, step, which, count, flat.tensors.data(), flat.payloads.data(), error);
    if (status != CINCH_OK) return status;
    for (std::size_t i = 0; i < count; ++i) arena.sizes[i] = flat.payloads[i].size;
    if (session->on_gpu == nullptr) {
      payloads->size = rt::close_arena(arena);
    } else {
      payloads->size = count == 0 ? 0 : arena.offsets[count - 1] + arena.sizes[count - 1];
    }
    return status;
  });
}

cinch_status cinch_decode_bucket(cinch_session* session, uint64_t step, const size_t* which,
                                 size_t count, const cinch_arena* payloads,
                                 const cinch_bucket* outputs, cinch_error* error) {
  return decode_bucket({session, step, which, count}, payloads, outputs, error, cinch_decode);
}

cinch_status cinch_decode_add_bucket(cinch_session* session, uint64_t step, const size_t* which,
                                     size_t count, const cinch_arena* payloads,
                                     const cinch_bucket* outputs, cinch_error* error) {
  return decode_bucket({session, step, which, count}, payloads, outputs, error, cinch_decode_add);
}

cinch_status cinch_finish_bucket(cinch_session* session, uint64_t step, const size_t* which,
                                 size_t count, const cinch_bucket* sums,
                                 const cinch_bucket* updates, cinch_error* error) {
  const BucketCall call{session, step, which, count};
  const auto prepare = [&]() -> CallStatus {
    CallStatus described = describe(call, sums, session->flat.tensors);
    return described ? describe(call, updates, session->flat.others) : described;
  };
  return run_bucket_call(call, error, prepare, [&](FlatArrays& flat) {
    return cinch_finish(session, step, which, count, flat.tensors.data(), flat.others.data(),
                        error);
  });
}
