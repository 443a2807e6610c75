#include "codegen/kir/work.h"

#include <optional>

#include "codegen/kir/compute_type.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::kir {
namespace {

struct Measured {
  double sweeps;
  const char* words;
};

std::optional<Measured> work_of_scalar(ScalarOp op) {
  switch (op) {
    case ScalarOp::exp:
    case ScalarOp::exp2:
      return Measured{2, "exp"};
    case ScalarOp::log:
    case ScalarOp::log2:
      return Measured{4, "log"};
    case ScalarOp::sin:
    case ScalarOp::cos:
      return Measured{6, "sin and cos"};
    case ScalarOp::pow:
      return Measured{10, "pow"};
    default:
      return std::nullopt;
  }
}

// Short rows are sorted by counting.
Measured work_of_sort(const Kernel& kernel, const HostExprPool& exprs) {
  constexpr std::int64_t kCounted = 128;
  const bool is_short =
      exprs.is_const(kernel.group_len) && exprs.const_value(kernel.group_len).as_int() <= kCounted;
  return is_short ? Measured{12, "sorting rows"} : Measured{45, "sorting"};
}

std::optional<Measured> work_of_instr(const Kernel& kernel, const Instr& instr,
                                      const HostExprPool& exprs) {
  switch (instr.kind) {
    case InstrKind::scalar:
      return work_of_scalar(instr.scalar_op);
    case InstrKind::argsort_row:
      return work_of_sort(kernel, exprs);
    case InstrKind::local_scan:
      return Measured{3, "running results"};
    case InstrKind::local_largest:
      return Measured{6, "finding the largest of rows"};
    case InstrKind::random:
    case InstrKind::random_bits:
    case InstrKind::stochastic_round:
      return Measured{2, "drawing"};
    case InstrKind::normal:
      return Measured{6, "drawing normals"};
    case InstrKind::random_index:
      return Measured{8, "drawing indices"};
    case InstrKind::add_at:
    case InstrKind::max_at:
      return Measured{3, "scattering"};
    default:
      return std::nullopt;
  }
}

}  // namespace

Work work_of(const Kernel& kernel, const HostExprPool& exprs) {
  Work work;
  double most = 0;
  for (std::size_t s = 1; s < kernel.sections.size(); ++s) {
    const bool is_for_groups = kernel.sections[s].kind == SectionKind::Group;
    for (const Instr& instr : kernel.sections[s].instrs) {
      // What a group has once is little beside its elements, unless it works on all of them.
      const bool takes_all =
          instr.kind == InstrKind::argsort_row || family_of(instr.kind) == InstrFamily::LocalWhole;
      if (is_for_groups && !takes_all) continue;
      const auto measured = work_of_instr(kernel, instr, exprs);
      if (!measured) continue;
      work.sweeps += measured->sweeps;
      if (measured->sweeps <= most) continue;
      most = measured->sweeps;
      work.most = measured->words;
    }
  }
  return work;
}

}  // namespace cinch::kir
