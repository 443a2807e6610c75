// The part of NCCL's C interface that Cinch calls, as a table of functions. It needs no header of
// NVIDIA's; names, types and numbers are those of the "NCCL API" reference.
#pragma once
#include <cstddef>
#include <string>

#include "runtime/core/error.h"
#include "runtime/gpu/driver.h"

namespace cinch::rt {

using NcclComm = struct NcclCommObject*;  // ncclComm_t
using NcclCode = int;                     // ncclResult_t

inline constexpr NcclCode kNcclSuccess = 0;
inline constexpr NcclCode kNcclUnhandledCudaError = 1;
inline constexpr NcclCode kNcclSystemError = 2;
inline constexpr NcclCode kNcclInternalError = 3;
inline constexpr NcclCode kNcclInvalidArgument = 4;
inline constexpr NcclCode kNcclInvalidUsage = 5;
inline constexpr NcclCode kNcclRemoteError = 6;
inline constexpr NcclCode kNcclInProgress = 7;

/// ncclDataType_t.
enum class NcclType : int {
  Int8 = 0,
  Uint8 = 1,
  Int32 = 2,
  Uint32 = 3,
  Int64 = 4,
  Uint64 = 5,
  Float16 = 6,
  Float32 = 7,
  Float64 = 8,
  Bfloat16 = 9  // from 2.10 on
};

/// ncclRedOp_t.
enum class NcclOperation : int { Sum = 0, Max = 2, Min = 3, Average = 4 };  // the last from 2.10 on

/// ncclUniqueId, which is passed by value.
struct NcclUniqueId {
  char bytes[128];
};

/// The members of ncclConfig_t up to version 2.17; a newer library reads only `size` bytes.
struct NcclConfig {
  std::size_t size;
  unsigned magic, version;
  int blocking, cluster_size, least_blocks, most_blocks;
  const char* network;
};
inline constexpr unsigned kNcclMagic = 0xcafebeef;
inline constexpr int kNcclUndefined = -2147483647 - 1;

/// The number of version "2.17.0", in NCCL's format since 2.9.
constexpr int nccl_version(int major, int minor, int patch = 0) {
  return 10000 * major + 100 * minor + patch;
}

struct NcclCalls {
  int version;
#define CINCH_NCCL_CALL(result, member, symbol, parameters) result(*member) parameters;
#define CINCH_NCCL_CALL_IF_ANY CINCH_NCCL_CALL
#include "runtime/transports/nccl/nccl_calls.def"
#undef CINCH_NCCL_CALL
#undef CINCH_NCCL_CALL_IF_ANY
};

// Opens NCCL's library at run time.

/// Searched once per process and file, and never closed. Empty: the file that CINCH_NCCL names, or
/// else libnccl.so.2. Errors: Unavailable (no such file; a file that lacks a function: names it).
Result<const NcclCalls*> open_nccl_library(const std::string& file = {});

/// "2.30.3".
std::string nccl_version_text(int version);

/// The library's error code as an error of ours. `comm` may be null.
Error nccl_error(const NcclCalls& calls, NcclComm comm, NcclCode code, const char* what);

}  // namespace cinch::rt
