// One function for each family of instructions; check() chooses among them.
#include <fmt/format.h>

#include "codegen/kir/verifier.h"
#include "runtime/core/extern_function.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::kir {
namespace {

// Sets of compute types, a bit each.
constexpr unsigned compute_type_bit(ComputeType type) {
  return 1u << static_cast<unsigned>(type);
}
constexpr unsigned kBoolSet = compute_type_bit(ComputeType::Bool);
constexpr unsigned kU32Set = compute_type_bit(ComputeType::U32);
constexpr unsigned kI64Set = compute_type_bit(ComputeType::I64);
constexpr unsigned kIndexSet = kU32Set | kI64Set;
constexpr unsigned kTotalSet = kU32Set | compute_type_bit(ComputeType::U64);
constexpr unsigned kFloatSet =
    compute_type_bit(ComputeType::F32) | compute_type_bit(ComputeType::F64);
constexpr unsigned kIntSet =
    compute_type_bit(ComputeType::I32) | compute_type_bit(ComputeType::I64) |
    compute_type_bit(ComputeType::U32) | compute_type_bit(ComputeType::U64);
constexpr unsigned kAnySet = kBoolSet | kIntSet | kFloatSet;

unsigned operand_types(ScalarOp op) {
  switch (scalar_op_info(op).operands) {
    case ScalarOperands::Any:
      return kAnySet;
    case ScalarOperands::Number:
      return kIntSet | kFloatSet;
    case ScalarOperands::Real:
      return kFloatSet;
    case ScalarOperands::Int:
      return kIntSet;
    case ScalarOperands::Bits:
      return kIntSet | kBoolSet;
  }
  return 0;
}

}  // namespace

bool is_builtin_combiner(ScalarOp op) {
  return op == ScalarOp::add || op == ScalarOp::mul || op == ScalarOp::min || op == ScalarOp::max ||
         op == ScalarOp::bit_and || op == ScalarOp::bit_or || op == ScalarOp::bit_xor;
}

bool is_allowed_in_combiner(InstrKind kind) {
  return kind == InstrKind::constant || kind == InstrKind::scalar || kind == InstrKind::convert ||
         kind == InstrKind::bitcast || kind == InstrKind::call_extern || kind == InstrKind::load_at;
}

bool has_group_result(InstrKind kind, std::size_t result) {
  return kind == InstrKind::reduce || (kind == InstrKind::running_sum && result == 1);
}

namespace {

class InstrVerifier {
 public:
  // `level_of` gives the level of a defined value.
  InstrVerifier(const KernelProgram& program, const Kernel& kernel,
                std::function<SectionKind(ValueId)> level_of)
      : program_(program), kernel_(kernel), level_of_(std::move(level_of)) {}

  // Returns the first complaint, or an empty text. Operands and results must be in range.
  std::string check(const Instr& instr) {
    switch (family_of(instr.kind)) {
      case InstrFamily::Given:
      case InstrFamily::Leaf:
        leaf(instr);
        break;
      case InstrFamily::ElementWise:
        instr.kind == InstrKind::scalar ? scalar(instr) : conversion(instr);
        break;
      case InstrFamily::Call:
        call_extern(instr);
        break;
      case InstrFamily::Load:
        load(instr);
        break;
      case InstrFamily::Store:
        store(instr);
        break;
      case InstrFamily::Update:
        instr.kind == InstrKind::hist_add ? hist_add(instr) : store(instr);
        break;
      case InstrFamily::Reduction:
        instr.kind == InstrKind::reduce ? reduce(instr) : running_sum(instr);
        break;
      case InstrFamily::LookBack:
        look_back(instr);
        break;
      case InstrFamily::Local:
        local(instr);
        break;
      case InstrFamily::LocalWhole:
        if (instr.kind == InstrKind::local_scan) {
          local_scan(instr);
        } else if (instr.kind == InstrKind::local_largest) {
          local_largest(instr);
        } else {
          local_transform(instr);
        }
        break;
      case InstrFamily::Finish:
        finish(instr);
        break;
      case InstrFamily::Sort:
        argsort(instr);
        break;
      case InstrFamily::Draw:
        draw(instr);
        break;
      case InstrFamily::Status:
        status(instr);
        break;
    }
    return complaint_;
  }

 private:
  using TypeSet = unsigned;  // bit per ComputeType

  bool need(bool ok, std::string message) {
    if (!ok && complaint_.empty()) complaint_ = std::move(message);
    return complaint_.empty();
  }

  bool counts(const Instr& instr, std::size_t min_operands, std::size_t max_operands,
              std::size_t results) {
    const std::size_t given = instr.operands.size();
    need(given >= min_operands && given <= max_operands, fmt::format("{} operands", given));
    return need(instr.results.size() == results, fmt::format("{} results", instr.results.size()));
  }

  bool operand(const Instr& instr, std::size_t index, TypeSet types,
               SectionKind deepest = SectionKind::Elements) {
    const ValueId value = optional_operand(instr, index);
    if (!need(value.is_valid(), fmt::format("operand {} is missing", index))) return false;
    need(types >> static_cast<unsigned>(type(value)) & 1,
         fmt::format("operand {} is {}", index, compute_type_name(type(value))));
    return need(level_of_(value) <= deepest, fmt::format("operand {} must be uniform", index));
  }

  bool result(const Instr& instr, std::size_t index, ComputeType expected) {
    return need(type(instr.results[index]) == expected,
                fmt::format("result {} must be {}", index, compute_type_name(expected)));
  }

  bool buffers(const Instr& instr, std::size_t count) {
    need(instr.buffers.size() == count, fmt::format("{} buffers", instr.buffers.size()));
    for (BufferIndex buffer : instr.buffers) {
      need(buffer < program_.buffers.size(), fmt::format("no buffer @{}", buffer));
    }
    return complaint_.empty();
  }

  ComputeType type(ValueId value) const { return kernel_.values[value.index()].type; }

  const Combiner* combiner(const Instr& instr) {
    need(instr.combiner < kernel_.combiners.size(), "no such combiner");
    return complaint_.empty() ? &kernel_.combiners[instr.combiner] : nullptr;
  }

  // Do a region's arguments, or an operation's operands, have these types?
  bool tuple(const Combiner& c, const std::vector<ComputeType>& types) {
    if (c.op) {
      for (ComputeType t : types) {
        need(operand_types(*c.op) >> static_cast<unsigned>(t) & 1,
             fmt::format("the combiner does not take {}", compute_type_name(t)));
      }
      return complaint_.empty();
    }
    if (!need(c.results.size() == types.size(), "the combiner joins other tuples")) return false;
    for (std::size_t i = 0; i < types.size(); ++i) {
      need(type(c.args[i]) == types[i], "the combiner joins other types");
    }
    return complaint_.empty();
  }

  void leaf(const Instr& instr) {
    if (!counts(instr, 0, 0, 1)) return;
    switch (instr.kind) {
      case InstrKind::constant:
        return;
      case InstrKind::param:
        if (!need(instr.index < program_.info.params.size(), "no such parameter")) return;
        result(instr, 0, compute_type(program_.info.params[instr.index].dtype));
        return;
      case InstrKind::host_size: {
        if (!need(instr.index < program_.size_exprs.size(), "no such size")) return;
        const HostType host = program_.info.exprs->type(program_.size_exprs[instr.index]);
        result(instr, 0,
               host == HostType::Int   ? ComputeType::I64
               : host == HostType::F32 ? ComputeType::F32
               : host == HostType::F64 ? ComputeType::F64
                                       : ComputeType::Bool);
        return;
      }
      case InstrKind::column:
      case InstrKind::element:
        result(instr, 0, ComputeType::U32);
        return;
      default:
        result(instr, 0, ComputeType::I64);
        return;
    }
  }

  void scalar(const Instr& instr) {
    const ScalarOpInfo& info = scalar_op_info(instr.scalar_op);
    const auto arity = static_cast<std::size_t>(info.arity);
    if (!counts(instr, arity, arity, 1)) return;
    const bool is_select = instr.scalar_op == ScalarOp::select;
    for (std::size_t i = 0; i < arity; ++i) {
      operand(instr, i, is_select && i == 0 ? kBoolSet : operand_types(instr.scalar_op));
    }
    if (!complaint_.empty()) return;
    const ComputeType same = type(instr.operands[is_select ? 1 : 0]);
    for (std::size_t i = is_select ? 1 : 0; i < arity; ++i) {
      need(type(instr.operands[i]) == same, "operands of different types");
    }
    result(instr, 0,
           info.result == ScalarResult::Bool  ? ComputeType::Bool
           : info.result == ScalarResult::U32 ? ComputeType::U32
                                              : same);
    if (info.result != ScalarResult::Bool && is_integer(same)) {
      need(compute_type(instr.dtype) == same,
           "the dtype attribute belongs to another compute type");
    }
  }

  void conversion(const Instr& instr) {
    if (!counts(instr, 1, 1, 1) || !operand(instr, 0, kAnySet)) return;
    need(type(instr.operands[0]) == compute_type(instr.from_dtype),
         "the from attribute does not fit the operand");
    result(instr, 0, compute_type(instr.dtype));
    if (instr.kind == InstrKind::bitcast) {
      need(instr.from_dtype.bits == instr.dtype.bits, "a bitcast between widths");
    }
  }

  void call_extern(const Instr& instr) {
    if (!need(instr.index < program_.info.externs.size(), "no such C++ function")) return;
    const rt::ExternInfo& function = program_.info.externs[instr.index];
    if (!counts(instr, function.params.size(), function.params.size(), 1)) return;
    for (std::size_t i = 0; i < function.params.size(); ++i) {
      operand(instr, i, compute_type_bit(compute_type(function.params[i])));
      need(rt::is_cpp_type(function.params[i]), "no type of C++");
    }
    result(instr, 0, compute_type(function.result));
  }

  void load(const Instr& instr) {
    if (!buffers(instr, 1)) return;
    const bool is_linear = instr.kind == InstrKind::load_linear;
    if (!counts(instr, is_linear ? 0 : 1, 2, 1)) return;
    if (is_linear) {
      for (std::size_t i = 0; i < instr.operands.size(); ++i) {
        if (instr.operands[i]) operand(instr, i, kI64Set, SectionKind::Group);
      }
    } else {
      operand(instr, 0, kIndexSet);
      if (optional_operand(instr, 1)) operand(instr, 1, kBoolSet);
    }
    result(instr, 0, compute_type(program_.buffers[instr.buffers[0]].dtype));
  }

  void store(const Instr& instr) {
    if (!buffers(instr, 1)) return;
    const rt::BufferInfo& buffer = program_.buffers[instr.buffers[0]];
    const unsigned value_type = compute_type_bit(compute_type(buffer.dtype));
    const bool is_read_only = buffer.role == rt::BufferRole::Gradient ||
                              buffer.role == rt::BufferRole::State ||
                              buffer.role == rt::BufferRole::Constant;
    need(!is_read_only, "a store to a read-only buffer");
    if (instr.kind == InstrKind::store_linear) {
      if (!counts(instr, 1, 3, 0)) return;
      operand(instr, 0, value_type);
      for (std::size_t i = 1; i < instr.operands.size(); ++i) {
        if (instr.operands[i]) operand(instr, i, kI64Set, SectionKind::Group);
      }
      return;
    }
    if (!counts(instr, 2, 3, 0)) return;
    operand(instr, 0, kIndexSet);
    operand(instr, 1, value_type);
    if (optional_operand(instr, 2)) operand(instr, 2, kBoolSet);
    need(buffer.storage_bits % 8 == 0 && !(buffer.storage_bits & (buffer.storage_bits - 1)),
         "a store_at or add_at to a packed buffer");
    need(instr.kind != InstrKind::add_at || kernel_.info.is_sequential || adds_in_any_order(buffer),
         "add_at in a kernel that is not sequential");
    need(instr.kind != InstrKind::max_at || buffer.dtype == kU32 || buffer.dtype == kU64,
         "max_at of what is neither u32 nor u64");
  }

  void hist_add(const Instr& instr) {
    if (!buffers(instr, 1) || !counts(instr, 1, 2, 0)) return;
    operand(instr, 0, kU32Set);
    if (optional_operand(instr, 1)) operand(instr, 1, kBoolSet);
    const rt::BufferInfo& buffer = program_.buffers[instr.buffers[0]];
    need(buffer.dtype == kU32 && buffer.storage_bits == 32, "the histogram's buffer is not u32");
  }

  void reduce(const Instr& instr) {
    const Combiner* c = combiner(instr);
    if (!c) return;
    const bool has_flag = !c->op;
    const std::size_t n = instr.results.size() - (has_flag ? 1 : 0);
    if (!need(instr.results.size() > (has_flag ? 1u : 0u), "no results")) return;
    if (!counts(instr, n, n + 1, instr.results.size())) return;
    std::vector<ComputeType> types;
    for (std::size_t i = 0; i < n; ++i) {
      if (!operand(instr, i, kAnySet)) return;
      types.push_back(type(instr.operands[i]));
      result(instr, i, types.back());
    }
    tuple(*c, types);
    if (has_flag) result(instr, n, ComputeType::Bool);
    if (instr.operands.size() == n + 1) operand(instr, n, kBoolSet);
  }

  void running_sum(const Instr& instr) {
    if (!counts(instr, 1, 1, 2) || !operand(instr, 0, kIntSet | kBoolSet)) return;
    const ComputeType of = type(instr.operands[0]);
    for (std::size_t i = 0; i < 2; ++i) {
      if (of != ComputeType::Bool) result(instr, i, of);
      need(kIntSet & compute_type_bit(type(instr.results[i])), "counts are integers");
    }
  }

  void look_back(const Instr& instr) {
    if (!counts(instr, 1, 1, 1) || !buffers(instr, 1)) return;
    operand(instr, 0, kTotalSet);
    result(instr, 0, type(instr.operands[0]));
    const rt::BufferInfo& buffer = program_.buffers[instr.buffers[0]];
    need(kernel_.info.is_ordered, "look_back in a kernel that is not ordered");
    need(buffer.dtype == kU64 && buffer.role == rt::BufferRole::Workspace,
         "the look-back state is not a u64 workspace");
  }

  void local(const Instr& instr) {
    if (!need(instr.index < kernel_.locals.size(), "no such local array")) return;
    const ComputeType element = kernel_.locals[instr.index].type;
    switch (instr.kind) {
      case InstrKind::local_store:
        if (counts(instr, 1, 1, 0)) operand(instr, 0, compute_type_bit(element));
        return;
      case InstrKind::local_previous:
        if (!counts(instr, 1, 1, 1)) return;
        operand(instr, 0, compute_type_bit(element), SectionKind::Group);
        break;
      default:
        if (!counts(instr, 0, 0, 1)) return;
    }
    result(instr, 0, element);
  }

  void local_scan(const Instr& instr) {
    const Combiner* c = combiner(instr);
    if (!c || !counts(instr, 0, 0, 0)) return;
    const std::size_t n = c->op ? 1 : c->results.size();
    if (!need(instr.index + n <= kernel_.locals.size(), "no such local arrays")) return;
    std::vector<ComputeType> types;
    types.reserve(n);
    for (std::size_t i = 0; i < n; ++i) types.push_back(kernel_.locals[instr.index + i].type);
    tuple(*c, types);
  }

  void local_transform(const Instr& instr) {
    const bool is_product = instr.kind == InstrKind::local_product;
    if (!counts(instr, 0, 0, 0) || !buffers(instr, is_product ? 1 : 0)) return;
    const std::size_t last = instr.index + (is_product ? 1 : 0);
    if (!need(last < kernel_.locals.size(), "no such local arrays")) return;
    const ComputeType element = kernel_.locals[instr.index].type;
    need(element == ComputeType::F32 || element == ComputeType::F64, "elements are not f32 or f64");
    need(kernel_.locals[last].type == element, "local arrays of different elements");
    if (is_product) {
      need(program_.buffers[instr.buffers[0]].dtype == dtype_of(element),
           "another type of elements");
    }
    if (!need(has_constant_rows(), "outside of rows of a constant length")) return;
    const std::int64_t len = program_.info.exprs->const_value(kernel_.group_len).as_int();
    need(is_product || (len > 0 && (len & (len - 1)) == 0), "a length that is not a power of two");
  }

  void local_largest(const Instr& instr) {
    if (!counts(instr, 1, 1, 0) || !buffers(instr, 0)) return;
    operand(instr, 0, kU32Set);
    if (!need(instr.index < kernel_.locals.size(), "no such local array")) return;
    need(kernel_.locals[instr.index].type == ComputeType::U32, "elements are not u32");
    need(has_constant_rows(), "outside of rows of a constant length");
  }

  bool has_constant_rows() const {
    return kernel_.group_kind == GroupKind::Row && program_.info.exprs->is_const(kernel_.group_len);
  }

  void finish(const Instr& instr) {
    const Combiner* c = combiner(instr);
    const bool is_reduce = instr.kind == InstrKind::finish_reduce;
    const std::size_t n = instr.buffers.size();
    if (!c || !buffers(instr, n) || !need(n > 0, "no buffers")) return;
    need(kernel_.info.role == rt::KernelRole::Finish && kernel_.group_kind == GroupKind::Single,
         "outside a Finish kernel of one group");
    if (!counts(instr, is_reduce ? 1 : 2, is_reduce ? 1 : 2, is_reduce ? n : 0)) return;
    for (std::size_t i = 0; i < instr.operands.size(); ++i) operand(instr, i, kI64Set);
    std::vector<ComputeType> types;
    for (BufferIndex buffer : instr.buffers) {
      types.push_back(compute_type(program_.buffers[buffer].dtype));
      need(program_.buffers[buffer].storage_bits % 8 == 0, "packed partials");
    }
    if (is_reduce && !c->op) types.back() = ComputeType::Bool;
    for (std::size_t i = 0; i < instr.results.size(); ++i) result(instr, i, types[i]);
    if (is_reduce && !c->op) types.pop_back();
    tuple(*c, types);
  }

  void argsort(const Instr& instr) {
    if (!buffers(instr, 3) || !counts(instr, 2, 2, 0)) return;
    operand(instr, 0, kI64Set);
    operand(instr, 1, kI64Set);
    for (std::size_t i = 0; i < 3; ++i) {
      const rt::BufferInfo& buffer = program_.buffers[instr.buffers[i]];
      need(
          i == 0 ? buffer.storage_bits % 8 == 0 : buffer.dtype == kU32 && buffer.storage_bits == 32,
          "order and scratch must be u32, keys whole elements");
    }
  }

  void draw(const Instr& instr) {
    const bool has_first = instr.kind == InstrKind::stochastic_round;  // x comes before the index
    const bool has_size = instr.kind == InstrKind::random_index;
    const std::size_t required = has_first || has_size ? 2 : 1;
    if (!counts(instr, required, required + 1, 1)) return;
    if (has_first) operand(instr, 0, kFloatSet);
    operand(instr, has_first ? 1 : 0, kU32Set);
    if (has_size) operand(instr, 1, kI64Set, SectionKind::Kernel);
    if (optional_operand(instr, required)) operand(instr, required, kI64Set, SectionKind::Kernel);
    if (!complaint_.empty()) return;
    switch (instr.kind) {
      case InstrKind::stochastic_round:
        need(!rounds_to_int(instr) || (type(instr.operands[0]) == ComputeType::F32 &&
                                       instr.dtype.bits >= 2 && instr.dtype.bits <= 32),
             "rounds to an integer that is not short");
        result(instr, 0,
               rounds_to_int(instr) ? compute_type(instr.dtype) : type(instr.operands[0]));
        return;
      case InstrKind::random:
      case InstrKind::normal:
        result(instr, 0, ComputeType::F32);
        return;
      default:
        result(instr, 0, ComputeType::U32);
        return;
    }
  }

  void status(const Instr& instr) {
    if (!counts(instr, 1, 1, 0)) return;
    operand(instr, 0,
            instr.kind == InstrKind::fail_if ? kBoolSet : compute_type_bit(ComputeType::F32));
    need(instr.kind != InstrKind::fail_if || instr.index < program_.messages.size(),
         "no such message");
  }

  const KernelProgram& program_;
  const Kernel& kernel_;
  std::function<SectionKind(ValueId)> level_of_;
  std::string complaint_;
};

}  // namespace

std::string complaint_about(const KernelProgram& program, const Kernel& kernel, const Instr& instr,
                            std::function<SectionKind(ValueId)> level_of) {
  return InstrVerifier(program, kernel, std::move(level_of)).check(instr);
}

}  // namespace cinch::kir
