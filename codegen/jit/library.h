// Finds and opens cinch_clang, once per process, and converts its replies to our values.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/emit/kernel_source.h"
#include "codegen/jit/clang_backend.h"
#include "codegen/jit/clang_jit.h"
#include "runtime/core/error.h"

namespace cinch::codegen {

struct OpenedBackend {
  const CinchClangBackend* functions = nullptr;
  std::string path;
};

/// Errors: Unavailable, with the places that were searched.
const rt::Result<OpenedBackend>& clang_backend();

using ReplyPtr = std::unique_ptr<CinchClangReply, void (*)(CinchClangReply*)>;

std::vector<std::uint8_t> bytes_of(const ReplyPtr& reply);
CompileTimes times_of(const CinchClangReply& reply);

/// The error of a reply that is not ok. Throws std::bad_alloc if memory ran out, and
/// InternalError{Bug} with the log and the sources if they do not compile.
tl::unexpected<rt::Error> refusal(std::span<const KernelSource> sources,
                                  const CinchClangReply& reply);

}  // namespace cinch::codegen
