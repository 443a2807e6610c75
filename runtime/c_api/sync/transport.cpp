// Transports of the C API.
#include <array>
#include <chrono>
#include <functional>

#include "runtime/c_api/handles.h"
#include "runtime/c_api/sync/sync_handles.h"
#include "runtime/core/log.h"
#include "runtime/transports/lent/callback_transport.h"
#include "runtime/transports/mpi/mpi_transport.h"
#include "runtime/transports/nccl/nccl_transport.h"
#include "runtime/transports/ucx/ucx_transport.h"

namespace cinch::c_api {

CallStatus give_transport(rt::Result<std::unique_ptr<rt::Transport>> made,
                          std::shared_ptr<rt::LoopbackWorld> world, cinch_transport** to) {
  CINCH_TRY(made);
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
    const auto given =
        TRY(read_struct(options, offsetof(cinch_mpi_options, cuda_aware), "options"));
    if (given.cuda_aware < CINCH_CUDA_AWARE_AUTO || given.cuda_aware > CINCH_CUDA_AWARE_NO) {
      return invalid("cuda_aware is not a value of its enum");
    }
    wanted.cuda_aware = static_cast<rt::CudaAware>(given.cuda_aware);
    wanted.is_exact = given.is_exact != 0;
    if (given.timeout_ms > 0) wanted.timeout = std::chrono::milliseconds(given.timeout_ms);
  }
  return give_transport(rt::open_mpi_transport(wanted), nullptr, transport);
}

}  // namespace
}  // namespace cinch::c_api

using namespace cinch::c_api;
namespace rt = cinch::rt;

cinch_status cinch_transport_of_calls(const cinch_transport_calls* calls,
                                      cinch_transport** transport, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (transport == nullptr) return invalid("transport is null");
    const auto given = TRY(read_struct(calls, offsetof(cinch_transport_calls, awaited), "calls"));
    cinch_transport_calls known = given;
    known.struct_size = sizeof known;
    return give_transport(rt::make_callback_transport(known), nullptr, transport);
  });
}

cinch_status cinch_transport_of_mpi(const cinch_mpi_options* options, cinch_transport** transport,
                                    cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (transport == nullptr) return invalid("transport is null");
    return open_mpi(options, transport);
  });
}

cinch_status cinch_loopback_open(uint32_t world, cinch_loopback** loopback, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (loopback == nullptr) return invalid("loopback is null");
    CINCH_TRY(rt::check_world(world));
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
      return invalid("loopback or transport is null");
    }
    if (rank >= loopback->num_ranks) {
      return invalid("there is no rank " + std::to_string(rank) + " of " +
                     std::to_string(loopback->num_ranks));
    }
    return give_transport(loopback->world->transport(rank), loopback->world, transport);
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

// Transports of the C API over NCCL.

namespace cinch::c_api {
namespace {

std::string library_file(const char* given) {
  return given == nullptr ? std::string() : std::string(given);
}

CallResult<rt::NcclOptions> nccl_options(const cinch_nccl_options* options) {
  cinch_nccl_options known{};
  if (options != nullptr) {
    known = TRY(read_struct(options, sizeof *options, "options"));
  }
  auto device = TRY(open_gpu(known.device_number));
  rt::NcclOptions wanted{.device = std::move(device), .is_exact = known.is_exact != 0};
  if (known.timeout_ms > 0) wanted.timeout = std::chrono::milliseconds(known.timeout_ms);
  wanted.library = library_file(known.library);
  return wanted;
}

}  // namespace
}  // namespace cinch::c_api

using namespace cinch::c_api;
namespace rt = cinch::rt;

cinch_status cinch_nccl_make_id(const char* library, void* id, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (id == nullptr) return invalid("id is null");
    const auto made = TRY(rt::make_nccl_id(library_file(library)));
    static_assert(sizeof made.bytes == CINCH_NCCL_ID_BYTES);
    std::memcpy(id, made.bytes.data(), made.bytes.size());
    return rt::Ok{};
  });
}

cinch_status cinch_transport_of_nccl(const void* id, uint32_t rank, uint32_t world,
                                     const cinch_nccl_options* options, cinch_transport** transport,
                                     cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (id == nullptr || transport == nullptr) {
      return invalid("id or transport is null");
    }
    const auto wanted = TRY(nccl_options(options));
    rt::NcclId shared;
    std::memcpy(shared.bytes.data(), id, shared.bytes.size());
    return give_transport(rt::open_nccl_transport(shared, rank, world, wanted), nullptr, transport);
  });
}

cinch_status cinch_transport_of_nccl_comm(void* communicator, const cinch_nccl_options* options,
                                          cinch_transport** transport, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (communicator == nullptr || transport == nullptr) {
      return invalid("communicator or transport is null");
    }
    const auto wanted = TRY(nccl_options(options));
    return give_transport(rt::open_nccl_transport(communicator, wanted), nullptr, transport);
  });
}

// Transports of the C API over UCX.

namespace cinch::c_api {
namespace {

constexpr std::size_t kTextBytes = 256;

class LentStore : public rt::KeyValueStore {
 public:
  explicit LentStore(const cinch_store_calls& calls) : calls_(calls) {}

  rt::Status put(const std::string& key, std::span<const std::uint8_t> value) override {
    const std::int32_t error = calls_.put(calls_.context, key.c_str(), value.data(), value.size());
    if (error != 0) return failure(key, error);
    return rt::Ok{};
  }

  rt::Result<std::optional<std::vector<std::uint8_t>>> get(
      const std::string& key, std::chrono::milliseconds timeout) override {
    constexpr std::size_t kFirstRoom = 4096;
    std::vector<std::uint8_t> value(kFirstRoom);
    for (;;) {
      std::size_t size = value.size();
      const std::int32_t error = calls_.get(calls_.context, key.c_str(), value.data(), &size,
                                            static_cast<std::uint32_t>(timeout.count()));
      if (error != 0) return failure(key, error);
      if (size == CINCH_STORE_NOTHING) return std::nullopt;
      const bool has_all = size <= value.size();
      if (!has_all && size > kMostValueBytes) {
        return rt::fail(rt::ErrorKind::Device, "the host's store gives more under " + key +
                                                   " than any rank has put there");
      }
      value.resize(size);
      if (has_all) return value;
    }
  }

 private:
  static constexpr std::size_t kMostValueBytes =
      std::size_t{2} * rt::kMostUcxRanks * rt::kMostPartBytes;

  tl::unexpected<rt::Error> failure(const std::string& key, std::int32_t error) const {
    std::array<char, kTextBytes> text{};
    if (calls_.error_text != nullptr) {
      calls_.error_text(calls_.context, error, text.data(), text.size());
      text.back() = '\0';
    }
    const std::string message =
        text[0] == '\0' ? "error " + std::to_string(error) : std::string(text.data());
    return rt::fail(rt::ErrorKind::Device, "the host's store, " + key + ": " + message, error);
  }

  cinch_store_calls calls_;
};

std::string text_or_empty(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

CallResult<std::shared_ptr<rt::KeyValueStore>> lent_store(const cinch_store_calls* calls) {
  if (calls == nullptr) return std::shared_ptr<rt::KeyValueStore>();
  const auto given = TRY(read_struct(calls, sizeof *calls, "store"));
  if (given.put == nullptr || given.get == nullptr) {
    return invalid("a store without put or get");
  }
  return std::shared_ptr<rt::KeyValueStore>(std::make_shared<LentStore>(given));
}

CallStatus open_ucx(const cinch_ucx_options* options, cinch_transport** transport) {
  const auto given = TRY(read_struct(options, sizeof *options, "options"));
  if ((given.rendezvous == nullptr) == (given.store == nullptr)) {
    return invalid("ranks meet at a rendezvous or over a store");
  }
  auto store = TRY(lent_store(given.store));
  if (given.secret == nullptr && given.secret_bytes > 0) {
    return invalid("secret is null");
  }
  rt::UcxOptions wanted{.rank = given.rank,
                        .world = given.world,
                        .rendezvous = text_or_empty(given.rendezvous),
                        .store = std::move(store)};
  if (given.secret_bytes > 0) {
    wanted.secret.assign(static_cast<const char*>(given.secret), given.secret_bytes);
  }
  wanted.interface = text_or_empty(given.interface_name);
  wanted.transports = text_or_empty(given.transports);
  if (given.timeout_ms > 0) wanted.timeout = std::chrono::milliseconds(given.timeout_ms);
  return give_transport(rt::open_ucx_transport(wanted), nullptr, transport);
}

}  // namespace
}  // namespace cinch::c_api

using namespace cinch::c_api;

cinch_status cinch_transport_of_ucx(const cinch_ucx_options* options, cinch_transport** transport,
                                    cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (transport == nullptr) return invalid("transport is null");
    return open_ucx(options, transport);
  });
}
