// Call context, regions and control flow.
#include <fmt/format.h>

#include <utility>

#include "compiler/interp/evaluator.h"
#include "compiler/ir/rewriter.h"
#include "compiler/ir/text/text.h"
#include "runtime/core/check.h"
#include "runtime/core/mapped.h"
#include "runtime/core/numbers/scalar_eval.h"
#include "runtime/core/params.h"

namespace cinch::interp {
static double param_value(const CallContext& call, std::uint32_t index) {
  return call.inputs.params.empty() ? call.program.info.params[index].default_value
                                    : call.inputs.params[index];
}

void stop(rt::ErrorKind kind, std::string message) {
  throw RunFailure{{kind, std::move(message), 0}};
}

void require_room(std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t kMost = std::int64_t{1} << 33;  // of 8 bytes each
  if (rows == 0 || cols <= kMost / rows) return;
  stop(rt::ErrorKind::Overflow,
       fmt::format("an array of {} x {} elements, at most {} are possible in the interpreter", rows,
                   cols, kMost));
}

CallContext::CallContext(const ir::Program& program, const Inputs& inputs)
    : program(program), inputs(inputs), counts(inputs.counts) {
  const auto& params = program.info.params;
  if (!inputs.params.empty() && inputs.params.size() != params.size()) {
    stop(rt::ErrorKind::InvalidArgument, "not one value for each parameter");
  }
  for (std::uint32_t i = 0; i < params.size(); ++i) {
    const HostType type = param_type(*program.info.exprs, i, params[i].dtype);
    host_params_.push_back(make_param_value(params[i].dtype, type, param_value(*this, i)));
  }
  counts.resize(program.info.counts.size(), 0);
}

HostValue CallContext::eval(HostExprId id) const {
  const rt::Result<HostValue> value =
      program.info.exprs->eval(id, HostEnv{.n = inputs.rows * inputs.cols,
                                           .rows = inputs.rows,
                                           .cols = inputs.cols,
                                           .world = inputs.world,
                                           .step = static_cast<std::int64_t>(inputs.draw.step),
                                           .worker = inputs.worker,
                                           .machine_ranks = inputs.machine_ranks,
                                           .params = host_params_,
                                           .counts = counts});
  if (!value) throw RunFailure{value.error()};
  return *value;
}

std::int64_t CallContext::size(HostExprId id) const {
  const std::int64_t value = eval(id).as_int();
  if (value < 0) {
    stop(rt::ErrorKind::OutOfRange,
         fmt::format("the size `{}` is negative: {}", program.info.exprs->print(id), value));
  }
  return value;
}

Array CallContext::param(std::uint32_t index) const {
  const DType dtype = program.info.params[index].dtype;
  const double value = param_value(*this, index);
  return make_scalar(dtype, convert_element(kF64, dtype, element_of_f64(value)));
}

Array CallContext::make(const ir::Type& type) const {
  if (type.rank == 0) return make_scalar(type.dtype, 0);
  const std::int64_t rows = type.rank == 1 ? 1 : size(type.dims[0]);
  const std::int64_t cols = size(type.dims[type.rank - 1]);
  require_room(rows, cols);
  return type.rank == 1 ? make_vector(type.dtype, cols) : make_matrix(type.dtype, rows, cols);
}

std::vector<std::uint32_t> CallContext::draw_words() const {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const DrawKey& key = inputs.draw;
  return {low(key.seed), low(key.seed >> 32), low(key.step), low(key.step >> 32),
          key.tensor,    key.piece,           inputs.worker, 0};
}

std::vector<Array> Evaluator::run_region(ir::RegionId region) {
  for (ir::OpId id : function_.regions[region.index()].ops) {
    const Op& op = function_.ops[id.index()];
    if (op.kind != ir::OpKind::yield) {
      run_op(op);
      if (observer_ != nullptr) show_results(op);
      release_after(id);
      continue;
    }
    auto yielded =
        mapped<Array>(op.operands, [&](ir::ValueId value) { return values_[value.index()]; });
    release_after(id);
    return yielded;
  }
  return {};
}

std::vector<Array> Evaluator::run_region(ir::RegionId region, std::vector<Array> args) {
  const std::vector<ir::ValueId>& formal = function_.regions[region.index()].args;
  for (std::size_t i = 0; i < formal.size(); ++i) values_[formal[i].index()] = std::move(args[i]);
  return run_region(region);
}

void Evaluator::bind_results(const Op& op, std::vector<Array> values) {
  for (std::size_t i = 0; i < values.size(); ++i) out(op, i) = std::move(values[i]);
}

void Evaluator::show_results(const Op& op) const {
  for (const ir::ValueId result : op.results) {
    const ir::Value& value = function_.values[result.index()];
    if (!value.name.empty()) (*observer_)(value, values_[result.index()]);
  }
}

void Evaluator::release_after(ir::OpId op) {
  for (ir::ValueId value : last_read_by_[op.index()]) values_[value.index()] = {};
}

void Evaluator::run_op(const Op& op) {
  switch (op.kind) {
#define OP(name, min_operands, max_operands, results, effect, reads, forces, cost, attrs, meaning) \
  case ir::OpKind::name:                                                                           \
    return eval_##name(op);
#include "compiler/ir/ops.def"
  }
}

// The code that enters a region binds its args.
void Evaluator::eval_arg(const Op&) {}
// run_region reads the yield itself.
void Evaluator::eval_yield(const Op&) {}

void Evaluator::eval_if_else(const Op& op) {
  const std::size_t branch = in(op, 0).bits[0] ? 0 : 1;
  bind_results(op, run_region(op.regions[branch]));
}

void Evaluator::eval_for_loop(const Op& op) {
  const std::int64_t begin = call_.eval(op.attrs.size).as_int();
  const std::int64_t end = call_.eval(op.attrs.size2).as_int();
  auto carried =
      mapped<Array>(op.operands, [&](ir::ValueId value) { return values_[value.index()]; });
  for (std::int64_t i = begin; i < end; ++i) {
    carried.insert(carried.begin(), make_scalar(kI64, static_cast<Element>(i)));
    carried = run_region(op.regions[0], std::move(carried));
  }
  bind_results(op, std::move(carried));
}

void Evaluator::eval_while_loop(const Op& op) {
  const std::int64_t at_most = call_.eval(op.attrs.size).as_int();
  auto carried =
      mapped<Array>(op.operands, [&](ir::ValueId value) { return values_[value.index()]; });
  for (std::int64_t i = 0; i < at_most; ++i) {
    if (!run_region(op.regions[0], carried).front().bits[0]) break;
    carried = run_region(op.regions[1], std::move(carried));
  }
  bind_results(op, std::move(carried));
}

// Checks.

void Evaluator::eval_check(const Op& op) {
  if (!in(op, 0).bits[0]) stop(rt::ErrorKind::CheckFailed, op.attrs.text);
}

void Evaluator::eval_check_index(const Op& op) {
  const Array& index = in(op, 0);
  const std::int64_t limit = call_.size(op.attrs.size);
  for (std::size_t i = 0; i < index.bits.size(); ++i) {
    // As an unsigned number, a negative index is far above any limit.
    if (index.bits[i] < static_cast<Element>(limit)) continue;
    // A 32-bit number may have been an i32; all of its bits are set also for an invalid column: see
    // sema::Indexing::places_in_rows.
    const auto found = static_cast<std::int64_t>(index.bits[i]);
    const bool may_be_negative = found > INT32_MAX && found <= std::int64_t{UINT32_MAX};
    const std::string negative = found == std::int64_t{UINT32_MAX} ? " (-1, or no column)"
                                 : may_be_negative
                                     ? fmt::format(" (as i32 {})", found - (std::int64_t{1} << 32))
                                     : "";
    stop(rt::ErrorKind::CheckFailed, fmt::format("{}: index {}{} at {} is not below {}",
                                                 op.attrs.text, found, negative, i, limit));
  }
}

void Evaluator::eval_check_unique(const Op& op) {
  const Array& index = in(op, 0);
  const std::int64_t cells = call_.size(op.attrs.size);
  std::vector<bool> seen(static_cast<std::size_t>(cells), false);
  for (Element i : index.bits) {
    if (i >= static_cast<Element>(cells)) continue;  // another check reports indices out of bounds
    if (seen[i])
      stop(rt::ErrorKind::CheckFailed, fmt::format("{}: index {} repeats", op.attrs.text, i));
    seen[i] = true;
  }
}

void Evaluator::eval_check_host(const Op& op) {
  if (!call_.eval(op.attrs.size).as_bool()) stop(rt::ErrorKind::CheckFailed, op.attrs.text);
}

// Making arrays.

Array make_scalar(DType dtype, std::uint64_t element) {
  return {dtype, 0, {1, 1}, {element}};
}

Array make_vector(DType dtype, std::int64_t size) {
  return {dtype, 1, {size, 1}, std::vector<std::uint64_t>(static_cast<std::size_t>(size))};
}

Array make_matrix(DType dtype, std::int64_t rows, std::int64_t cols) {
  return {
      dtype, 2, {rows, cols}, std::vector<std::uint64_t>(static_cast<std::size_t>(rows * cols))};
}

Array from_floats(std::span<const float> values) {
  Array array = make_vector(kF32, static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) array.bits[i] = element_of_f32(values[i]);
  return array;
}

std::vector<float> to_floats(const Array& array) {
  CINCH_CHECK(array.dtype == kF32, "not an array of f32");
  return mapped<float>(array.bits, [&](std::uint64_t element) { return f32_of(element); });
}

namespace {

class Lifetimes {
 public:
  explicit Lifetimes(const ir::Function& function)
      : function_(function),
        current_(function.regions.size()),
        home_(function.values.size()),
        last_(function.values.size()) {}

  std::vector<std::vector<ir::ValueId>> run() {
    visit(function_.body);
    for (ir::ValueId value : ir::result_values(function_)) last_[value.index()] = {};
    std::vector<std::vector<ir::ValueId>> lists(function_.ops.size());
    for (std::size_t v = 0; v < last_.size(); ++v) {
      if (last_[v].is_valid()) lists[last_[v].index()].emplace_back(v);
    }
    return lists;
  }

 private:
  // A read counts for the current op of the region where the value is defined.
  void visit(ir::RegionId region) {
    for (ir::OpId id : function_.regions[region.index()].ops) {
      const ir::Op& op = function_.ops[id.index()];
      current_[region.index()] = id;
      for (ir::ValueId value : op.operands) {
        last_[value.index()] = current_[home_[value.index()].index()];
      }
      for (ir::RegionId held : ir::held_regions(function_, op)) visit(held);
      for (ir::ValueId value : op.results) {
        home_[value.index()] = region;
        last_[value.index()] = id;
      }
    }
  }

  const ir::Function& function_;
  std::vector<ir::OpId> current_;   // by region
  std::vector<ir::RegionId> home_;  // by value
  std::vector<ir::OpId> last_;
};

}  // namespace

std::vector<std::vector<ir::ValueId>> last_read_by(const ir::Function& function) {
  return Lifetimes(function).run();
}

}  // namespace cinch::interp
