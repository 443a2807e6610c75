// Errors of the runtime to statuses of the C API, and into the caller's memory.
#include "runtime/c_api/support.h"

#include "runtime/tuning/tuning.h"

namespace cinch::c_api {

cinch_status status_of(rt::ErrorKind kind) {
  // By kind, in their order.
  static constexpr cinch_status kStatuses[] = {
      CINCH_INVALID_ARGUMENT, CINCH_OUT_OF_RANGE,     CINCH_OVERFLOW,     CINCH_CORRUPT_PAYLOAD,
      CINCH_CORRUPT_FILE,     CINCH_VERSION_MISMATCH, CINCH_CHECK_FAILED, CINCH_IO,
      CINCH_OUT_OF_MEMORY,    CINCH_UNAVAILABLE,      CINCH_CANCELLED,    CINCH_TIMED_OUT,
      CINCH_DEVICE,           CINCH_INTERNAL};
  static_assert(std::size(kStatuses) == static_cast<std::size_t>(rt::ErrorKind::Internal) + 1);
  return kStatuses[static_cast<std::size_t>(kind)];
}

tl::unexpected<CallError> fail(cinch_status status, std::string message) {
  return tl::unexpected<CallError>(CallError(status, std::move(message)));
}

CallError::CallError(const rt::Error& error)
    : status(status_of(error.kind)), message(error.message), native_code(error.native_code) {}

tl::unexpected<CallError> fail_at(std::size_t place, CallError error) {
  error.tensor = place;
  return tl::unexpected<CallError>(std::move(error));
}

CallStatus done(const rt::Status& status) {
  return status;
}

CallError out_of_range(const char* what, std::size_t index, std::size_t count) {
  return {CINCH_OUT_OF_RANGE,
          std::string(what) + " " + std::to_string(index) + " of " + std::to_string(count)};
}

CallStatus check_index(std::size_t index, std::size_t count, const char* what) {
  if (index < count) return rt::Ok{};
  return tl::unexpected<CallError>(out_of_range(what, index, count));
}

// The message of this thread.
static std::string& last_message() {
  static thread_local std::string message;
  return message;
}

namespace {

// Keeps nothing if there is no memory for it.
void keep_message(std::string_view message) noexcept {
  try {
    last_message() = message;
  } catch (const std::exception&) {
    last_message().clear();
  }
}

CallStatus check_tuning() {
  const rt::UserTuning& user = rt::user_tuning();
  if (!user.problem) return rt::Ok{};
  CallError error = *user.problem;
  error.message = "tuning table: " + error.message;
  if (user.is_named) error.message += " (CINCH_TUNING names it; \"off\" goes without)";
  return tl::unexpected<CallError>(std::move(error));
}

}  // namespace

cinch_status report(const CallError& error, cinch_error* to) {
  report(error.status, error.message, to);
  if (to == nullptr || to->struct_size < sizeof(cinch_error)) return error.status;
  to->native_code = error.native_code;
  to->tensor = error.tensor;
  return error.status;
}

cinch_status report(cinch_status status, std::string_view message, cinch_error* to) {
  keep_message(message);
  if (to == nullptr || to->struct_size < sizeof(cinch_error)) return status;
  to->status = status;
  to->native_code = 0;
  to->tensor = CINCH_NO_TENSOR;
  to->message_size = message.size();
  std::size_t kept = std::min(message.size(), sizeof to->message - 1);
  // Does not cut a character in two.
  const auto is_continued = [&](std::size_t at) {
    return (static_cast<unsigned char>(message[at]) & 0xc0u) == 0x80u;
  };
  while (kept > 0 && kept < message.size() && is_continued(kept)) --kept;
  std::memcpy(to->message, message.data(), kept);
  to->message[kept] = '\0';
  return status;
}

CallStatus copy_out(std::span<const std::uint8_t> bytes, const char* name, void* data,
                    std::size_t* size) {
  if (size == nullptr) return invalid("size is null");
  const std::size_t capacity = std::exchange(*size, bytes.size());
  if (data == nullptr) return rt::Ok{};
  if (capacity < bytes.size()) {
    return invalid(std::string(name) + " take " + std::to_string(bytes.size()) +
                   " bytes, there are " + std::to_string(capacity));
  }
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  return rt::Ok{};
}

CallStatus check_named_tuning() {
  return rt::user_tuning().is_named ? check_tuning() : rt::Ok{};
}

}  // namespace cinch::c_api

const char* cinch_error_message(void) {
  return cinch::c_api::last_message().c_str();
}

cinch_status cinch_check_tuning(cinch_error* error) {
  return cinch::c_api::guarded(error, [] { return cinch::c_api::check_tuning(); });
}
