// Reports errors in the user's table; see tuning.h.
#include "runtime/c_api/tuning.h"

#include "runtime/tuning/tuning.h"

namespace cinch::c_api {
namespace {

CallStatus check_tuning() {
  const rt::UserTuning& user = rt::user_tuning();
  if (!user.problem) return rt::Ok{};
  CallError error = fail(*user.problem).value();
  error.message = "tuning table: " + error.message;
  if (user.is_named) error.message += " (CINCH_TUNING names it; \"off\" goes without)";
  return tl::unexpected<CallError>(std::move(error));
}

}  // namespace

CallStatus check_named_tuning() {
  return rt::user_tuning().is_named ? check_tuning() : rt::Ok{};
}

}  // namespace cinch::c_api

cinch_status cinch_check_tuning(cinch_error* error) {
  return cinch::c_api::guarded(error, [] { return cinch::c_api::check_tuning(); });
}
