// Descriptions of names, except the cost of compressors (describe_cost.cpp).
#include "compiler/lsp/describe.h"

#include <algorithm>

#include "dsl/sema/builtins.h"
#include "runtime/core/numbers/scalar_op.h"

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

bool is_bound(NameKind kind) {
  return kind == NameKind::Variable || kind == NameKind::MutableVariable ||
         kind == NameKind::LoopVariable || kind == NameKind::LambdaParameter ||
         kind == NameKind::PayloadParameter || kind == NameKind::GenericSize;
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
      {"step", "number of the step"}};
  for (const auto& [known, meaning] : kMeanings) {
    if (known == name) return meaning;
  }
  return "";
}

std::string declaration_text(const Analysis& analysis, const sema::FileUnit& unit,
                             const Declaration& decl) {
  std::string text = one_line(unit.source->text(decl.whole));
  if (!is_bound(decl.kind)) return text;
  std::string line = decl.name.text;
  if (decl.kind == NameKind::Variable) line = "let " + line;
  if (decl.kind == NameKind::MutableVariable) line = "let mut " + line;
  if (decl.kind == NameKind::LoopVariable) line = "for " + line;
  const std::string* type =
      &unit == &analysis.root() ? analysis.types().find(decl.name.span) : nullptr;
  return type == nullptr ? line : line + ": " + *type;
}

}  // namespace cinch::lsp
