// Numbers of values, and the names and versions through which they are found.
#include "dsl/sema/tree/value_numbering.h"

#include <algorithm>

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

void ValueNumbering::note_let(const Stmt& let) {
  const bool is_mutable = out_.vars[let.var.index()].is_mutable;
  if (is_mutable) first_values_[let.var.index()] = {let.expr, loop_};
  if (!is_mutable) definitions_[let.var.index()] = let.expr;
}

std::uint32_t ValueNumbering::version(VarId var) const {
  const auto known = var_versions_.find(var.index());
  return known == var_versions_.end() ? 0 : known->second;
}

// Until its first assignment a variable has its first value, within the loop of its declaration.
void ValueNumbering::note_read(ExprId read, VarId var) {
  const auto first = first_values_.find(var.index());
  const bool is_first =
      first != first_values_.end() && version(var) == 0 && first->second.second == loop_;
  if (is_first) same_values_[read.index()] = first->second.first;
  read_versions_[read.index()] = {version(var), epoch_};
}

// Finds the expression that defines a value. Looks through names that do not change, blocks that
// only name parts of their value, and fields of a payload.
ExprId ValueNumbering::resolved(ExprId id) const {
  while (true) {
    const Expr& e = out_.exprs[id.index()];
    ExprId next;
    if (const auto same = same_values_.find(id.index()); same != same_values_.end()) {
      next = same->second;
    } else if (e.kind == ExprKind::Var) {
      const auto known = definitions_.find(e.var.index());
      if (known != definitions_.end()) next = known->second;
    } else if (e.kind == ExprKind::Field) {
      const auto known = payload_literals_.find(e.var.index());
      if (known != payload_literals_.end()) next = out_.exprs[known->second.index()].args[e.index];
    } else if (e.kind == ExprKind::Block && !e.args.empty() && e.args[0]) {
      const auto names_a_part = [&](StmtId stmt) {
        return out_.stmts[stmt.index()].kind == StmtKind::Let;
      };
      if (std::ranges::all_of(e.stmts, names_a_part)) next = e.args[0];
    }
    if (!next) return id;
    id = next;
  }
}

// The integer before it was widened.
ExprId ValueNumbering::unwidened(ExprId id) const {
  id = resolved(id);
  const Expr& e = out_.exprs[id.index()];
  if (e.kind != ExprKind::Convert) return id;
  const ExprId inner = resolved(e.args[0]);
  const bool is_wider = widens_losslessly(out_.exprs[inner.index()].type.dtype, e.type.dtype);
  return is_wider ? unwidened(inner) : id;
}

// Two expressions with the same text have the same value. Reads of mutable names contain the number
// of the assignment that they see, and parameters of lambdas contain their position.
std::string ValueNumbering::expression_key(ExprId id) {
  const Expr& e = out_.exprs[id.index()];
  std::string key = std::to_string(static_cast<int>(e.kind)) + dtype_name(e.type.dtype) + ":";
  const auto add = [&](std::uint64_t number) { key += std::to_string(number) + ","; };
  const auto param = e.var ? lambda_params_.find(e.var.index()) : lambda_params_.end();
  if (e.kind == ExprKind::Var && param != lambda_params_.end()) return "parameter" + param->second;
  const auto flags = static_cast<std::uint64_t>(e.axis + 1) * 16 + (e.exclusive ? 4u : 0u) +
                     (e.descending ? 2u : 0u) + (e.shared ? 1u : 0u);
  for (const std::uint64_t number :
       {e.bits, std::uint64_t{e.index}, std::uint64_t{e.var.index()}, std::uint64_t{e.size.index()},
        std::uint64_t{e.size2.index()}, static_cast<std::uint64_t>(e.scalar_op),
        static_cast<std::uint64_t>(e.builtin), static_cast<std::uint64_t>(e.keep), flags}) {
    add(number);
  }
  if (const auto version = read_versions_.find(id.index()); version != read_versions_.end()) {
    add(version->second.first);
    add(version->second.second);
  }
  // Draws, and blocks with effects, are equal only to themselves.
  const bool is_alone =
      e.kind == ExprKind::Block || e.kind == ExprKind::WireLiteral ||
      (e.kind == ExprKind::Builtin && builtin_info(e.builtin).group == BuiltinGroup::Random);
  if (is_alone) {
    add(id.index() + 1);
    return key;
  }
  for (std::size_t i = 0; i < e.params.size(); ++i) {
    const DType dtype = out_.vars[e.params[i].index()].type.dtype;
    lambda_params_[e.params[i].index()] =
        std::to_string(key_depth_) + "," + std::to_string(i) + dtype_name(dtype);
    key += dtype_name(dtype) + ";";
  }
  const bool is_lambda = e.kind == ExprKind::Lambda;
  if (is_lambda) ++key_depth_;
  key += "(";
  for (ExprId arg : e.args) {
    if (arg && e.kind == ExprKind::Convert) arg = unwidened(arg);
    key += arg ? std::to_string(value_number(arg)) + ";" : ";";
  }
  if (is_lambda) --key_depth_;
  return key + ")";
}

std::uint32_t ValueNumbering::value_number(ExprId written) {
  // The most names to look through: chains of names can be longer than the stack allows.
  constexpr int kDeepest = 200;
  ExprId id = key_levels_ < kDeepest ? resolved(written) : written;
  if (const Expr& e = out_.exprs[id.index()]; e.kind == ExprKind::Convert) {
    const ExprId from = unwidened(e.args[0]);
    if (out_.exprs[from.index()].type.dtype == e.type.dtype) id = from;
  }
  const auto known = numbers_.find(id.index());
  if (known != numbers_.end()) return known->second;
  ++key_levels_;
  const std::string text = expression_key(id);
  --key_levels_;
  const auto number = static_cast<std::uint32_t>(numbers_by_key_.size());
  return numbers_[id.index()] = numbers_by_key_.try_emplace(text, number).first->second;
}

}  // namespace cinch::sema
