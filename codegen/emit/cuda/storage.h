// Element types of buffers as the CUDA prelude's Stored<…>. Inside of the CUDA emitter.
#pragma once
#include <string>

#include "runtime/core/numbers/dtype.h"

namespace cinch::codegen {

/// "Stored<Kind::F16, 16, 16>".
std::string stored_type(DType dtype, int storage_bits);

}  // namespace cinch::codegen
