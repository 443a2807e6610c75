// The programs of one rank; see sync_handles.h.
#include "runtime/c_api/sync/sync_handles.h"

#include <mutex>

#include "runtime/c_api/handles.h"
#include "runtime/c_api/program.h"

namespace cinch::c_api {
namespace {

// For ranks on an emulated GPU, which only one of them may use at a time.
std::mutex& emulated_turns() {
  static auto* const kTurns = new std::mutex;
  return *kTurns;
}

CallStatus add_on_cpu(const cinch_program& program, RankPrograms& to) {
  if (program.loaded == nullptr) {
    return fail(CINCH_INVALID_ARGUMENT, "a program for a GPU, the rank computes on the CPU");
  }
  to.on_cpu.push_back(program.loaded);
  to.images.emplace_back(program.loaded, &program.loaded->image());
  return rt::Ok{};
}

CallStatus add_on_gpu(const cinch_program& program, std::int32_t device_number,
                      rt::SyncDevice& device, RankPrograms& to) {
  std::unique_lock<std::mutex> turn;
  if (device.turns != nullptr) turn = std::unique_lock(*device.turns);
  auto loaded = load_on_gpu(program, device_number);
  CINCH_TRY(loaded);
  to.images.emplace_back(*loaded, &(*loaded)->image());
  device.programs.push_back(std::move(*loaded));
  return rt::Ok{};
}

CallResult<RankPrograms> programs_on_gpu(const cinch_program* const* given, std::size_t count,
                                         const cinch_sync_options& options) {
  const auto device = open_gpu(options.device_number);
  CINCH_TRY(device);
  RankPrograms programs;
  rt::SyncDevice& made = programs.device.emplace();
  made.stream = static_cast<rt::GpuStream>(options.stream);
  made.has_tensors = true;
  if ((*device)->driver().allocates_apart) made.turns = &emulated_turns();
  for (std::size_t i = 0; i < count; ++i) {
    CINCH_TRY(add_on_gpu(*given[i], options.device_number, made, programs));
  }
  if (count > 0) made.plain = made.programs[0];
  if (count > 0 || options.plain == nullptr) return programs;
  std::unique_lock<std::mutex> turn;
  if (made.turns != nullptr) turn = std::unique_lock(*made.turns);
  auto plain = load_on_gpu(*options.plain, options.device_number);
  CINCH_TRY(plain);
  made.plain = std::move(*plain);
  return programs;
}

}  // namespace

CallResult<RankPrograms> rank_programs(const cinch_program* const* given, std::size_t count,
                                       const cinch_sync_options& options) {
  if (count > 0 && given == nullptr) return fail(CINCH_INVALID_ARGUMENT, "programs is null");
  for (std::size_t i = 0; i < count; ++i) {
    if (given[i] == nullptr) return fail(CINCH_INVALID_ARGUMENT, "a program is null");
  }
  if (options.device == CINCH_CUDA) return programs_on_gpu(given, count, options);
  if (options.device != CINCH_CPU) {
    return fail(CINCH_UNAVAILABLE, "device " + std::to_string(options.device));
  }
  RankPrograms programs;
  for (std::size_t i = 0; i < count; ++i) {
    CINCH_TRY(add_on_cpu(*given[i], programs));
  }
  return programs;
}

CallStatus add_carrier(const cinch_program& program, const cinch_sync_options& options,
                       RankPrograms& to) {
  const auto carrier = carrier_of(program);
  CINCH_TRY(carrier);
  if (to.device) return add_on_gpu(**carrier, options.device_number, *to.device, to);
  return add_on_cpu(**carrier, to);
}

}  // namespace cinch::c_api
