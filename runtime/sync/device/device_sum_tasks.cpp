// The tasks around an all-reduce of payloads: spread payloads to arrays that the transport adds up,
// and join them again. They run on a GPU if payloads stay there and can be added there, else on the
// host.
#include <array>
#include <bit>
#include <cstring>

#include "runtime/core/lang.h"
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
    if (task.kind != TaskKind::Join || !takes(task) || !stays(task.reads[0])) continue;
    const PieceList pieces = pieces_of(plan_, task);
    std::size_t bytes = 0;
    for (const std::uint32_t piece : pieces) bytes += plan_.pieces[piece].bound_bytes;
    most.num_payloads = std::max(most.num_payloads, pieces.size());
    most.payload_bytes = std::max(most.payload_bytes, bytes);
    is_needed = true;
  }
  if (!is_needed) return Ok{};
  const GpuQueue& gpu = *device_->gpu();
  sums_ = TRY(DeviceSums::make(*gpu.arrays, gpu.device, gpu.stream, most));
  return Ok{};
}

Result<const SummedArrays*> DeviceTasks::summed_of(const Task& task) const {
  if (const auto& summed = summed_[codec_of(plan_, task)]) return &*summed;
  return invalid("payloads that do not add up");
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
  return invalid(describe_piece(plan_, piece) + ": the plan has no arrays for such payloads");
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
    sum.header = TRY(list.sessions->header_for(entry, step_));
    sum.payload = {at + (payloads_[i].data() - at), payloads_[i].size()};
    status = find_arrays(summed, pieces[i], slots, memory, sum);
  }
  return status;
}

Status DeviceTasks::spread(const Task& task, PieceMemory& memory) {
  const auto summed = TRY(summed_of(task));
  CINCH_TRY(find_sums(task, *summed, task.writes, memory));
  if (!is_added_on_host(task.reads[0])) return sums_->spread(*summed, sums_found_);
  for (DeviceSum& sum : sums_found_) CINCH_TRY(summed->spread(sum.payload, sum.layout, sum.arrays));
  return Ok{};
}

// The result begins as a copy of the own payloads, whose fields are then replaced.
Status DeviceTasks::join(const Task& task, PieceMemory& memory) {
  const std::uint32_t own = task.reads[0], result = task.writes[0];
  const auto summed = TRY(summed_of(task));
  const std::size_t bytes = own_.slots[own].capacity;
  if (bytes != own_.slots[result].capacity) {
    return invalid("a result of another size than the payloads");
  }
  CINCH_TRY(find_sums(task, *summed, std::span(task.reads).subspan(1), memory));
  std::uint8_t *const from = slot_at(own, memory), *const to = slot_at(result, memory);
  for (DeviceSum& sum : sums_found_) {
    sum.payload = {to + (sum.payload.data() - from), sum.payload.size()};
  }
  if (is_added_on_host(own)) {
    std::copy_n(from, bytes, to);
    return join_on_host(*summed, plan_.groups[task.groups[0]].pieces);
  }
  CINCH_TRY(device_->copy(to, from, bytes));
  return sums_->join(*summed, sums_found_);
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

namespace {

constexpr std::size_t kHeaderBytes = static_cast<std::size_t>(kPayloadHeaderBytes);
// The byte of a header that holds kPayloadNonFinite.
constexpr std::size_t kFlagAt = 8;
// The driver stages this many before a copy returns.
constexpr std::size_t kStagedHeaders = std::size_t{64} * 1024 / kHeaderBytes;

// Constants: a mark that is not set, and a set mark of each type.
constexpr std::size_t kF16At = 4, kBF16At = 6, kF32At = 8, kConstantBytes = 12;

GpuAddress address_of(std::span<const std::uint8_t> memory) {
  return reinterpret_cast<GpuAddress>(memory.data());
}

GpuAddress mark_of(const SummedArrays& summed, const DeviceSum& sum) {
  const std::span<const std::uint8_t> array = sum.arrays[summed.array_of_mark()];
  return address_of(array.last(summed.type_of_mark().bits / 8));
}

}  // namespace

bool DeviceSums::can_take(const SummedArrays& summed) {
  const DType mark = summed.type_of_mark();
  const bool is_half = mark == kF16 || mark == kBF16;
  return summed.moves_only() && (is_half || mark == kF32);
}

Result<std::unique_ptr<DeviceSums>> DeviceSums::make(GpuArrays& arrays,
                                                     std::shared_ptr<const GpuDevice> device,
                                                     GpuStream stream, const DeviceSumsRoom& room) {
  std::unique_ptr<DeviceSums> made(new DeviceSums(arrays, std::move(device), stream));
  made->constants_ = made->arena_.add(kConstantBytes);
  made->headers_ = made->arena_.add(room.num_payloads * kHeaderBytes);
  made->widened_ = made->arena_.add(2 * room.payload_bytes);  // halves as f32
  const GpuDevice::Scope scope(*made->device_);
  CINCH_TRY(made->arena_.allocate(made->device_, stream));
  CINCH_TRY(made->write_constants());
  return made;
}

Status DeviceSums::write_constants() {
  std::array<std::uint8_t, kConstantBytes> bytes{};
  const auto put = [&bytes](std::size_t at, auto word) {
    std::memcpy(bytes.data() + at, &word, sizeof word);
  };
  put(kF16At, lang::to_f16(1.0f));
  put(kBF16At, lang::to_bf16(1.0f));
  put(kF32At, std::bit_cast<std::uint32_t>(1.0f));
  return device_->write(arena_.address(constants_), bytes, stream_);
}

Status DeviceSums::spread(const SummedArrays& summed, std::span<const DeviceSum> sums) {
  const DType type = summed.type_of_mark();
  const std::size_t one_at = type == kF16 ? kF16At : type == kBF16 ? kBF16At : kF32At;
  const GpuAddress zero = arena_.address(constants_), one = zero + one_at;
  moves_.clear();
  wide_.clear();
  for (const DeviceSum& sum : sums) {
    summed.find_fields(sum.layout, fields_);
    for (const SummedField& field : fields_) {
      moves_.push_back({address_of(sum.arrays[field.array]) + field.first_byte,
                        address_of(sum.payload) + static_cast<GpuAddress>(field.place.offset),
                        field.place.size_bytes});
    }
    const GpuAddress mark = mark_of(summed, sum);
    moves_.push_back({mark, zero, type.bits / 8});
    wide_.push_back({mark, one, type.bits / 8, address_of(sum.payload) + kFlagAt});
  }
  Status status = arrays_.copy(moves_);
  return status ? arrays_.copy_where(wide_) : status;
}

Status DeviceSums::join(const SummedArrays& summed, std::span<const DeviceSum> sums) {
  Status status = move_back(summed, sums);
  return status ? take_marks(summed, sums) : status;
}

// NaNs have one form in payloads, that of arithmetic's results, whatever a transport has made of
// them.
Status DeviceSums::move_back(const SummedArrays& summed, std::span<const DeviceSum> sums) {
  for (auto* pairs : {&moves_, &floats_, &halves_, &wide_}) pairs->clear();
  for (const DType dtype : {kF16, kBF16}) {
    for (const DeviceSum& sum : sums) {
      summed.find_fields(sum.layout, fields_);
      for (const SummedField& field : fields_) {
        if (field.dtype != dtype) continue;
        halves_.push_back({address_of(sum.payload) + static_cast<GpuAddress>(field.place.offset),
                           address_of(sum.arrays[field.array]) + field.first_byte,
                           field.place.num_elems});
      }
    }
    CINCH_TRY(move_halves(dtype));
  }
  for (const DeviceSum& sum : sums) {
    summed.find_fields(sum.layout, fields_);
    for (const SummedField& field : fields_) {
      const GpuAddress to = address_of(sum.payload) + static_cast<GpuAddress>(field.place.offset);
      const GpuAddress from = address_of(sum.arrays[field.array]) + field.first_byte;
      if (field.dtype == kF32) floats_.push_back({to, from, field.place.num_elems});
      if (!is_float(field.dtype)) moves_.push_back({to, from, field.place.size_bytes});
    }
  }
  Status status = arrays_.divide(floats_, 1);
  return status ? arrays_.copy(moves_) : status;
}

Status DeviceSums::move_halves(DType dtype) {
  GpuAddress at = arena_.address(widened_);
  wide_.clear();
  for (GpuArrayPair& pair : halves_) {
    wide_.push_back({at, pair.from, pair.num_elems});
    pair.from = at;
    at += 4 * static_cast<GpuAddress>(pair.num_elems);
  }
  Status status = arrays_.widen(wide_, dtype);
  if (status) status = arrays_.narrow(halves_, dtype);
  halves_.clear();
  return status;
}

Status DeviceSums::take_marks(const SummedArrays& summed, std::span<const DeviceSum> sums) {
  CINCH_TRY(send_marked_headers(sums));
  GpuAddress header = arena_.address(headers_);
  moves_.clear();
  wide_.clear();
  for (const DeviceSum& sum : sums) {
    // A sum of ones has a nonzero exponent, so the last byte of a float that is not 0 is not 0.
    const GpuAddress flag = mark_of(summed, sum) + summed.type_of_mark().bits / 8 - 1;
    moves_.push_back({address_of(sum.payload), header, kPayloadHeaderBytes, flag});
    wide_.push_back({address_of(sum.payload) + kHeaderBytes, 0,
                     sum.layout.size_bytes - kPayloadHeaderBytes, flag});
    header += kHeaderBytes;
  }
  Status status = arrays_.copy_where(moves_);
  return status ? arrays_.zero_where(wide_) : status;
}

Status DeviceSums::send_marked_headers(std::span<const DeviceSum> sums) {
  header_bytes_.resize(sums.size() * kHeaderBytes);
  const std::span<std::uint8_t> all(header_bytes_);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    PayloadHeader header = sums[i].header;
    header.flags = kPayloadNonFinite;
    PayloadLayout layout;
    layout.size_bytes = sums[i].layout.size_bytes;
    write_payload_frame(all.subspan(i * kHeaderBytes, kHeaderBytes), header, {}, layout);
  }
  const GpuDevice::Scope scope(*device_);
  for (std::size_t begin = 0; begin < sums.size(); begin += kStagedHeaders) {
    const std::size_t count = std::min(kStagedHeaders, sums.size() - begin);
    const GpuCode code = device_->driver().copy_to_device(
        arena_.address(headers_) + begin * kHeaderBytes, all.data() + begin * kHeaderBytes,
        count * kHeaderBytes, stream_);
    CINCH_TRY(device_->status(code, "sending headers"));
  }
  return Ok{};
}

}  // namespace cinch::rt
