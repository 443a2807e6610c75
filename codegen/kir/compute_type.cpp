#include "codegen/kir/compute_type.h"

#include <array>
#include <bit>
#include <limits>
#include <string_view>

#include "runtime/core/check.h"

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
    HostExprPool& pool = program.info.exprs;
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
  rt::BufferInfo buffer;
  buffer.name = std::move(name);
  buffer.dtype = dtype;
  buffer.storage_bits = whole_element_bits(dtype);
  buffer.num_elems = num_elems;
  buffer.role = rt::BufferRole::Workspace;
  return add_buffer(program, std::move(buffer));
}

BufferIndex add_look_back_state(KernelProgram& program, std::string name, HostExprId num_groups) {
  HostExprPool& pool = program.info.exprs;
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

}  // namespace cinch::kir
