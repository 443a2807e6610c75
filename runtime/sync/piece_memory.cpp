// Bodies of piece_memory.h.
#include "runtime/sync/piece_memory.h"

#include <fmt/format.h>

#include <cstring>

#include "runtime/sync/task_facts.h"

namespace cinch::rt {
namespace {

constexpr std::int64_t kNoSum = -1;

std::int64_t bytes_per_element(DType dtype) {
  return dtype.bits / 8;
}

}  // namespace

Result<PieceMemory> PieceMemory::make(const Plan& plan, std::uint32_t rank, bool has_sums) {
  PieceMemory memory(plan, rank);
  memory.sum_at_.assign(plan.pieces.size(), kNoSum);
  std::int64_t elements = 0;
  if (has_sums) {
    for (const std::uint32_t piece : summed_pieces(plan, rank)) {
      memory.sum_at_[piece] = elements;
      elements += plan.pieces[piece].num_elems;
    }
  }
  const auto wire_bytes = static_cast<std::int64_t>(memory.own_->wire_bytes);
  if (Status status = memory.wire_.resize(wire_bytes); !status) {
    return tl::unexpected<Error>(status.error());
  }
  if (Status status = memory.sums_.resize(elements * 4); !status) {
    return tl::unexpected<Error>(status.error());
  }
  // What pads a message is sent, too: never what was in memory before.
  if (wire_bytes > 0) std::memset(memory.wire_.data(), 0, memory.own_->wire_bytes);
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

std::span<float> PieceMemory::sum(std::uint32_t piece) {
  if (sum_at_[piece] == kNoSum) return {};
  auto* const sums = reinterpret_cast<float*>(sums_.data());
  return {sums + sum_at_[piece], static_cast<std::size_t>(plan_->pieces[piece].num_elems)};
}

TensorView PieceMemory::value(std::uint32_t piece, Value which) {
  return which == Value::Sum ? TensorView(sum(piece)) : update(piece);
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
