// Plan "auto" of the C API; see sync_handles.h.
#include "runtime/c_api/sync/sync_handles.h"

#include <algorithm>
#include <random>
#include <thread>

#include "runtime/c_api/tensors.h"

namespace cinch::c_api {
namespace {

using Samples = std::vector<rt::ConstTensorView>;

// Random samples for the request's tensors, in `memory`. Their distribution affects only the
// measurements.
Samples make_samples(const rt::PlanRequest& request, std::vector<std::vector<float>>& memory) {
  std::minstd_rand random(1);
  std::normal_distribution<float> normal;
  for (const rt::PlanTensor& tensor : request.tensors) {
    auto& values = memory.emplace_back(static_cast<std::size_t>(tensor.num_elems()));
    std::ranges::generate(values, [&] { return normal(random); });
  }
  return {memory.begin(), memory.end()};
}

CallResult<Samples> read_samples(const cinch_tensor* given, const rt::PlanRequest& request,
                                 const std::vector<std::size_t>& places) {
  Samples samples;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto view = tensor_view(given, places[i]);
    if (!view) return fail_at(places[i], view.error());
    if (view->num_elems != request.tensors[i].num_elems()) {
      return fail_at(places[i],
                     {CINCH_INVALID_ARGUMENT, "a sample of another size than its tensor"});
    }
    samples.emplace_back(view->data, view->dtype, view->num_elems);
  }
  return samples;
}

}  // namespace

CallResult<rt::AutoPlan> choose_plan(const cinch_sync_options& options, rt::PlanRequest request,
                                     const std::vector<std::size_t>& given, rt::SyncOptions session,
                                     rt::Transport& transport) {
  rt::AutoPlanInputs inputs;
  std::vector<std::vector<float>> memory;
  if (options.samples == nullptr) {
    inputs.gradients = make_samples(request, memory);
  } else {
    auto samples = read_samples(options.samples, request, given);
    CINCH_TRY(samples);
    inputs.gradients = std::move(*samples);
  }
  if (options.piece_bytes > 0) inputs.space.piece_bytes = {options.piece_bytes};
  if (request.lengths != rt::LengthPolicy::Auto) inputs.space.lengths = {request.lengths};
  inputs.request = std::move(request);
  inputs.session = std::move(session);
  if (inputs.session.device) inputs.session.device->has_tensors = false;  // samples are not there
  inputs.step = options.first_step;
  if (inputs.session.threads == 0) {
    inputs.session.threads = std::max(1U, std::thread::hardware_concurrency());
  }
  auto chosen = rt::choose_auto_plan(inputs, transport);
  if (!chosen) return fail(chosen.error());
  return std::move(*chosen);
}

}  // namespace cinch::c_api
