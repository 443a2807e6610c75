// Steps in parts, of the C API, and what steps took.
#include <cstddef>

#include "runtime/c_api/support.h"
#include "runtime/c_api/sync/sync_handles.h"
#include "runtime/c_api/tensors.h"

namespace cinch::c_api {
namespace {

CallStatus begin_step(cinch_sync& sync, std::uint64_t step, const cinch_step_options* options) {
  rt::StepOptions how;
  if (options != nullptr) {
    const auto given =
        read_struct(options, offsetof(cinch_step_options, measures_errors), "options");
    CINCH_TRY(given);
    how.scale = given->scale == 0 ? 1 : given->scale;
    how.is_sum = given->is_sum != 0;
    how.skips_non_finite = given->skips_non_finite != 0;
    how.measures_errors = given->measures_errors != 0;
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
  CallError error = !is_there ? no_tensor(tensor, sync.plan_tensors.size())
                    : !from   ? from.error()
                              : to.error();
  const rt::Status told = sync.session->fail_step({rt::ErrorKind::InvalidArgument, error.message});
  if (!told) return done(told);
  error.tensor = tensor;
  return tl::unexpected<CallError>(std::move(error));
}

CallStatus finish_step(cinch_sync& sync, cinch_step_outcome* outcome) {
  if (outcome != nullptr) {
    const auto given = read_struct(outcome, sizeof(std::size_t), "outcome");
    CINCH_TRY(given);
  }
  const auto ended = sync.session->finish_step();
  if (!sync.session->is_in_step()) sync.transport->stepping = nullptr;
  if (!ended) return fail(ended.error());
  if (outcome == nullptr) return rt::Ok{};
  const cinch_step_outcome told{sizeof told, ended->is_skipped ? 1 : 0};
  return write_struct(told, outcome, "outcome");
}

CallStatus give_text(const rt::Result<std::string>& text, const char* name, void* data,
                     std::size_t* size) {
  if (!text) return fail(text.error());
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
    if (sync == nullptr) return fail(CINCH_INVALID_ARGUMENT, "sync is null");
    if (tensor >= sync->plan_tensors.size()) {
      return tl::unexpected<CallError>(no_tensor(tensor, sync->plan_tensors.size()));
    }
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
