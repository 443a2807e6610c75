// Transports of the C API.
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "runtime/c_api/support.h"
#include "runtime/c_api/sync/sync_handles.h"
#include "runtime/core/log.h"
#include "runtime/transports/lent/callback_transport.h"
#include "runtime/transports/mpi/mpi_transport.h"

namespace cinch::c_api {

CallStatus give_transport(rt::Result<std::unique_ptr<rt::Transport>> made,
                          std::shared_ptr<rt::LoopbackWorld> world, cinch_transport** to) {
  if (!made) return fail(made.error());
  auto parts = std::make_shared<TransportParts>();
  parts->world = std::move(world);
  parts->transport = std::move(*made);
  *to = new cinch_transport{std::move(parts)};
  return rt::Ok{};
}

namespace {

CallStatus open_mpi(const cinch_mpi_options* options, cinch_transport** transport) {
  rt::MpiOptions wanted;
  if (options != nullptr) {
    const auto given = read_struct(options, offsetof(cinch_mpi_options, cuda_aware), "options");
    CINCH_TRY(given);
    if (given->cuda_aware < CINCH_CUDA_AWARE_AUTO || given->cuda_aware > CINCH_CUDA_AWARE_NO) {
      return fail(CINCH_INVALID_ARGUMENT, "cuda_aware is not a value of its enum");
    }
    wanted.cuda_aware = static_cast<rt::CudaAware>(given->cuda_aware);
    wanted.is_exact = given->is_exact != 0;
    if (given->timeout_ms > 0) wanted.timeout = std::chrono::milliseconds(given->timeout_ms);
  }
  return give_transport(rt::open_mpi_transport(wanted), nullptr, transport);
}

CallStatus open_loopback(const cinch_loopback& loopback, std::uint32_t rank,
                         cinch_transport** transport) {
  if (rank >= loopback.num_ranks) {
    return fail(CINCH_INVALID_ARGUMENT, "there is no rank " + std::to_string(rank) + " of " +
                                            std::to_string(loopback.num_ranks));
  }
  return give_transport(loopback.world->transport(rank), loopback.world, transport);
}

}  // namespace
}  // namespace cinch::c_api

using namespace cinch::c_api;
namespace rt = cinch::rt;

cinch_status cinch_transport_of_calls(const cinch_transport_calls* calls,
                                      cinch_transport** transport, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (transport == nullptr) return fail(CINCH_INVALID_ARGUMENT, "transport is null");
    const auto given = read_struct(calls, offsetof(cinch_transport_calls, awaited), "calls");
    CINCH_TRY(given);
    cinch_transport_calls known = *given;
    known.struct_size = sizeof known;
    return give_transport(rt::make_callback_transport(known), nullptr, transport);
  });
}

cinch_status cinch_transport_of_mpi(const cinch_mpi_options* options, cinch_transport** transport,
                                    cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (transport == nullptr) return fail(CINCH_INVALID_ARGUMENT, "transport is null");
    return open_mpi(options, transport);
  });
}

cinch_status cinch_loopback_open(uint32_t world, cinch_loopback** loopback, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (loopback == nullptr) return fail(CINCH_INVALID_ARGUMENT, "loopback is null");
    if (const rt::Status status = rt::check_world(world); !status) return fail(status.error());
    *loopback = new cinch_loopback{std::make_shared<rt::LoopbackWorld>(world), world};
    return rt::Ok{};
  });
}

void cinch_loopback_release(cinch_loopback* loopback) {
  delete loopback;
}

cinch_status cinch_transport_of_loopback(cinch_loopback* loopback, uint32_t rank,
                                         cinch_transport** transport, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (loopback == nullptr || transport == nullptr) {
      return fail(CINCH_INVALID_ARGUMENT, "loopback or transport is null");
    }
    return open_loopback(*loopback, rank, transport);
  });
}

void cinch_set_log(cinch_log_fn log, void* context) {
  rt::set_log(log == nullptr
                  ? std::function<void(const std::string&)>()
                  : [log, context](const std::string& line) { log(context, line.c_str()); });
}

void cinch_transport_release(cinch_transport* transport) {
  delete transport;
}

uint32_t cinch_transport_rank(const cinch_transport* transport) {
  return transport == nullptr ? 0 : transport->parts->transport->rank();
}

uint32_t cinch_transport_world(const cinch_transport* transport) {
  return transport == nullptr ? 0 : transport->parts->transport->world();
}

uint64_t cinch_transport_sent_bytes(const cinch_transport* transport) {
  if (transport == nullptr) return 0;
  TransportParts& parts = *transport->parts;
  const rt::Use use(parts.in_use, rt::UseFlag::Kind::Look);
  if (use) parts.sent_bytes = parts.transport->sent_bytes();
  return parts.sent_bytes;
}
