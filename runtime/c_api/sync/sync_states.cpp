// States of a synchronisation one by one, of the C API.

#include "runtime/c_api/calls.h"
#include "runtime/c_api/sync/sync_handles.h"

namespace cinch::c_api {
namespace {

CallStatus check_data(const void* data, std::size_t size) {
  if (data != nullptr || size == 0) return rt::Ok{};
  return invalid("data is null");
}

std::span<const std::uint8_t> bytes_at(const void* data, std::size_t size) {
  return {static_cast<const std::uint8_t*>(data), size};
}

CallStatus count(cinch_sync& sync, std::size_t* to) {
  if (to == nullptr) return invalid("count is null");
  const auto arrays = TRY(sync.session->state_arrays());
  *to = arrays.size();
  return rt::Ok{};
}

CallStatus get(cinch_sync& sync, std::size_t place, cinch_sync_state* state, void* data,
               std::size_t* size) {
  auto arrays = TRY(sync.session->state_arrays());
  CINCH_TRY(check_index(place, arrays.size(), "state"));
  sync.shown_state = std::move(arrays[place]);
  const rt::StateArray& shown = sync.shown_state;
  const cinch_sync_state told{
      sizeof told,         sync.given[shown.tensor], static_cast<cinch_site>(shown.site),
      shown.first,         shown.num_elems,          shown.name.c_str(),
      shown.dtype.c_str(), shown.bytes.size()};
  CINCH_TRY(write_struct(told, state, "state"));
  return size == nullptr ? rt::Ok{} : copy_out(shown.bytes, "the state", data, size);
}

}  // namespace

CallStatus check_restored(const cinch_sync_restored* restored) {
  if (restored == nullptr) return rt::Ok{};
  CINCH_TRY(read_struct(restored, sizeof(std::size_t), "restored"));
  return rt::Ok{};
}

CallStatus tell_restored(cinch_sync& sync, const rt::RestoreReport& report,
                         cinch_sync_restored* restored) {
  sync.notes.clear();
  for (const std::string& note : report.notes) sync.notes += note + "\n";
  if (restored == nullptr) return rt::Ok{};
  const cinch_sync_restored told{sizeof told,       report.next_step, report.num_kept,
                                 report.num_joined, report.num_reset, sync.notes.c_str(),
                                 report.num_left};
  return write_struct(told, restored, "restored");
}

}  // namespace cinch::c_api

using namespace cinch::c_api;

cinch_status cinch_sync_states_load_own(cinch_sync* sync, const void* data, size_t size,
                                        cinch_error* error) {
  return cinch_sync_states_restore_own(sync, data, size, nullptr, error);
}

cinch_status cinch_sync_states_restore_own(cinch_sync* sync, const void* data, size_t size,
                                           cinch_sync_restored* restored, cinch_error* error) {
  return guarded_on(sync, error, [&](cinch_sync& of) -> CallStatus {
    CINCH_TRY(check_data(data, size));
    CINCH_TRY(check_restored(restored));
    const auto report = TRY(of.session->restore_own_states(bytes_at(data, size)));
    return tell_restored(of, report, restored);
  });
}

cinch_status cinch_sync_states_reset(cinch_sync* sync, size_t tensor, cinch_error* error) {
  return guarded_on(sync, error, [&](cinch_sync& of) -> CallStatus {
    CINCH_TRY(check_index(tensor, of.plan_tensors.size(), "tensor"));
    return done(of.session->reset_states(of.plan_tensors[tensor]));
  });
}

cinch_status cinch_sync_states_count(cinch_sync* sync, size_t* to, cinch_error* error) {
  return guarded_on(sync, error, [&](cinch_sync& of) { return count(of, to); });
}

cinch_status cinch_sync_states_get(cinch_sync* sync, size_t place, cinch_sync_state* state,
                                   void* data, size_t* size, cinch_error* error) {
  return guarded_on(sync, error, [&](cinch_sync& of) { return get(of, place, state, data, size); });
}

cinch_status cinch_sync_states_set(cinch_sync* sync, size_t place, const void* data, size_t size,
                                   cinch_error* error) {
  return guarded_on(sync, error, [&](cinch_sync& of) -> CallStatus {
    CINCH_TRY(check_data(data, size));
    return done(of.session->set_state_array(place, bytes_at(data, size)));
  });
}

// Steps in parts, of the C API, and what steps took.

namespace cinch::c_api {
namespace {

CallStatus begin_step(cinch_sync& sync, std::uint64_t step, const cinch_step_options* options) {
  rt::StepOptions how;
  if (options != nullptr) {
    const auto given =
        TRY(read_struct(options, offsetof(cinch_step_options, measures_errors), "options"));
    how.scale = given.scale == 0 ? 1 : given.scale;
    how.is_sum = given.is_sum != 0;
    how.skips_non_finite = given.skips_non_finite != 0;
    how.measures_errors = given.measures_errors != 0;
  }
  CallStatus status = done(sync.session->begin_step(step, how));
  if (status) sync.transport->stepping = &sync;
  return status;
}

CallStatus make_ready(cinch_sync& sync, std::size_t tensor, const cinch_tensor* gradient,
                      const cinch_tensor* update, bool is_used) {
  const auto from = tensor_view(gradient, 0, sync.device);
  const auto to = tensor_view(update, 0, sync.device);
  const bool is_there = tensor < sync.plan_tensors.size();
  if (is_there && from && to) {
    const rt::ConstTensorView view(from->data, from->dtype, from->num_elems);
    return done(sync.session->set_ready(sync.plan_tensors[tensor], view, *to, is_used));
  }
  CallError error = !is_there ? out_of_range("tensor", tensor, sync.plan_tensors.size())
                    : !from   ? from.error()
                              : to.error();
  const rt::Status told = sync.session->fail_step({rt::ErrorKind::InvalidArgument, error.message});
  if (!told) return done(told);
  error.tensor = tensor;
  return tl::unexpected<CallError>(std::move(error));
}

CallStatus finish_step(cinch_sync& sync, cinch_step_outcome* outcome) {
  if (outcome != nullptr) {
    CINCH_TRY(read_struct(outcome, sizeof(std::size_t), "outcome"));
  }
  const auto ended = sync.session->finish_step();
  if (!sync.session->is_in_step()) sync.transport->stepping = nullptr;
  CINCH_TRY(ended);
  if (outcome == nullptr) return rt::Ok{};
  const cinch_step_outcome told{sizeof told, ended->is_skipped ? 1 : 0};
  return write_struct(told, outcome, "outcome");
}

CallStatus give_text(const rt::Result<std::string>& text, const char* name, void* data,
                     std::size_t* size) {
  CINCH_TRY(text);
  return copy_out({reinterpret_cast<const std::uint8_t*>(text->data()), text->size()}, name, data,
                  size);
}

}  // namespace
}  // namespace cinch::c_api

using namespace cinch::c_api;

cinch_status cinch_sync_begin(cinch_sync* sync, uint64_t step, const cinch_step_options* options,
                              cinch_error* error) {
  return guarded_on(sync, error, [&](cinch_sync& of) { return begin_step(of, step, options); });
}

cinch_status cinch_sync_ready(cinch_sync* sync, size_t tensor, const cinch_tensor* gradient,
                              const cinch_tensor* update, int32_t is_used, cinch_error* error) {
  return guarded_on(sync, error, [&](cinch_sync& of) {
    return make_ready(of, tensor, gradient, update, is_used != 0);
  });
}

int32_t cinch_sync_is_done(const cinch_sync* sync, size_t tensor) {
  const bool is_there = sync != nullptr && tensor < sync->plan_tensors.size();
  return is_there && sync->session->is_done(sync->plan_tensors[tensor]) ? 1 : 0;
}

cinch_status cinch_sync_wait(cinch_sync* sync, size_t tensor, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (sync == nullptr) return invalid("sync is null");
    CINCH_TRY(check_index(tensor, sync->plan_tensors.size(), "tensor"));
    return done(sync->session->wait_for(sync->plan_tensors[tensor]));
  });
}

cinch_status cinch_sync_finish(cinch_sync* sync, cinch_step_outcome* outcome, cinch_error* error) {
  return guarded_on(sync, error, [&](cinch_sync& of) { return finish_step(of, outcome); });
}

cinch_status cinch_sync_report(cinch_sync* sync, void* data, size_t* size, cinch_error* error) {
  return guarded_on(sync, error, [&](cinch_sync& of) {
    return give_text(of.session->report(), "the report", data, size);
  });
}

cinch_status cinch_sync_trace(cinch_sync* sync, void* data, size_t* size, cinch_error* error) {
  return guarded_on(sync, error, [&](cinch_sync& of) {
    return give_text(of.session->trace(), "the timeline", data, size);
  });
}

// Calls of the C API on buffers of many tensors.

namespace cinch::c_api {
namespace {

CallStatus found(const rt::ListStatus& status) {
  if (status) return rt::Ok{};
  return fail_at(status.error().place, status.error().error);
}

// Sets the session's `tensors` to those of a bucket; `is_first`: is it the first of the call's
// buckets?
CallStatus read_bucket(const Call& call, const cinch_bucket* bucket, bool is_first) {
  cinch_session& session = *call.session;
  const auto given = TRY(read_struct(bucket, sizeof *bucket, "bucket"));
  const auto dtype = dtype_of(given.dtype);
  if (!dtype) return invalid("type " + std::to_string(given.dtype));
  if (given.data == nullptr && given.num_elements > 0) {
    return invalid("a bucket's data is null");
  }
  std::vector<std::int64_t>& num_elems = session.num_elems;
  num_elems.clear();
  for (std::size_t i = 0; i < call.count; ++i) {
    const std::size_t tensor = call.tensor_at(i), size = session.list->size();
    if (tensor >= size) return fail_at(i, out_of_range("tensor", tensor, size));
    num_elems.push_back(session.list->num_elems(tensor));
  }
  rt::Bucket flat{given.data, *dtype, given.num_elements, {}};
  if (given.offsets != nullptr) flat.offsets = {given.offsets, call.count};
  CallStatus status = found(rt::bucket_tensors(flat, num_elems, session.tensors));
  if (!status || call.count == 0) return status;
  status = check_device(given.device, session.device);
  if (status) status = call.take_place(given.device_number, given.stream, is_first);
  return status ? status : fail_at(0, std::move(status.error()));
}

CallResult<rt::PayloadArena> read_arena(const Call& call, const cinch_arena* arena) {
  const auto given = TRY(read_struct(arena, sizeof *arena, "arena"));
  const bool has_arrays = given.offsets != nullptr && given.sizes != nullptr;
  if (call.count > 0 && (given.data == nullptr || !has_arrays)) {
    return invalid("an arena's data, offsets or sizes are null");
  }
  return rt::PayloadArena{static_cast<std::uint8_t*>(given.data),
                          given.capacity,
                          {given.offsets, call.count},
                          {given.sizes, call.count}};
}

CallStatus encode(const Call& call, const cinch_bucket* gradients, cinch_arena* payloads) {
  cinch_session& session = *call.session;
  CINCH_TRY(read_bucket(call, gradients, true));
  const auto arena = TRY(read_arena(call, payloads));
  session.bounds.resize(call.count);
  CINCH_TRY(call.payload_bounds(session.bounds.data()));
  CINCH_TRY(rt::arena_rooms(arena, session.bounds, session.rooms));
  session.slots.clear();
  for (const std::span<std::uint8_t> room : session.rooms) session.slots.push_back({room, {}});
  CINCH_TRY(call.encode());
  for (std::size_t i = 0; i < call.count; ++i) {
    const rt::PayloadSlot& slot = session.slots[i];
    arena.sizes[i] = call.is_on_gpu() ? slot.room.size() : slot.bytes.size();
  }
  if (!call.is_on_gpu()) {
    payloads->size = rt::close_arena(arena);
  } else {
    payloads->size = call.count == 0 ? 0 : arena.offsets.back() + arena.sizes.back();
  }
  return rt::Ok{};
}

CallStatus read_payloads(const Call& call, const cinch_arena* payloads) {
  const auto arena = TRY(read_arena(call, payloads));
  return found(rt::arena_payloads(arena, call.session->payloads));
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
