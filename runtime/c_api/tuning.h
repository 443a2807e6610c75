// Reports a table of tuning numbers that cannot be used, if the caller should know.
#pragma once
#include "runtime/c_api/support.h"

namespace cinch::c_api {

/// Returns the error of the table that CINCH_TUNING names. A faulty table at the default place is
/// no error here: the built-in numbers are used.
CallStatus check_named_tuning();

}  // namespace cinch::c_api
