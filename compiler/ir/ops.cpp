// Table behind op_info and the small facts of ops.h.
#include "compiler/ir/ops.h"

#include <algorithm>
#include <array>

namespace cinch::ir {
namespace {

constexpr std::array<OpInfo, kNumOpKinds> make_infos() {
  using enum Effect;
  using enum AttrUse::Flag;
  return {{
#define OP(name, min_operands, max_operands, results, effect, reads, forces, cost, attrs, meaning) \
  {#name,        min_operands,   max_operands, results, effect,                                    \
   Reads::reads, Forces::forces, cost,         attrs,   meaning},
#include "compiler/ir/ops.def"
  }};
}
constexpr std::array<OpInfo, kNumOpKinds> kInfos = make_infos();

}  // namespace

const OpInfo& op_info(OpKind kind) {
  return kInfos[static_cast<std::size_t>(kind)];
}

std::optional<OpKind> find_op_kind(std::string_view name) {
  for (std::size_t i = 0; i < kInfos.size(); ++i) {
    if (kInfos[i].name == name) return static_cast<OpKind>(i);
  }
  return std::nullopt;
}

Reads reads_of(const Op& op, std::size_t operand) {
  const Reads reads = op_info(op.kind).reads;
  return reads == Reads::Gathered && operand == 1 ? Reads::Index : reads;
}

bool is_sweep(OpKind kind) {
  return op_info(kind).reads == Reads::Swept;
}

int cost_of_element(const rt::ProgramInfo& info, const Op& op) {
  constexpr std::uint64_t kOperationsOfLoad = 4, kMostCost = 1000;
  if (op.kind == OpKind::call_extern) {
    const std::uint64_t work = info.externs[op.attrs.index].work;
    return static_cast<int>(std::min(work / kOperationsOfLoad, kMostCost));
  }
  return op.kind == OpKind::map ? scalar_op_info(op.attrs.scalar_op).cost : op_info(op.kind).cost;
}

int num_regions(OpKind kind) {
  if (kind == OpKind::if_else || kind == OpKind::while_loop) return 2;
  return kind == OpKind::for_loop ? 1 : 0;
}

bool is_draw(OpKind kind) {
  return uses_attr(kind, AttrUse::Draw);
}

bool is_collective(OpKind kind) {
  return kind >= OpKind::all_reduce && kind <= OpKind::send_receive_counted;
}

std::size_t num_reduced_values(const Op& op) {
  return op.kind == OpKind::reduce ? op.results.size() : op.operands.size() / 2;
}

bool has_mask(const Op& op) {
  return op.kind == OpKind::reduce && op.operands.size() > 2 * op.results.size();
}

std::string_view function_kind_name(FunctionKind kind) {
  switch (kind) {
    case FunctionKind::Encode:
      return "encode";
    case FunctionKind::Decode:
      return "decode";
    case FunctionKind::Finish:
      return "finish";
    case FunctionKind::Sync:
      return "sync";
  }
  return "?";
}

const Function* Program::find(FunctionKind kind) const {
  for (const Function& function : functions) {
    if (function.kind == kind) return &function;
  }
  return nullptr;
}

}  // namespace cinch::ir
