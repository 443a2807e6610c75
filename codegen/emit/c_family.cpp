#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "codegen/emit/c_family.h"
#include "codegen/kir/compute_type.h"
#include "runtime/core/check.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::codegen {
namespace {

using kir::ComputeType;

// The type to which a conversion to an integer dtype converts first: 32 or 64 bits, with the
// dtype's sign.
const char* container(DType dtype) {
  if (is_signed_int(dtype)) return dtype.bits <= 32 ? "i32" : "i64";
  return dtype.bits <= 32 ? "u32" : "u64";
}

int container_bits(ComputeType type) {
  return 8 * kir::compute_type_bytes(type);
}

// Operations on truth values, where false is below true.
std::string bool_op(ScalarOp op, std::span<const std::string> x) {
  switch (op) {
    case ScalarOp::bit_not:
      return fmt::format("op_not({})", x[0]);
    case ScalarOp::bit_and:
    case ScalarOp::min:
      return fmt::format("({} & {})", x[0], x[1]);
    case ScalarOp::bit_or:
    case ScalarOp::max:
      return fmt::format("({} | {})", x[0], x[1]);
    case ScalarOp::bit_xor:
    case ScalarOp::ne:
      return fmt::format("({} ^ {})", x[0], x[1]);
    case ScalarOp::eq:
      return fmt::format("op_eq({}, {})", x[0], x[1]);
    case ScalarOp::lt:
      return fmt::format("(op_not({}) & {})", x[0], x[1]);
    case ScalarOp::gt:
      return fmt::format("({} & op_not({}))", x[0], x[1]);
    case ScalarOp::le:
      return fmt::format("(op_not({}) | {})", x[0], x[1]);
    case ScalarOp::ge:
      return fmt::format("({} | op_not({}))", x[0], x[1]);
    default:
      CINCH_BUG(fmt::format("{} of truth values", scalar_op_info(op).name));
  }
}

std::string join(std::span<const std::string> operands) {
  std::string text;
  for (const std::string& operand : operands) text += (text.empty() ? "" : ", ") + operand;
  return text;
}

std::string scalar_text(const kir::Instr& instr, std::span<const ComputeType> types,
                        std::span<const std::string> x) {
  const ScalarOp op = instr.scalar_op;
  const ScalarOpInfo& info = scalar_op_info(op);
  if (op == ScalarOp::select) return fmt::format("op_select({})", join(x));
  const ComputeType type = types[0];
  if (type == ComputeType::Bool) return bool_op(op, x);
  if (kir::is_integer(type) && rounds(op)) return x[0];
  const bool is_predicate = info.result == ScalarResult::Bool;
  if (is_predicate) return fmt::format("op_{}({})", info.name, join(x));
  const bool is_narrow = is_int(instr.dtype) && kir::compute_type(instr.dtype) == type &&
                         instr.dtype.bits != container_bits(type);
  const bool needs_width =
      op == ScalarOp::shl || op == ScalarOp::shr || op == ScalarOp::popcount || op == ScalarOp::clz;
  const std::string text =
      needs_width && is_narrow
          ? fmt::format("lang::{}({}, {})", info.name, join(x), instr.dtype.bits)
          : fmt::format("lang::{}({})", info.name, join(x));
  const bool wraps = info.result == ScalarResult::Same && kir::is_integer(type) &&
                     is_int(instr.dtype) && instr.dtype.bits != container_bits(type);
  return wraps ? fmt::format("wrap_{}<{}>({})", is_signed_int(instr.dtype) ? "signed" : "unsigned",
                             instr.dtype.bits, text)
               : text;
}

std::string convert_text(const kir::Instr& instr, ComputeType from, const std::string& x) {
  const DType to = instr.dtype;
  const char* to_type = c_type(kir::compute_type(to));
  if (from == ComputeType::Bool) {
    return is_bool(to) ? x : fmt::format("truth_to<{}>({})", to_type, x);
  }
  if (is_bool(to)) return fmt::format("is_nonzero({})", x);
  if (is_int(to)) {
    return fmt::format("to_int<{}, {}, {}>({})", to_type, container(to), to.bits, x);
  }
  if (is_narrow_float(to)) return fmt::format("round_to_{}({})", dtype_name(to), x);
  return fmt::format("lang::to_{}({})", to_type, x);
}

std::string bits_from(DType from, const std::string& x) {
  if (is_bool(from)) return fmt::format("truth_to<u32>({})", x);
  if (is_int(from)) return fmt::format("bits_from_int<{}>({})", from.bits, x);
  if (is_narrow_float(from)) return fmt::format("bits_from_{}({})", dtype_name(from), x);
  return fmt::format("bits_from_float({})", x);
}

std::string bits_to(DType to, const std::string& bits) {
  if (is_bool(to)) return fmt::format("is_nonzero({})", bits);
  if (is_float(to)) return fmt::format("bits_to_{}({})", dtype_name(to), bits);
  if (is_signed_int(to)) return fmt::format("bits_to_signed<{}>({})", to.bits, bits);
  // Unsigned bits are zero-extended already. Narrow ones are held in i32.
  return to.bits < 32 ? fmt::format("lang::as_signed({})", bits) : bits;
}

std::string float_literal(double value, bool is_f64) {
  return fmt::format("{:a}{}", value, is_f64 ? "" : "f");
}

void note_calls(const std::vector<kir::Instr>& instrs, std::set<std::uint32_t>& called) {
  for (const kir::Instr& instr : instrs) {
    if (instr.kind == kir::InstrKind::call_extern) called.insert(instr.index);
  }
}

}  // namespace

const char* c_type(ComputeType type) {
  return kir::compute_type_name(type);
}

std::string value_name(const kir::Kernel& kernel, kir::ValueId value) {
  const std::string& name = kernel.values[value.index()].name;
  const bool is_identifier = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  return is_identifier ? fmt::format("v{}_{}", value.index(), name)
                       : fmt::format("v{}", value.index());
}

std::string literal(ComputeType type, std::uint64_t bits) {
  switch (type) {
    case ComputeType::Bool:
      return bits ? "true" : "false";
    case ComputeType::I32: {
      const auto value = static_cast<std::int32_t>(bits);
      return value == INT32_MIN ? "i32(-2147483647 - 1)" : fmt::format("i32({})", value);
    }
    case ComputeType::U32:
      return fmt::format("{}u", static_cast<std::uint32_t>(bits));
    case ComputeType::I64: {
      const auto value = static_cast<std::int64_t>(bits);
      return value == INT64_MIN ? "i64(-9223372036854775807ll - 1)"
                                : fmt::format("i64({}ll)", value);
    }
    case ComputeType::U64:
      return fmt::format("{}ull", bits);
    case ComputeType::F32: {
      const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      return std::isfinite(value)
                 ? float_literal(value, false)
                 : fmt::format("f32_bits({:#x}u)", static_cast<std::uint32_t>(bits));
    }
    case ComputeType::F64: {
      const auto value = std::bit_cast<double>(bits);
      return std::isfinite(value) ? float_literal(value, true)
                                  : fmt::format("f64_bits({:#x}ull)", bits);
    }
  }
  CINCH_BUG("unknown compute type");
}

std::size_t count_of(const kir::Kernel& kernel, kir::InstrKind kind) {
  std::size_t count = 0;
  for (const kir::Section& section : kernel.sections) {
    for (const kir::Instr& instr : section.instrs) count += instr.kind == kind ? 1 : 0;
  }
  return count;
}

std::vector<Level> value_levels(const kir::Kernel& kernel) {
  std::vector<Level> levels(kernel.values.size(), Level::Kernel);
  for (const kir::Section& section : kernel.sections) {
    const Level level = section.kind == kir::SectionKind::Kernel  ? Level::Kernel
                        : section.kind == kir::SectionKind::Group ? Level::Group
                                                                  : Level::Element;
    for (const kir::Instr& instr : section.instrs) {
      for (std::size_t i = 0; i < instr.results.size(); ++i) {
        const bool is_of_group = instr.kind == kir::InstrKind::reduce ||
                                 (instr.kind == kir::InstrKind::running_sum && i == 1);
        levels[instr.results[i].index()] = is_of_group ? Level::Group : level;
      }
    }
  }
  for (const kir::Combiner& combiner : kernel.combiners) {
    for (kir::ValueId arg : combiner.args) levels[arg.index()] = Level::Combiner;
    for (const kir::Instr& instr : combiner.body) {
      for (kir::ValueId result : instr.results) levels[result.index()] = Level::Combiner;
    }
  }
  return levels;
}

std::string size_text(const kir::KernelProgram& program, HostExprId expr, std::string_view args) {
  const HostExprPool& pool = *program.info.exprs;
  if (pool.is_const(expr)) return fmt::format("i64({}ll)", pool.const_value(expr).as_int());
  const auto index = kir::find_size(program, expr);
  CINCH_CHECK(index, "a kernel's size is not in the size table");
  return fmt::format("i64({}sizes[{}])", args, *index);
}

std::string as_integer(const kir::Instr& round, const std::string& rounded) {
  kir::Instr convert{.kind = kir::InstrKind::convert, .dtype = round.dtype, .from_dtype = kF32};
  const kir::ComputeType types[] = {kir::ComputeType::F32};
  const std::string operands[] = {rounded};
  return element_wise(convert, types, operands);
}

std::string element_wise(const kir::Instr& instr, std::span<const ComputeType> types,
                         std::span<const std::string> operands) {
  switch (instr.kind) {
    case kir::InstrKind::scalar:
      return scalar_text(instr, types, operands);
    case kir::InstrKind::convert:
      return convert_text(instr, types[0], operands[0]);
    case kir::InstrKind::bitcast:
      return bits_to(instr.dtype, bits_from(instr.from_dtype, operands[0]));
    default:
      CINCH_BUG("not an element-wise instruction");
  }
}

std::string element_wise(const kir::Instr& instr,
                         const std::function<ComputeType(kir::ValueId)>& type,
                         const std::function<std::string(kir::ValueId)>& text) {
  std::vector<ComputeType> types;
  std::vector<std::string> operands;
  for (kir::ValueId value : instr.operands) {
    types.push_back(type(value));
    operands.push_back(text(value));
  }
  return element_wise(instr, types, operands);
}

void SourceWriter::line(const std::string& text) {
  if (text.starts_with("}") && depth_ > 0) --depth_;
  text_.append(2 * static_cast<std::size_t>(depth_), ' ');
  text_ += text;
  text_ += '\n';
  if (text.ends_with("{")) ++depth_;
}

std::set<std::uint32_t> called_externs(std::span<const kir::Kernel* const> kernels) {
  std::set<std::uint32_t> called;
  for (const kir::Kernel* kernel : kernels) {
    for (const kir::Section& section : kernel->sections) note_calls(section.instrs, called);
    for (const kir::Combiner& combiner : kernel->combiners) note_calls(combiner.body, called);
  }
  return called;
}

std::string extern_definition(const rt::ExternInfo& function, std::uint32_t index) {
  return fmt::format("namespace extern_{} {{  // {}\n{}}}\n", index, function.name,
                     function.source);
}

std::string extern_definitions(const rt::ProgramInfo& info, const std::set<std::uint32_t>& which) {
  std::string text;
  for (const std::uint32_t index : which) text += extern_definition(info.externs[index], index);
  return text;
}

std::string extern_call(const rt::ProgramInfo& info, std::uint32_t index,
                        std::span<const std::string> operands) {
  const rt::ExternInfo& function = info.externs[index];
  std::string arguments;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    arguments +=
        fmt::format("{}{}({})", i ? ", " : "", dtype_name(function.params[i]), operands[i]);
  }
  return fmt::format("{}(extern_{}::call({}))", c_type(kir::compute_type(function.result)), index,
                     arguments);
}

}  // namespace cinch::codegen
