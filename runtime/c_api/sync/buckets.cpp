// Calls of the C API on buffers of many tensors.
#include "runtime/call/bucket.h"

#include "runtime/c_api/calls.h"
#include "runtime/c_api/tensors.h"

namespace cinch::c_api {
namespace {

CallStatus found(const rt::ListStatus& status) {
  if (status) return rt::Ok{};
  return fail_at(status.error().place, fail(status.error().error).value());
}

// Sets the session's `tensors` to those of a bucket; `is_first`: is it the first of the call's
// buckets?
CallStatus read_bucket(const Call& call, const cinch_bucket* bucket, bool is_first) {
  cinch_session& session = *call.session;
  const auto given = read_struct(bucket, sizeof *bucket, "bucket");
  CINCH_TRY(given);
  const auto dtype = dtype_of(given->dtype);
  if (!dtype) return fail(CINCH_INVALID_ARGUMENT, "type " + std::to_string(given->dtype));
  if (given->data == nullptr && given->num_elements > 0) {
    return fail(CINCH_INVALID_ARGUMENT, "a bucket's data is null");
  }
  std::vector<std::int64_t>& num_elems = session.num_elems;
  num_elems.clear();
  for (std::size_t i = 0; i < call.count; ++i) {
    const std::size_t tensor = call.tensor_at(i), size = session.list->size();
    if (tensor >= size) return fail_at(i, no_tensor(tensor, size));
    num_elems.push_back(session.list->num_elems(tensor));
  }
  rt::Bucket flat{given->data, *dtype, given->num_elements, {}};
  if (given->offsets != nullptr) flat.offsets = {given->offsets, call.count};
  CallStatus status = found(rt::bucket_tensors(flat, num_elems, session.tensors));
  if (!status || call.count == 0) return status;
  status = check_device(given->device, session.device);
  if (status) status = call.take_place(given->device_number, given->stream, is_first);
  return status ? status : fail_at(0, std::move(status.error()));
}

CallResult<rt::PayloadArena> read_arena(const Call& call, const cinch_arena* arena) {
  const auto given = read_struct(arena, sizeof *arena, "arena");
  CINCH_TRY(given);
  const bool has_arrays = given->offsets != nullptr && given->sizes != nullptr;
  if (call.count > 0 && (given->data == nullptr || !has_arrays)) {
    return fail(CINCH_INVALID_ARGUMENT, "an arena's data, offsets or sizes are null");
  }
  return rt::PayloadArena{static_cast<std::uint8_t*>(given->data),
                          given->capacity,
                          {given->offsets, call.count},
                          {given->sizes, call.count}};
}

CallStatus encode(const Call& call, const cinch_bucket* gradients, cinch_arena* payloads) {
  cinch_session& session = *call.session;
  CallStatus status = read_bucket(call, gradients, true);
  if (!status) return status;
  const auto arena = read_arena(call, payloads);
  CINCH_TRY(arena);
  session.bounds.resize(call.count);
  status = call.payload_bounds(session.bounds.data());
  if (status) status = done(rt::arena_rooms(*arena, session.bounds, session.rooms));
  if (!status) return status;
  session.slots.clear();
  for (const std::span<std::uint8_t> room : session.rooms) session.slots.push_back({room, {}});
  if (status = call.encode(); !status) return status;
  for (std::size_t i = 0; i < call.count; ++i) {
    const rt::PayloadSlot& slot = session.slots[i];
    arena->sizes[i] = call.is_on_gpu() ? slot.room.size() : slot.bytes.size();
  }
  if (!call.is_on_gpu()) {
    payloads->size = rt::close_arena(*arena);
  } else {
    payloads->size = call.count == 0 ? 0 : arena->offsets.back() + arena->sizes.back();
  }
  return status;
}

CallStatus read_payloads(const Call& call, const cinch_arena* payloads) {
  const auto arena = read_arena(call, payloads);
  CINCH_TRY(arena);
  return found(rt::arena_payloads(*arena, call.session->payloads));
}

}  // namespace
}  // namespace cinch::c_api

using namespace cinch::c_api;
namespace rt = cinch::rt;

cinch_status cinch_encode_bucket(cinch_session* session, uint64_t step, const size_t* which,
                                 size_t count, const cinch_bucket* gradients, cinch_arena* payloads,
                                 cinch_error* error) {
  const Call call{session, step, which, count};
  return run_call(call, {}, error, [&] { return encode(call, gradients, payloads); });
}

cinch_status cinch_decode_bucket(cinch_session* session, uint64_t step, const size_t* which,
                                 size_t count, const cinch_arena* payloads,
                                 const cinch_bucket* outputs, cinch_error* error) {
  const Call call{session, step, which, count};
  return run_call(call, {}, error, [&] {
    CallStatus status = read_bucket(call, outputs, true);
    if (status) status = read_payloads(call, payloads);
    return status ? call.decode() : status;
  });
}

cinch_status cinch_decode_add_bucket(cinch_session* session, uint64_t step, const size_t* which,
                                     size_t count, const cinch_arena* payloads,
                                     const cinch_bucket* outputs, cinch_error* error) {
  const Call call{session, step, which, count};
  return run_call(call, {}, error, [&] {
    CallStatus status = read_bucket(call, outputs, true);
    if (status) status = call.take_floats("an output of decode-and-add");
    if (status) status = read_payloads(call, payloads);
    return status ? call.decode_add() : status;
  });
}

cinch_status cinch_finish_bucket(cinch_session* session, uint64_t step, const size_t* which,
                                 size_t count, const cinch_bucket* sums,
                                 const cinch_bucket* updates, cinch_error* error) {
  const Call call{session, step, which, count};
  return run_call(call, {}, error, [&] {
    CallStatus status = read_bucket(call, sums, true);
    if (status) status = call.take_floats("a sum");
    if (status) status = read_bucket(call, updates, false);
    return status ? call.finish() : status;
  });
}
