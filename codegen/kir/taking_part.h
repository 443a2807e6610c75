// How many elements an access of a kernel touches, as far as its instructions tell.
#pragma once
#include "codegen/kir/kir.h"

namespace cinch::kir {

struct TakingPart {
  HostExprId most;          // elements
  bool is_certain = false;  // that many whatever the data is
};

/// The host expression behind a uniform value: a host size or a constant, converted or not. Invalid
/// where only the device knows it.
HostExprId host_value(KernelProgram& program, const Kernel& kernel, ValueId value);

/// Elements of load_linear or store_linear over all groups: all of the domain, or those within the
/// buffer where a limit cuts off what lies beyond it.
TakingPart linear_access(KernelProgram& program, const Kernel& kernel, const Instr& instr);

/// Of `times` runs of an instruction those for which `predicate` (may be invalid: all) holds. It is
/// understood where it bounds the element's place in the domain: slices, joins, what is padded.
TakingPart predicated_access(KernelProgram& program, const Kernel& kernel, ValueId predicate,
                             HostExprId times);

}  // namespace cinch::kir
