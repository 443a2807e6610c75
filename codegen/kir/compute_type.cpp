#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "codegen/kir/compute_type.h"
#include "runtime/core/check.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::kir {
namespace {
struct TypeInfo {
  const char* name;
  DType dtype;
  int bytes;
};
constexpr std::array<TypeInfo, 7> kTypes = {{{"bool", kBool, 1},
                                             {"i32", kI32, 4},
                                             {"u32", kU32, 4},
                                             {"i64", kI64, 8},
                                             {"u64", kU64, 8},
                                             {"f32", kF32, 4},
                                             {"f64", kF64, 8}}};
const TypeInfo& type_info(ComputeType t) {
  return kTypes[static_cast<std::size_t>(t)];
}
}  // namespace

ComputeType compute_type(DType dtype) {
  if (is_bool(dtype)) return ComputeType::Bool;
  if (is_float(dtype)) return dtype.bits == 64 ? ComputeType::F64 : ComputeType::F32;
  if (dtype.bits < 32) return ComputeType::I32;
  const bool is_signed = is_signed_int(dtype);
  if (dtype.bits == 32) return is_signed ? ComputeType::I32 : ComputeType::U32;
  return is_signed ? ComputeType::I64 : ComputeType::U64;
}

DType dtype_of(ComputeType type) {
  return type_info(type).dtype;
}
const char* compute_type_name(ComputeType type) {
  return type_info(type).name;
}
int compute_type_bytes(ComputeType type) {
  return type_info(type).bytes;
}

std::optional<ComputeType> parse_compute_type(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<ComputeType>(i);
  }
  return std::nullopt;
}

namespace {

std::uint64_t integer_limit(ComputeType type, bool is_largest) {
  const DType dtype = dtype_of(type);
  if (is_bool(dtype)) return is_largest;
  return is_largest ? max_int(dtype) : static_cast<std::uint64_t>(min_int(dtype));
}

template <typename Float>
Float float_identity(ScalarOp op) {
  switch (op) {
    case ScalarOp::add:
      return Float(-0.0);
    case ScalarOp::mul:
      return Float(1);
    case ScalarOp::min:
      return std::numeric_limits<Float>::infinity();
    case ScalarOp::max:
      return -std::numeric_limits<Float>::infinity();
    default:
      CINCH_BUG("bit operation on floats");
  }
}

std::uint64_t integer_identity(ScalarOp op, ComputeType type) {
  switch (op) {
    case ScalarOp::mul:
      return 1;
    case ScalarOp::min:
      return integer_limit(type, true);
    case ScalarOp::max:
      return integer_limit(type, false);
    case ScalarOp::bit_and:
      return type == ComputeType::Bool  ? 1
             : type == ComputeType::U32 ? 0xffffffffu
                                        : ~std::uint64_t{0};
    default:
      return 0;
  }
}

constexpr std::array<InstrInfo, kNumInstrKinds> kInfos = {{
#define INSTR(name, levels, family, meaning) {#name, levels, InstrFamily::family, meaning},
#include "codegen/kir/instrs.def"
}};

}  // namespace

std::uint64_t identity_bits(ScalarOp op, ComputeType type) {
  if (type == ComputeType::F32) return std::bit_cast<std::uint32_t>(float_identity<float>(op));
  if (type == ComputeType::F64) return std::bit_cast<std::uint64_t>(float_identity<double>(op));
  return integer_identity(op, type);
}

std::uint8_t whole_element_bits(DType dtype) {
  return static_cast<std::uint8_t>(8 * element_bytes(dtype));
}

BufferIndex add_buffer(KernelProgram& program, rt::BufferInfo buffer) {
  if (!buffer.size_bytes) {
    HostExprPool& pool = *program.info.exprs;
    buffer.size_bytes =
        buffer.storage_bits % 8 == 0
            ? pool.mul(buffer.num_elems, pool.const_int(buffer.storage_bits / 8))
            : pool.ceil_div(pool.mul(buffer.num_elems, pool.const_int(buffer.storage_bits)),
                            pool.const_int(8));
  }
  program.buffers.push_back(std::move(buffer));
  return static_cast<BufferIndex>(program.buffers.size() - 1);
}

BufferIndex add_workspace(KernelProgram& program, std::string name, DType dtype,
                          HostExprId num_elems) {
  rt::BufferInfo buffer{.name = std::move(name),
                        .dtype = dtype,
                        .storage_bits = whole_element_bits(dtype),
                        .num_elems = num_elems,
                        .role = rt::BufferRole::Workspace};
  return add_buffer(program, std::move(buffer));
}

BufferIndex add_look_back_state(KernelProgram& program, std::string name, HostExprId num_groups) {
  HostExprPool& pool = *program.info.exprs;
  const HostExprId two = pool.const_int(2);
  return add_workspace(program, std::move(name), kU64, pool.add(pool.mul(num_groups, two), two));
}

std::optional<std::uint32_t> find_size(const KernelProgram& program, HostExprId expr) {
  for (std::size_t i = 0; i < program.size_exprs.size(); ++i) {
    if (program.size_exprs[i] == expr) return static_cast<std::uint32_t>(i);
  }
  return std::nullopt;
}

std::uint32_t intern_size(KernelProgram& program, HostExprId expr) {
  if (const auto known = find_size(program, expr)) return *known;
  program.size_exprs.push_back(expr);
  return static_cast<std::uint32_t>(program.size_exprs.size() - 1);
}

std::uint32_t intern_message(KernelProgram& program, std::string text) {
  auto& messages = program.messages;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i] == text) return static_cast<std::uint32_t>(i);
  }
  messages.push_back(std::move(text));
  return static_cast<std::uint32_t>(messages.size() - 1);
}

bool InstrInfo::allowed_at(SectionKind level) const {
  const char letter = level == SectionKind::Kernel ? 'K' : level == SectionKind::Group ? 'G' : 'E';
  return levels.find(letter) != std::string_view::npos;
}

const InstrInfo& instr_info(InstrKind kind) {
  return kInfos[static_cast<std::size_t>(kind)];
}

std::optional<InstrKind> find_instr(std::string_view name) {
  for (std::size_t i = 0; i < kInfos.size(); ++i) {
    if (kInfos[i].name == name) return static_cast<InstrKind>(i);
  }
  return std::nullopt;
}

const char* section_name(SectionKind kind) {
  switch (kind) {
    case SectionKind::Kernel:
      return "kernel";
    case SectionKind::Group:
      return "group";
    case SectionKind::Elements:
      return "elements";
  }
  return "?";
}

bool is_computed(InstrKind kind) {
  const InstrFamily family = family_of(kind);
  return family == InstrFamily::Leaf || family == InstrFamily::ElementWise ||
         family == InstrFamily::Call;
}

namespace {

// Optional operands follow these: bases of linear accesses, and predicates of other accesses.
std::size_t num_required(const Instr& instr) {
  switch (instr.kind) {
    case InstrKind::load_linear:
      return 0;
    case InstrKind::load_at:
    case InstrKind::store_linear:
    case InstrKind::hist_add:
      return 1;
    default:
      return 2;
  }
}

void count_steps(const KernelProgram& program, const std::vector<rt::Step>& steps,
                 EntryStructure& out) {
  for (const rt::Step& step : steps) {
    switch (step.kind) {
      case rt::StepKind::Launch: {
        const bool is_sweep = program.kernels[step.index].info.role == rt::KernelRole::Sweep;
        ++(is_sweep ? out.sweeps : out.finishes);
        if (std::find(out.kernels.begin(), out.kernels.end(), step.index) == out.kernels.end()) {
          out.kernels.push_back(step.index);
        }
        break;
      }
      case rt::StepKind::Zero:
        ++out.zeros;
        break;
      case rt::StepKind::Copy:
        ++out.copies;
        break;
      case rt::StepKind::CheckHost:
        break;
      case rt::StepKind::Collective:
        ++out.collectives;
        break;
      case rt::StepKind::If:
        ++out.branches;
        break;
      case rt::StepKind::While:
      case rt::StepKind::For:
        ++out.loops;
        break;
    }
    for (const auto* inner : {&step.cond, &step.body, &step.orelse}) {
      count_steps(program, *inner, out);
    }
  }
}

void append(std::string& out, int count, const char* singular, const char* plural) {
  if (count == 0) return;
  out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, count == 1 ? singular : plural);
}

}  // namespace

ValueId base_of(const Instr& instr) {
  return is_linear(instr.kind) ? optional_operand(instr, num_required(instr)) : ValueId();
}

ValueId limit_of(const Instr& instr) {
  return is_linear(instr.kind) ? optional_operand(instr, num_required(instr) + 1) : ValueId();
}

ValueId predicate_of(const Instr& instr) {
  const InstrFamily family = family_of(instr.kind);
  const bool is_access =
      family == InstrFamily::Load || family == InstrFamily::Store || family == InstrFamily::Update;
  return is_access && !is_linear(instr.kind) ? optional_operand(instr, num_required(instr))
                                             : ValueId();
}

const char* entry_name(rt::EntryKind entry) {
  constexpr std::array<const char*, rt::kNumEntries> kNames = {"init",       "encode", "decode",
                                                               "decode_add", "finish", "sync"};
  return kNames[static_cast<std::size_t>(entry)];
}

EntryStructure entry_structure(const KernelProgram& program, rt::EntryKind entry) {
  EntryStructure out;
  count_steps(program, program.entries[static_cast<std::size_t>(entry)].steps, out);
  return out;
}

std::string describe_structure(const KernelProgram& program, rt::EntryKind entry) {
  if (!program.entries[static_cast<std::size_t>(entry)].present) return {};
  const EntryStructure s = entry_structure(program, entry);
  std::string counts;
  append(counts, s.sweeps, "sweep", "sweeps");
  append(counts, s.finishes, "finish", "finishes");
  append(counts, s.zeros, "zero", "zeros");
  append(counts, s.copies, "copy", "copies");
  append(counts, s.loops, "loop", "loops");
  append(counts, s.branches, "branch", "branches");
  append(counts, s.collectives, "collective", "collectives");
  return fmt::format("{}: {}", entry_name(entry), counts.empty() ? "nothing" : counts);
}

void for_each_step(const rt::Step& step, const std::function<void(const rt::Step&)>& visit) {
  visit(step);
  for (const std::vector<rt::Step>* list : {&step.cond, &step.body, &step.orelse}) {
    for (const rt::Step& inner : *list) for_each_step(inner, visit);
  }
}

bool touches(const KernelProgram& program, const rt::Step& step, rt::BufferIndex buffer) {
  const auto names = [buffer](const auto& buffers) {
    return std::ranges::find(buffers, buffer) != buffers.end();
  };
  const auto kernel_names = [&](const Kernel& kernel) {
    const auto in = [&](const std::vector<Instr>& instrs) {
      return std::ranges::any_of(instrs, names, &Instr::buffers);
    };
    return std::ranges::any_of(kernel.sections, in, &Section::instrs) ||
           std::ranges::any_of(kernel.combiners, in, &Combiner::body);
  };
  bool found = false;
  for_each_step(step, [&](const rt::Step& s) {
    if (s.kind == rt::StepKind::Launch) {
      found |= kernel_names(program.kernels[s.index]);
    } else if (s.kind != rt::StepKind::CheckHost) {
      found |= s.index == buffer || (s.has_source() && s.index2 == buffer) || names(s.scalars);
    }
  });
  return found;
}

bool is_of_scalars(const Kernel& kernel) {
  if (kernel.group_kind != GroupKind::Single || kernel.sections.size() != 1) return false;
  return std::ranges::none_of(kernel.sections[0].instrs, [](const Instr& instr) {
    return instr.kind == InstrKind::finish_reduce || instr.kind == InstrKind::finish_scan;
  });
}

bool adds_in_any_order(DType dtype) {
  return is_int(dtype) && (dtype.bits == 32 || dtype.bits == 64);
}

bool adds_in_any_order(const rt::BufferInfo& buffer) {
  return adds_in_any_order(buffer.dtype) && buffer.storage_bits == buffer.dtype.bits;
}

}  // namespace cinch::kir
