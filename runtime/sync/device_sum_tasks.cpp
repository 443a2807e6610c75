// The tasks around an all-reduce of payloads: on the device where the wire is, else on the host.
#include <algorithm>

#include "runtime/sync/device_tasks.h"

namespace cinch::rt {

std::vector<bool> DeviceTasks::codecs_added_here() const {
  std::vector<bool> added;
  for (std::uint32_t codec = 0; codec < options_.device.programs.size(); ++codec) {
    const SummedArrays* const summed = sums_of_payloads_.summed(codec);
    added.push_back(arrays_->has_flags() && summed != nullptr && DeviceSums::can_take(*summed));
  }
  return added;
}

Status DeviceTasks::open_sums() {
  DeviceSumsRoom most;
  bool is_needed = false;
  for (const Task& task : plan_.ranks[options_.rank].tasks) {
    if (task.kind != TaskKind::Join || !wire_->has(task.reads[0])) continue;
    const PieceList pieces = pieces_of(plan_, task);
    std::size_t bytes = 0;
    for (const std::uint32_t piece : pieces) bytes += plan_.pieces[piece].bound_bytes;
    most.num_payloads = std::max(most.num_payloads, pieces.size());
    most.payload_bytes = std::max(most.payload_bytes, bytes);
    is_needed = true;
  }
  if (!is_needed) return Ok{};
  auto sums = DeviceSums::make(*arrays_, device_, stream_, most);
  if (!sums) return tl::unexpected<Error>(sums.error());
  sums_ = std::move(*sums);
  return Ok{};
}

Status DeviceTasks::lay_out(const Task& task, std::uint32_t piece, PayloadLayout& layout) {
  const PieceList& pieces = plan_.groups[task.groups[0]].pieces;
  const auto place = std::ranges::find(pieces, piece) - pieces.begin();
  const Unit& unit = unit_of(pieces[0], Site::Worker);
  return unit.session->lay_out_payload(static_cast<std::size_t>(place), step_, layout);
}

Status DeviceTasks::find_arrays(const SummedArrays& summed, std::uint32_t piece,
                                std::span<const std::uint32_t> slots, DeviceSum& sum) {
  const std::vector<SumArray> wanted = summed.arrays(sum.layout);
  bool fits = wanted.size() == slots.size();
  sum.arrays.resize(slots.size());
  for (std::size_t i = 0; fits && i < slots.size(); ++i) {
    const auto bytes = static_cast<std::uint64_t>(wanted[i].size_bytes());
    const Slot& slot = plan_.ranks[options_.rank].slots[slots[i]];
    fits = bytes <= slot.capacity - array_ends_[i];
    sum.arrays[i] = memory_->slot(slots[i]) + array_ends_[i];
    if (fits) array_ends_[i] += bytes;
  }
  if (fits) return Ok{};
  return fail(ErrorKind::InvalidArgument,
              describe_piece(plan_, piece) + ": the plan has no arrays for such payloads");
}

Status DeviceTasks::find_sums(const Task& task, std::span<const std::uint32_t> slots,
                              PieceMemory& memory) {
  const PieceList& pieces = plan_.groups[task.groups[0]].pieces;
  const SummedArrays& summed = *sums_of_payloads_.summed(codec_of(plan_, task));
  sums_found_.resize(pieces.size());
  array_ends_.assign(slots.size(), 0);
  if (pieces.empty()) return Ok{};
  const Unit& unit = unit_of(pieces[0], Site::Worker);
  Status status = find_payloads(task, 0, unit, memory);
  for (std::size_t i = 0; i < pieces.size() && status; ++i) {
    DeviceSum& sum = sums_found_[i];
    status = unit.session->lay_out_payload(i, step_, sum.layout);
    if (!status) return status;
    const auto header = unit.session->header_for(i, step_);
    if (!header) return tl::unexpected<Error>(header.error());
    sum.header = *header;
    sum.payload = payload_rooms_[i].address;
    status = find_arrays(summed, pieces[i], slots, sum);
  }
  return status;
}

Status DeviceTasks::spread(const Task& task, PieceMemory& memory) {
  if (!wire_->has(task.reads[0])) {
    const auto layouts = [&](std::uint32_t piece, PayloadLayout& layout) {
      return lay_out(task, piece, layout);
    };
    return sums_of_payloads_.spread(task, memory, layouts);
  }
  Status status = find_sums(task, task.writes, memory);
  if (!status) return status;
  return sums_->spread(*sums_of_payloads_.summed(codec_of(plan_, task)), sums_found_);
}

// The result is what the own payloads are, then with other fields.
Status DeviceTasks::join(const Task& task, PieceMemory& memory) {
  const std::uint32_t own = task.reads[0], result = task.writes[0];
  if (!wire_->has(own)) {
    const auto layouts = [&](std::uint32_t piece, PayloadLayout& layout) {
      return lay_out(task, piece, layout);
    };
    return sums_of_payloads_.join(task, memory, layouts);
  }
  const auto& slots = plan_.ranks[options_.rank].slots;
  if (slots[own].capacity != slots[result].capacity) {
    return fail(ErrorKind::InvalidArgument, "a result of another size than the payloads");
  }
  Status status = find_sums(task, std::span(task.reads).subspan(1), memory);
  for (DeviceSum& sum : sums_found_) {
    sum.payload = memory_->slot(result) + (sum.payload - memory_->slot(own));
  }
  if (status) status = copy(memory_->slot(result), memory_->slot(own), slots[own].capacity);
  if (!status) return status;
  return sums_->join(*sums_of_payloads_.summed(codec_of(plan_, task)), sums_found_);
}

}  // namespace cinch::rt
