// Image validation: one small class walks the image in order and keeps the first fault. Formulas
// are checked for existence and type; the pool itself was checked when it was read or built.
#include "runtime/image/validate.h"

#include <fmt/format.h>

#include <set>

#include "runtime/image/gpu_abi.h"

namespace cinch::rt {
namespace {

class Validator {
 public:
  explicit Validator(const ProgramImage& image) : image_(image), info_(image.info) {}

  Status run() {
    check_info();
    for (std::size_t i = 0; i < image_.buffers.size(); ++i) check_buffer(i);
    for (std::size_t i = 0; i < image_.size_exprs.size(); ++i) {
      check_formula(image_.size_exprs[i], fmt::format("size {}", i));
    }
    if (image_.target.starts_with("cuda:")) check_steps_kernel();
    for (std::size_t i = 0; i < image_.kernels.size(); ++i) check_kernel(i);
    for (std::size_t i = 0; i < kNumEntries; ++i) check_entry(i);
    if (!fault_.empty()) return fail(ErrorKind::CorruptFile, "image: " + fault_);
    return Ok{};
  }

 private:
  void fault(std::string text) {
    if (fault_.empty()) fault_ = std::move(text);
  }
  void require(bool condition, const std::string& place, const char* what) {
    if (!condition) fault(place + ": " + what);
  }

  bool check_formula(HostExprId id, const std::string& place) {
    const bool exists = id.is_valid() && id.index() < info_.exprs.num_nodes();
    require(exists, place, "no such formula");
    if (exists) require(has_leaves_[id.index()], place, "no such parameter or count");
    return exists;
  }
  void check_int(HostExprId id, const std::string& place, bool may_count = false) {
    if (!check_formula(id, place)) return;
    require(info_.exprs.type(id) == HostType::Int, place, "no integer formula");
    require(may_count || !info_.exprs.has_count(id), place, "a formula that holds a count");
  }
  void check_type(const ArrayType& type, const std::string& place, bool may_count) {
    check_dtype(type.dtype, place);
    require(type.rank <= 2, place, "more than two dimensions");
    for (int i = 0; i < type.rank && i < 2; ++i) check_int(type.dims[i], place, may_count);
  }
  void check_dtype(DType dtype, const std::string& place) {
    require(parse_dtype(dtype_name(dtype)) == dtype, place, "no such scalar type");
  }

  // Which formulas refer to parameters and counts that exist. Some that nothing uses do not: the
  // compiler's pool goes into the image as it is. Arguments stand before their users.
  void check_pool() {
    const HostExprPool& pool = info_.exprs;
    has_leaves_.resize(pool.num_nodes());
    for (std::size_t i = 0; i < pool.num_nodes(); ++i) {
      const HostExprNode& node = pool.node(HostExprId(i));
      bool has_leaves = true;
      if (node.op == HostOp::Param) has_leaves = node.payload < info_.params.size();
      if (node.op == HostOp::Count) has_leaves = node.payload < info_.counts.size();
      for (HostExprId arg : node.args) {
        if (arg.is_valid()) has_leaves = has_leaves && has_leaves_[arg.index()];
      }
      has_leaves_[i] = has_leaves;
    }
  }

  void check_info() {
    check_pool();
    for (const ParamInfo& param : info_.params) check_dtype(param.dtype, "parameter " + param.name);
    for (const SizeInfo& size : info_.sizes) check_int(size.value, "size " + size.name, true);
    for (const StateInfo& state : info_.states) {
      check_type(state.type, "state " + state.name, false);
    }
    for (const CountInfo& count : info_.counts) check_int(count.bound, "count " + count.name);
    require(info_.wire.counts.size() <= info_.counts.size(), "wire",
            "more counts than the program");
    for (const CountInfo& count : info_.wire.counts) check_int(count.bound, "count " + count.name);
    for (const FieldInfo& field : info_.wire.fields) {
      check_type(field.type, "field " + field.name, true);
      if (field.index_limit) check_int(*field.index_limit, "field " + field.name);
    }
  }

  // How many role_index values a role has; roles without an index have one.
  std::size_t role_limit(BufferRole role) const {
    switch (role) {
      case BufferRole::Field:
        return info_.wire.fields.size();
      case BufferRole::Count:
        return info_.counts.size();
      case BufferRole::State:
      case BufferRole::StateNext:
      case BufferRole::StateInPlace:
        return info_.states.size();
      case BufferRole::Constant:
        return image_.constants.size();
      case BufferRole::Gradient:
      case BufferRole::Output:
      case BufferRole::Workspace:
        break;
    }
    return SIZE_MAX;
  }

  void check_buffer(std::size_t index) {
    const BufferInfo& buffer = image_.buffers[index];
    const std::string place = fmt::format("buffer {} ({})", index, buffer.name);
    check_dtype(buffer.dtype, place);
    require(buffer.storage_bits >= 1 && buffer.storage_bits <= 64, place, "bits per element");
    require(buffer.role <= BufferRole::Workspace, place, "no such role");
    require(buffer.role_index < role_limit(buffer.role), place, "role index out of range");
    check_int(buffer.num_elems, place);
    check_int(buffer.size_bytes, place);
  }

  void check_kernel(std::size_t index) {
    const KernelInfo& kernel = image_.kernels[index];
    const std::string place = fmt::format("kernel {} ({})", index, kernel.symbol);
    require(!kernel.symbol.empty(), place, "no symbol");
    require(symbols_.insert(kernel.symbol).second, place, "a symbol twice");
    require(kernel.role <= KernelRole::Finish, place, "no such role");
    require(kernel.group_multiple >= 1, place, "group multiple of zero");
    check_int(kernel.num_groups, place + " groups");
    if (image_.target.starts_with("cuda:")) check_launch(kernel.cuda, place);
    if (kernel.bytes_read.is_valid()) check_int(kernel.bytes_read, place + " bytes read");
    if (kernel.bytes_written.is_valid()) check_int(kernel.bytes_written, place + " bytes written");
  }

  void check_threads(std::uint32_t threads, const std::string& place) {
    require(threads % 32 == 0 && threads >= 32 && threads <= 1024, place, "threads of a block");
  }

  void check_steps_kernel() {
    const std::string place = kGpuStepsSymbol;
    check_threads(image_.gpu_steps_threads, place);
    require(image_.gpu_steps_shared_bytes <= kMaxGpuSharedBytes, place, "shared memory of a block");
  }

  // Every kernel is a step, too.
  void check_launch(const CudaLaunch& launch, const std::string& place) {
    check_threads(launch.block_threads, place);
    require(launch.shared_bytes <= image_.gpu_steps_shared_bytes, place,
            "shared memory of a block");
    require(launch.groups_per_block >= 1, place, "groups of a block");
    require(!launch.is_foldable || launch.is_single_block, place, "a fold before many blocks");
  }

  void check_entry(std::size_t index) {
    const Entry& entry = image_.entries[index];
    const std::string place = fmt::format("entry {}", index);
    in_entry_.assign(image_.buffers.size(), false);
    for (BufferIndex buffer : entry.buffers) {
      if (buffer >= image_.buffers.size()) return fault(place + ": no such buffer");
      in_entry_[buffer] = true;
    }
    require(entry.commit_step == kNoIndex || entry.commit_step < entry.steps.size(), place,
            "no such step to commit at");
    check_steps(entry.steps, place, 0);
  }

  void check_steps(const std::vector<Step>& steps, const std::string& place, int depth) {
    if (depth > kMaxStepDepth) return fault(place + ": steps nest too deep");
    for (std::size_t i = 0; i < steps.size() && fault_.empty(); ++i) {
      check_step(steps[i], fmt::format("{} step {}", place, i), depth);
    }
  }

  void check_step(const Step& step, const std::string& place, int depth) {
    const bool is_control =
        step.kind == StepKind::If || step.kind == StepKind::While || step.kind == StepKind::For;
    require(is_control || (step.cond.empty() && step.body.empty() && step.orelse.empty()), place,
            "a plain step with steps inside");
    require((step.collective.kind != CollectiveKind::None) == (step.kind == StepKind::Collective),
            place, "a collective where none is due");
    switch (step.kind) {
      case StepKind::Launch:
        return require(step.index < image_.kernels.size(), place, "no such kernel");
      case StepKind::Zero:
        return check_step_buffer(step.index, place, 0);
      case StepKind::Copy:
        check_step_buffer(step.index, place, 0);
        return check_step_buffer(step.index2, place, 0);
      case StepKind::CheckHost:
        if (check_formula(step.expr, place)) {
          require(info_.exprs.type(step.expr) == HostType::Bool, place, "no condition");
        }
        return require(step.index < image_.messages.size(), place, "no such message");
      case StepKind::If:
        check_step_buffer(step.index, place, 8);
        check_steps(step.body, place + " then", depth + 1);
        return check_steps(step.orelse, place + " else", depth + 1);
      case StepKind::While:
        check_step_buffer(step.index, place, 8);
        check_int(step.expr, place);
        check_steps(step.cond, place + " condition", depth + 1);
        return check_steps(step.body, place + " body", depth + 1);
      case StepKind::For:
        check_step_buffer(step.index, place, 64);
        check_int(step.expr, place);
        check_int(step.expr2, place);
        return check_steps(step.body, place + " body", depth + 1);
      case StepKind::Collective:
        check_step_buffer(step.index, place, 0);
        check_step_buffer(step.index2, place, 0);
        return check_collective(step, place);
    }
    fault(place + ": no such kind of step");
  }

  void check_collective(const Step& step, const std::string& place) {
    const CollectiveInfo& collective = step.collective;
    const bool joins = collective.kind == CollectiveKind::AllReduce ||
                       collective.kind == CollectiveKind::ReduceScatter;
    require(collective.kind <= CollectiveKind::Broadcast, place, "no such collective");
    require(collective.reduction <= RankReduction::Max &&
                joins == (collective.reduction != RankReduction::None),
            place, "no such reduction");
    if (!fault_.empty()) return;
    const BufferInfo &to = image_.buffers[step.index], &from = image_.buffers[step.index2];
    require(
        to.dtype == from.dtype && to.storage_bits == from.storage_bits && to.storage_bits % 8 == 0,
        place, "a collective between types");
    require(step.index != step.index2, place, "a collective in place");
  }

  // storage_bits 0: any.
  void check_step_buffer(BufferIndex buffer, const std::string& place, int storage_bits) {
    if (buffer >= image_.buffers.size()) return fault(place + ": no such buffer");
    require(in_entry_[buffer], place, "a buffer that the entry does not list");
    require(storage_bits == 0 || image_.buffers[buffer].storage_bits == storage_bits, place,
            "a scalar buffer of another width");
  }

  const ProgramImage& image_;
  const ProgramInfo& info_;
  std::set<std::string> symbols_;
  std::vector<bool> has_leaves_;
  std::vector<bool> in_entry_;
  std::string fault_;
};

}  // namespace

Status validate_image(const ProgramImage& image) {
  return Validator(image).run();
}

}  // namespace cinch::rt
