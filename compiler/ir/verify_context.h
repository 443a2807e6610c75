// What the verifier's files share: the fault that a rule throws, and the facts that rules need.
#pragma once
#include <string>

#include "compiler/ir/ir.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/types.h"

namespace cinch::ir {

/// Thrown by rules, caught by find_fault only.
struct VerifyFault {
  std::string message;
};

/// One op of one function. `info` is a copy; rules may add expected sizes to its pool.
struct VerifyContext {
  rt::ProgramInfo& info;
  const Program& program;
  const Function& function;
  /// For initial values of states: no input, state or field may occur.
  bool is_init = false;

  const Type& type(ValueId value) const { return function.values[value.index()].type; }
  std::string text(ValueId value) const { return print_type(info, type(value)); }
};

/// Checks types, shapes and attributes of one op whose structure is sound.
void verify_op_types(const VerifyContext& context, const Op& op);
/// Checks types across regions of if_else, for_loop, while_loop and combiners.
void verify_control_types(const VerifyContext& context, const Op& op);
void verify_combiner(const VerifyContext& context, const Op& op);

}  // namespace cinch::ir
