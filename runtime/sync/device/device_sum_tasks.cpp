// The tasks around an all-reduce of payloads: spread payloads to arrays that the transport adds up,
// and join them again. They run on a GPU if payloads stay there and can be added there, else on the
// host.
#include <algorithm>

#include "runtime/sync/device/device_tasks.h"

namespace cinch::rt {

std::vector<bool> DeviceTasks::codecs_added_here() const {
  std::vector<bool> added;
  added.reserve(summed_.size());
  for (const auto& summed : summed_) {
    added.push_back(device_->gpu()->arrays->has_flags() && summed && DeviceSums::can_take(*summed));
  }
  return added;
}

Status DeviceTasks::open_sums() {
  DeviceSumsRoom most;
  bool is_needed = false;
  for (const Task& task : own_.tasks) {
    if (task.kind != TaskKind::Join || !stays(task.reads[0])) continue;
    const PieceList pieces = pieces_of(plan_, task);
    std::size_t bytes = 0;
    for (const std::uint32_t piece : pieces) bytes += plan_.pieces[piece].bound_bytes;
    most.num_payloads = std::max(most.num_payloads, pieces.size());
    most.payload_bytes = std::max(most.payload_bytes, bytes);
    is_needed = true;
  }
  if (!is_needed) return Ok{};
  const GpuQueue& gpu = *device_->gpu();
  auto sums = DeviceSums::make(*gpu.arrays, gpu.device, gpu.stream, most);
  CINCH_TRY(sums);
  sums_ = std::move(*sums);
  return Ok{};
}

Result<const SummedArrays*> DeviceTasks::summed_of(const Task& task) const {
  if (const auto& summed = summed_[codec_of(plan_, task)]) return &*summed;
  return fail(ErrorKind::InvalidArgument, "payloads that do not add up");
}

Status DeviceTasks::find_arrays(const SummedArrays& summed, std::uint32_t piece,
                                std::span<const std::uint32_t> slots, PieceMemory& memory,
                                DeviceSum& sum) {
  summed.list_arrays(sum.layout, wanted_);
  bool fits = wanted_.size() == slots.size();
  sum.arrays.resize(slots.size());
  for (std::size_t i = 0; fits && i < slots.size(); ++i) {
    const auto bytes = static_cast<std::uint64_t>(wanted_[i].size_bytes());
    fits = bytes <= own_.slots[slots[i]].capacity - array_ends_[i];
    sum.arrays[i] = {slot_at(slots[i], memory) + array_ends_[i], bytes};
    if (fits) array_ends_[i] += bytes;
  }
  if (fits) return Ok{};
  return fail(ErrorKind::InvalidArgument,
              describe_piece(plan_, piece) + ": the plan has no arrays for such payloads");
}

Status DeviceTasks::find_sums(const Task& task, const SummedArrays& summed,
                              std::span<const std::uint32_t> slots, PieceMemory& memory) {
  const Group& group = plan_.groups[task.groups[0]];
  const PieceList& pieces = group.pieces;
  sums_found_.resize(pieces.size());
  array_ends_.assign(slots.size(), 0);
  if (pieces.empty()) return Ok{};
  const std::uint32_t own = task.reads[0];
  std::uint8_t* const at = slot_at(own, memory);
  const DeviceList& list = lists_.of(task, Site::Worker, pieces[0]);
  payloads_.clear();
  Status status = is_added_on_host(own)
                      ? split_message(plan_, group, memory.bytes_of(own), is_packed(own), payloads_)
                      : find_payloads(task, 0, Site::Worker, memory);
  for (std::size_t i = 0; i < pieces.size() && status; ++i) {
    DeviceSum& sum = sums_found_[i];
    const std::size_t entry = list.entry_of(pieces[i]);
    status = list.sessions->lay_out_payload(entry, step_, sum.layout);
    if (!status) return status;
    const auto header = list.sessions->header_for(entry, step_);
    CINCH_TRY(header);
    sum.header = *header;
    sum.payload = {at + (payloads_[i].data() - at), payloads_[i].size()};
    status = find_arrays(summed, pieces[i], slots, memory, sum);
  }
  return status;
}

Status DeviceTasks::spread(const Task& task, PieceMemory& memory) {
  const auto summed = summed_of(task);
  CINCH_TRY(summed);
  Status status = find_sums(task, **summed, task.writes, memory);
  if (!status) return status;
  if (!is_added_on_host(task.reads[0])) return sums_->spread(**summed, sums_found_);
  for (std::size_t i = 0; status && i < sums_found_.size(); ++i) {
    DeviceSum& sum = sums_found_[i];
    status = (*summed)->spread(sum.payload, sum.layout, sum.arrays);
  }
  return status;
}

// The result begins as a copy of the own payloads, whose fields are then replaced.
Status DeviceTasks::join(const Task& task, PieceMemory& memory) {
  const std::uint32_t own = task.reads[0], result = task.writes[0];
  const auto summed = summed_of(task);
  CINCH_TRY(summed);
  const std::size_t bytes = own_.slots[own].capacity;
  if (bytes != own_.slots[result].capacity) {
    return fail(ErrorKind::InvalidArgument, "a result of another size than the payloads");
  }
  Status status = find_sums(task, **summed, std::span(task.reads).subspan(1), memory);
  if (!status) return status;
  std::uint8_t *const from = slot_at(own, memory), *const to = slot_at(result, memory);
  for (DeviceSum& sum : sums_found_) {
    sum.payload = {to + (sum.payload.data() - from), sum.payload.size()};
  }
  if (is_added_on_host(own)) {
    std::copy_n(from, bytes, to);
    return join_on_host(**summed, plan_.groups[task.groups[0]].pieces);
  }
  status = device_->copy(to, from, bytes);
  return status ? sums_->join(**summed, sums_found_) : status;
}

Status DeviceTasks::join_on_host(const SummedArrays& summed, const PieceList& pieces) {
  for (std::size_t i = 0; i < sums_found_.size(); ++i) {
    const DeviceSum& sum = sums_found_[i];
    joined_.assign(sum.arrays.begin(), sum.arrays.end());
    Status status = summed.join(joined_, sum.layout, sum.payload);
    if (status) continue;
    status.error().message = describe_piece(plan_, pieces[i]) + ": " + status.error().message;
    return status;
  }
  return Ok{};
}

}  // namespace cinch::rt
