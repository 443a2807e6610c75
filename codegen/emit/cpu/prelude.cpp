#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "codegen/emit/c_family.h"
#include "codegen/emit/cpu/prelude.h"
#include "codegen/emit/kernel_source.h"
#include "codegen/kir/compute_type.h"
#include "runtime/core/check.h"
#include "runtime/core/hash.h"
#include "runtime/core/lang/embed.h"

namespace cinch::codegen {
namespace {

using kir::InstrKind;

// Each part of the language's functions needs all parts before it.
constexpr std::array<std::string_view, 9> kLangParts = {"base.h",    "rounding.h", "arithmetic.h",
                                                        "convert.h", "exp_log.h",  "pow.h",
                                                        "trig.h",    "random.h",   "random_runs.h"};

struct Needs {
  std::string_view last_lang_part = "convert.h";
  bool packed = false, reduce = false, tuples = false, beside = false, sums = false, scan = false,
       rows = false, largest = false, sort = false, draws = false;

  void lang_through(std::string_view part) {
    const auto place = [](std::string_view name) {
      return std::find(kLangParts.begin(), kLangParts.end(), name);
    };
    if (place(part) > place(last_lang_part)) last_lang_part = part;
  }
};

void note_scalar(Needs& needs, ScalarOp op) {
  switch (op) {
    case ScalarOp::exp:
    case ScalarOp::exp2:
    case ScalarOp::log:
    case ScalarOp::log1p:
    case ScalarOp::log2:
    case ScalarOp::tanh:
      return needs.lang_through("exp_log.h");
    case ScalarOp::pow:
      return needs.lang_through("pow.h");
    case ScalarOp::sin:
    case ScalarOp::cos:
      return needs.lang_through("trig.h");
    default:
      return;
  }
}

void note_instr(Needs& needs, const kir::Instr& instr) {
  switch (instr.kind) {
    case InstrKind::scalar:
      return note_scalar(needs, instr.scalar_op);
    case InstrKind::call_extern:  // may call any of them
      return needs.lang_through("trig.h");
    case InstrKind::reduce:
    case InstrKind::finish_reduce:
      needs.reduce = true;
      return;
    case InstrKind::running_sum:
    case InstrKind::add_at:
    case InstrKind::max_at:
      needs.sums = true;
      return;
    case InstrKind::local_store:
    case InstrKind::local_load:
    case InstrKind::local_scan:
    case InstrKind::local_last:
    case InstrKind::local_previous:
    case InstrKind::finish_scan:
      needs.reduce = needs.tuples = needs.scan = true;
      return;
    case InstrKind::local_butterflies:
    case InstrKind::local_product:
      needs.rows = true;
      return;
    case InstrKind::local_largest:
      needs.largest = true;
      return;
    case InstrKind::argsort_row:
      needs.sort = true;
      return;
    default:
      needs.draws |= kir::is_draw(instr.kind);
      return;
  }
}

Needs needs_of(const kir::KernelProgram& program, std::span<const kir::Kernel* const> kernels) {
  Needs needs;
  for (const rt::BufferInfo& buffer : program.buffers) {
    const int bits = buffer.storage_bits;
    needs.packed |= bits != 8 && bits != 16 && bits != 32 && bits != 64;
  }
  for (const kir::Kernel* kernel : kernels) {
    if (kernel->group_kind == kir::GroupKind::Row)
      needs.reduce = needs.tuples = needs.beside = true;
    for (const kir::Section& section : kernel->sections) {
      for (const kir::Instr& instr : section.instrs) note_instr(needs, instr);
    }
    for (const kir::Combiner& combiner : kernel->combiners) {
      if (!combiner.op) needs.reduce = needs.tuples = true;
      for (const kir::Instr& instr : combiner.body) note_instr(needs, instr);
    }
  }
  return needs;
}

std::string lang_text(std::string_view last) {
  std::string text;
  for (const lang::SourcePart& part : lang::source_parts()) {
    text += part.text;
    if (part.name == last) break;
  }
  return text;
}

using kir::ComputeType;

// A part may need the parts before it.
constexpr std::array<std::string_view, 13> kCpuParts = {
    "cpu/vectors.h", "cpu/memory.h", "cpu/packed.h", "cpu/reduce.h", "cpu/tuples.h",
    "cpu/beside.h",  "cpu/sums.h",   "cpu/scan.h",   "cpu/rows.h",   "cpu/largest.h",
    "cpu/ordered.h", "cpu/sort.h",   "cpu/draws.h"};

constexpr std::array<std::string_view, 3> kLinkedOperations = {"OpAdd", "OpMin", "OpMax"};
constexpr std::array<ComputeType, 6> kLinkedTypes = {ComputeType::F32, ComputeType::F64,
                                                     ComputeType::U32, ComputeType::I32,
                                                     ComputeType::U64, ComputeType::I64};

std::string all_instances() {
  std::string text = "CINCH_LINKED_ROUNDING\n";
  // Helpers of single bits are no templates.
  for (int bits = 2; bits < 16; ++bits) {
    if (bits == 8) continue;
    text += fmt::format("CINCH_LINKED_RUN({}, {})\n", bits, bits < 8 ? "u8" : "u16");
  }
  for (std::string_view operation : kLinkedOperations) {
    for (ComputeType type : kLinkedTypes) {
      text += fmt::format("CINCH_LINKED_REDUCTION({}, {})\n", operation, c_type(type));
    }
  }
  return text;
}

}  // namespace

std::string cpu_prelude(const kir::KernelProgram& program,
                        std::span<const kir::Kernel* const> kernels) {
  Needs needs = needs_of(program, kernels);
  if (needs.draws) needs.lang_through("random_runs.h");
  std::string text(prelude_text("cpu/compiler.h"));
  text += lang_text(needs.last_lang_part);
  text += prelude_text("scalar_ops.h");
  const auto add = [&](bool is_needed, std::string_view name) {
    if (is_needed) text += prelude_text(name);
  };
  add(true, "cpu/vectors.h");
  add(true, "cpu/memory.h");
  add(needs.packed, "cpu/packed.h");
  add(needs.reduce, "cpu/reduce.h");
  add(needs.tuples, "cpu/tuples.h");
  add(needs.beside, "cpu/beside.h");
  add(needs.sums, "cpu/sums.h");
  add(needs.scan, "cpu/scan.h");
  add(needs.rows, "cpu/rows.h");
  add(needs.largest, "cpu/largest.h");
  add(true, "cpu/ordered.h");
  add(needs.sort, "cpu/sort.h");
  add(needs.draws, "cpu/draws.h");
  return text;
}

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

std::string cpu_helpers_text(HelpersMode mode) {
  std::string text = fmt::format("#define CINCH_HELPERS {}\n", static_cast<int>(mode));
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
