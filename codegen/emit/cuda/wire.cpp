// Sizes without a count come from the tensor's table. The others are computed from the counts.
#include "codegen/emit/cuda/shape.h"

#include <fmt/format.h>

#include "codegen/emit/c_family.h"
#include "codegen/kir/compute_type.h"
#include "runtime/core/check.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/image/gpu_abi.h"
#include "runtime/payload/payload.h"

namespace cinch::codegen {
namespace {

// The check word covers header and counts, at most 128 bytes.
constexpr std::size_t kMaxCounts = 17;

// Calls use(expr) for the largest parts of a formula that contain no count.
void each_plain_part(const HostExprPool& pool, HostExprId expr,
                     const std::function<void(HostExprId)>& use) {
  if (!pool.has_count(expr)) return use(expr);
  const HostExprNode& node = pool.node(expr);
  if (node.op == HostOp::Count) return;
  for (int i = 0; i < host_op_num_args(node.op); ++i) each_plain_part(pool, node.args[i], use);
}

// The text of a formula, with counts[i] for counts.
class FormulaText {
 public:
  explicit FormulaText(const kir::KernelProgram& program)
      : program_(program), pool_(*program.info.exprs) {}

  std::string of(HostExprId expr) const {
    if (!pool_.has_count(expr)) return size_text(program_, expr, "args.");
    const HostExprNode& node = pool_.node(expr);
    if (node.op == HostOp::Count) return fmt::format("i64(counts[{}])", node.payload);
    const auto arg = [&](int i) { return of(node.args[i]); };
    const auto call = [&](const char* function) {
      return fmt::format("{}({}, {})", function, arg(0), arg(1));
    };
    const auto infix = [&](const char* op) {
      return fmt::format("({} {} {})", arg(0), op, arg(1));
    };
    if (node.type != HostType::Int) return no_text(expr);
    switch (node.op) {
      case HostOp::Add:
        return infix("+");
      case HostOp::Sub:
        return infix("-");
      case HostOp::Mul:
        return infix("*");
      case HostOp::Div:
        return call("host_div");
      case HostOp::Mod:
        return call("host_mod");
      case HostOp::CeilDiv:
        return call("host_ceil_div");
      case HostOp::AlignUp:
        return call("host_align_up");
      case HostOp::Min:
        return call("host_min");
      case HostOp::Max:
        return call("host_max");
      case HostOp::Clamp:
        return fmt::format("host_min(host_max({}, {}), {})", arg(0), arg(1), arg(2));
      default:
        return no_text(expr);
    }
  }

 private:
  [[noreturn]] std::string no_text(HostExprId expr) const {
    CINCH_LIMITATION("a payload's size on a GPU: " + pool_.print(expr));
  }

  const kir::KernelProgram& program_;
  const HostExprPool& pool_;
};

// Calls use(expr) for the bounds of loops, which kernels compare with rounds, and for conditions
// inside branches and loops.
void each_device_size(const std::vector<rt::Step>& steps, bool is_inside,
                      const std::function<void(HostExprId)>& use) {
  for (const rt::Step& step : steps) {
    if (step.kind == rt::StepKind::For || step.kind == rt::StepKind::While) use(step.expr);
    if (step.kind == rt::StepKind::For) use(step.expr2);
    if (step.kind == rt::StepKind::CheckHost && is_inside) use(step.expr);
    for (const auto* inner : {&step.cond, &step.body, &step.orelse}) {
      each_device_size(*inner, true, use);
    }
  }
}

class ServiceEmitter : private SourceWriter {
 public:
  explicit ServiceEmitter(const kir::KernelProgram& program)
      : program_(program), info_(program.info), formula_(program) {
    if (info_.wire.counts.size() > kMaxCounts) {
      CINCH_LIMITATION(fmt::format("on a GPU, a wire of more than {} counts", kMaxCounts));
    }
  }

  std::string emit() {
    emit_buffer_of();
    // All services that do not depend on the wire.
    open_function("serve_buffers");
    line("u8* const to = buffer_of(launch, args, place.tensor, step.arg0);");
    line("u8* const from = buffer_of(launch, args, place.tensor, step.arg1);");
    line("serve(launch, step, args, status, place, to, from);");
    line("}");
    blank();
    emit_seal();
    emit_commit();
    emit_open();
    return take();
  }

 private:
  std::size_t num_counts() const { return info_.wire.counts.size(); }

  void open_function(const char* name) {
    line(
        "CINCH_FN void {}(const GpuLaunch& launch, const GpuStep& step, "
        "GpuTensor& args, u32* status, Place place) {{",
        name);
  }

  void emit_buffer_of() {
    line(
        "CINCH_FN u8* buffer_of(const GpuLaunch& launch, const GpuTensor& args, u32 tensor, "
        "u32 index) {");
    for (rt::BufferIndex b = 0; b < program_.buffers.size(); ++b) {
      const auto other = other_buffer(program_, b);
      if (!other) continue;
      line(
          "if (index == {0}u) return static_cast<u8*>(args.buffers[state_swapped("
          "launch, tensor, {1}u) ? {2} : {0}]);",
          b, program_.buffers[b].role_index, *other);
    }
    line("if (index >= {}u) return nullptr;", program_.buffers.size());
    line("return static_cast<u8*>(args.buffers[index]);");
    line("}");
    blank();
  }

  // Swaps the two buffers of each state that the entry writes.
  void emit_swaps(rt::EntryKind entry) {
    for (rt::BufferIndex next : program_.entries[static_cast<std::size_t>(entry)].buffers) {
      const rt::BufferInfo& info = program_.buffers[next];
      if (info.role != rt::BufferRole::StateNext) continue;
      line("state_swapped(launch, place.tensor, {}u) ^= 1u;", info.role_index);
    }
  }

  // If the payload is marked, a check may have failed because of a non-finite value, and the mark
  // takes precedence.
  void emit_failed() { line("const u32 failed = is_marked ? 0u : status[1];"); }

  // Prints elems_i, offset_i and bytes_i of each field, and `end`.
  void emit_layout() {
    line("u64 end = kHeaderBytes + {}u;", 4 * num_counts());
    for (std::size_t i = 0; i < info_.wire.fields.size(); ++i) {
      const rt::FieldInfo& field = info_.wire.fields[i];
      std::string elems = "i64(1)";
      for (int d = 0; d < field.type.rank; ++d) {
        const std::string dim = formula_.of(field.type.dims[d]);
        elems = d == 0 ? dim : fmt::format("{} * {}", elems, dim);
      }
      line("const i64 elems_{} = {};", i, elems);
      line(
          "const u64 gap_{0} = end, offset_{0} = align_field(end), bytes_{0} = "
          "packed_bytes(elems_{0}, {1}u);",
          i, field.type.dtype.bits);
      line("end = offset_{0} + bytes_{0};", i);
    }
  }

  rt::BufferIndex buffer_of(rt::BufferRole role, std::size_t role_index) const {
    for (rt::BufferIndex b = 0; b < program_.buffers.size(); ++b) {
      const rt::BufferInfo& info = program_.buffers[b];
      if (info.role == role && info.role_index == role_index) return b;
    }
    return rt::kNoIndex;
  }

  void emit_seal() {
    open_function("seal_payload");
    line("const Threads threads = threads_of(place);");
    line("const bool is_marked = (status[0] & kMarked) != 0u;");
    emit_failed();
    line("if (threads.rank == 0u) note_outcome(launch.outcomes[place.tensor], status[0], failed);");
    line("if (failed != 0u) return;");
    line("u8* const payload = static_cast<u8*>(args.payload);");
    line("u32 counts[{}] = {{}};", num_counts() + 1);
    line("if (num_elems(args) == 0u) {");
    line("if (threads.rank == 0u) {");
    line("write_frame<{}u>(args, 0u, kHeaderBytes, 0u, counts);", num_counts());
    line("launch.outcomes[place.tensor].payload_bytes = kHeaderBytes;");
    line("}");
    line("return;");
    line("}");
    for (std::size_t i = 0; i < num_counts(); ++i) {
      line("if (!is_marked) counts[{}] = *static_cast<const u32*>(args.buffers[{}]);", i,
           buffer_of(rt::BufferRole::Count, i));
    }
    emit_layout();
    for (std::size_t i = 0; i < info_.wire.fields.size(); ++i) {
      const std::string staged = rt::has_fixed_offset(info_, i)
                                     ? "nullptr"
                                     : fmt::format("static_cast<const u8*>(args.buffers[{}])",
                                                   buffer_of(rt::BufferRole::Field, i));
      line("close_field(threads, payload, gap_{0}, offset_{0}, bytes_{0}, {1}, is_marked);", i,
           staged);
    }
    line("if (threads.rank != 0u) return;");
    line("write_frame<{0}u>(args, is_marked ? kMarked : 0u, end, {0}u, counts);", num_counts());
    line("launch.outcomes[place.tensor].payload_bytes = end;");
    line("if (is_marked) return;");
    emit_swaps(rt::EntryKind::Encode);
    line("}");
    blank();
  }

  void emit_commit() {
    open_function("commit_states");
    line("const Threads threads = threads_of(place);");
    line("const bool is_marked = (status[0] & kMarked) != 0u;");
    line(
        "if (is_marked && step.arg0 != ~0u) fill_nan(threads, "
        "static_cast<u8*>(args.buffers[step.arg0]), num_elems(args));");
    line("if (threads.rank != 0u) return;");
    emit_failed();
    line("note_outcome(launch.outcomes[place.tensor], status[0], failed);");
    line("if (is_marked || failed != 0u) return;");
    line("if (step.arg1 == {}u) {{", static_cast<int>(rt::EntryKind::Init));
    emit_swaps(rt::EntryKind::Init);
    line("} else {");
    // A program has either a finish or a sync entry.
    emit_swaps(rt::EntryKind::Finish);
    emit_swaps(rt::EntryKind::Sync);
    line("}");
    line("}");
    blank();
  }

  void emit_open() {
    open_function("open_payload");
    line("const Threads threads = threads_of(place);");
    line("i64 bounds[{}] = {{}};", num_counts() + 1);
    for (std::size_t i = 0; i < num_counts(); ++i) {
      line("bounds[{}] = {};", i, formula_.of(info_.wire.counts[i].bound));
    }
    line("Opened<{0}u> opened = open_frame<{0}u>(args, bounds);", num_counts());
    if (num_counts() > 0) line("const u32 (&counts)[sizeof(opened.counts) / 4u] = opened.counts;");
    line("const u8* const payload = static_cast<const u8*>(args.payload);");
    line("if (num_elems(args) == 0u) {");
    line("refuse(opened, opened.payload_bytes != kHeaderBytes, kFaultLength);");
    line(
        "if (threads.rank == 0u && opened.fault != 0u) fail_payload(status, opened.fault, "
        "opened.part);");
    line("return;");
    line("}");
    emit_layout();
    line("refuse(opened, opened.payload_bytes != end, kFaultLength);");
    line("if (opened.fault != 0u) {");
    line("if (threads.rank == 0u) fail_payload(status, opened.fault, opened.part);");
    line("return;");
    line("}");
    line("const bool is_marked = (opened.flags & kMarked) != 0u;");
    line("if (threads.rank == 0u && is_marked) flag_nonfinite(status);");
    for (std::size_t i = 0; i < info_.wire.fields.size(); ++i) emit_open_field(i);
    line("if (threads.rank != 0u) return;");
    for (std::size_t i = 0; i < num_counts(); ++i) {
      line("*static_cast<u32*>(args.buffers[{}]) = counts[{}];",
           buffer_of(rt::BufferRole::Count, i), i);
    }
    line("}");
    blank();
  }

  void emit_open_field(std::size_t i) {
    const rt::FieldInfo& field = info_.wire.fields[i];
    const DType dtype = field.type.dtype;
    line("check_padding(threads, payload, gap_{0}, offset_{0}, {0}u, status);", i);
    line("if (!is_marked) {");
    if (is_bit_packed(dtype)) {
      line("check_last_bits(threads, payload + offset_{0}, elems_{0}, {1}u, {0}u, status);", i,
           dtype.bits);
    }
    if (field.ascending || field.index_limit) {
      const std::string limit =
          field.index_limit ? fmt::format("at_most(~0ull, {})", formula_.of(*field.index_limit))
                            : "~0ull";
      const std::string row =
          field.type.rank == 0 ? "i64(1)" : formula_.of(field.type.dims[field.type.rank - 1]);
      line(
          "check_indices<{1}>(threads, payload + offset_{0}, elems_{0}, {2}, {3}, "
          "{4}, {0}u, status);",
          i, stored_type(dtype, dtype.bits), row, limit, field.ascending);
    }
    if (!rt::has_fixed_offset(info_, i) || !rt::has_fixed_size(info_, i)) {
      line(
          "move_bytes(threads, static_cast<u8*>(args.buffers[{1}]), payload + "
          "offset_{0}, bytes_{0});",
          i, buffer_of(rt::BufferRole::Field, i));
    }
    line("}");
  }

  const kir::KernelProgram& program_;
  const rt::ProgramInfo& info_;
  FormulaText formula_;
};

}  // namespace

kir::KernelProgram with_call_sizes(const kir::KernelProgram& program) {
  kir::KernelProgram out = program;
  const HostExprPool& pool = *program.info.exprs;
  const auto add = [&](HostExprId expr) {
    if (!kir::find_size(out, expr)) out.size_exprs.push_back(expr);
  };
  for (const rt::Entry& entry : program.entries) each_device_size(entry.steps, false, add);
  for (const rt::CountInfo& count : program.info.wire.counts) add(count.bound);
  for (const rt::FieldInfo& field : program.info.wire.fields) {
    for (int i = 0; i < field.type.rank; ++i) each_plain_part(pool, field.type.dims[i], add);
    if (field.index_limit) add(*field.index_limit);
  }
  return out;
}

std::optional<rt::BufferIndex> other_buffer(const kir::KernelProgram& program,
                                            rt::BufferIndex buffer) {
  const rt::BufferInfo& info = program.buffers[buffer];
  const bool is_state = info.role == rt::BufferRole::State;
  if (!is_state && info.role != rt::BufferRole::StateNext) return std::nullopt;
  const auto wanted = is_state ? rt::BufferRole::StateNext : rt::BufferRole::State;
  for (rt::BufferIndex b = 0; b < program.buffers.size(); ++b) {
    const rt::BufferInfo& other = program.buffers[b];
    if (other.role == wanted && other.role_index == info.role_index) return b;
  }
  return std::nullopt;
}

std::string emit_services(const kir::KernelProgram& program) {
  return ServiceEmitter(program).emit();
}

}  // namespace cinch::codegen
