// Answers about an `extern fn` as the plain data that crosses the library's door.
#pragma once
#include "codegen/jit/clang/extern/read_extern.h"

namespace cinch::clang_backend {

CinchExternReply* make_reply(ExternAnswer answer);
CinchExternReply* no_memory_reply();
void release_extern(CinchExternReply* reply);

}  // namespace cinch::clang_backend
