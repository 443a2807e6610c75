// The weights of operators, the three limits, and the use that is blamed for an excess.

#include "dsl/sema/elaboration/elaboration.h"
#include "dsl/sema/tree/tree.h"

namespace cinch::sema {
using dsl::DiagKind;

namespace {

// The most operations that later stages are designed for; more than the longest chains of operators
// that people write.
constexpr std::size_t kMostOperations = 1u << 15;
// The limit of one run over a file, for everything that it checks.
constexpr std::size_t kMostSteps = 1u << 22;
// The most nested expressions, across calls. The stack holds this many on every platform.
constexpr int kMostLevels = 700;

}  // namespace

// An operator that passes expand counts about as many operations as they make of it.
std::size_t GrowthLimits::operations_of(const Expr& expr) {
  if (expr.kind != ExprKind::Builtin) return 1;
  const auto is_constant = [&](ExprId array, int dim) {
    return prover_.constant(out_.exprs[array.index()].type.dims[dim]).has_value();
  };
  switch (expr.builtin) {
    case BuiltinId::orthonormalize:
      return 350;
    case BuiltinId::top_k:
      return expr.axis < 0 ? 160 : 20;
    case BuiltinId::kth_largest:
      return expr.axis < 0 ? 50 : 20;
    case BuiltinId::median:  // of rows with a mask
    case BuiltinId::quantile:
      return 30;
    case BuiltinId::searchsorted:
      return is_constant(expr.args[0], 0) ? 60 : 250;
    case BuiltinId::var:
    case BuiltinId::std:
    case BuiltinId::argmin:
    case BuiltinId::argmax:
      return 7;
    case BuiltinId::matmul:  // with a matrix of few columns
      return is_constant(expr.args[0], 1) || is_constant(expr.args[1], 1) ? 100 : 1;
    default:
      break;
  }
  // Sums of columns become sums of whole rows if there may be many columns.
  const bool is_by_columns =
      builtin_info(expr.builtin).group == BuiltinGroup::Reduce && expr.axis == 0;
  return is_by_columns && !is_constant(expr.args.front(), 1) ? 60 : 1;
}

void GrowthLimits::weigh(const Expr& expr) {
  std::size_t weight = operations_of(expr);
  const auto add = [&](ExprId id) {
    if (id) weight += weights_[id.index()];
  };
  for (ExprId arg : expr.args) add(arg);
  for (StmtId id : expr.stmts) {
    add(out_.stmts[id.index()].expr);
    add(out_.stmts[id.index()].expr2);
  }
  weights_.push_back(weight);
  num_operations_ += operations_of(expr);
  if (num_operations_ > kMostOperations) {
    report_growth(expr.span, kMostOperations, &Growth::operations);
  } else if (weight > kMostOperations) {
    // A constant of a compressor is one node that is used in many places.
    const bool is_whole = expr.kind == ExprKind::Block && open_uses_.size() == 1;
    report_too_large(is_whole                ? open_uses_[0].span
                     : open_uses_.size() > 1 ? open_uses_[1].span
                                             : expr.span,
                     kMostOperations);
  }
}

bool GrowthLimits::may_go_on(Span span) {
  Work& work = reporter_.work();
  if (work.is_over) return false;
  if (++work.num_steps > kMostSteps) report_growth(span, kMostSteps, &Growth::steps);
  return holds_levels(1, span) && !work.is_over;
}

bool GrowthLimits::holds_levels(int more, Span span) {
  if (levels_ + more <= kMostLevels) return true;
  if (!reporter_.work().is_over) {
    reporter_.report<DiagKind::TooMany>(open_uses_.size() > 1 ? open_uses_[1].span : span,
                                        std::to_string(kMostLevels),
                                        "nested expressions, with those inlined into them");
  }
  reporter_.work().is_over = true;
  return false;
}

// Blames the outermost use that causes most of the growth, else the whole compressor or fn.
void GrowthLimits::report_growth(Span reached, std::size_t most, std::size_t Growth::* measure) {
  const std::size_t now = growth_now().*measure;
  const auto is_most = [&](const OpenUse& use) { return now - use.before.*measure > most / 2; };
  const auto inner = open_uses_.begin() + (open_uses_.empty() ? 0 : 1);
  const auto grown = std::find_if(inner, open_uses_.end(), is_most);
  if (grown != open_uses_.end()) return report_too_large(grown->span, most);
  if (open_uses_.empty()) return report_too_large(reached, most);
  if (is_most(open_uses_.front())) return report_too_large(open_uses_.front().span, most);
  reporter_.work().is_over = true;
  reporter_.report<DiagKind::TooMany>(open_uses_.front().span, std::to_string(most),
                                      "expressions in a file, with those inlined into them");
}

void GrowthLimits::report_too_large(Span span, std::size_t most) {
  if (reporter_.work().is_over) return;
  reporter_.work().is_over = true;
  const std::string text(module_.sources->find(span.file)->text(span));
  reporter_.report<DiagKind::TooLarge>(span, text.substr(0, text.find('\n')), std::to_string(most),
                                       "operations");
}

Growth GrowthLimits::growth_now() const {
  return {num_operations_, reporter_.work().num_steps};
}

std::string Descriptions::number_text(const Value& value) {
  if (value.is_big) return std::to_string(pool().const_value(value.host).bits);
  const std::string text = pool().print(value.host);
  const bool looks_whole = text.find_first_not_of("-0123456789") == std::string::npos;
  return pool().type(value.host) == HostType::F64 && looks_whole ? text + ".0" : text;
}

std::string Descriptions::describe(const Value& value) {
  switch (value.kind) {
    case ValueKind::Error:
      return "an error";
    case ValueKind::Unit:
      return "nothing";
    case ValueKind::Host: {
      const HostType type = pool().type(value.host);
      if (type == HostType::Bool) return "bool";
      if (type == HostType::F32) return "f32";
      if (value.declared && !mode_.in_host) return std::string(dtype_name(*value.declared));
      if (pool().is_const(value.host)) return "the number " + number_text(value);
      if (type == HostType::F64) return "f64";
      return "the size " + sizes_.size_text(value.host);
    }
    case ValueKind::Table:
      return "a table of " + std::to_string(value.table.size()) + " numbers";
    case ValueKind::Typed:
      return sizes_.type_text(value.type);
    case ValueKind::Payload:
    case ValueKind::Wire:
      return "a payload";
    case ValueKind::Tuple:
      return std::to_string(value.elements.size()) + " values";
  }
  return "";
}

// An inlined body has the types of the place of the call. Only at its declaration does it have the
// types in its text.
bool Descriptions::records_types(Span span) const {
  const TypeRecord* types = module_.types;
  if (types == nullptr || span.file != types->file || env_ == nullptr) return false;
  if (env_->instance != nullptr && !env_->instance->prefix.empty()) return false;
  if (all_.calls.is_inlining()) return false;
  return !types->types.contains({span.begin, span.end});
}

void Descriptions::record_text(Span span, std::string text) const {
  module_.types->types.emplace(std::pair(span.begin, span.end), std::move(text));
}

void Descriptions::record_type(Span span, const Value& value) {
  const bool is_known = !value.is_error() && value.kind != ValueKind::Unit;
  if (is_known && records_types(span)) record_text(span, describe(value));
}

void Descriptions::record_type(Span span, const Symbol& symbol) {
  if (!records_types(span)) return;
  if (symbol.kind == SymbolKind::State) {
    record_text(span, sizes_.type_text(out_.info.states[symbol.index].type));
  } else if (symbol.kind == SymbolKind::Param) {
    record_text(span, dtype_name(symbol.value.type.dtype));
  } else {
    record_type(span, symbol.value);
  }
}

dsl::Diagnostic& Descriptions::note_sizes(dsl::Diagnostic& diag,
                                          std::initializer_list<const Value*> values) {
  std::vector<std::pair<std::string, Span>> found;
  std::set<HostExprId> seen;
  for (const Value* value : values) {
    if (!value->is_typed()) continue;
    for (int i = 0; i < value->type.rank; ++i)
      sizes_.collect_sizes(value->type.dims[i], found, seen);
  }
  for (const auto& [name, span] : found) {
    if (span.has_file()) diag.note(span, "`" + name + "` comes from here");
  }
  all_.counts.note_masks(diag, values);
  return diag;
}

}  // namespace cinch::sema
