// Opens NCCL's library at run time.
#pragma once
#include <string>

#include "runtime/core/error.h"
#include "runtime/transports/nccl/nccl_abi.h"

namespace cinch::rt {

/// Searched once per process and file, and never closed. Empty: the file that CINCH_NCCL names, or
/// else libnccl.so.2. Errors: Unavailable (no such file; a file that lacks a function: names it).
Result<const NcclCalls*> open_nccl_library(const std::string& file = {});

/// "2.30.3".
std::string nccl_version_text(int version);

/// The library's error code as an error of ours. `comm` may be null.
Error nccl_error(const NcclCalls& calls, NcclComm comm, NcclCode code, const char* what);

}  // namespace cinch::rt
