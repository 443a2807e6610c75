// Finds and opens cinch_clang, once per process, and converts its replies to our values.
#pragma once

#include <memory>
#include <utility>

#include "codegen/jit/clang_backend.h"
#include "codegen/jit/clang_jit.h"
#include "runtime/core/extern_function.h"
#include "runtime/core/program_info.h"

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

// C++ functions of `extern fn`, through the library `cinch_clang`: reads their headers, and calls
// them for the interpreter. Thread-safe.

/// Reads headers. The last ones are kept in `cinch_clang` while this lives.
class HeaderReader {
 public:
  explicit HeaderReader(rt::HeaderSearch search) : search_(std::move(search)) {}
  HeaderReader(const HeaderReader&) = delete;
  HeaderReader& operator=(const HeaderReader&) = delete;
  ~HeaderReader();

  /// Reads a function. The header is searched in the folder of the program's file first, then where
  /// `search` says. Errors: Unavailable (no cinch_clang library). Throws std::bad_alloc if memory
  /// runs out.
  rt::Result<rt::ExternReply> read(const rt::ExternRequest& request);

 private:
  rt::HeaderSearch search_;
  bool has_read_ = false;
};

/// The first of the files that has changed since it was read; empty if none has.
std::string changed_file(std::span<const rt::ExternFile> files);

/// Calls the function for `num_elems` elements. There is one list for each parameter: integers
/// extended to 64 bits, floats as their own bits in the low end. The function is compiled once in a
/// process, for this machine. Errors: those of compile_cpu.
rt::Result<std::vector<std::uint64_t>> call_extern(
    const rt::ExternInfo& function, std::span<const std::vector<std::uint64_t>> operands,
    std::size_t num_elems);

}  // namespace cinch::codegen
