#include "codegen/emit/cpu/prelude.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "codegen/emit/c_family.h"
#include "codegen/emit/kernel_source.h"
#include "codegen/kir/compute_type.h"
#include "runtime/core/check.h"
#include "runtime/core/hash.h"
#include "runtime/core/lang/embed.h"

namespace cinch::codegen {
namespace {

using kir::ComputeType;
using kir::InstrKind;

// A part may need the parts before it.
constexpr std::array<std::string_view, 12> kCpuParts = {
    "cpu/vectors.h", "cpu/memory.h",  "cpu/packed.h", "cpu/reduce.h",
    "cpu/tuples.h",  "cpu/sums.h",    "cpu/scan.h",   "cpu/rows.h",
    "cpu/largest.h", "cpu/ordered.h", "cpu/sort.h",   "cpu/draws.h"};

constexpr std::array<std::string_view, 3> kLinkedOperations = {"OpAdd", "OpMin", "OpMax"};
constexpr std::array<ComputeType, 6> kLinkedTypes = {ComputeType::F32, ComputeType::F64,
                                                     ComputeType::U32, ComputeType::I32,
                                                     ComputeType::U64, ComputeType::I64};

std::string linked_reduction(std::string_view operation, ComputeType type) {
  return fmt::format("CINCH_LINKED_REDUCTION({}, {})\n", operation, c_type(type));
}

// Empty if there is no such helper. Helpers of single bits are no templates.
std::string linked_run(int bits) {
  if (bits < 2 || bits >= 16 || bits == 8) return "";
  return fmt::format("CINCH_LINKED_RUN({}, {})\n", bits, bits < 8 ? "u8" : "u16");
}

std::string all_instances() {
  std::string text = "CINCH_LINKED_ROUNDING\n";
  for (int bits = 1; bits <= 64; ++bits) text += linked_run(bits);
  for (std::string_view operation : kLinkedOperations) {
    for (ComputeType type : kLinkedTypes) text += linked_reduction(operation, type);
  }
  return text;
}

}  // namespace

// On truth values, min is `and` and max is `or`.
const char* operation_struct(ScalarOp op, ComputeType type) {
  const bool is_truth = type == ComputeType::Bool;
  switch (op) {
    case ScalarOp::add:
      return "OpAdd";
    case ScalarOp::mul:
      return "OpMul";
    case ScalarOp::min:
      return is_truth ? "OpAnd" : "OpMin";
    case ScalarOp::max:
      return is_truth ? "OpOr" : "OpMax";
    case ScalarOp::bit_and:
      return "OpAnd";
    case ScalarOp::bit_or:
      return "OpOr";
    case ScalarOp::bit_xor:
      return "OpXor";
    default:
      CINCH_BUG("not a combiner's operation");
  }
}

std::string helpers_mode(HelpersMode mode) {
  return fmt::format("#define CINCH_HELPERS {}\n", static_cast<int>(mode));
}

std::string cpu_helpers_text(HelpersMode mode) {
  std::string text = helpers_mode(mode);
  text += prelude_text("cpu/compiler.h");
  text += lang::source_text();
  text += prelude_text("scalar_ops.h");
  for (const std::string_view part : kCpuParts) text += prelude_text(part);
  return text + all_instances();
}

const std::string& cpu_helpers_digest() {
  static const std::string kDigest =
      to_hex(hash128(cpu_helpers_text(HelpersMode::Made) + cpu_helpers_text(HelpersMode::Linked)));
  return kDigest;
}

}  // namespace cinch::codegen
