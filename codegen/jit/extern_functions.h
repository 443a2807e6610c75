// C++ functions of `extern fn`, through the library `cinch_clang`: reads their headers, and calls
// them for the interpreter. Thread-safe.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/extern_function.h"
#include "runtime/core/program_info.h"

namespace cinch::codegen {

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
