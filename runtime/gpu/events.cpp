// Work on the same memory in one order, whatever streams the caller uses; and arithmetic on whole
// arrays.
#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/gpu/arrays.h"
#include "runtime/gpu/events.h"
#include "runtime/gpu/plan.h"

namespace cinch::rt {
GpuStreamOrder::~GpuStreamOrder() {
  if (event_ == nullptr) return;
  const GpuDevice::Scope scope(*device_);
  (void)device_->driver().event_destroy(event_);
}

Status GpuStreamOrder::open() {
  const GpuDevice::Scope scope(*device_);
  const GpuCode code = device_->driver().event_create(&event_, kGpuEventWithoutTiming);
  return device_->status(code, "making an event");
}

Status GpuStreamOrder::enter(GpuStream stream) {
  if (!has_work_) return Ok{};
  // This handle means another stream on each thread.
  const bool is_same = stream == last_ && stream != kGpuStreamOfThread;
  if (is_same) return Ok{};
  const GpuDevice::Scope scope(*device_);
  if (!is_noted_) leave(last_);
  if (!is_noted_) return fail(ErrorKind::Device, "the last call's stream takes no event");
  return device_->status(device_->driver().stream_wait_event(stream, event_, 0),
                         "waiting for the last call's stream");
}

// If the driver fails here, the calls are still valid: enter tries again.
void GpuStreamOrder::leave(GpuStream stream) {
  const GpuDevice::Scope scope(*device_);
  last_ = stream;
  has_work_ = true;
  is_noted_ = device_->driver().event_record(event_, stream) == kGpuSuccess;
}

Result<GpuTimer> GpuTimer::create(std::shared_ptr<const GpuDevice> device) {
  GpuTimer timer(std::move(device));
  const GpuDevice::Scope scope(*timer.device_);
  const GpuDriver& driver = timer.device_->driver();
  GpuCode code = driver.event_create(&timer.start_, 0);
  if (code == kGpuSuccess) code = driver.event_create(&timer.stop_, 0);
  CINCH_TRY(timer.device_->status(code, "making an event"));
  return timer;
}

GpuTimer::GpuTimer(GpuTimer&& other) noexcept
    : device_(std::move(other.device_)),
      start_(std::exchange(other.start_, nullptr)),
      stop_(std::exchange(other.stop_, nullptr)) {}

GpuTimer& GpuTimer::operator=(GpuTimer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(start_, other.start_);
  std::swap(stop_, other.stop_);
  return *this;
}

GpuTimer::~GpuTimer() {
  if (device_ == nullptr) return;
  const GpuDevice::Scope scope(*device_);
  for (const GpuEvent event : {start_, stop_}) {
    if (event != nullptr) device_->driver().event_destroy(event);
  }
}

Status GpuTimer::start(GpuStream stream) {
  const GpuDevice::Scope scope(*device_);
  return device_->status(device_->driver().event_record(start_, stream), "recording an event");
}

Status GpuTimer::stop(GpuStream stream) {
  const GpuDevice::Scope scope(*device_);
  return device_->status(device_->driver().event_record(stop_, stream), "recording an event");
}

Result<double> GpuTimer::milliseconds() const {
  const GpuDevice::Scope scope(*device_);
  const GpuDriver& driver = device_->driver();
  float elapsed = 0;
  GpuCode code = driver.event_synchronize(stop_);
  if (code == kGpuSuccess) code = driver.event_elapsed_time(&elapsed, start_, stop_);
  CINCH_TRY(device_->status(code, "timing on the device"));
  return elapsed;
}

namespace {

// The driver stages this much before a copy returns (driver.cpp).
constexpr std::size_t kStagedTableBytes = std::size_t{64} * 1024;
constexpr std::size_t kMostPairs = 256;
// Fills the status words of a call that has failed and is not marked: FindNonFinite checks only
// such calls.
constexpr unsigned char kFailedByte = 2;

BufferIndex buffer_with(const ProgramImage& image, BufferRole role) {
  const auto found = std::ranges::find(image.buffers, role, &BufferInfo::role);
  if (found == image.buffers.end()) return kNoIndex;
  return static_cast<BufferIndex>(found - image.buffers.begin());
}

GpuStep service_step(GpuService service, std::uint32_t arg0, std::uint32_t arg1) {
  GpuStep step{.kernel = static_cast<std::uint32_t>(service), .arg0 = arg0, .arg1 = arg1};
  return step;
}

std::uint32_t half_type(DType dtype) {
  return dtype == kF16 ? 1 : 2;
}

}  // namespace

GpuArrays::GpuArrays(std::shared_ptr<const GpuProgram> program, GpuStream stream)
    : program_(std::move(program)),
      stream_(stream),
      tuning_(gpu_tuning(program_->device()->arch())),
      layout_(gpu_tensor_layout(program_->image())),
      to_(buffer_with(program_->image(), BufferRole::Output)),
      from_(buffer_with(program_->image(), BufferRole::Gradient)) {
  const std::size_t num_buffers = program_->image().buffers.size();
  for (BufferIndex b = 0; b < num_buffers && !has_flags(); ++b) {
    if (b != to_ && b != from_) flag_ = b;
  }
}

Result<GpuArrays> GpuArrays::make(std::shared_ptr<const GpuProgram> program, GpuStream stream) {
  GpuArrays arrays(std::move(program), stream);
  if (arrays.to_ == kNoIndex || arrays.from_ == kNoIndex) {
    return fail(ErrorKind::InvalidArgument, "a program without a gradient and an output");
  }
  CINCH_TRY(arrays.place_memory());
  return arrays;
}

std::size_t GpuArrays::table_bytes(std::size_t num_pairs) const {
  return num_pairs * layout_.size_bytes + 4 * (num_pairs + 1);
}

Status GpuArrays::place_memory() {
  most_pairs_ = kMostPairs;
  while (most_pairs_ > 1 && table_bytes(most_pairs_) > kStagedTableBytes) most_pairs_ /= 2;
  // Status words say that nothing has failed, and that no state was swapped.
  const std::size_t words = std::max<std::size_t>(kStatusWords, program_->info().states.size());
  table_ = arena_.add(table_bytes(most_pairs_));
  zeros_ = arena_.add(4 * words * most_pairs_);
  looks_ = arena_.add(std::size_t{4} * kStatusWords * most_pairs_);
  const GpuDevice::Scope scope(*program_->device());
  CINCH_TRY(arena_.allocate(program_->device(), stream_));
  Status status = clear(zeros_, 0);
  return status ? clear(looks_, kFailedByte) : status;
}

Status GpuArrays::clear(GpuArena::Piece piece, unsigned char byte) {
  const GpuDevice& device = *program_->device();
  const GpuDevice::Scope scope(device);
  return device.status(
      device.driver().fill(arena_.address(piece), byte, arena_.size_bytes(piece), stream_),
      "clearing memory");
}

Status GpuArrays::add(std::span<const GpuArrayPair> pairs) {
  return run(service_step(GpuService::AddTo, from_, kNoIndex), Operands::ToIsTensor, pairs);
}

Status GpuArrays::copy(std::span<const GpuArrayPair> pairs) {
  return run(service_step(GpuService::Copy, to_, from_), Operands::Buffers, pairs);
}

Status GpuArrays::copy_where(std::span<const GpuArrayPair> pairs) {
  return run_where(service_step(GpuService::Copy, to_, from_), pairs);
}

Status GpuArrays::zero_where(std::span<const GpuArrayPair> pairs) {
  return run_where(service_step(GpuService::Zero, to_, kNoIndex), pairs);
}

Status GpuArrays::run_where(GpuStep step, std::span<const GpuArrayPair> pairs) {
  if (!has_flags()) return fail(ErrorKind::Internal, "a program without a buffer for flags");
  step.num_conditions = 1;
  step.conditions[0] = {.buffer = flag_, .wanted = 1};
  return run(step, Operands::Buffers, pairs);
}

Status GpuArrays::divide(std::span<const GpuArrayPair> pairs, float divisor) {
  GpuStep step = service_step(GpuService::Divide, to_, from_);
  step.value = gpu_factor(divisor);
  return run(step, Operands::Buffers, pairs);
}

Status GpuArrays::multiply(std::span<const GpuArrayPair> pairs, float factor) {
  GpuStep step = service_step(GpuService::Multiply, to_, from_);
  step.value = gpu_factor(factor);
  return run(step, Operands::Buffers, pairs);
}

Status GpuArrays::look_for_non_finite(std::span<const GpuArrayPair> pairs) {
  return run(service_step(GpuService::FindNonFinite, from_, kNoIndex), Operands::Buffers, pairs,
             looks_);
}

Result<bool> GpuArrays::take_non_finite() {
  std::vector<std::uint32_t> words(arena_.size_bytes(looks_) / 4);
  const std::span bytes(reinterpret_cast<std::uint8_t*>(words.data()), 4 * words.size());
  Status status = program_->device()->read(bytes, arena_.address(looks_), stream_);
  bool is_found = false;
  for (std::size_t i = 0; i < words.size(); i += kStatusWords) {
    is_found = is_found || (words[i + kStatusFlags] & kFlagNonFinite) != 0;
  }
  if (status && is_found) status = clear(looks_, kFailedByte);
  CINCH_TRY(status);
  return is_found;
}

Status GpuArrays::widen(std::span<const GpuArrayPair> pairs, DType from) {
  return run(service_step(GpuService::Widen, to_, half_type(from)), Operands::FromIsTensor, pairs);
}

Status GpuArrays::narrow(std::span<const GpuArrayPair> pairs, DType to) {
  return run(service_step(GpuService::Narrow, from_, half_type(to)), Operands::ToIsTensor, pairs);
}

Status GpuArrays::run(const GpuStep& step, Operands operands, std::span<const GpuArrayPair> pairs,
                      GpuArena::Piece words) {
  with_elems_.clear();
  for (const GpuArrayPair& pair : pairs) {
    if (pair.num_elems > 0) with_elems_.push_back(pair);
  }
  const std::span<const GpuArrayPair> all(with_elems_);
  for (std::size_t begin = 0; begin < all.size(); begin += most_pairs_) {
    const std::size_t count = std::min(most_pairs_, all.size() - begin);
    CINCH_TRY(launch(step, operands, all.subspan(begin, count), words));
  }
  return Ok{};
}

std::uint32_t GpuArrays::write_table(Operands operands, std::span<const GpuArrayPair> pairs) {
  bytes_.assign(table_bytes(pairs.size()), 0);
  std::uint8_t* const begins = bytes_.data() + pairs.size() * layout_.size_bytes;
  std::uint32_t num_blocks = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    constexpr std::size_t kRows = 3, kCols = 4;  // words of a header
    GpuTensorEntry entry(bytes_.data() + i * layout_.size_bytes, layout_);
    entry.set_header(kRows, static_cast<std::uint64_t>(pairs[i].num_elems));
    entry.set_header(kCols, 1);
    if (operands == Operands::ToIsTensor) {
      entry.set_tensor(pairs[i].to);
    } else {
      entry.set_buffer(to_, pairs[i].to);
    }
    if (operands == Operands::FromIsTensor) {
      entry.set_tensor(pairs[i].from);
    } else {
      entry.set_buffer(from_, pairs[i].from);
    }
    // Copies and zero fills use this size: their elements are bytes.
    entry.set_bytes(to_, static_cast<std::uint64_t>(pairs[i].num_elems));
    if (has_flags()) entry.set_buffer(flag_, pairs[i].flag);
    std::memcpy(begins + 4 * i, &num_blocks, sizeof num_blocks);
    const std::int64_t blocks =
        (pairs[i].num_elems + tuning_.service_elements - 1) / tuning_.service_elements;
    num_blocks += static_cast<std::uint32_t>(std::min(blocks, tuning_.most_service_blocks));
  }
  std::memcpy(begins + 4 * pairs.size(), &num_blocks, sizeof num_blocks);
  return num_blocks;
}

Status GpuArrays::launch(const GpuStep& step, Operands operands,
                         std::span<const GpuArrayPair> pairs, GpuArena::Piece words) {
  const GpuDevice& device = *program_->device();
  const GpuDevice::Scope scope(device);
  const std::uint32_t num_blocks = write_table(operands, pairs);
  const GpuAddress table = arena_.address(table_);
  const GpuCode sent = device.driver().copy_to_device(table, bytes_.data(), bytes_.size(), stream_);
  CINCH_TRY(device.status(sent, "sending arguments"));
  GpuLaunch args{.tensors = table,
                 .swapped = arena_.address(zeros_),
                 .status = arena_.address(words),
                 .first_block = table + pairs.size() * layout_.size_bytes,
                 .num_tensors = static_cast<std::uint32_t>(pairs.size()),
                 .num_states = static_cast<std::uint32_t>(program_->info().states.size()),
                 .step = step};
  void* params[] = {&args};
  const GpuCode code =
      device.driver().launch(program_->kernels().serve(), num_blocks, 1, 1, kGpuServiceThreads, 1,
                             1, 0, stream_, params, nullptr);
  return device.status(code, "launching what is done to arrays");
}

}  // namespace cinch::rt
