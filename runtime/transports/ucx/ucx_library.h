// Opening the module that calls UCX.
#pragma once
#include "runtime/core/error.h"
#include "runtime/transports/ucx/ucx_abi.h"

namespace cinch::rt {

/// The table lives as long as the process. The module: CINCH_UCX, else where libraries of this
/// build lie. UCX: the file libucp.so.0 that CINCH_UCX_LIBRARY names (a wheel's, say), else what
/// the loader finds. Errors: Unavailable (no UCX, no module, another version), on every call.
const Result<const cinch_ucx_calls*>& ucx_library();

}  // namespace cinch::rt
