// Opens a world over NCCL.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>

#include "runtime/core/library_symbols.h"
#include "runtime/module/shared_object.h"
#include "runtime/transports/nccl/nccl_rank.h"

namespace cinch::rt {
Status NcclTransport::wait_for_lane() {
  const auto end = std::chrono::steady_clock::now() + options_.timeout;
  for (;;) {
    if (TRY(all_.is_idle())) return Ok{};
    if (options_.neighbours != nullptr) {
      CINCH_TRY(options_.neighbours->heard());
    }
    if (std::chrono::steady_clock::now() >= end) {
      return fail(ErrorKind::TimedOut, fmt::format("not all {} ranks have come within {} ms",
                                                   own_.world, options_.timeout.count()));
    }
    pause(options_.timeout);
  }
}

Status NcclTransport::exchange_ids() {
  if (own_.world == 1) return Ok{};
  ids_.resize(std::size_t{own_.world} * own_.world);
  Status status = Ok{};
  visit_others(own_.rank, own_.world, [&](std::uint32_t other) {
    NcclUniqueId& id = ids_[std::size_t{own_.rank} * own_.world + other];
    const NcclCode code = calls_.get_unique_id(&id);
    if (status) status = all_.status(code, "making an id");
  });
  if (!status) return status;
  const std::uint64_t row = own_.world * sizeof(NcclUniqueId);
  std::vector<ByteRange> parts(own_.world);
  for (std::uint64_t rank = 0; rank < own_.world; ++rank) parts[rank] = {rank * row, row};
  const std::span<std::uint8_t> all(reinterpret_cast<std::uint8_t*>(ids_.data()), own_.world * row);
  Exchange exchange{ExchangeKind::AllGather};
  exchange.input = all.subspan(own_.rank * row, row);
  exchange.output = all;
  exchange.received = parts;
  status = exchange_now(*this, exchange, options_.timeout, "opening");
  num_sent_bytes_ = 0;
  return status;
}

Status NcclTransport::open(const NcclUniqueId* id, NcclComm lent) {
  const GpuDevice::Scope scope(*device_);
  Status status = copies_.open();
  if (status) status = id == nullptr ? all_.lend(lent) : all_.open(*id, own_.world, own_.rank, 0);
  if (status && id != nullptr) status = wait_for_lane();
  if (status) status = exchange_ids();
  if (!status) failed(status.error());
  return status;
}

namespace {

Status check_options(const NcclOptions& options) {
  if (options.device != nullptr) return Ok{};
  return fail(ErrorKind::InvalidArgument, "NCCL without a device");
}

Result<std::unique_ptr<Transport>> opened(const NcclCalls& calls, std::uint32_t rank,
                                          std::uint32_t world, const NcclOptions& options,
                                          const NcclUniqueId* id, NcclComm lent) {
  auto transport = std::make_unique<NcclTransport>(calls, rank, world, options);
  CINCH_TRY(transport->open(id, lent));
  return transport;
}

constexpr const char* kNcclFile = "libnccl.so.2";

Result<NcclCalls> open_nccl_file(const std::string& file) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    return fail(ErrorKind::Unavailable, reason != nullptr ? reason : file);
  }
  NcclCalls calls{};
  LibrarySymbols symbols(library);
#define CINCH_NCCL_CALL(result, member, symbol, parameters) symbols.find(calls.member, symbol);
#define CINCH_NCCL_CALL_IF_ANY(result, member, symbol, parameters) \
  symbols.find_if_any(calls.member, symbol);
#include "runtime/transports/nccl/nccl_calls.def"
#undef CINCH_NCCL_CALL
#undef CINCH_NCCL_CALL_IF_ANY
  if (symbols.missing() != nullptr) {
    return fail(ErrorKind::Unavailable,
                fmt::format("{} has no {}: NCCL 2.7 or newer is needed", file, symbols.missing()));
  }
  if (const NcclCode code = calls.get_version(&calls.version); code != kNcclSuccess) {
    return fail(ErrorKind::Unavailable, nccl_error(calls, nullptr, code, file.c_str()).message);
  }
  return calls;
}

Result<NcclCalls> open_first(const std::string& file) {
  std::string tried;
  const auto files = file.empty() ? library_paths(kNcclFile, "CINCH_NCCL") : std::vector{file};
  for (const std::string& path : files) {
    auto opened = open_nccl_file(path);
    if (opened) return opened;
    tried += (tried.empty() ? "" : "; ") + opened.error().message;
  }
  return fail(ErrorKind::Unavailable, "no NCCL: " + tried);
}

}  // namespace

Result<int> nccl_library_version(const std::string& library) {
  return TRY(open_nccl_library(library))->version;
}

Result<NcclId> make_nccl_id(const std::string& library) {
  const auto calls = TRY(open_nccl_library(library));
  NcclUniqueId made{};
  if (const NcclCode code = calls->get_unique_id(&made); code != kNcclSuccess) {
    return tl::unexpected<Error>(nccl_error(*calls, nullptr, code, "making an id"));
  }
  NcclId id;
  std::memcpy(id.bytes.data(), made.bytes, id.bytes.size());
  return id;
}

Result<std::unique_ptr<Transport>> open_nccl_transport(const NcclId& id, std::uint32_t rank,
                                                       std::uint32_t world,
                                                       const NcclOptions& options) {
  const auto calls = TRY(open_nccl_library(options.library));
  CINCH_TRY(check_options(options));
  if (rank >= world) {
    return fail(ErrorKind::InvalidArgument, fmt::format("rank {} of {}", rank, world));
  }
  NcclUniqueId given{};
  std::memcpy(given.bytes, id.bytes.data(), id.bytes.size());
  return opened(*calls, rank, world, options, &given, nullptr);
}

Result<std::unique_ptr<Transport>> open_nccl_transport(void* communicator,
                                                       const NcclOptions& options) {
  const auto calls = TRY(open_nccl_library(options.library));
  CINCH_TRY(check_options(options));
  auto* const comm = static_cast<NcclComm>(communicator);
  int rank = 0, world = 0, device = 0;
  NcclCode code = calls->user_rank(comm, &rank);
  if (code == kNcclSuccess) code = calls->count(comm, &world);
  if (code == kNcclSuccess) code = calls->device(comm, &device);
  if (code != kNcclSuccess) {
    return tl::unexpected<Error>(nccl_error(*calls, comm, code, "a communicator that was lent"));
  }
  if (device != options.device->ordinal()) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("a communicator of GPU {}, the rank's is GPU {}", device,
                            options.device->ordinal()));
  }
  return opened(*calls, static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(world),
                options, nullptr, comm);
}

// Opens NCCL's library at run time.

Result<const NcclCalls*> open_nccl_library(const std::string& file) {
  static std::mutex mutex;
  static auto* const kOpened = new std::map<std::string, Result<NcclCalls>>;
  const std::lock_guard lock(mutex);
  const auto found = kOpened->find(file);
  const auto& opened =
      (found != kOpened->end() ? found : kOpened->emplace(file, open_first(file)).first)->second;
  CINCH_TRY(opened);
  return &*opened;
}

// Up to version 2.8 the number had one digit less.
std::string nccl_version_text(int version) {
  const int major_unit = version < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", version / major_unit, version % major_unit / 100, version % 100);
}

Error nccl_error(const NcclCalls& calls, NcclComm comm, NcclCode code, const char* what) {
  const char* const name = calls.error_string(code);
  const char* const last = calls.last_error != nullptr ? calls.last_error(comm) : nullptr;
  std::string message =
      fmt::format("NCCL, {}: {}", what, name != nullptr ? name : std::to_string(code));
  if (last != nullptr && *last != '\0') message += fmt::format(" ({})", last);
  return {ErrorKind::Device, message, code};
}

}  // namespace cinch::rt
