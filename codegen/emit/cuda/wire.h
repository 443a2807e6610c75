// The kernels that begin and end calls on a GPU (rt::GpuService), as text: what they do with the
// payload follows the program's wire. Inside of the CUDA emitter.
#pragma once
#include <optional>
#include <string>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// The program with an entry of size_exprs for every formula that these kernels read. Programs
/// that have them all are unchanged.
kir::KernelProgram with_call_sizes(const kir::KernelProgram& program);

/// The buffer that a state's buffer changes places with when a call succeeds; none for others.
std::optional<rt::BufferIndex> other_buffer(const kir::KernelProgram& program,
                                            rt::BufferIndex buffer);

/// All services. Throws InternalError{Limitation} where a size of the wire has no text for a GPU
/// (floats of counts, or more counts than a header's check word is made for).
std::string emit_services(const kir::KernelProgram& program);

}  // namespace cinch::codegen
