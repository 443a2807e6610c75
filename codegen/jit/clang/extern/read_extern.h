// The interface of this folder: turns an `extern fn` of a program into text that kernels compile.
#pragma once
#include <string>
#include <vector>

#include "codegen/jit/clang/extern/header_unit.h"
#include "runtime/core/extern_function.h"

namespace cinch::clang_backend {

struct ExternAnswer {
  rt::ExternOutcome outcome = rt::ExternOutcome::HeaderBroken;
  std::string message, source;
  std::uint64_t work = 0;
  std::vector<HeaderError> notes;
  std::vector<HeaderFile> files;
};

/// Runs on a thread with a large enough stack for Clang. Throws std::bad_alloc if memory runs out;
/// nothing of LLVM may be used after that.
ExternAnswer read_extern(const CinchExternRequest& request);
void forget_headers();

// ---- answers as the plain data of the library's interface (extern_reply.cpp) ----
CinchExternReply* make_reply(ExternAnswer answer);
CinchExternReply* no_memory_reply();
void release_extern(CinchExternReply* reply);

}  // namespace cinch::clang_backend
