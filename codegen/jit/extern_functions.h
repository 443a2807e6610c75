// C++ functions of `extern fn`, through the library `cinch_clang`: their headers read, and calls of
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

/// Reads headers. What it read last is kept in `cinch_clang` as long as it lives.
class HeaderReader {
 public:
  explicit HeaderReader(rt::HeaderSearch search) : search_(std::move(search)) {}
  HeaderReader(const HeaderReader&) = delete;
  HeaderReader& operator=(const HeaderReader&) = delete;
  ~HeaderReader();

  /// The header is looked for beside the program's file first, and then where `search` says.
  /// Errors: Unavailable (no cinch_clang library). std::bad_alloc is thrown where memory runs out.
  rt::Result<rt::ExternReply> read(const rt::ExternRequest& request);

 private:
  rt::HeaderSearch search_;
  bool has_read_ = false;
};

/// The first of the files that no longer holds what was read from it; empty if all do.
std::string changed_file(std::span<const rt::ExternFile> files);

/// The function's results for `num_elems` elements. One list for each parameter; integers extended
/// to 64 bits, floats as their own bits in the low end. Compiled once in a process, for this
/// machine. Errors: those of compile_cpu.
rt::Result<std::vector<std::uint64_t>> call_extern(
    const rt::ExternInfo& function, std::span<const std::vector<std::uint64_t>> operands,
    std::size_t num_elems);

}  // namespace cinch::codegen
