// The door of a session on a GPU.
#include "runtime/gpu/session/session.h"

#include <fmt/format.h>

#include "runtime/call/entries.h"
#include "runtime/call/state_file.h"
#include "runtime/gpu/fault.h"
#include "runtime/gpu/session/session_impl.h"
#include "runtime/image/buffer_size.h"

namespace cinch::rt {

GpuSession::GpuSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GpuSession::~GpuSession() = default;
GpuSession::GpuSession(GpuSession&&) noexcept = default;
GpuSession& GpuSession::operator=(GpuSession&&) noexcept = default;

Result<GpuSession> GpuSession::open(std::shared_ptr<const GpuProgram> program,
                                    const GpuSessionOptions& options, GpuStream stream) {
  return guarded([&]() -> Result<GpuSession> {
    if (options.tensors.empty()) return fail(ErrorKind::InvalidArgument, "a session of no tensors");
    // Before anything multiplies rows by columns.
    for (const ListTensor& shape : options.tensors) {
      const TensorFacts given{shape.rows, shape.cols, options.world, options.worker};
      CINCH_TRY(check_facts(given));
    }
    auto impl = std::make_unique<Impl>(std::move(program), options);
    CINCH_TRY(impl->open(stream));
    return GpuSession(std::move(impl));
  });
}

const ProgramInfo& GpuSession::info() const {
  return impl_->info();
}
std::size_t GpuSession::num_tensors() const {
  return impl_->num_tensors();
}
std::int64_t GpuSession::num_elems(std::size_t tensor) const {
  return impl_->facts[tensor].num_elems();
}
std::size_t GpuSession::memory_bytes() const {
  return impl_->arena.total_bytes();
}
std::size_t GpuSession::num_launches(EntryKind kind) const {
  return impl_->plans[static_cast<std::size_t>(kind)].batches.size();
}

Status GpuSession::lay_out_payload(std::size_t tensor, std::uint64_t step,
                                   PayloadLayout& layout) const {
  return guarded_use(impl_->in_use, [&] { return impl_->lay_out_payload(tensor, step, layout); });
}

Status GpuSession::Impl::lay_out_payload(std::size_t tensor, std::uint64_t step,
                                         PayloadLayout& to) const {
  if (Status status = check_step(step); !status) return status;
  return lay_out_payload_bound(info(), env(tensor, step), to);
}

Result<std::int64_t> GpuSession::payload_bound(std::size_t tensor, std::uint64_t step) const {
  return guarded_use(impl_->in_use, [&]() -> Result<std::int64_t> {
    const Status status = impl_->lay_out_payload(tensor, step, impl_->bound);
    CINCH_TRY(status);
    return impl_->bound.size_bytes;
  });
}

Result<PayloadHeader> GpuSession::header_for(std::size_t tensor, std::uint64_t step) const {
  return guarded_use(impl_->in_use, [&]() -> Result<PayloadHeader> {
    return payload_header(info(), impl_->image().fingerprint, impl_->facts[tensor],
                          impl_->parameters, step);
  });
}

Status GpuSession::set_parameter(std::string_view name, double value) {
  return guarded_use(impl_->in_use, [&]() -> Status {
    const ParameterValues before = impl_->parameters;
    Status status = impl_->parameters.set(name, value);
    for (std::size_t t = 0; t < num_tensors() && status; ++t) {
      for (std::size_t b = 0; b < impl_->image().buffers.size() && status; ++b) {
        const BufferInfo& buffer = impl_->image().buffers[b];
        const auto size =
            buffer_bytes(impl_->image(), static_cast<BufferIndex>(b), impl_->env(t, 0));
        if (!size) {
          status = tl::unexpected<Error>(size.error());
        } else if (*size > impl_->capacities[t][b]) {
          status = fail(ErrorKind::OutOfRange,
                        fmt::format("parameter {} = {}: {} takes {} bytes, the session was opened "
                                    "for {}",
                                    name, value, buffer.name, *size, impl_->capacities[t][b]));
        }
      }
    }
    for (std::size_t t = 0; t < num_tensors() && status; ++t) {
      status = impl_->check_loops(impl_->env(t, 0), t);
    }
    if (!status) {
      impl_->parameters = before;
    } else {
      ++impl_->parameters_version;
    }
    return status;
  });
}

Status GpuSession::Impl::call_with(EntryKind kind, const Arrays& arrays, std::uint64_t step,
                                   GpuStream on) {
  Status status = check_call(image(), kind, options.only_decodes);
  if (status) status = check_step(step);
  if (status) status = bind_tensors(kind, arrays.from, arrays.to);
  if (status && kind != EntryKind::Finish) status = bind_payloads(kind, arrays.payloads, step);
  return status ? call(kind, step, on) : status;
}

Status GpuSession::encode(std::span<const GpuAddress> gradients,
                          std::span<const GpuPayload> payloads, std::uint64_t step,
                          GpuStream stream) {
  return guarded_use(impl_->in_use, [&] {
    return impl_->call_with(EntryKind::Encode, {gradients, payloads, {}}, step, stream);
  });
}

Status GpuSession::decode(std::span<const GpuPayload> payloads, std::span<const GpuAddress> outputs,
                          std::uint64_t step, GpuStream stream) {
  return guarded_use(impl_->in_use, [&] {
    return impl_->call_with(EntryKind::Decode, {{}, payloads, outputs}, step, stream);
  });
}

Status GpuSession::decode_add(std::span<const GpuPayload> payloads,
                              std::span<const GpuAddress> outputs, std::uint64_t step,
                              GpuStream stream) {
  return guarded_use(impl_->in_use, [&] {
    return impl_->call_with(EntryKind::DecodeAdd, {{}, payloads, outputs}, step, stream);
  });
}

Status GpuSession::finish(std::span<const GpuAddress> sums, std::span<const GpuAddress> updates,
                          std::uint64_t step, GpuStream stream) {
  return guarded_use(impl_->in_use, [&] {
    return impl_->call_with(EntryKind::Finish, {sums, {}, updates}, step, stream);
  });
}

Status GpuSession::prepare(EntryKind kind, std::uint64_t step, GpuStream stream) {
  return guarded_use(impl_->in_use, [&]() -> Status {
    if (Status status = check_step(step); !status) return status;
    const auto& made = impl_->calls[static_cast<std::size_t>(kind)];
    if (!made || !made->was_made) {
      return fail(ErrorKind::InvalidArgument, "no call of this kind was made before");
    }
    const GpuDevice::Scope scope(impl_->device());
    if (Status status = impl_->check_host_conditions(kind, step); !status) return status;
    if (!made->payloads.empty()) {
      const std::vector<GpuPayload> payloads = made->payloads;
      if (Status status = impl_->bind_payloads(kind, payloads, step); !status) return status;
    }
    if (Status status = impl_->write_facts(kind, step); !status) return status;
    return impl_->order.run(
        stream, [&] { return impl_->call_of(kind).table.send(impl_->device(), stream); });
  });
}

Result<std::vector<TensorOutcome>> GpuSession::Impl::collect(GpuStream from) {
  CINCH_TRY(order.enter(from));
  std::vector<GpuOutcome> words(num_tensors());
  const GpuAddress at = arena.address(outcomes);
  auto* bytes = reinterpret_cast<std::uint8_t*>(words.data());
  const std::span<std::uint8_t> all(bytes, sizeof(GpuOutcome) * words.size());
  CINCH_TRY(device().read(all, at, from));
  std::vector<TensorOutcome> told;
  bool has_failed = false;
  for (GpuOutcome& word : words) {
    told.push_back({gpu_fault(image(), word.failed), (word.flags & kFlagNonFinite) != 0,
                    static_cast<std::int64_t>(word.payload_bytes)});
    has_failed = has_failed || word.failed != 0;
    word.failed = 0;
  }
  if (!has_failed) return told;
  const Status status = device().write(at, all, from);
  CINCH_TRY(status);
  return told;
}

Result<std::vector<TensorOutcome>> GpuSession::collect(GpuStream stream) {
  return guarded_use(impl_->in_use, [&] { return impl_->collect(stream); });
}

// ---- states ----

Result<std::vector<GpuAddress>> GpuSession::Impl::state_addresses(std::size_t tensor,
                                                                  GpuStream stream) {
  CINCH_TRY(order.enter(stream));
  std::vector<std::uint32_t> words(info().states.size());
  auto* bytes = reinterpret_cast<std::uint8_t*>(words.data());
  const GpuAddress from = arena.address(swapped) + 4 * words.size() * tensor;
  CINCH_TRY(device().read({bytes, 4 * words.size()}, from, stream));
  std::vector<GpuAddress> addresses;
  for (std::uint32_t i = 0; i < words.size(); ++i) {
    const BufferIndex in_place = buffer_of(BufferRole::StateInPlace, i);
    const auto role = words[i] != 0 ? BufferRole::StateNext : BufferRole::State;
    addresses.push_back(own_address(tensor, in_place != kNoIndex ? in_place : buffer_of(role, i)));
  }
  return addresses;
}

Result<std::vector<std::vector<std::uint8_t>>> GpuSession::Impl::states(std::size_t tensor,
                                                                        GpuStream stream) {
  CINCH_TRY(check_holds_states(options.only_decodes));
  const auto addresses = state_addresses(tensor, stream);
  CINCH_TRY(addresses);
  std::vector<std::vector<std::uint8_t>> read;
  for (std::size_t i = 0; i < addresses->size(); ++i) {
    const auto size = rt::state_bytes(info(), info().states[i], env(tensor, 0));
    CINCH_TRY(size);
    auto& bytes = read.emplace_back(static_cast<std::size_t>(*size));
    CINCH_TRY(device().read(bytes, (*addresses)[i], stream));
  }
  return read;
}

Result<std::vector<std::vector<std::uint8_t>>> GpuSession::states(std::size_t tensor,
                                                                  GpuStream stream) const {
  return guarded_use(impl_->in_use, [&] { return impl_->states(tensor, stream); });
}

StateFileKey GpuSession::Impl::state_key(std::size_t tensor) const {
  return {image().fingerprint, facts[tensor].rows, facts[tensor].cols};
}

Result<std::vector<std::uint8_t>> GpuSession::states_as_bytes(std::size_t tensor,
                                                              GpuStream stream) const {
  return guarded_use(impl_->in_use, [&]() -> Result<std::vector<std::uint8_t>> {
    const auto held = impl_->states(tensor, stream);
    CINCH_TRY(held);
    return write_states(impl_->state_key(tensor), state_views(info(), *held));
  });
}

Status GpuSession::Impl::set_states(std::size_t tensor, std::span<const std::uint8_t> bytes,
                                    GpuStream stream) {
  const auto held = states(tensor, stream);
  CINCH_TRY(held);
  const auto given = read_states(bytes, state_key(tensor), state_views(info(), *held));
  CINCH_TRY(given);
  const auto addresses = state_addresses(tensor, stream);
  CINCH_TRY(addresses);
  for (std::size_t i = 0; i < given->size(); ++i) {
    const Status status = device().write((*addresses)[i], (*given)[i], stream);
    if (!status) return status;
  }
  return Ok{};
}

Status GpuSession::set_states(std::size_t tensor, std::span<const std::uint8_t> bytes,
                              GpuStream stream) {
  return guarded_use(impl_->in_use, [&] { return impl_->set_states(tensor, bytes, stream); });
}

}  // namespace cinch::rt
