// The door of a session on a GPU.
#include "runtime/gpu/session.h"

#include <fmt/format.h>

#include "runtime/call/entries.h"
#include "runtime/call/state_file.h"
#include "runtime/gpu/fault.h"
#include "runtime/gpu/session_impl.h"
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
    for (const GpuTensorShape& shape : options.tensors) {
      const TensorFacts given{shape.rows, shape.cols, options.world, options.worker};
      if (Status status = check_facts(given); !status) {
        return tl::unexpected<Error>(status.error());
      }
    }
    auto impl = std::make_unique<Impl>(std::move(program), options);
    if (Status status = impl->open(stream); !status) return tl::unexpected<Error>(status.error());
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
    if (!status) return tl::unexpected<Error>(status.error());
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

Status GpuSession::encode(std::span<const GpuAddress> gradients,
                          std::span<const GpuPayload> payloads, std::uint64_t step,
                          GpuStream stream) {
  return guarded_use(impl_->in_use, [&]() -> Status {
    constexpr EntryKind kKind = EntryKind::Encode;
    if (Status status = check_call(impl_->image(), kKind); !status) return status;
    if (Status status = check_step(step); !status) return status;
    if (Status status = impl_->bind_tensors(kKind, gradients, {}); !status) return status;
    if (Status status = impl_->bind_payloads(kKind, payloads, step); !status) return status;
    return impl_->call(kKind, step, stream);
  });
}

Status GpuSession::decode(std::span<const GpuPayload> payloads, std::span<const GpuAddress> outputs,
                          std::uint64_t step, GpuStream stream) {
  return guarded_use(impl_->in_use, [&]() -> Status {
    constexpr EntryKind kKind = EntryKind::Decode;
    if (Status status = check_call(impl_->image(), kKind); !status) return status;
    if (Status status = check_step(step); !status) return status;
    if (Status status = impl_->bind_tensors(kKind, {}, outputs); !status) return status;
    if (Status status = impl_->bind_payloads(kKind, payloads, step); !status) return status;
    return impl_->call(kKind, step, stream);
  });
}

Status GpuSession::decode_add(std::span<const GpuPayload> payloads,
                              std::span<const GpuAddress> outputs, std::uint64_t step,
                              GpuStream stream) {
  return guarded_use(impl_->in_use, [&]() -> Status {
    constexpr EntryKind kKind = EntryKind::DecodeAdd;
    if (Status status = check_call(impl_->image(), kKind); !status) return status;
    if (Status status = check_step(step); !status) return status;
    if (Status status = impl_->bind_tensors(kKind, {}, outputs); !status) return status;
    if (Status status = impl_->bind_payloads(kKind, payloads, step); !status) return status;
    return impl_->call(kKind, step, stream);
  });
}

Status GpuSession::finish(std::span<const GpuAddress> sums, std::span<const GpuAddress> updates,
                          std::uint64_t step, GpuStream stream) {
  return guarded_use(impl_->in_use, [&]() -> Status {
    constexpr EntryKind kKind = EntryKind::Finish;
    if (Status status = check_call(impl_->image(), kKind); !status) return status;
    if (Status status = check_step(step); !status) return status;
    if (Status status = impl_->bind_tensors(kKind, sums, updates); !status) return status;
    return impl_->call(kKind, step, stream);
  });
}

Status GpuSession::sync(std::span<const GpuAddress> gradients, std::span<const GpuAddress> updates,
                        std::uint64_t step, GpuStream stream, RankExchange& ranks) {
  return guarded_use(impl_->in_use, [&]() -> Status {
    constexpr EntryKind kKind = EntryKind::Sync;
    if (Status status = check_call(impl_->image(), kKind); !status) return status;
    if (Status status = check_step(step); !status) return status;
    if (Status status = impl_->bind_tensors(kKind, gradients, updates); !status) return status;
    return impl_->sync(step, stream, ranks, updates);
  });
}

Result<std::optional<RankPoint>> GpuSession::begin_sync(GpuAddress gradient, GpuAddress update,
                                                        std::uint64_t step, GpuStream stream) {
  return guarded_use(impl_->in_use, [&]() -> Result<std::optional<RankPoint>> {
    constexpr EntryKind kKind = EntryKind::Sync;
    Status status = check_call(impl_->image(), kKind);
    if (status && num_tensors() != 1) {
      status = fail(ErrorKind::InvalidArgument, "only a tensor by itself synchronises in parts");
    }
    if (status) status = check_step(step);
    if (status) status = impl_->bind_tensors(kKind, {&gradient, 1}, {&update, 1});
    if (!status) return tl::unexpected<Error>(status.error());
    return impl_->begin_parts(step, stream, update);
  });
}

Result<std::optional<RankPoint>> GpuSession::continue_sync(RankStatus all) {
  return guarded_use(impl_->in_use, [&] { return impl_->continue_parts(all); });
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

Result<std::vector<GpuTensorOutcome>> GpuSession::collect(GpuStream stream) {
  return guarded_use(impl_->in_use, [&]() -> Result<std::vector<GpuTensorOutcome>> {
    if (Status status = impl_->order.enter(stream); !status) {
      return tl::unexpected<Error>(status.error());
    }
    std::vector<GpuOutcome> words(num_tensors());
    const GpuAddress at = impl_->arena.address(impl_->outcomes);
    auto* bytes = reinterpret_cast<std::uint8_t*>(words.data());
    const std::span<std::uint8_t> all(bytes, sizeof(GpuOutcome) * words.size());
    if (Status status = impl_->device().read(all, at, stream); !status) {
      return tl::unexpected<Error>(status.error());
    }
    std::vector<GpuTensorOutcome> outcomes;
    bool has_failed = false;
    for (GpuOutcome& word : words) {
      outcomes.push_back({gpu_fault(impl_->image(), word.failed),
                          (word.flags & kFlagNonFinite) != 0,
                          static_cast<std::int64_t>(word.payload_bytes)});
      has_failed = has_failed || word.failed != 0;
      word.failed = 0;
    }
    if (has_failed) {
      if (Status status = impl_->device().write(at, all, stream); !status) {
        return tl::unexpected<Error>(status.error());
      }
    }
    return outcomes;
  });
}

// ---- states ----

Result<std::vector<GpuAddress>> GpuSession::Impl::state_addresses(std::size_t tensor,
                                                                  GpuStream stream) {
  if (Status status = order.enter(stream); !status) return tl::unexpected<Error>(status.error());
  std::vector<std::uint32_t> words(info().states.size());
  auto* bytes = reinterpret_cast<std::uint8_t*>(words.data());
  const GpuAddress from = arena.address(swapped) + 4 * words.size() * tensor;
  if (Status status = device().read({bytes, 4 * words.size()}, from, stream); !status) {
    return tl::unexpected<Error>(status.error());
  }
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
  const auto addresses = state_addresses(tensor, stream);
  if (!addresses) return tl::unexpected<Error>(addresses.error());
  std::vector<std::vector<std::uint8_t>> read;
  for (std::size_t i = 0; i < addresses->size(); ++i) {
    const auto size = state_bytes(info(), info().states[i], env(tensor, 0));
    if (!size) return tl::unexpected<Error>(size.error());
    auto& bytes = read.emplace_back(static_cast<std::size_t>(*size));
    if (Status status = device().read(bytes, (*addresses)[i], stream); !status) {
      return tl::unexpected<Error>(status.error());
    }
  }
  return read;
}

Result<std::vector<std::vector<std::uint8_t>>> GpuSession::states(std::size_t tensor,
                                                                  GpuStream stream) const {
  return guarded_use(impl_->in_use, [&] { return impl_->states(tensor, stream); });
}

namespace {

std::vector<StateView> views_of(const ProgramInfo& info,
                                const std::vector<std::vector<std::uint8_t>>& states) {
  std::vector<StateView> views;
  views.reserve(states.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    views.push_back({info.states[i].name, dtype_name(info.states[i].type.dtype), states[i]});
  }
  return views;
}

}  // namespace

StateFileKey GpuSession::Impl::state_key(std::size_t tensor) const {
  return {image().fingerprint, facts[tensor].rows, facts[tensor].cols};
}

Result<std::vector<std::uint8_t>> GpuSession::states_as_bytes(std::size_t tensor,
                                                              GpuStream stream) const {
  return guarded_use(impl_->in_use, [&]() -> Result<std::vector<std::uint8_t>> {
    const auto held = impl_->states(tensor, stream);
    if (!held) return tl::unexpected<Error>(held.error());
    return write_states(impl_->state_key(tensor), views_of(info(), *held));
  });
}

Status GpuSession::Impl::set_states(std::size_t tensor, std::span<const std::uint8_t> bytes,
                                    GpuStream stream) {
  const auto held = states(tensor, stream);
  if (!held) return tl::unexpected<Error>(held.error());
  const auto given = read_states(bytes, state_key(tensor), views_of(info(), *held));
  if (!given) return tl::unexpected<Error>(given.error());
  const auto addresses = state_addresses(tensor, stream);
  if (!addresses) return tl::unexpected<Error>(addresses.error());
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
