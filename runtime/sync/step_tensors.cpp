#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <iterator>
#include <string_view>

#include "runtime/session/tensor_convert.h"
#include "runtime/sync/step_tensors.h"

namespace cinch::rt {
namespace {

// `what`: "gradient" or "update".
Status check_view(const PlanTensor& tensor, std::string_view what, std::int64_t wanted,
                  const ConstTensorView& view) {
  Status status = check_tensor_dtype(view.dtype);
  if (status && view.num_elems != wanted) {
    const bool is_part = wanted != tensor.num_elems();
    status = invalid(fmt::format(
        "the {} has {} elements, but the plan has {} for this {}: give {}", what, view.num_elems,
        wanted, is_part ? "rank's part" : "tensor",
        is_part ? "room for the part alone" : "the tensors that the plan was made for"));
  }
  if (status && view.data == nullptr && view.num_elems > 0) {
    status = invalid("a null tensor");
  }
  if (status) return status;
  return fail(status.error().kind, tensor.name + ": " + status.error().message);
}

// Of a node of a map, about. What does not fit is allocated.
constexpr std::size_t kNodeBytes = 64;

std::int64_t bytes_per_element(DType dtype) {
  return dtype.bits / 8;
}

}  // namespace

StepTensors::StepTensors(const Plan& plan, std::uint32_t rank, ComputeDevice& device,
                         const std::vector<bool>& is_local)
    : plan_(plan),
      rank_(rank),
      device_(device),
      memory_(plan, rank),
      digests_(plan, rank, is_local),
      given_(plan.tensors.size()),
      gradients_(plan.tensors.size()),
      inputs_(plan.tensors.size()),
      wanted_(plan.tensors.size()),
      updates_(plan.tensors.size()) {}

StepTensors::~StepTensors() {
  const auto turn = take_turn(device_);
  // After a failed step, work may still use memory that is freed now.
  (void)device_.wait();
  values_ = {};
}

Status StepTensors::begin(const TensorFactors& factors) {
  if (!std::isfinite(factors.scale) || factors.scale <= 0 ||
      static_cast<float>(factors.scale) == 0.0f ||
      !std::isfinite(static_cast<float>(factors.scale))) {
    return invalid(fmt::format("a scale of {}: f32 above 0 is taken", factors.scale));
  }
  factors_ = factors;
  memory_.clear();
  return Ok{};
}

Status StepTensors::set(std::uint32_t tensor, const ConstTensorView& gradient,
                        const TensorView& update) {
  const PlanTensor& of = plan_.tensors[tensor];
  Status status = check_view(of, "gradient", of.num_elems(), gradient);
  if (status) {
    const std::int64_t part = updated_part(of, rank_).num_elems;
    status = check_view(of, "update", part, ConstTensorView(update));
  }
  if (status) status = memory_.add(tensor, gradient, update);
  if (!status) return status;
  given_[tensor] = gradients_[tensor] = gradient;
  wanted_[tensor] = updates_[tensor] = update;
  digests_.forget(tensor);
  return Ok{};
}

Status StepTensors::set_input(std::uint32_t tensor, std::string_view name,
                              const ConstTensorView& array) {
  const PlanTensor& of = plan_.tensors[tensor];
  const Status status = check_input_array(name, array, of.num_elems());
  if (!status) return fail(status.error().kind, of.name + ": " + status.error().message);
  std::erase_if(inputs_[tensor], [&](const NamedArray& one) { return one.name == name; });
  inputs_[tensor].push_back({name, array});
  return Ok{};
}

bool StepTensors::has_input(std::uint32_t tensor, std::string_view name) const {
  return std::ranges::find(inputs_[tensor], name, &NamedArray::name) != inputs_[tensor].end();
}

void StepTensors::forget_inputs() {
  for (std::vector<NamedArray>& of : inputs_) of.clear();
}

Status StepTensors::check_memory(std::uint32_t tensor) const {
  for (const ConstTensorView& view : {given_[tensor], ConstTensorView(wanted_[tensor])}) {
    if (view.num_elems == 0) continue;
    const Status status = device_.check_memory(view.data);
    if (status) continue;
    return fail(status.error().kind, plan_.tensors[tensor].name + ": " + status.error().message);
  }
  return Ok{};
}

Result<std::uint8_t*> StepTensors::values(std::uint32_t tensor) {
  if (values_.pieces.empty()) {
    std::vector<std::size_t> sizes;
    sizes.reserve(plan_.tensors.size());
    for (const PlanTensor& of : plan_.tensors) {
      sizes.push_back(static_cast<std::size_t>(of.num_elems()) * 4);
    }
    values_ = TRY(device_.allocate(sizes));
  }
  return values_.pieces[tensor];
}

Result<ConstTensorView> StepTensors::scale(std::uint32_t tensor) {
  const auto to = TRY(values(tensor));
  const ConstTensorView& given = given_[tensor];
  ArrayPair pair{to, static_cast<const std::uint8_t*>(given.data), given.num_elems};
  if (given.dtype != kF32) {
    CINCH_TRY(device_.widen({&pair, 1}, given.dtype));
    pair.from = to;
  }
  CINCH_TRY(device_.divide({&pair, 1}, static_cast<float>(factors_.scale)));
  return ConstTensorView(to, kF32, given.num_elems);
}

Status StepTensors::prepare(std::uint32_t tensor) {
  if (!is_scaled() && !factors_.looks_for_non_finite) return Ok{};
  const std::lock_guard lock(mutex_);
  const auto turn = take_turn(device_);
  CINCH_TRY(check_memory(tensor));
  ConstTensorView gradient = given_[tensor];
  // A GPU checks only f32.
  if (is_scaled() || (gradient.dtype != kF32 && !device_.is_host())) {
    gradient = TRY(scale(tensor));
  }
  if (is_scaled()) {
    gradients_[tensor] = gradient;
    const ElementRange part = updated_part(plan_.tensors[tensor], rank_);
    auto* const data = values_.pieces[tensor] + 4 * part.first;
    updates_[tensor] = TensorView(data, kF32, part.num_elems);
  }
  return factors_.looks_for_non_finite ? device_.look_for_non_finite(gradient) : Ok{};
}

// The user may change an update as soon as it is delivered, so its digest is taken here.
Status StepTensors::deliver(std::uint32_t tensor) {
  if (is_scaled()) CINCH_TRY(rescale(tensor));
  digests_.note(tensor, wanted_[tensor]);
  return Ok{};
}

Status StepTensors::rescale(std::uint32_t tensor) {
  const std::lock_guard lock(mutex_);
  const auto turn = take_turn(device_);
  const double ranks = factors_.is_sum ? plan_.world() : 1;
  const auto factor = static_cast<float>(factors_.scale * ranks);
  auto* const update = static_cast<std::uint8_t*>(updates_[tensor].data);
  const TensorView& wanted = wanted_[tensor];
  ArrayPair pair{static_cast<std::uint8_t*>(wanted.data), update, wanted.num_elems};
  if (wanted.dtype == kF32) return device_.multiply({&pair, 1}, factor);
  const ArrayPair in_place{update, update, wanted.num_elems};
  const Status status = device_.multiply({&in_place, 1}, factor);
  return status ? device_.narrow({&pair, 1}, wanted.dtype) : status;
}

Result<bool> StepTensors::take_non_finite() {
  if (!factors_.looks_for_non_finite) return false;
  const auto turn = take_turn(device_);
  return device_.take_non_finite();
}

Status StepTensors::end() {
  if (!is_scaled()) return Ok{};
  const auto turn = take_turn(device_);
  return device_.wait();
}

bool StepMemory::Ranges::overlap(const Range& range) const {
  if (range.begin == range.end) return false;
  const auto behind = ends_.lower_bound(range.end);
  return behind != ends_.begin() && std::prev(behind)->second > range.begin;
}

// Joins the range with those that it meets.
void StepMemory::Ranges::add(Range range) {
  if (range.begin == range.end) return;
  auto at = ends_.lower_bound(range.begin);
  if (at != ends_.begin() && std::prev(at)->second >= range.begin) {
    --at;
    range.begin = at->first;
  }
  while (at != ends_.end() && at->first <= range.end) {
    range.end = std::max(range.end, at->second);
    at = ends_.erase(at);
  }
  ends_.emplace_hint(at, range.begin, range.end);
}

StepMemory::StepMemory(const Plan& plan, std::uint32_t rank)
    : plan_(plan),
      rank_(rank),
      added_(plan.tensors.size()),
      room_(2 * kNodeBytes * plan.tensors.size()) {}

void StepMemory::clear() {
  num_added_ = 0;
  gradients_.clear();
  updates_.clear();
  nodes_.release();
}

StepMemory::Range StepMemory::range_of(const ConstTensorView& view) {
  const auto begin = reinterpret_cast<std::uintptr_t>(view.data);
  return {begin, begin + byte_count(view)};
}

bool StepMemory::is_in_place(std::uint32_t tensor, const ConstTensorView& gradient,
                             const TensorView& update) const {
  const auto first = static_cast<std::size_t>(updated_part(plan_.tensors[tensor], rank_).first);
  return update.dtype == gradient.dtype &&
         range_of(update).begin == range_of(gradient).begin + first * gradient.dtype.bits / 8;
}

Status StepMemory::add(std::uint32_t tensor, const ConstTensorView& gradient,
                       const TensorView& update) {
  const Added now{tensor, range_of(gradient), range_of(update)};
  const auto name = [&](std::uint32_t of) { return plan_.tensors[of].name; };
  if (now.update.overlaps(now.gradient) && !is_in_place(tensor, gradient, update)) {
    return invalid(fmt::format(
        "{}: the update overlaps its gradient; it may only be the same memory", name(tensor)));
  }
  const bool is_free = !gradients_.overlap(now.update) && !updates_.overlap(now.update) &&
                       !updates_.overlap(now.gradient);
  for (std::size_t i = 0; i < num_added_ && !is_free; ++i) {
    const Added& other = added_[i];
    const bool is_other = now.update.overlaps(other.gradient) ||
                          now.update.overlaps(other.update) || now.gradient.overlaps(other.update);
    if (!is_other) continue;
    return invalid(
        fmt::format("{}: its memory overlaps that of {}, and an update would be written over it",
                    name(tensor), name(other.tensor)));
  }
  gradients_.add(now.gradient);
  updates_.add(now.update);
  added_[num_added_++] = now;
  return Ok{};
}

Result<PieceMemory> PieceMemory::make(const Plan& plan, std::uint32_t rank) {
  PieceMemory memory(plan, rank);
  const auto wire_bytes = static_cast<std::int64_t>(memory.own_->wire_bytes);
  CINCH_TRY(memory.owned_.resize(wire_bytes));
  memory.wire_ = memory.owned_.bytes();
  // Padding of a message is sent, too; it must never be old memory contents. What is received lies
  // in most of the wire, and is not touched before it is there.
  for (const Task& task : memory.own_->tasks) {
    if (task.lane() != Lane::Network) continue;
    for (const std::uint32_t slot : task.reads) std::ranges::fill(memory.bytes_of(slot), 0);
  }
  return memory;
}

PieceMemory PieceMemory::beside() const {
  PieceMemory made(*plan_, rank_);
  made.wire_ = wire_;
  return made;
}

ConstTensorView PieceMemory::gradient(std::uint32_t piece) const {
  const Piece& of = plan_->pieces[piece];
  const ConstTensorView& tensor = gradients_[of.tensor];
  const auto* data = static_cast<const std::uint8_t*>(tensor.data);
  if (data != nullptr) data += of.first * bytes_per_element(tensor.dtype);
  return {data, tensor.dtype, of.num_elems};
}

TensorView PieceMemory::update(std::uint32_t piece) const {
  const Piece& of = plan_->pieces[piece];
  const TensorView& tensor = updates_[of.tensor];
  auto* data = static_cast<std::uint8_t*>(tensor.data);
  const std::int64_t begin = updated_part(plan_->tensors[of.tensor], rank_).first;
  if (data != nullptr) data += (of.first - begin) * bytes_per_element(tensor.dtype);
  return {data, tensor.dtype, of.num_elems};
}

Result<ConstTensorView> PieceMemory::input(std::uint32_t piece, std::string_view name) const {
  const Piece& of = plan_->pieces[piece];
  if (of.tensor < inputs_.size()) {
    for (const NamedArray& one : inputs_[of.tensor]) {
      if (one.name != name) continue;
      const auto* data = static_cast<const std::uint8_t*>(one.array.data);
      if (data != nullptr) data += of.first * bytes_per_element(one.array.dtype);
      return ConstTensorView(data, one.array.dtype, of.num_elems);
    }
  }
  return invalid(fmt::format("the input {} has no value in this step", name));
}

std::span<std::uint8_t> PieceMemory::bytes_of(std::uint32_t slot) {
  const Slot& place = own_->slots[slot];
  return wire_.subspan(place.offset, place.capacity);
}

Result<std::uint64_t> PieceMemory::used_bytes(std::uint32_t slot) {
  const Slot& place = own_->slots[slot];
  if (place.length == kNoSlot) return place.capacity;
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, bytes_of(place.length).data(), sizeof bytes);
  if (bytes <= place.capacity) return bytes;
  return fail(
      ErrorKind::CorruptPayload,
      fmt::format("a message of {} bytes where there is room for {}", bytes, place.capacity));
}

void PieceMemory::set_used_bytes(std::uint32_t slot, std::uint64_t bytes) {
  const std::uint32_t length = own_->slots[slot].length;
  if (length != kNoSlot) std::memcpy(bytes_of(length).data(), &bytes, sizeof bytes);
}

}  // namespace cinch::rt
