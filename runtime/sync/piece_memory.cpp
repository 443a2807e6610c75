// Bodies of piece_memory.h.
#include "runtime/sync/piece_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace cinch::rt {
namespace {

std::int64_t bytes_per_element(DType dtype) {
  return dtype.bits / 8;
}

}  // namespace

Result<PieceMemory> PieceMemory::make(const Plan& plan, std::uint32_t rank) {
  PieceMemory memory(plan, rank);
  const auto wire_bytes = static_cast<std::int64_t>(memory.own_->wire_bytes);
  CINCH_TRY(memory.wire_.resize(wire_bytes));
  // Padding of a message is sent, too; it must never be old memory contents. What is received lies
  // in most of the wire, and is not touched before it is there.
  for (const Task& task : memory.own_->tasks) {
    if (task.lane() != Lane::Network) continue;
    for (const std::uint32_t slot : task.reads) std::ranges::fill(memory.bytes_of(slot), 0);
  }
  return memory;
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

std::span<std::uint8_t> PieceMemory::bytes_of(std::uint32_t slot) {
  const Slot& place = own_->slots[slot];
  return wire_.bytes().subspan(place.offset, place.capacity);
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
