// Transports of the C API over UCX.
#include <array>
#include <chrono>
#include <cstddef>

#include "runtime/c_api/support.h"
#include "runtime/c_api/sync/sync_handles.h"
#include "runtime/transports/ucx/ucx_transport.h"

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
  const auto given = read_struct(calls, sizeof *calls, "store");
  CINCH_TRY(given);
  if (given->put == nullptr || given->get == nullptr) {
    return fail(CINCH_INVALID_ARGUMENT, "a store without put or get");
  }
  return std::shared_ptr<rt::KeyValueStore>(std::make_shared<LentStore>(*given));
}

CallStatus open_ucx(const cinch_ucx_options* options, cinch_transport** transport) {
  const auto given = read_struct(options, sizeof *options, "options");
  CINCH_TRY(given);
  if ((given->rendezvous == nullptr) == (given->store == nullptr)) {
    return fail(CINCH_INVALID_ARGUMENT, "ranks meet at a rendezvous or over a store");
  }
  auto store = lent_store(given->store);
  CINCH_TRY(store);
  if (given->secret == nullptr && given->secret_bytes > 0) {
    return fail(CINCH_INVALID_ARGUMENT, "secret is null");
  }
  rt::UcxOptions wanted;
  wanted.rank = given->rank;
  wanted.world = given->world;
  wanted.rendezvous = text_or_empty(given->rendezvous);
  wanted.store = std::move(*store);
  if (given->secret_bytes > 0) {
    wanted.secret.assign(static_cast<const char*>(given->secret), given->secret_bytes);
  }
  wanted.interface = text_or_empty(given->interface_name);
  wanted.transports = text_or_empty(given->transports);
  if (given->timeout_ms > 0) wanted.timeout = std::chrono::milliseconds(given->timeout_ms);
  return give_transport(rt::open_ucx_transport(wanted), nullptr, transport);
}

}  // namespace
}  // namespace cinch::c_api

using namespace cinch::c_api;

cinch_status cinch_transport_of_ucx(const cinch_ucx_options* options, cinch_transport** transport,
                                    cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (transport == nullptr) return fail(CINCH_INVALID_ARGUMENT, "transport is null");
    return open_ucx(options, transport);
  });
}
