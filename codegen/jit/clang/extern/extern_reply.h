// Converts answers about an `extern fn` to the plain data of the library's interface.
#pragma once
#include "codegen/jit/clang/extern/read_extern.h"

namespace cinch::clang_backend {

CinchExternReply* make_reply(ExternAnswer answer);
CinchExternReply* no_memory_reply();
void release_extern(CinchExternReply* reply);

}  // namespace cinch::clang_backend
