// The user's table of tuning numbers, where a caller should know that it cannot be used.
#pragma once
#include "runtime/c_api/support.h"

namespace cinch::c_api {

/// The error of a table that CINCH_TUNING names. One that lies where tables lie by default is no
/// error here: the built-in numbers serve.
CallStatus check_named_tuning();

}  // namespace cinch::c_api
