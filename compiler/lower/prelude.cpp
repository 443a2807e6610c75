// Checks and lowers calls of the prelude; see prelude.h.
#include "compiler/lower/prelude.h"

#include <memory>
#include <mutex>
#include <utility>

#include "compiler/lower/parts/body_lowering.h"
#include "dsl/diag/render.h"
#include "dsl/sema/sema.h"
#include "runtime/core/check.h"
#include "runtime/core/mapped.h"

namespace cinch::lower {
namespace {

// The checked text. Calls are elaborated one at a time.
class Prelude {
 public:
  static Prelude& instance() {
    static Prelude prelude;
    return prelude;
  }

  sema::CheckedCall elaborate(std::string_view function, DType element,
                              const std::vector<sema::FnArgument>& arguments, rt::ProgramInfo info,
                              ir::Span span) {
    const std::lock_guard lock(mutex_);
    dsl::DiagSink sink;
    sema::CheckedCall call =
        sema::elaborate_call(*module_, function, element, arguments, std::move(info), span, sink);
    require_no_error(sink);
    return call;
  }

 private:
  Prelude() {
    const dsl::SourceBuffer& text = sources_.add("prelude", prelude_text());
    dsl::DiagSink sink;
    module_ = std::make_unique<const sema::CheckedModule>(
        sema::check_module(sources_, text.id(), {}, sink, sema::CheckDepth::Names));
    require_no_error(sink);
  }

  void require_no_error(const dsl::DiagSink& sink) const {
    if (sink.has_errors()) CINCH_BUG(dsl::render_text(sink.all(), sources_));
  }

  dsl::SourceSet sources_;
  std::unique_ptr<const sema::CheckedModule> module_;
  std::mutex mutex_;
};

class PreludeLowering : public BodyLowering {
 public:
  PreludeLowering(const sema::CheckedCall& call, ir::Builder& b, FoundCounts counts)
      : BodyLowering({call.program, nullptr}, b.program(), b.function()), call_(call) {
    is_prelude_ = true;
    counts_ = std::move(counts);
    emit_.set_insertion(b.region());
  }

  FoundCounts& counts() { return counts_; }

  std::vector<ValueId> lower_call(const std::vector<ValueId>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      vars_[call_.params[i].index()] = {values[i]};
    }
    for (const StmtId stmt : call_.stmts) lower(checked_.stmts[stmt.index()]);
    return mapped<ValueId>(call_.results, [&](const ExprId result) { return uniform(result); });
  }

 private:
  const sema::CheckedCall& call_;
};

// If the array's length is a count from number `first` on, the count gets the array's name.
void name_count(rt::ProgramInfo& info, const sema::Var& array, std::size_t first,
                const PreludeContext* context) {
  const HostExprNode& size = info.exprs->node(array.type.dims[0]);
  if (size.op != HostOp::Count || size.payload < first) return;
  std::string& name = info.counts[size.payload].name;
  if (name.starts_with("count")) name = (context ? context->name + "." : "") + array.name;
}

// Everything stands where the operator stands. Checks that sema added get no text.
void speak_for_caller(sema::CheckedProgram& program, std::size_t first, ir::Span span,
                      const PreludeContext* context) {
  for (Expr& expr : program.exprs) {
    expr.span = span;
    expr.proved_in_bounds = expr.proved_unique = true;
  }
  for (Stmt& stmt : program.stmts) {
    stmt.span = span;
    stmt.proved_in_bounds = stmt.proved_unique = true;
    stmt.text = context && stmt.text == "message" ? context->message : "";
  }
  for (sema::Var& var : program.vars) {
    if (var.type.rank == 1) name_count(program.info, var, first, context);
    var.name.clear();
  }
}

// In passes, kernels read a count where it was found.
void add_counts_of(ir::Builder& b, const ir::Type& type, FoundCounts& counts) {
  for (int d = 0; d < type.rank; ++d) {
    for (const std::uint32_t count : b.exprs().counts_of(type.dims[d])) {
      const HostExprId size = b.exprs().count(count, b.program().info.counts[count].bound);
      counts.try_emplace(count, b.host_size(size, kU32));
    }
  }
}

}  // namespace

std::vector<ValueId> call_prelude(ir::Builder& b, std::string_view function, DType element,
                                  const std::vector<PreludeArgument>& arguments,
                                  const PreludeContext* context) {
  std::vector<sema::FnArgument> given;
  std::vector<ValueId> values;
  FoundCounts counts;
  for (const PreludeArgument& argument : arguments) {
    if (const auto* value = std::get_if<ValueId>(&argument)) {
      values.push_back(*value);
      given.push_back({b.type(*value), {}});
      if (!context) add_counts_of(b, b.type(*value), counts);
    } else if (const auto* number = std::get_if<HostExprId>(&argument)) {
      given.push_back({{}, *number});
    } else {
      given.push_back({{}, b.exprs().const_int(std::get<std::int64_t>(argument))});
    }
  }
  ir::Program& program = b.program();
  const std::size_t num_counts = program.info.counts.size();
  sema::CheckedCall call =
      Prelude::instance().elaborate(function, element, given, std::move(program.info), b.span());
  speak_for_caller(call.program, num_counts, b.span(), context);
  program.info = std::move(call.program.info);
  PreludeLowering lowering(call, b, context ? context->counts : std::move(counts));
  std::vector<ValueId> results = lowering.lower_call(values);
  if (context) context->counts = std::move(lowering.counts());
  return results;
}

}  // namespace cinch::lower
