// A synchronisation: runs from one meeting of the ranks to the next.
#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/core/numbers/floats.h"
#include "runtime/exec/narrow_tensor.h"
#include "runtime/image/validate.h"
#include "runtime/module/cpu_module.h"
#include "runtime/session/session_impl.h"
#include "runtime/session/tensor_convert.h"

namespace cinch::rt {
RankPoint Session::Impl::stop_sync(const Error& error) {
  syncing.failure = error;
  syncing.point = {RankStatus::Failed, std::nullopt};
  if (error.kind != ErrorKind::CheckFailed) return syncing.point;
  // Looks at this rank's gradient alone: the other ranks have checked theirs.
  const std::span<const float> values(syncing.gradient, static_cast<std::size_t>(num_elems()));
  const auto finite = all_finite(values, runner, options.cancelled);
  if (finite && !*finite) syncing.point.own = RankStatus::NonFinite;
  return syncing.point;
}

Result<std::optional<RankPoint>> Session::Impl::begin_sync(ConstTensorView gradient,
                                                           TensorView update, std::uint64_t step) {
  syncing = {};
  narrow = {};
  CINCH_TRY(check_call(EntryKind::Sync));
  CINCH_TRY(check_tensor(gradient.data, gradient.dtype, gradient.num_elems));
  CINCH_TRY(check_tensor(update.data, update.dtype, update.num_elems));
  CINCH_TRY(given.use(step));
  if (num_elems() == 0) return std::nullopt;
  const auto values = TRY(as_f32(gradient));
  // The program may read the gradient after it wrote the update, so they must not share memory.
  const bool has_scratch = update.dtype != kF32 || update.data == gradient.data;
  if (has_scratch) {
    CINCH_TRY(reserve_f32(output));
  }
  syncing = {true, values, update, has_scratch, step, {}, std::nullopt};
  return start_sync();
}

RankPoint Session::Impl::start_sync() {
  const HostEnv at = env(syncing.step);
  Status status = buffers.prepare(EntryKind::Sync, at, options.poison_memory);
  void* const to = syncing.has_scratch ? static_cast<void*>(output.data()) : syncing.update.data;
  if (status) status = bind_gradient(syncing.gradient);
  if (status) status = bind_output(static_cast<float*>(to));
  if (!status) return stop_sync(status.error());
  use_best_code();
  status = executor.begin(EntryKind::Sync, inputs_of(syncing.step));
  if (!status) return stop_sync(status.error());
  return run_to_point();
}

RankPoint Session::Impl::run_to_point() {
  const auto state = executor.resume();
  if (!state) return stop_sync(state.error());
  RankPoint& point = syncing.point;
  point = {};
  if (*state == RunState::NonFinite) point.own = RankStatus::NonFinite;
  if (*state == RunState::Meets) {
    point.call = executor.meeting();
  } else {
    accesses = executor.take_accesses();
  }
  return point;
}

Result<std::optional<RankPoint>> Session::Impl::continue_sync(RankStatus all) {
  if (!syncing.is_under_way)
    return fail(ErrorKind::InvalidArgument, "no synchronisation is under way");
  if (all == RankStatus::Good && syncing.point.call) {
    // Binds the memo: formulas are evaluated on the way.
    (void)env(syncing.step);
    return run_to_point();
  }
  const Status status = end_sync(all);
  syncing = {};
  CINCH_TRY(status);
  return std::nullopt;
}

Status Session::Impl::end_sync(RankStatus all) {
  const TensorView& update = syncing.update;
  if (all == RankStatus::NonFinite) return fill_nan(update, runner, options.cancelled);
  if (syncing.failure) return tl::unexpected<Error>(*syncing.failure);
  if (all == RankStatus::Failed) return fail(ErrorKind::CheckFailed, "another rank failed");
  if (syncing.has_scratch) {
    const std::span<const float> made(reinterpret_cast<const float*>(output.data()),
                                      static_cast<std::size_t>(num_elems()));
    CINCH_TRY(convert_from_f32(made, update, runner, options.cancelled));
  }
  commit(EntryKind::Sync);
  return Ok{};
}

Status Session::Impl::sync(ConstTensorView gradient, TensorView update, std::uint64_t step,
                           RankExchange& ranks) {
  auto point = begin_sync(gradient, update, step);
  while (point && *point) {
    const auto all = [&] {
      const DefaultFloatEnvironment environment;
      return meet_at(**point, ranks);
    }();
    if (!all) {
      syncing = {};
      return tl::unexpected<Error>(all.error());
    }
    point = continue_sync(*all);
  }
  return point ? Status(Ok{}) : Status(tl::unexpected<Error>(point.error()));
}

// Loading: validation first, then the binary.

namespace {

Result<std::shared_ptr<const LoadedCode>> load_code(const ProgramImage& image) {
  auto module = TRY(CpuModule::load(image));
  auto code = std::make_shared<LoadedCode>();
  for (std::size_t i = 0; i < image.kernels.size(); ++i) {
    code->kernels.push_back(module.kernel(i));
  }
  code->module = std::make_unique<CpuModule>(std::move(module));
  return code;
}

constexpr std::int64_t kChunkElems = std::int64_t{1} << 16;

/// Runs body(begin, end) over [0, n) in chunks.
template <typename Body>
Status for_chunks(std::int64_t n, TaskRunner& runner, const std::atomic<bool>* cancelled,
                  const Body& body) {
  const auto num_tasks = static_cast<std::uint64_t>((n + kChunkElems - 1) / kChunkElems);
  return runner.run(num_tasks, cancelled, [&](std::uint64_t task) {
    const std::int64_t begin = static_cast<std::int64_t>(task) * kChunkElems;
    body(begin, std::min(begin + kChunkElems, n));
  });
}

// NaN results are canonical.
template <typename Function>
Status map_f32(std::span<const float> from, std::span<float> to, TaskRunner& runner,
               const std::atomic<bool>* cancelled, const Function& function) {
  const auto n = static_cast<std::int64_t>(to.size());
  return for_chunks(n, runner, cancelled, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float value = function(from[i]);
      to[i] = value != value ? std::bit_cast<float>(0x7fc00000u) : value;
    }
  });
}

// `infinity`: the exponent of values that are not finite.
template <typename Word>
Result<bool> are_all_below(const Word* values, std::int64_t n, Word infinity, TaskRunner& runner,
                           const std::atomic<bool>* cancelled) {
  std::atomic<bool> finite{true};
  const Status status = for_chunks(n, runner, cancelled, [&](std::int64_t begin, std::int64_t end) {
    bool seen = false;
    for (std::int64_t i = begin; i < end; ++i) seen |= (values[i] & infinity) == infinity;
    if (seen) finite.store(false, std::memory_order_relaxed);
  });
  CINCH_TRY(status);
  return finite.load();
}

}  // namespace

LoadedCode::LoadedCode() = default;
LoadedCode::~LoadedCode() = default;

Result<std::shared_ptr<const LoadedProgram>> LoadedProgram::load(ProgramImage image,
                                                                 FindBetterCode find_better) {
  CINCH_TRY(validate_image(image));
  auto code = TRY(load_code(image));
  std::shared_ptr<LoadedProgram> program(new LoadedProgram);
  program->code_ = std::move(code);
  program->image_ = std::move(image);
  program->search_ = BetterCodeSearch(std::move(find_better));
  return program;
}

Result<std::shared_ptr<const LoadedProgram>> LoadedProgram::from_functions(
    ProgramImage image, std::vector<KernelFunction> kernels) {
  CINCH_TRY(validate_image(image));
  if (kernels.size() != image.kernels.size()) {
    return fail(ErrorKind::InvalidArgument, "as many functions as the image has kernels expected");
  }
  auto code = std::make_shared<LoadedCode>();
  code->kernels = std::move(kernels);
  std::shared_ptr<LoadedProgram> program(new LoadedProgram);
  program->code_ = std::move(code);
  program->image_ = std::move(image);
  return program;
}

std::shared_ptr<const LoadedCode> LoadedProgram::code() const {
  const std::lock_guard lock(mutex_);
  // Code that cannot be loaded is not an error: the present code serves.
  if (const auto better = search_.look(image_)) {
    if (auto code = load_code(*better)) code_ = std::move(*code);
  }
  return code_;
}

// Chunks of 64 Ki elements per task.

Status convert_to_f32(ConstTensorView from, std::span<float> to, TaskRunner& runner,
                      const std::atomic<bool>* cancelled) {
  return for_chunks(from.num_elems, runner, cancelled, [&](std::int64_t begin, std::int64_t end) {
    if (from.dtype == kF32) {
      std::memcpy(to.data() + begin, static_cast<const float*>(from.data) + begin,
                  static_cast<std::size_t>(end - begin) * sizeof(float));
      return;
    }
    widen(static_cast<const std::uint16_t*>(from.data) + begin, from.dtype, to.data() + begin,
          end - begin);
  });
}

Status convert_from_f32(std::span<const float> from, TensorView to, TaskRunner& runner,
                        const std::atomic<bool>* cancelled) {
  return for_chunks(to.num_elems, runner, cancelled, [&](std::int64_t begin, std::int64_t end) {
    if (to.dtype == kF32) {
      std::memcpy(static_cast<float*>(to.data) + begin, from.data() + begin,
                  static_cast<std::size_t>(end - begin) * sizeof(float));
      return;
    }
    narrow(from.data() + begin, static_cast<std::uint16_t*>(to.data) + begin, to.dtype,
           end - begin);
  });
}

Status fill_nan(TensorView to, TaskRunner& runner, const std::atomic<bool>* cancelled) {
  return for_chunks(to.num_elems, runner, cancelled, [&](std::int64_t begin, std::int64_t end) {
    if (to.dtype == kF32) {
      auto* target = static_cast<std::uint32_t*>(to.data);
      std::fill(target + begin, target + end, 0x7fc00000u);
    } else {
      auto* target = static_cast<std::uint16_t*>(to.data);
      std::fill(target + begin, target + end,
                static_cast<std::uint16_t>(to.dtype == kF16 ? 0x7e00 : 0x7fc0));
    }
  });
}

Status add_f32(std::span<float> sums, std::span<const float> addends, TaskRunner& runner,
               const std::atomic<bool>* cancelled) {
  const auto n = static_cast<std::int64_t>(sums.size());
  return for_chunks(n, runner, cancelled, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) sums[i] += addends[i];
  });
}

Status divide_f32(std::span<const float> from, float divisor, std::span<float> to,
                  TaskRunner& runner, const std::atomic<bool>* cancelled) {
  return map_f32(from, to, runner, cancelled, [divisor](float x) { return x / divisor; });
}

Status multiply_f32(std::span<const float> from, float factor, std::span<float> to,
                    TaskRunner& runner, const std::atomic<bool>* cancelled) {
  return map_f32(from, to, runner, cancelled, [factor](float x) { return x * factor; });
}

Result<bool> all_finite(std::span<const float> values, TaskRunner& runner,
                        const std::atomic<bool>* cancelled) {
  return all_finite(ConstTensorView(values), runner, cancelled);
}

Result<bool> all_finite(ConstTensorView values, TaskRunner& runner,
                        const std::atomic<bool>* cancelled) {
  if (values.dtype == kF32) {
    return are_all_below(static_cast<const std::uint32_t*>(values.data), values.num_elems,
                         std::uint32_t{0x7f800000}, runner, cancelled);
  }
  const std::uint16_t infinity = values.dtype == kF16 ? 0x7c00 : 0x7f80;
  return are_all_below(static_cast<const std::uint16_t*>(values.data), values.num_elems, infinity,
                       runner, cancelled);
}

}  // namespace cinch::rt
