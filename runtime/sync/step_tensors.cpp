// Bodies of step_tensors.h.
#include "runtime/sync/step_tensors.h"

#include <fmt/format.h>

#include <cmath>

#include "runtime/session/tensor_convert.h"

namespace cinch::rt {
namespace {

Status check_view(const PlanTensor& tensor, std::int64_t wanted, const void* data, DType dtype,
                  std::int64_t elems) {
  Status status = check_tensor_dtype(dtype);
  if (status && elems != wanted) {
    status = fail(ErrorKind::InvalidArgument,
                  fmt::format("{} elements, the plan has {}", elems, wanted));
  }
  if (status && data == nullptr && elems > 0) {
    status = fail(ErrorKind::InvalidArgument, "a null tensor");
  }
  if (status) return status;
  return fail(status.error().kind, tensor.name + ": " + status.error().message);
}

}  // namespace

StepTensors::StepTensors(const Plan& plan, std::uint32_t rank, std::uint32_t threads,
                         bool are_on_device)
    : plan_(plan),
      rank_(rank),
      threads_(threads),
      are_on_device_(are_on_device),
      given_(plan.tensors.size()),
      gradients_(plan.tensors.size()),
      wanted_(plan.tensors.size()),
      updates_(plan.tensors.size()),
      scaled_(plan.tensors.size()) {}

Status StepTensors::begin(const TensorFactors& factors) {
  if (!std::isfinite(factors.scale) || factors.scale <= 0 ||
      static_cast<float>(factors.scale) == 0.0f ||
      !std::isfinite(static_cast<float>(factors.scale))) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("a scale of {}: f32 above 0 is taken", factors.scale));
  }
  const bool is_plain = factors.scale == 1 && !factors.is_sum && !factors.looks_for_non_finite;
  if (are_on_device_ && !is_plain) {
    return fail(ErrorKind::InvalidArgument,
                "tensors in a device's memory are neither scaled nor looked at");
  }
  if (!is_plain && !runner_) runner_ = std::make_unique<TaskRunner>(threads_);
  factors_ = factors;
  has_non_finite_ = false;
  return Ok{};
}

Status StepTensors::set(std::uint32_t tensor, const ConstTensorView& gradient,
                        const TensorView& update) {
  const PlanTensor& of = plan_.tensors[tensor];
  Status status = check_view(of, of.num_elems(), gradient.data, gradient.dtype, gradient.num_elems);
  if (status) {
    const std::int64_t part = updated_part(of, rank_).num_elems;
    status = check_view(of, part, update.data, update.dtype, update.num_elems);
  }
  if (!status) return status;
  given_[tensor] = gradients_[tensor] = gradient;
  wanted_[tensor] = updates_[tensor] = update;
  return Ok{};
}

Status StepTensors::prepare(std::uint32_t tensor) {
  const std::lock_guard lock(mutex_);
  ConstTensorView& gradient = gradients_[tensor];
  if (is_scaled()) {
    const std::int64_t elems = plan_.tensors[tensor].num_elems();
    if (Status status = scaled_[tensor].resize(elems * 4); !status) return status;
    auto* const data = reinterpret_cast<float*>(scaled_[tensor].data());
    const std::span values(data, static_cast<std::size_t>(elems));
    Status status = convert_to_f32(given_[tensor], values, *runner_, nullptr);
    if (status) {
      status = divide_f32(values, static_cast<float>(factors_.scale), values, *runner_, nullptr);
    }
    if (!status) return status;
    gradient = ConstTensorView(data, kF32, elems);
    const ElementRange part = updated_part(plan_.tensors[tensor], rank_);
    updates_[tensor] = TensorView(data + part.first, kF32, part.num_elems);
  }
  if (!factors_.looks_for_non_finite) return Ok{};
  const auto finite = all_finite(gradient, *runner_, nullptr);
  if (!finite) return tl::unexpected<Error>(finite.error());
  if (!*finite) has_non_finite_ = true;
  return Ok{};
}

Status StepTensors::deliver(std::uint32_t tensor) {
  if (!is_scaled()) return Ok{};
  const std::lock_guard lock(mutex_);
  const auto elems = static_cast<std::size_t>(updates_[tensor].num_elems);
  auto* const data = static_cast<float*>(updates_[tensor].data);
  const std::span values(data, elems);
  const double ranks = factors_.is_sum ? plan_.world() : 1;
  const auto factor = static_cast<float>(factors_.scale * ranks);
  const Status status = multiply_f32(values, factor, values, *runner_, nullptr);
  return status ? convert_from_f32(values, wanted_[tensor], *runner_, nullptr) : status;
}

}  // namespace cinch::rt
