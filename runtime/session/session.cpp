// The public calls: check arguments, turn exceptions into errors, and read and write states.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/core/files/file_bytes.h"
#include "runtime/session/session_impl.h"
#include "runtime/session/tensor_convert.h"
#include "runtime/tuning/tuning.h"

namespace cinch::rt {
namespace {

CpuTuning tuning_of(const SessionOptions& options, const ProgramImage& image) {
  if (options.tuning) return *options.tuning;
  return cpu_tuning(std::string_view(image.target).substr(image.target.find(':') + 1));
}

}  // namespace

Session::Impl::Impl(std::shared_ptr<const LoadedProgram> loaded, const SessionOptions& opts)
    : program(std::move(loaded)),
      options(opts),
      parameters(program->info()),
      given(program->info()),
      runner(opts.runner != nullptr ? *opts.runner : own_runner.emplace(opts.threads)),
      buffers(program->image(), opts.memory),
      code(program->code()),
      executor(program->image(), code->kernels, runner,
               {opts.groups_per_task, opts.cancelled, tuning_of(opts, program->image())}),
      needs_copies(needs_copies_of_states(program->image())),
      payload(opts.memory),
      input(opts.memory),
      output(opts.memory),
      fields(make_buffers(program->info().wire.fields.size(), opts.memory, MemoryUse::Workspace)) {
  const TensorFacts facts = facts_for(program->info(), opts.facts());
  options.rows = facts.rows;
  options.cols = facts.cols;
}

Status Session::Impl::start() {
  if (options.only_decodes) return Ok{};
  std::vector<std::int64_t> sizes;
  for (const StateInfo& state : info().states) {
    // An input lies in the caller's memory.
    sizes.push_back(state.is_input ? 0 : TRY(rt::state_bytes(info(), state, env(0))));
  }
  CINCH_TRY(buffers.allocate_states(sizes));
  if (!has(EntryKind::Init) || num_elems() == 0) return Ok{};
  CINCH_TRY(buffers.prepare(EntryKind::Init, env(0), options.poison_memory));
  CINCH_TRY(run(EntryKind::Init, 0));
  buffers.commit_states(EntryKind::Init);
  return Ok{};
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

Result<Session> Session::open(std::shared_ptr<const LoadedProgram> program,
                              const SessionOptions& options) {
  return guarded([&]() -> Result<Session> {
    CINCH_TRY(check_facts(options.facts()));
    if (options.threads > kMaxThreads) {
      return fail(ErrorKind::InvalidArgument,
                  fmt::format("{} threads: at most {}", options.threads, kMaxThreads));
    }
    auto impl = std::make_unique<Impl>(std::move(program), options);
    CINCH_TRY(impl->start());
    return Session(std::move(impl));
  });
}

Result<Session> Session::open(ProgramImage image, const SessionOptions& options) {
  auto program = TRY(guarded([&] { return LoadedProgram::load(std::move(image)); }));
  return open(std::move(program), options);
}

const ProgramInfo& Session::info() const {
  return impl_->info();
}
const ProgramImage& Session::image() const {
  return impl_->program->image();
}
const SessionOptions& Session::options() const {
  return impl_->options;
}
std::int64_t Session::state_bytes() const {
  return impl_->buffers.state_bytes();
}

Result<std::int64_t> Session::workspace_bytes() const {
  return impl_->use([&]() -> Result<std::int64_t> {
    std::int64_t total = impl_->buffers.workspace_bytes() + impl_->payload.size_bytes() +
                         impl_->input.size_bytes() + impl_->output.size_bytes();
    for (const AlignedBuffer& field : impl_->fields) total += field.size_bytes();
    return total;
  });
}

Result<AccessCounts> Session::last_accesses() const {
  return impl_->use([&]() -> Result<AccessCounts> { return impl_->accesses; });
}

Result<std::vector<std::int64_t>> Session::last_loop_rounds() const {
  return impl_->use(
      [&]() -> Result<std::vector<std::int64_t>> { return impl_->executor.loop_rounds(); });
}

Status Session::set_tuning(const CpuTuning& tuning) {
  return impl_->use([&]() -> Status {
    impl_->executor.set_tuning(tuning);
    return Ok{};
  });
}

Status Session::set_parameter(std::string_view name, double value) {
  return impl_->use([&]() -> Status {
    CINCH_TRY(impl_->parameters.set(name, value));
    impl_->given.note(name);
    return Ok{};
  });
}

Status Session::Impl::set_input(std::string_view name, const ConstTensorView& array) {
  CINCH_TRY(check_holds_states(options.only_decodes));
  const auto index = TRY(find_input_array(info(), name));
  CINCH_TRY(check_input_array(name, array, num_elems()));
  if (array.dtype == kF32) {
    buffers.bind_input(index, array.data, f32_bytes());
  } else {
    const auto own = TRY(buffers.own_input(index, f32_bytes()));
    const std::span<float> values(reinterpret_cast<float*>(own.data()), own.size() / sizeof(float));
    CINCH_TRY(convert_to_f32(array, values, runner, options.cancelled));
  }
  given.note(name);
  return Ok{};
}

Status Session::set_input(std::string_view name, const ConstTensorView& array) {
  return impl_->use([&] { return impl_->set_input(name, array); });
}

Status Session::Impl::lay_out_payload(std::uint64_t step, PayloadLayout& layout) const {
  CINCH_TRY(check_step(step));
  return lay_out_payload_bound(info(), env(step), layout);
}

Status Session::lay_out_payload(std::uint64_t step, PayloadLayout& layout) const {
  return impl_->use([&] { return impl_->lay_out_payload(step, layout); });
}

Result<PayloadHeader> Session::header_for(std::uint64_t step) const {
  return impl_->use([&]() -> Result<PayloadHeader> { return impl_->header(step); });
}

Result<std::int64_t> Session::payload_bound(std::uint64_t step) const {
  return impl_->use([&]() -> Result<std::int64_t> {
    CINCH_TRY(impl_->lay_out_payload(step, impl_->bound));
    return impl_->bound.size_bytes;
  });
}

Result<std::span<const std::uint8_t>> Session::encode(ConstTensorView gradient,
                                                      std::uint64_t step) {
  return impl_->use_at(step, [&] {
    impl_->committed.reset();
    return impl_->encode(gradient, step);
  });
}

Status Session::decode(std::span<const std::uint8_t> payload, TensorView out, std::uint64_t step) {
  return impl_->use_at(step, [&] { return impl_->decode(payload, out, step); });
}

Status Session::decode_add(std::span<const std::uint8_t> payload, std::span<float> out,
                           std::uint64_t step) {
  return impl_->use_at(step, [&] { return impl_->decode_add(payload, out, step); });
}

Status Session::finish(std::span<const float> sum, TensorView update, std::uint64_t step) {
  return impl_->use_at(step, [&] {
    if (impl_->has(EntryKind::Finish)) impl_->committed.reset();
    return impl_->finish(sum, update, step);
  });
}

Status Session::sync(ConstTensorView gradient, TensorView update, std::uint64_t step,
                     RankExchange& ranks) {
  return impl_->use_at(step, [&] {
    impl_->committed.reset();
    return impl_->sync(gradient, update, step, ranks);
  });
}

Result<std::optional<RankPoint>> Session::begin_sync(ConstTensorView gradient, TensorView update,
                                                     std::uint64_t step) {
  return impl_->use_at(step, [&] {
    impl_->committed.reset();
    return impl_->begin_sync(gradient, update, step);
  });
}

Result<std::optional<RankPoint>> Session::continue_sync(RankStatus all) {
  return impl_->use([&] { return impl_->continue_sync(all); });
}

Status Session::reserve(EntryKind kind, DType dtype, bool is_in_place, std::uint64_t step) {
  return impl_->use_at(step, [&] { return impl_->reserve(kind, dtype, is_in_place, step); });
}

Status Session::Impl::take_back() {
  const std::optional<EntryKind> kind = std::exchange(committed, std::nullopt);
  if (kind) buffers.take_back_states(*kind);
  return Ok{};
}

Status Session::take_back() {
  return impl_->use([&] { return impl_->take_back(); });
}

Status Session::Impl::keep_states() {
  committed.reset();
  kept.clear();
  for (std::uint32_t i = 0; needs_copies && i < info().states.size(); ++i) {
    if (info().states[i].is_input) continue;
    const auto bytes = buffers.state(i);
    kept.insert(kept.end(), bytes.begin(), bytes.end());
  }
  return Ok{};
}

Status Session::Impl::take_back_states() {
  if (!needs_copies) return take_back();
  if (kept.empty()) return Ok{};
  auto from = kept.cbegin();
  for (std::uint32_t i = 0; i < info().states.size(); ++i) {
    if (info().states[i].is_input) continue;
    const auto bytes = buffers.state(i);
    std::copy_n(from, bytes.size(), bytes.begin());
    from += static_cast<std::ptrdiff_t>(bytes.size());
  }
  return Ok{};
}

Status Session::keep_states() {
  return impl_->use([&] { return impl_->keep_states(); });
}

Status Session::take_back_states() {
  return impl_->use([&] { return impl_->take_back_states(); });
}

Result<std::span<const std::uint8_t>> Session::state(std::uint32_t index) const {
  return impl_->use([&]() -> Result<std::span<const std::uint8_t>> {
    CINCH_TRY(check_holds_states(impl_->options.only_decodes));
    return std::as_const(impl_->buffers).state(index);
  });
}

Status Session::Impl::set_state(std::uint32_t index, std::span<const std::uint8_t> bytes) {
  CINCH_TRY(check_holds_states(options.only_decodes));
  if (index >= info().states.size()) {
    return fail(ErrorKind::InvalidArgument, fmt::format("no state {}", index));
  }
  const auto held = buffers.state(index);
  if (bytes.size() != held.size()) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("state {} has {} bytes, {} given", info().states[index].name,
                            held.size(), bytes.size()));
  }
  if (!bytes.empty()) std::memcpy(held.data(), bytes.data(), bytes.size());
  return Ok{};
}

Status Session::set_state(std::uint32_t index, std::span<const std::uint8_t> bytes) {
  return impl_->use([&] { return impl_->set_state(index, bytes); });
}

Status Session::make_up_inputs(const ConstTensorView& array) {
  for (const ParamInfo& param : info().params) {
    if (param.is_input) CINCH_TRY(set_parameter(param.name, param.default_value));
  }
  for (const StateInfo& state : info().states) {
    if (state.is_input) CINCH_TRY(set_input(state.name, array));
  }
  return Ok{};
}

std::vector<StateView> Session::Impl::state_views() const {
  std::vector<std::span<const std::uint8_t>> states;
  states.reserve(info().states.size());
  for (std::uint32_t i = 0; i < info().states.size(); ++i) states.push_back(buffers.state(i));
  return rt::state_views(info(), states);
}

Result<std::vector<std::uint8_t>> Session::states_as_bytes() const {
  return impl_->use([&]() -> Result<std::vector<std::uint8_t>> {
    CINCH_TRY(check_holds_states(impl_->options.only_decodes));
    return write_states(impl_->state_key(), impl_->state_views());
  });
}

Status Session::save_states(const std::filesystem::path& path) const {
  const auto bytes = TRY(states_as_bytes());
  return guarded([&] { return write_file_bytes(path, bytes); });
}

Status Session::load_states(const std::filesystem::path& path) {
  const auto file = TRY(guarded([&] { return read_state_file(path); }));
  return set_states(file);
}

Status Session::set_states(std::span<const std::uint8_t> bytes) {
  return impl_->use([&]() -> Status {
    CINCH_TRY(check_holds_states(impl_->options.only_decodes));
    const auto states = TRY(read_states(bytes, impl_->state_key(), impl_->state_views()));
    auto from = states.begin();
    for (std::uint32_t i = 0; i < impl_->info().states.size(); ++i) {
      if (impl_->info().states[i].is_input) continue;
      CINCH_TRY(impl_->set_state(i, *from++));
    }
    return Ok{};
  });
}

}  // namespace cinch::rt
