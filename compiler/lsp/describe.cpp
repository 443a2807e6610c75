// Descriptions of names, except the cost of compressors.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/analysis/forced_sweeps.h"
#include "compiler/lower/lower.h"
#include "compiler/lsp/features.h"
#include "compiler/service/library_list.h"
#include "dsl/sema/builtins.h"
#include "runtime/call/parameters.h"
#include "runtime/core/check.h"
#include "runtime/core/numbers/scalar_eval.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::lsp {
namespace {

// Element-wise operators with a symbol are not called by name.
bool is_called(const ScalarOpInfo& info) {
  constexpr std::string_view kSigns[] = {"neg", "bit_not", "add",    "sub",     "mul", "div",
                                         "mod", "bit_and", "bit_or", "bit_xor", "shl", "shr",
                                         "eq",  "ne",      "lt",     "le",      "gt",  "ge"};
  return std::ranges::find(kSigns, info.name) == std::end(kSigns);
}

std::string scalar_signature(const ScalarOpInfo& info) {
  constexpr std::string_view kOperands[] = {"x", "y", "z"};
  if (info.name == "clamp") return "clamp(x, lo, hi)";
  if (info.name == "select") return "select(c, a, b)";
  std::string text(info.name);
  for (int i = 0; i < info.arity && i < 3; ++i) {
    text += i == 0 ? "(" : ", ";
    text += kOperands[i];
  }
  return text + ")";
}

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!is_blank) line += c;
    if (is_blank && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

}  // namespace

std::optional<OperatorInfo> find_operator(std::string_view name) {
  const auto named = sema::find_builtin(name);
  const auto scalar = find_scalar_op(name);
  OperatorInfo info;
  // `min` and `max` are both: with one operand they reduce, with two they are element-wise.
  if (named) {
    info.signature = sema::builtin_info(*named).signature;
    info.meaning = sema::builtin_info(*named).meaning;
  }
  if (scalar && is_called(scalar_op_info(*scalar))) {
    if (named) info.signature += "\n", info.meaning += "; of two operands: ";
    info.signature += scalar_signature(scalar_op_info(*scalar));
    info.meaning += scalar_op_info(*scalar).meaning;
  }
  if (info.signature.empty()) return std::nullopt;
  return info;
}

std::vector<std::string_view> operator_names() {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < sema::num_builtins(); ++i) {
    const auto id = static_cast<sema::BuiltinId>(i);
    if (id != sema::BuiltinId::matmul) names.push_back(sema::builtin_info(id).name);
  }
  for (int i = 0; i < kNumScalarOps; ++i) {
    const ScalarOpInfo& info = scalar_op_info(static_cast<ScalarOp>(i));
    if (is_called(info) && !sema::find_builtin(info.name)) names.push_back(info.name);
  }
  return names;
}

std::string_view builtin_name_meaning(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kMeanings[] = {
      {"n", "elements of the gradient"},
      {"r", "rows of the gradient, in a compressor of matrices"},
      {"c", "columns of the gradient, in a compressor of matrices"},
      {"world", "number of ranks"},
      {"worker", "number of this rank"},
      {"machine_ranks", "number of ranks on each machine"},
      {"step", "number of the step"}};
  for (const auto& [known, meaning] : kMeanings) {
    if (known == name) return meaning;
  }
  return "";
}

std::string declaration_text(const Analysis& analysis, const sema::FileUnit& unit,
                             const Declaration& decl) {
  std::string text = one_line(unit.source->text(decl.whole));
  const NameKind kind = decl.kind;
  const bool is_bound = kind == NameKind::Variable || kind == NameKind::MutableVariable ||
                        kind == NameKind::LoopVariable || kind == NameKind::LambdaParameter ||
                        kind == NameKind::PayloadParameter || kind == NameKind::GenericSize;
  if (!is_bound) return text;
  std::string line = decl.name.text;
  if (decl.kind == NameKind::Variable) line = "let " + line;
  if (decl.kind == NameKind::MutableVariable) line = "let mut " + line;
  if (decl.kind == NameKind::LoopVariable) line = "for " + line;
  const std::string* type =
      &unit == &analysis.root() ? analysis.types().find(decl.name.span) : nullptr;
  return type == nullptr ? line : line + ": " + *type;
}

// A compressor's claims, payload and traffic: facts of `cinch list` and of the floor of `cinch
// explain`, at the defaults of its parameters.

namespace {

// Costs are given for this many elements, a tensor of 4 MiB.
constexpr std::int64_t kElements = 1 << 20, kColumns = 1 << 10;

struct Compiled {
  sema::CheckedProgram checked;
  ir::Program lowered;
};

// Nothing for a wrapper, a parameter without a default, or a program with errors.
std::optional<Compiled> compile(const Analysis& analysis, const std::string& name) {
  if (analysis.sink().has_errors()) return std::nullopt;
  dsl::DiagSink sink;
  try {
    auto checked = sema::elaborate(analysis.module(), name, {}, sink);
    if (!checked || sink.has_errors()) return std::nullopt;
    ir::Program lowered = lower::lower(*checked);
    return Compiled{std::move(*checked), std::move(lowered)};
  } catch (const InternalError&) {
    return std::nullopt;  // not supported yet; compiling reports it
  }
}

std::optional<analysis::ForcedSweeps> sweeps_of(const Compiled& compiled, ir::FunctionKind kind) {
  if (compiled.lowered.find(kind) == nullptr) return std::nullopt;
  const rt::ProgramInfo& info = compiled.lowered.info;
  analysis::FloorRequest request{.function = kind};
  request.env.n = request.env.rows = kElements;
  request.env.cols = 1;
  if (info.is_matrix) request.env.rows = request.env.cols = kColumns;
  const rt::ParameterValues parameters(info);
  request.env.params = parameters.host_values();
  try {
    auto found = analysis::find_forced_sweeps(compiled.lowered, request);
    return found ? std::optional(std::move(*found)) : std::nullopt;
  } catch (const InternalError&) {
    return std::nullopt;  // a size without a bound
  }
}

std::string per_element(std::int64_t bytes) {
  return fmt::format("{:.4g} B", static_cast<double>(bytes) / static_cast<double>(kElements));
}

std::string entry_text(const Compiled& compiled, ir::FunctionKind kind, std::string_view name) {
  const auto sweeps = sweeps_of(compiled, kind);
  if (!sweeps) return "";
  const analysis::SweepBytes bytes = sweeps->bytes();
  const std::size_t count = sweeps->sweeps.size();
  return fmt::format("\n- {} moves at least {} read and {} written per element, in {} sweep{}",
                     name, per_element(bytes.read), per_element(bytes.written), count,
                     count == 1 ? "" : "s");
}

// "`gradient` 4 B, `residual` 4 B"
std::string reads_text(const std::vector<analysis::Stream>& sweep) {
  std::string text;
  for (const analysis::Stream& stream : sweep) {
    if (stream.use == analysis::Stream::Use::Write) continue;
    text +=
        fmt::format("{}`{}` {}", text.empty() ? "" : ", ",
                    stream.name.substr(0, stream.name.find('%')), per_element(stream.size_bytes));
  }
  return text;
}

std::string line_text(const analysis::ForcedSweeps& sweeps, const analysis::SweepEnd& end) {
  const std::size_t count = sweeps.sweeps.size();
  if (!end.stored.empty()) {
    return fmt::format("\n- stores `{}` in sweep {} of {}: {} per element",
                       end.stored.substr(0, end.stored.find('%')), end.sweep + 1, count,
                       per_element(end.stored_bytes));
  }
  return fmt::format("\n- ends sweep {} of {}, which reads {} per element", end.sweep + 1, count,
                     end.sweep < count ? reads_text(sweeps.sweeps[end.sweep]) : "nothing");
}

struct StatementPlace {
  Span span;
  bool is_let = false;
};

// The innermost statement, or value of a block, that contains the offset.
std::optional<StatementPlace> statement_at(const ast::Module& tree, std::uint32_t offset) {
  std::optional<StatementPlace> best;
  const auto offer = [&](Span span, bool is_let) {
    const bool is_smaller = !best || span.size() < best->span.size();
    if (span.begin <= offset && offset <= span.end && is_smaller) best = {span, is_let};
  };
  for (const ast::Stmt& stmt : tree.stmts.nodes)
    offer(stmt.span, std::holds_alternative<ast::Let>(stmt.node));
  for (const ast::Block& block : tree.blocks.nodes) {
    if (block.value) offer(tree[block.value].span, false);
  }
  return best;
}

// Operations of called functions have places elsewhere.
bool calls_another(const Analysis& analysis, Span statement) {
  const ast::Module& tree = analysis.root().tree;
  return std::ranges::any_of(tree.exprs.nodes, [&](const ast::Expr& expr) {
    const auto* call = std::get_if<ast::Call>(&expr.node);
    const bool is_inside = statement.begin <= expr.span.begin && expr.span.end <= statement.end;
    if (call == nullptr || !is_inside) return false;
    const WordUse* word = analysis.names().word_at(tree[call->callee].span.begin);
    return word == nullptr || word->kind != WordKind::Operator;
  });
}

struct MethodPlace {
  std::string compressor;
  ir::FunctionKind function;
};

std::optional<MethodPlace> method_at(const ast::Module& tree, std::uint32_t offset) {
  constexpr ir::FunctionKind kKinds[] = {ir::FunctionKind::Encode, ir::FunctionKind::Decode,
                                         ir::FunctionKind::Finish, ir::FunctionKind::Sync};
  for (const ast::DeclId id : tree.decls) {
    const auto* node = std::get_if<ast::Compressor>(&tree[id].node);
    if (node == nullptr) continue;
    for (const ast::ItemId item : tree.list(node->items)) {
      const auto* method = std::get_if<ast::Method>(&tree[item].node);
      const Span span = tree[item].span;
      if (method == nullptr || offset < span.begin || offset > span.end) continue;
      return MethodPlace{node->name.text, kKinds[static_cast<std::size_t>(method->kind)]};
    }
  }
  return std::nullopt;
}

}  // namespace

std::string compressor_text(const Analysis& analysis, const std::string& name) {
  auto compiled = compile(analysis, name);
  if (!compiled) return "";
  std::string text;
  for (const sema::Claim& claim : compiled->checked.claims) {
    text += "\n- claims `" + claim.text + "`: " + std::string(claim_info(claim.kind).meaning);
  }
  rt::ProgramInfo& info = compiled->checked.info;
  if (!info.has_sync) {
    text += "\n- payload, in bytes, at most " +
            service::formula_with_sizes(info, service::payload_bound(info));
  }
  text += entry_text(*compiled, ir::FunctionKind::Encode, "encode");
  text += entry_text(*compiled, ir::FunctionKind::Decode, "decode");
  text += entry_text(*compiled, ir::FunctionKind::Sync, "sync");
  return text.empty() ? text : text.substr(1);
}

std::string cost_text(const Analysis& analysis, std::uint32_t offset) {
  const ast::Module& tree = analysis.root().tree;
  const auto statement = statement_at(tree, offset);
  const auto place = method_at(tree, offset);
  if (!statement || !place) return "";
  const auto compiled = compile(analysis, place->compressor);
  const auto sweeps = compiled ? sweeps_of(*compiled, place->function) : std::nullopt;
  if (!sweeps) return "";
  std::vector<std::string> lines;
  for (const analysis::SweepEnd& end : sweeps->ends) {
    const bool is_here = end.span.file == analysis.source().id() &&
                         statement->span.begin <= end.span.begin &&
                         end.span.end <= statement->span.end;
    const std::string line = is_here ? line_text(*sweeps, end) : "";
    if (is_here && std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
  }
  if (!lines.empty()) return fmt::format("This line:\n{}", fmt::join(lines, ""));
  // The cost of an assigned or sent value is shown where it is made.
  const bool is_known = statement->is_let && !calls_another(analysis, statement->span);
  return is_known ? "This line moves nothing: it is computed where it is used." : "";
}

}  // namespace cinch::lsp
