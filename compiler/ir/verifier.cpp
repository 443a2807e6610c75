// Structure: ids, arity, regions, values before use; then types of every op, then results.
#include "compiler/ir/verifier.h"

#include <set>

#include "compiler/ir/ops.h"
#include "compiler/ir/rewriter.h"
#include "runtime/core/check.h"

namespace cinch::ir {
namespace {

class FunctionVerifier {
 public:
  FunctionVerifier(const Program& program, rt::ProgramInfo& info, const Function& function,
                   bool is_init)
      : context_{info, program, function, is_init},
        function_(function),
        is_visible_(function.values.size(), false),
        is_in_body_(function.values.size(), false),
        is_placed_(function.ops.size(), false),
        is_region_used_(function.regions.size(), false) {}

  void run() {
    verify_region(function_.body);
    const Region& body = function_.regions[function_.body.index()];
    require(body.args.empty(), "the body of a function has no args");
    require(op(body.ops.back()).operands.empty(), "the body of a function yields nothing");
    if (context_.is_init) return;  // the caller compares its result with the state
    verify_results();
  }

 private:
  void require(bool holds, const std::string& message) const {
    if (holds) return;
    throw VerifyFault{title_.empty() ? message : title_ + ": " + message};
  }
  const Op& op(OpId id) const { return function_.ops[id.index()]; }

  void verify_region(RegionId id) {
    require(id.index() < function_.regions.size(), "a region that does not exist");
    require(!is_region_used_[id.index()], "a region is held by two ops");
    is_region_used_[id.index()] = true;
    const Region& region = function_.regions[id.index()];
    require(!region.ops.empty(), "a region is empty");
    std::vector<ValueId> defined;
    for (std::size_t i = 0; i < region.ops.size(); ++i) {
      verify_place(region, i);
      verify_op(op(region.ops[i]), region.ops[i], defined);
    }
    title_.clear();
    for (ValueId value : defined) is_visible_[value.index()] = false;
    if (id == function_.body) {
      for (ValueId value : defined) is_in_body_[value.index()] = true;
    }
  }

  void verify_place(const Region& region, std::size_t position) {
    title_.clear();
    const OpId id = region.ops[position];
    require(id.index() < function_.ops.size(), "an op that does not exist");
    require(!is_placed_[id.index()], "an op stands in two places");
    is_placed_[id.index()] = true;
    title_ = op_title(op(id));
    const bool is_last = position + 1 == region.ops.size();
    require((op(id).kind == OpKind::yield) == is_last, "a yield ends a region, and only there");
    const bool is_arg = op(id).kind == OpKind::arg;
    require(is_arg == (position < region.args.size()),
            "args stand first, one for each of the region's");
    if (!is_arg) return;
    require(op(id).attrs.index == position, "the number of an arg is its place");
    require(op(id).results.size() == 1 && op(id).results[0] == region.args[position],
            "an arg defines the region's value");
  }

  void verify_op(const Op& op, OpId id, std::vector<ValueId>& defined) {
    const OpInfo& info = op_info(op.kind);
    const int count = static_cast<int>(op.operands.size());
    require(count >= info.min_operands && (info.max_operands < 0 || count <= info.max_operands),
            fmt::format("{} operands", count));
    require(info.num_results < 0 || info.num_results == static_cast<int>(op.results.size()),
            fmt::format("{} results", op.results.size()));
    require(static_cast<int>(op.regions.size()) == num_regions(op.kind),
            fmt::format("{} regions", op.regions.size()));
    for (ValueId value : op.operands) {
      require(value.index() < function_.values.size(), "an operand that does not exist");
      require(is_visible_[value.index()], "an operand is not defined before its use");
    }
    verify_new_values(op, id);
    verify_attrs(op);
    for (RegionId region : held_regions(function_, op)) {
      verify_region(region);
      title_ = op_title(op);
    }
    verify_op_types(context_, op);
    for (ValueId value : op.results) {
      is_visible_[value.index()] = true;
      defined.push_back(value);
    }
  }

  void verify_new_values(const Op& op, OpId id) const {
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      require(op.results[i].index() < function_.values.size(), "a result that does not exist");
      const Value& value = function_.values[op.results[i].index()];
      require(value.def == id && value.result_index == i, "a result does not name its op");
      require(value.type.rank <= 2, "rank above 2");
      for (int d = 0; d < value.type.rank; ++d) require_size(value.type.dims[d], "a size");
    }
  }

  void require_expr(HostExprId id, const char* what) const {
    require(id.is_valid() && id.index() < context_.program.info.exprs->num_nodes(),
            fmt::format("{} that does not exist", what));
  }
  void require_size(HostExprId id, const char* what) const {
    require_expr(id, what);
    require(context_.info.exprs->type(id) == HostType::Int,
            fmt::format("{} is not an integer", what));
  }

  void verify_attrs(const Op& op) const {
    const auto has = [&](std::uint32_t use) { return uses_attr(op.kind, use); };
    const Attrs& a = op.attrs;
    if (op.kind == OpKind::check_host || op.kind == OpKind::host_size) {
      require_expr(a.size, "attribute size");
    } else if (has(AttrUse::Size) || (has(AttrUse::Limit) && a.has_limit)) {
      require_size(a.size, "attribute size");
    }
    if (has(AttrUse::Size2)) require_size(a.size2, "attribute size2");
    if (has(AttrUse::Groups) && a.size.is_valid()) {
      require_size(a.size, "attribute group");
      require_size(a.size2, "attribute stride");
    }
    if (has(AttrUse::Axis)) require(a.axis >= kAll && a.axis <= 1, "axis is not all, 0 or 1");
    if (has(AttrUse::Width)) require(a.bits >= 1 && a.bits <= 64, "width outside 1..64");
    if (has(AttrUse::Combiner)) {
      require(a.combiner.index() < function_.combiners.size(), "a combiner that does not exist");
    }
  }

  void require_result(ValueId value, const char* what) const {
    require(value.is_valid() && value.index() < function_.values.size(),
            fmt::format("results: {} is missing", what));
    require(is_in_body_[value.index()],
            fmt::format("results: {} is not a value of the body", what));
  }

  void require_type(ValueId value, const Type& expected, const std::string& what) const {
    if (types_agree(context_.info, context_.type(value), expected)) return;
    require(false, fmt::format("results: {} is {}, not {}", what, context_.text(value),
                               print_type(context_.info, expected)));
  }

  void verify_results() const {
    const Results& r = function_.results;
    if (function_.kind == FunctionKind::Encode) {
      require(!r.output.is_valid(), "results: encode has no output");
      verify_payload();
    } else {
      require_result(r.output, "the output");
      HostExprPool& exprs = *context_.info.exprs;
      require_type(r.output,
                   context_.info.is_matrix ? matrix_type(kF32, exprs.rows(), exprs.cols())
                                           : vector_type(kF32, exprs.n()),
                   "the output");
      require(r.fields.empty() && r.counts.empty(), "results: only encode has fields and counts");
    }
    verify_states();
  }

  void verify_payload() const {
    const rt::WireInfo& wire = context_.info.wire;
    const Results& r = function_.results;
    require(r.fields.size() == wire.fields.size(), "results: not one value for each field");
    require(r.counts.size() == wire.counts.size(), "results: not one value for each count");
    for (std::size_t i = 0; i < wire.fields.size(); ++i) {
      const rt::FieldInfo& field = wire.fields[i];
      require_result(r.fields[i], "a field");
      Type expected = field.type;
      const Type& found = context_.type(r.fields[i]);
      // results.counts tells which count of the body gives a counted size.
      for (int d = 0; d < expected.rank && d < found.rank; ++d) {
        if (context_.info.exprs->has_count(expected.dims[d])) expected.dims[d] = found.dims[d];
      }
      require_type(r.fields[i], expected, "field " + field.name);
    }
    for (ValueId count : r.counts) {
      require_result(count, "a count");
      require_type(count, scalar_type(kU32), "a count");
    }
  }

  void verify_states() const {
    const auto& states = context_.info.states;
    const Results& r = function_.results;
    const std::size_t expected = function_.kind == FunctionKind::Decode ? 0 : states.size();
    require(r.states.size() == expected, "results: not one value for each state");
    for (std::size_t i = 0; i < expected; ++i) {
      require_result(r.states[i], "a state");
      require_type(r.states[i], states[i].type, "state " + states[i].name);
    }
  }

  VerifyContext context_;
  const Function& function_;
  std::vector<bool> is_visible_, is_in_body_, is_placed_, is_region_used_;
  std::string title_;
};

void verify_init(const Program& program, rt::ProgramInfo& info, std::size_t index) {
  const Function& init = program.state_inits[index];
  FunctionVerifier(program, info, init, true).run();
  const rt::StateInfo& state = info.states[index];
  const ValueId output = init.results.output;
  if (output.index() >= init.values.size() ||
      !types_agree(info, init.values[output.index()].type, state.type)) {
    throw VerifyFault{"the initial value of state " + state.name + " has not the state's type"};
  }
}

void verify_program(const Program& program) {
  rt::ProgramInfo info = program.info;
  if (program.state_inits.size() != info.states.size()) {
    throw VerifyFault{"not one initial value for each state"};
  }
  for (std::size_t i = 0; i < program.state_inits.size(); ++i) verify_init(program, info, i);
  std::set<FunctionKind> kinds;
  for (const Function& function : program.functions) {
    if (!kinds.insert(function.kind).second) throw VerifyFault{"two functions of one kind"};
    FunctionVerifier(program, info, function, false).run();
  }
}

}  // namespace

std::optional<std::string> find_fault(const Program& program) {
  try {
    verify_program(program);
    return std::nullopt;
  } catch (const VerifyFault& fault) {
    return fault.message;
  }
}

void verify(const Program& program, const std::string& stage) {
  const std::optional<std::string> fault = find_fault(program);
  if (!fault) return;
  InternalError error(InternalErrorKind::Bug, *fault,
                      std::string(__FILE__) + ":" + std::to_string(__LINE__));
  error.attach(stage, print(program));
  throw error;
}

}  // namespace cinch::ir
