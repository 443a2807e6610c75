// Transports of the C API over NCCL.
#include <chrono>
#include <cstring>

#include "runtime/c_api/program.h"
#include "runtime/c_api/sync/sync_handles.h"
#include "runtime/transports/nccl/nccl_transport.h"

namespace cinch::c_api {
namespace {

std::string library_file(const char* given) {
  return given == nullptr ? std::string() : std::string(given);
}

CallResult<rt::NcclOptions> nccl_options(const cinch_nccl_options* options) {
  cinch_nccl_options known{};
  if (options != nullptr) {
    const auto given = read_struct(options, sizeof *options, "options");
    CINCH_TRY(given);
    known = *given;
  }
  auto device = open_gpu(known.device_number);
  CINCH_TRY(device);
  rt::NcclOptions wanted;
  wanted.device = std::move(*device);
  wanted.is_exact = known.is_exact != 0;
  if (known.timeout_ms > 0) wanted.timeout = std::chrono::milliseconds(known.timeout_ms);
  wanted.library = library_file(known.library);
  return wanted;
}

CallStatus make_id(const char* library, void* to) {
  if (to == nullptr) return fail(CINCH_INVALID_ARGUMENT, "id is null");
  const auto id = rt::make_nccl_id(library_file(library));
  if (!id) return fail(id.error());
  static_assert(sizeof id->bytes == CINCH_NCCL_ID_BYTES);
  std::memcpy(to, id->bytes.data(), id->bytes.size());
  return rt::Ok{};
}

}  // namespace
}  // namespace cinch::c_api

using namespace cinch::c_api;
namespace rt = cinch::rt;

cinch_status cinch_nccl_make_id(const char* library, void* id, cinch_error* error) {
  return guarded(error, [&] { return make_id(library, id); });
}

cinch_status cinch_transport_of_nccl(const void* id, uint32_t rank, uint32_t world,
                                     const cinch_nccl_options* options, cinch_transport** transport,
                                     cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (id == nullptr || transport == nullptr) {
      return fail(CINCH_INVALID_ARGUMENT, "id or transport is null");
    }
    const auto wanted = nccl_options(options);
    CINCH_TRY(wanted);
    rt::NcclId shared;
    std::memcpy(shared.bytes.data(), id, shared.bytes.size());
    return give_transport(rt::open_nccl_transport(shared, rank, world, *wanted), nullptr,
                          transport);
  });
}

cinch_status cinch_transport_of_nccl_comm(void* communicator, const cinch_nccl_options* options,
                                          cinch_transport** transport, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (communicator == nullptr || transport == nullptr) {
      return fail(CINCH_INVALID_ARGUMENT, "communicator or transport is null");
    }
    const auto wanted = nccl_options(options);
    CINCH_TRY(wanted);
    return give_transport(rt::open_nccl_transport(communicator, *wanted), nullptr, transport);
  });
}
