// Bodies of sum_tasks.h.
#include "runtime/sync/sum_tasks.h"

#include <cstring>

namespace cinch::rt {

Status SumTasks::arrays_of(const SummedArrays& summed, std::uint32_t piece,
                           std::span<const std::uint32_t> slots, PieceMemory& memory,
                           const LayOut& lay_out) {
  if (Status status = lay_out(piece, layout_); !status) return status;
  summed.list_arrays(layout_, wanted_);
  bool fits = wanted_.size() == slots.size();
  arrays_.resize(slots.size());
  for (std::size_t i = 0; fits && i < slots.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(wanted_[i].size_bytes());
    const auto slot = memory.bytes_of(slots[i]);
    fits = bytes <= slot.size() - next_bytes_[i];
    if (fits) arrays_[i] = slot.subspan(next_bytes_[i], bytes);
    next_bytes_[i] += bytes;
  }
  if (fits) return Ok{};
  return fail(ErrorKind::InvalidArgument,
              describe_piece(plan_, piece) + ": the plan has no arrays for such payloads");
}

Result<const SummedArrays*> SumTasks::summed_of(const Task& task) const {
  if (const auto& summed = summed_[codec_of(plan_, task)]) return &*summed;
  return fail(ErrorKind::InvalidArgument, "payloads that do not add up");
}

Status SumTasks::spread(const Task& task, PieceMemory& memory, const LayOut& lay_out) {
  const auto& pieces = plan_.groups[task.groups[0]].pieces;
  const auto summed = summed_of(task);
  if (!summed) return tl::unexpected<Error>(summed.error());
  payloads_.clear();
  Status status = split_message(plan_, pieces, memory.bytes_of(task.reads[0]),
                                memory.is_packed(task.reads[0]), payloads_);
  next_bytes_.assign(task.writes.size(), 0);
  for (std::size_t i = 0; status && i < pieces.size(); ++i) {
    status = arrays_of(**summed, pieces[i], task.writes, memory, lay_out);
    if (status) status = (*summed)->spread(payloads_[i], layout_, arrays_);
  }
  return status;
}

Status SumTasks::join(const Task& task, PieceMemory& memory, const LayOut& lay_out) {
  const auto& pieces = plan_.groups[task.groups[0]].pieces;
  const auto own = memory.bytes_of(task.reads[0]), result = memory.bytes_of(task.writes[0]);
  const auto summed = summed_of(task);
  if (!summed) return tl::unexpected<Error>(summed.error());
  if (own.size() != result.size()) {
    return fail(ErrorKind::InvalidArgument, "a result of another size than the payloads");
  }
  std::memcpy(result.data(), own.data(), own.size());
  payloads_.clear();
  Status status = split_message(plan_, pieces, result, memory.is_packed(task.reads[0]), payloads_);
  const std::span<const std::uint32_t> slots = std::span(task.reads).subspan(1);
  next_bytes_.assign(slots.size(), 0);
  for (std::size_t i = 0; status && i < pieces.size(); ++i) {
    status = arrays_of(**summed, pieces[i], slots, memory, lay_out);
    if (!status) break;
    const auto at = static_cast<std::size_t>(payloads_[i].data() - result.data());
    joined_.assign(arrays_.begin(), arrays_.end());
    status = (*summed)->join(joined_, layout_, result.subspan(at, payloads_[i].size()));
    if (!status)
      status.error().message = describe_piece(plan_, pieces[i]) + ": " + status.error().message;
  }
  return status;
}

}  // namespace cinch::rt
