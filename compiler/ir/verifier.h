// Checks the rules that every program must keep; the manager runs this after every pass. It checks
// structure (ids, arity, regions that end in a yield, values defined before use), types and shapes
// of every op, ranges of attributes, and that results are complete.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>

#include "compiler/ir/ir.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/types.h"

namespace cinch::ir {
/// The first fault, or nothing: "map.add: operands differ in type (f32, i32)".
std::optional<std::string> find_fault(const Program& program);
/// Throws InternalError{Bug} with `stage` and the printed program if there is a fault.
void verify(const Program& program, const std::string& stage = "verify");

// What the verifier's files share: the fault that a rule throws, and the facts that rules need.

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

/// One op under examination: its operands and results by type, and what rules require of them.
class OpCheck {
 public:
  OpCheck(const VerifyContext& of, const Op& examined) : context(of), op(examined) {}

  void require(bool holds, const std::string& message) const {
    if (!holds) throw VerifyFault{op_title(op) + ": " + message};
  }
  const Type& in(std::size_t i) const { return context.type(op.operands[i]); }
  const Type& out(std::size_t i = 0) const { return context.type(op.results[i]); }
  std::size_t num_in() const { return op.operands.size(); }
  HostExprPool& exprs() const { return *context.info.exprs; }

  void require_type(const Type& found, const Type& expected, const char* what) const {
    if (types_agree(context.info, found, expected)) return;
    require(false, fmt::format("{} is {}, not {}", what, print_type(context.info, found),
                               print_type(context.info, expected)));
  }
  void require_out(const Type& expected) const { require_type(out(), expected, "the result"); }
  void require_rank(const Type& type, int rank, const char* what) const {
    require(type.rank == rank, fmt::format("{} has rank {}, not {}", what, type.rank, rank));
  }
  void require_index(const Type& type) const {
    require(is_int(type.dtype), "indices are not integers");
  }
  void require_limit(std::size_t limit, const char* what) const {
    require(op.attrs.index < limit, fmt::format("there is no {} {}", what, op.attrs.index));
  }
  void require_has_input(const char* what) const {
    require(!context.is_init, fmt::format("an initial value sees no {}", what));
  }
  // Rank 1 over all, or rank 2 along an axis.
  void require_line(const Type& type) const {
    const int rank = op.attrs.axis == kAll ? 1 : 2;
    require(type.rank == rank, "axis all takes a vector, an axis a matrix");
  }

  const VerifyContext& context;
  const Op& op;
};

// A rule for each kind of op: types, shapes and attributes.
namespace rules {
#define OP(name, min_operands, max_operands, results, effect, reads, forces, cost, attrs, meaning) \
  void name(const OpCheck& check);
#include "compiler/ir/ops.def"
}  // namespace rules

}  // namespace cinch::ir
