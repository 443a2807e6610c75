// The door of a session on a GPU.

#include "runtime/call/joins.h"
#include "runtime/gpu/session/session_impl.h"

namespace cinch::rt {

GpuSession::GpuSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GpuSession::~GpuSession() = default;
GpuSession::GpuSession(GpuSession&&) noexcept = default;
GpuSession& GpuSession::operator=(GpuSession&&) noexcept = default;

Result<GpuSession> GpuSession::open(std::shared_ptr<const GpuProgram> program,
                                    const GpuSessionOptions& options, GpuStream stream) {
  return guarded([&]() -> Result<GpuSession> {
    if (options.tensors.empty())
      return fail(ErrorKind::InvalidArgument, "a session without tensors");
    // Before anything multiplies rows by columns.
    for (const ListTensor& shape : options.tensors) {
      const TensorFacts given{.rows = shape.rows,
                              .cols = shape.cols,
                              .world = options.world,
                              .worker = options.worker,
                              .machine_ranks = options.machine_ranks};
      CINCH_TRY(check_facts(given));
    }
    auto impl = std::make_unique<Impl>(std::move(program), options);
    CINCH_TRY(impl->open(stream));
    return GpuSession(std::move(impl));
  });
}

const ProgramInfo& GpuSession::info() const {
  return impl_->core.info();
}
std::size_t GpuSession::num_tensors() const {
  return impl_->core.num_tensors();
}
std::int64_t GpuSession::num_elems(std::size_t tensor) const {
  return impl_->core.facts[tensor].num_elems();
}
std::size_t GpuSession::memory_bytes() const {
  return impl_->memory.arena().total_bytes();
}
std::size_t GpuSession::num_launches(EntryKind kind) const {
  return impl_->core.plan_of(kind).batches.size();
}
void GpuSession::use_stream(void* stream) {
  impl_->core.stream = static_cast<GpuStream>(stream);
}

// ---- sizes and parameters ----

Status GpuSession::lay_out_payload(std::size_t tensor, std::uint64_t step,
                                   PayloadLayout& layout) const {
  return impl_->use([&] { return impl_->calls.lay_out_payload(tensor, step, layout); });
}

Result<std::int64_t> GpuSession::payload_bound(std::size_t tensor, std::uint64_t step) const {
  return impl_->use([&] { return impl_->calls.payload_bound(tensor, step); });
}

Result<PayloadHeader> GpuSession::header_for(std::size_t tensor, std::uint64_t step) const {
  return impl_->use([&]() -> Result<PayloadHeader> {
    const GpuSessionCore& core = impl_->core;
    return payload_header(info(), core.image().fingerprint, core.facts[tensor], core.parameters,
                          step);
  });
}

Status GpuSession::set_parameter(std::string_view name, double value) {
  return impl_->use([&] { return impl_->calls.set_parameter(name, value); });
}

Status GpuSession::set_input(std::size_t tensor, std::string_view name,
                             const ConstTensorView& array) {
  return impl_->use([&]() -> Status {
    CINCH_TRY(impl_->states.set_input(tensor, name, array, impl_->core.stream));
    impl_->core.given[tensor].note(name);
    return Ok{};
  });
}

// ---- calls ----

Status GpuSession::encode(std::span<const GpuAddress> gradients,
                          std::span<const GpuPayload> payloads, std::uint64_t step,
                          GpuStream stream) {
  return impl_->use([&] {
    return impl_->calls.call_with(EntryKind::Encode, {gradients, payloads, {}}, step, stream);
  });
}

Status GpuSession::decode(std::span<const GpuPayload> payloads, std::span<const GpuAddress> outputs,
                          std::uint64_t step, GpuStream stream) {
  return impl_->use([&] {
    return impl_->calls.call_with(EntryKind::Decode, {{}, payloads, outputs}, step, stream);
  });
}

Status GpuSession::decode_add(std::span<const GpuPayload> payloads,
                              std::span<const GpuAddress> outputs, std::uint64_t step,
                              GpuStream stream) {
  return impl_->use([&] {
    return impl_->calls.call_with(EntryKind::DecodeAdd, {{}, payloads, outputs}, step, stream);
  });
}

Status GpuSession::finish(std::span<const GpuAddress> sums, std::span<const GpuAddress> updates,
                          std::uint64_t step, GpuStream stream) {
  return impl_->use(
      [&] { return impl_->calls.call_with(EntryKind::Finish, {sums, {}, updates}, step, stream); });
}

Status GpuSession::prepare(EntryKind kind, std::uint64_t step, GpuStream stream) {
  return impl_->use([&] { return impl_->calls.prepare(kind, step, stream); });
}
Status GpuSession::prepare(EntryKind kind, std::uint64_t step) {
  return prepare(kind, step, impl_->core.stream);
}

Result<std::vector<TensorOutcome>> GpuSession::collect(GpuStream stream) {
  return impl_->use([&] { return impl_->calls.collect(stream); });
}
Result<std::vector<TensorOutcome>> GpuSession::collect() {
  return collect(impl_->core.stream);
}

ListStatus GpuSession::encode(const ListCall& call, std::span<const ConstTensorView> gradients,
                              std::span<PayloadSlot> payloads) {
  return impl_->views.encode(call, gradients, payloads);
}
ListStatus GpuSession::decode(const ListCall& call, std::span<const PayloadBytes> payloads,
                              std::span<const TensorView> outputs) {
  return impl_->views.decode(call, payloads, outputs);
}
ListStatus GpuSession::decode_add(const ListCall& call, std::span<const PayloadBytes> payloads,
                                  std::span<const std::span<float>> outputs) {
  return impl_->views.decode_add(call, payloads, outputs);
}
ListStatus GpuSession::finish(const ListCall& call, std::span<const std::span<float>> sums,
                              std::span<const TensorView> updates) {
  return impl_->views.finish(call, sums, updates);
}

// ---- synchronisation ----

Status GpuSession::sync(std::size_t /*tensor*/, ConstTensorView gradient, TensorView update,
                        std::uint64_t step, RankExchange& ranks) {
  return impl_->use([&] { return impl_->sync.sync(gradient, update, step, ranks); });
}

Result<std::optional<RankPoint>> GpuSession::begin_sync(std::size_t /*tensor*/,
                                                        ConstTensorView gradient, TensorView update,
                                                        std::uint64_t step) {
  return impl_->use([&] { return impl_->sync.begin(gradient, update, step); });
}

Result<std::optional<RankPoint>> GpuSession::continue_sync(std::size_t /*tensor*/, RankStatus all) {
  return impl_->use([&] { return impl_->sync.proceed(all); });
}

// ---- states ----

std::size_t GpuSession::state_bytes() const {
  if (impl_->core.options.only_decodes) return 0;
  const ParameterValues parameters(info());
  std::int64_t total = 0;
  for (const TensorFacts& facts : impl_->core.facts) {
    for (const StateInfo& state : info().states) {
      total += rt::state_bytes(info(), state, host_env(facts, parameters, 0)).value_or(0);
    }
  }
  return static_cast<std::size_t>(total);
}

Result<std::vector<std::vector<std::uint8_t>>> GpuSession::states(std::size_t tensor,
                                                                  GpuStream stream) const {
  return impl_->use([&] { return impl_->states.read(tensor, stream); });
}

Result<std::vector<std::uint8_t>> GpuSession::states_as_bytes(std::size_t tensor,
                                                              GpuStream stream) const {
  return impl_->use([&] { return impl_->states.as_bytes(tensor, stream); });
}
Result<std::vector<std::uint8_t>> GpuSession::states_as_bytes(std::size_t tensor) const {
  return states_as_bytes(tensor, impl_->core.stream);
}

Status GpuSession::set_states(std::size_t tensor, std::span<const std::uint8_t> bytes,
                              GpuStream stream) {
  return impl_->use([&] { return impl_->states.set(tensor, bytes, stream); });
}
Status GpuSession::set_states(std::size_t tensor, std::span<const std::uint8_t> bytes) {
  return set_states(tensor, bytes, impl_->core.stream);
}

Status GpuSession::keep_states(GpuStream stream) {
  return impl_->use([&] { return impl_->states.keep(stream); });
}
Status GpuSession::keep_states() {
  return keep_states(impl_->core.stream);
}

Status GpuSession::take_back_states(GpuStream stream) {
  return impl_->use([&] { return impl_->states.take_back(0, num_tensors(), stream); });
}
Status GpuSession::take_back_states() {
  return take_back_states(impl_->core.stream);
}

Status GpuSession::take_back_states(GpuStream stream, std::size_t tensor) {
  return impl_->use([&] { return impl_->states.take_back(tensor, 1, stream); });
}
Status GpuSession::take_back_tensor(std::size_t tensor) {
  return take_back_states(impl_->core.stream, tensor);
}

}  // namespace cinch::rt
