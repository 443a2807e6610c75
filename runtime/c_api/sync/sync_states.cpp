// States of a synchronisation one by one, of the C API.
#include "runtime/c_api/support.h"
#include "runtime/c_api/sync/sync_handles.h"

namespace cinch::c_api {
namespace {

CallStatus check_data(const void* data, std::size_t size) {
  if (data != nullptr || size == 0) return rt::Ok{};
  return fail(CINCH_INVALID_ARGUMENT, "data is null");
}

std::span<const std::uint8_t> bytes_at(const void* data, std::size_t size) {
  return {static_cast<const std::uint8_t*>(data), size};
}

CallStatus load_own(cinch_sync& sync, const void* data, std::size_t size,
                    cinch_sync_restored* restored) {
  CINCH_TRY(check_data(data, size));
  CINCH_TRY(check_restored(restored));
  const auto report = sync.session->restore_own_states(bytes_at(data, size));
  if (!report) return fail(report.error());
  return tell_restored(sync, *report, restored);
}

CallStatus reset(cinch_sync& sync, std::size_t tensor) {
  if (tensor >= sync.plan_tensors.size()) {
    return tl::unexpected<CallError>(no_tensor(tensor, sync.plan_tensors.size()));
  }
  return done(sync.session->reset_states(sync.plan_tensors[tensor]));
}

CallStatus count(cinch_sync& sync, std::size_t* to) {
  if (to == nullptr) return fail(CINCH_INVALID_ARGUMENT, "count is null");
  const auto arrays = sync.session->state_arrays();
  if (!arrays) return fail(arrays.error());
  *to = arrays->size();
  return rt::Ok{};
}

CallStatus get(cinch_sync& sync, std::size_t place, cinch_sync_state* state, void* data,
               std::size_t* size) {
  auto arrays = sync.session->state_arrays();
  if (!arrays) return fail(arrays.error());
  if (place >= arrays->size()) {
    return fail(CINCH_OUT_OF_RANGE,
                "state " + std::to_string(place) + " of " + std::to_string(arrays->size()));
  }
  sync.shown_state = std::move((*arrays)[place]);
  const rt::StateArray& shown = sync.shown_state;
  const cinch_sync_state told{
      sizeof told,         sync.given[shown.tensor], static_cast<cinch_site>(shown.site),
      shown.first,         shown.num_elems,          shown.name.c_str(),
      shown.dtype.c_str(), shown.bytes.size()};
  CINCH_TRY(write_struct(told, state, "state"));
  return size == nullptr ? rt::Ok{} : copy_out(shown.bytes, "the state", data, size);
}

CallStatus set(cinch_sync& sync, std::size_t place, const void* data, std::size_t size) {
  CINCH_TRY(check_data(data, size));
  return done(sync.session->set_state_array(place, bytes_at(data, size)));
}

}  // namespace

CallStatus check_restored(const cinch_sync_restored* restored) {
  if (restored == nullptr) return rt::Ok{};
  const auto given = read_struct(restored, sizeof(std::size_t), "restored");
  CINCH_TRY(given);
  return rt::Ok{};
}

CallStatus tell_restored(cinch_sync& sync, const rt::RestoreReport& report,
                         cinch_sync_restored* restored) {
  sync.notes.clear();
  for (const std::string& note : report.notes) sync.notes += note + "\n";
  if (restored == nullptr) return rt::Ok{};
  const cinch_sync_restored told{sizeof told,       report.next_step, report.num_kept,
                                 report.num_joined, report.num_reset, sync.notes.c_str()};
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
  return guarded_on(sync, error,
                    [&](cinch_sync& of) { return load_own(of, data, size, restored); });
}

cinch_status cinch_sync_states_reset(cinch_sync* sync, size_t tensor, cinch_error* error) {
  return guarded_on(sync, error, [&](cinch_sync& of) { return reset(of, tensor); });
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
  return guarded_on(sync, error, [&](cinch_sync& of) { return set(of, place, data, size); });
}
