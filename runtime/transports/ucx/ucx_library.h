// Opens the module that calls UCX.
#pragma once
#include "runtime/core/error.h"
#include "runtime/transports/ucx/ucx_abi.h"

namespace cinch::rt {

/// The table lives as long as the process. The module is the one that CINCH_UCX names, else the one
/// where this build's libraries lie. UCX is the file libucp.so.0 that CINCH_UCX_LIBRARY names (a
/// wheel's, say), else the one that the loader finds. Errors, on every call: Unavailable (no UCX,
/// no module, another version).
const Result<const cinch_ucx_calls*>& ucx_library();

}  // namespace cinch::rt
