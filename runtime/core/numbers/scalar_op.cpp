// Table behind scalar_op.h.
#include "runtime/core/numbers/scalar_op.h"

#include <array>

namespace cinch {
namespace {
constexpr std::array<ScalarOpInfo, kNumScalarOps> kInfos = {{
#define SCALAR_OP(name, arity, operands, result, cost, meaning) \
  {#name, arity, ScalarOperands::operands, ScalarResult::result, cost, meaning},
#include "runtime/core/numbers/scalar_op.def"
}};
}  // namespace

const ScalarOpInfo& scalar_op_info(ScalarOp op) {
  return kInfos[static_cast<std::size_t>(op)];
}

bool rounds(ScalarOp op) {
  return op == ScalarOp::floor || op == ScalarOp::ceil || op == ScalarOp::round ||
         op == ScalarOp::trunc;
}

std::optional<ScalarOp> find_scalar_op(std::string_view name) {
  for (std::size_t i = 0; i < kInfos.size(); ++i) {
    if (kInfos[i].name == name) return static_cast<ScalarOp>(i);
  }
  return std::nullopt;
}

}  // namespace cinch
