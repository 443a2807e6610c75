#include "dsl/sema/expressions/expressions.h"

#include <algorithm>

#include <fmt/format.h>

#include "dsl/diag/foreign_words.h"
#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

static std::string operands_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " operand" : " operands");
}

CallArgs Calls::sort_args(const ast::Call& node, std::string_view name, Span span,
                          const std::vector<std::string_view>& labels, std::size_t min,
                          std::size_t max) {
  CallArgs args{.name = std::string(name), .span = span};
  for (ast::ArgId id : tree().list(node.args)) {
    const ast::Arg& arg = tree()[id];
    const std::string& label = arg.label.text;
    if (label.empty()) {
      args.positional.push_back(arg.value);
    } else if (std::find(labels.begin(), labels.end(), label) == labels.end()) {
      auto& diag = reporter_.report<DiagKind::UnknownArgument>(arg.label.span, args.name, label);
      dsl::explain_word(diag, dsl::ForeignPlace::Argument, label, arg.label.span,
                        dsl::nearest_name(label, labels));
      args.is_bad = true;
    } else if (!args.named.emplace(label, &arg).second) {
      reporter_.report<DiagKind::DuplicateName>(arg.label.span, label);
      args.is_bad = true;
    }
  }
  const std::size_t found = args.positional.size();
  if (found < min || found > max) {
    const std::string wanted =
        min == max ? operands_text(min) : std::to_string(min) + " to " + operands_text(max);
    auto& diag = reporter_.report<DiagKind::WrongArgumentCount>(span, args.name, wanted,
                                                                std::to_string(found));
    if (const auto known = find_builtin(name)) {
      diag.note("its form is `" + std::string(builtin_info(*known).signature) + "`");
    }
    args.is_bad = true;
  }
  return args;
}

bool Calls::flag(const CallArgs& args, std::string_view label) {
  const auto at = args.named.find(label);
  if (at == args.named.end()) return false;
  const auto value = all_.numbers.constant_value(at->second->value);
  if (value && value->type != HostType::Bool) {
    reporter_.report<DiagKind::BadType>(tree()[at->second->value].span, "`true` or `false`",
                                        "a number");
  }
  return value && value->type == HostType::Bool && value->as_bool();
}

Value Calls::operand(ast::ExprId id) {
  return operand_of(all_.exprs.expr(id));
}

Value Calls::operand_of(const Value& value) {
  if (value.is_error()) return value;
  const Value made = conversions_.unmet(value);
  if (!made.is_error() && !made.is_typed())
    return mistake<DiagKind::BadType>(value.span, "a value", text_.describe(value));
  return made.is_error() ? made : check_lambda_array(made);
}

Value Calls::array_operand(ast::ExprId id, std::string_view name) {
  return array_of(operand(id), name);
}

Value Calls::array_of(const Value& value, std::string_view name) {
  if (value.is_error() || value.type.rank > 0) return value;
  reporter_.report<DiagKind::CannotApply>(value.span, std::string(name), text_.describe(value))
      .note("it takes an array");
  return error_value(value.span);
}

Value Calls::vector_operand(ast::ExprId id, std::string_view name) {
  Value value = array_operand(id, name);
  if (value.is_error() || value.type.rank == 1) return value;
  return mistake<DiagKind::NeedsVector>(value.span, std::string(name), text_.describe(value));
}

Value Calls::matrix_operand(ast::ExprId id, std::string_view name) {
  return matrix_of(operand(id), name);
}

Value Calls::matrix_of(const Value& given, std::string_view name) {
  Value value = array_of(given, name);
  if (value.is_error() || value.type.rank == 2) return value;
  return mistake<DiagKind::NeedsMatrix>(value.span, std::string(name), text_.describe(value));
}

std::optional<HostExprId> Calls::size_arg(ast::ExprId id, std::string_view name) {
  const std::string what = "the size in `" + std::string(name) + "`";
  const auto size = all_.numbers.host_size(id, what, true);
  if (!size) return size;
  if (!sizes_.without_counts(*size))
    return mistake<DiagKind::NotKnownOnHost>(tree()[id].span, "the most that " + what + " can be");
  const bool is_possible = build_.require_nonnegative(
      *size, "the size " + sizes_.size_text(*size) + " is not negative", tree()[id].span);
  return is_possible ? size : std::nullopt;
}

std::optional<std::string_view> Calls::word(ast::ExprId id,
                                            const std::vector<std::string_view>& words) {
  const ast::Expr& given = tree()[id];
  const auto* name = std::get_if<ast::NameRef>(&given.node);
  const auto known =
      name == nullptr ? words.end() : std::find(words.begin(), words.end(), name->name.text);
  if (known != words.end()) return *known;
  std::string wanted;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) wanted += i + 1 == words.size() ? " or " : ", ";
    wanted += fmt::format("`{}`", words[i]);
  }
  const std::string found(env_->unit->source->text(given.span));
  auto& diag = reporter_.report<DiagKind::BadType>(given.span, wanted,
                                                   "`" + found.substr(0, found.find('\n')) + "`");
  if (name != nullptr) {
    diag.suggest(given.span, std::string(dsl::nearest_name(name->name.text, words)));
  }
  return std::nullopt;
}

std::optional<HostExprId> Calls::named_size(const CallArgs& args, std::string_view label) {
  const auto at = args.named.find(label);
  if (at != args.named.end()) return size_arg(at->second->value, args.name);
  return mistake<DiagKind::MissingArgument>(args.span, args.name, "`" + std::string(label) + ":`");
}

std::optional<int> Calls::axis(const CallArgs& args, const Value& x) {
  const auto at = args.named.find("axis");
  if (at == args.named.end()) return is_by_rows() && x.type.rank == 2 ? 1 : -1;
  const auto value = FOUND(all_.numbers.constant_int(at->second->value));
  if (value != 0 && value != 1)
    return mistake<DiagKind::OutOfRange>(at->second->span, "axis " + std::to_string(value),
                                         "0 and 1");
  if (x.type.rank != 2) return mistake<DiagKind::NeedsMatrix>(x.span, "axis:", text_.describe(x));
  return static_cast<int>(value);
}

std::optional<int> Calls::line_axis(const CallArgs& args, const Value& x) {
  const auto along = axis(args, x);
  if (!along || x.type.rank != 2 || *along >= 0) return along;
  reporter_.report<DiagKind::NeedsVector>(x.span, args.name, text_.describe(x))
      .note("of a matrix: along `axis: 0` or `axis: 1`");
  return std::nullopt;
}

Value Calls::check_lambda_array(Value value) {
  if (mode_.lambda_depth == 0 || !value.is_typed() || sizes_.all_constant_sizes(value.type))
    return value;
  return error_value(reporter_.report<DiagKind::ArrayInLambda>(value.span, text_.describe(value))
                         .note("compute it before the lambda, with `let`"));
}

// The `where:` mask. Returns an empty value if there is none, and nothing after a mistake.
std::optional<Value> Calls::mask(const CallArgs& args, const Type& shape) {
  const auto at = args.named.find("where");
  if (at == args.named.end()) return Value{};
  Value value = conversions_.bool_value(all_.exprs.expr(at->second->value), "bools in `where:`");
  if (value.is_error() || check_lambda_array(value).is_error()) return std::nullopt;
  if (value.type.rank == 1 && shape.rank == 2 && all_.operators.is_row_of(value.type, shape)) {
    return all_.operators.as_row(value, shape);
  }
  bool fits = value.type.rank == shape.rank;
  for (int i = 0; fits && i < shape.rank; ++i) {
    fits = prover_.proves_equal(value.type.dims[i], shape.dims[i]) ||
           sizes_.is_one(value.type.dims[i]);
  }
  if (fits) return value;
  Type wanted = shape;
  wanted.dtype = kBool;
  auto& diag = reporter_.report<DiagKind::Mismatch>(value.span, sizes_.type_text(wanted),
                                                    text_.describe(value));
  text_.note_sizes(diag, {&value});
  return std::nullopt;
}

}  // namespace cinch::sema
