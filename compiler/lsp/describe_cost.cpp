// A compressor's claims, payload and traffic: facts of `cinch list` and of the floor of `cinch
// explain`, at the defaults of its parameters.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/analysis/forced_sweeps.h"
#include "compiler/lower/lower.h"
#include "compiler/lsp/describe.h"
#include "compiler/service/formula.h"
#include "runtime/call/parameters.h"
#include "runtime/core/check.h"

namespace cinch::lsp {

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
  analysis::FloorRequest request;
  request.function = kind;
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

std::string sweeps_text(std::size_t count) {
  return fmt::format("{} sweep{}", count, count == 1 ? "" : "s");
}

std::string entry_text(const Compiled& compiled, ir::FunctionKind kind, std::string_view name) {
  const auto sweeps = sweeps_of(compiled, kind);
  if (!sweeps) return "";
  const analysis::SweepBytes bytes = sweeps->bytes();
  return fmt::format("\n- {} moves at least {} read and {} written per element, in {}", name,
                     per_element(bytes.read), per_element(bytes.written),
                     sweeps_text(sweeps->sweeps.size()));
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
