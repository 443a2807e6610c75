// Prints the checked tree as indented text: one line per statement. Expressions look like calls,
// with types if these differ from the operands' types.
#include <fmt/format.h>

#include <cstring>

#include "dsl/sema/sema.h"
#include "runtime/core/numbers/dtype.h"
#include "runtime/core/params.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::sema {
namespace {

class Dumper {
 public:
  explicit Dumper(const CheckedProgram& program) : p_(program) {}

  std::string run() {
    line(0, "program " + p_.info.name);
    header();
    body("encode", p_.encode);
    body("decode", p_.decode);
    body("finish", p_.finish);
    body("sync", p_.sync);
    return std::move(out_);
  }

 private:
  void line(int indent, const std::string& text) {
    out_ += std::string(static_cast<std::size_t>(indent) * 2, ' ') + text + "\n";
  }

  std::string size(HostExprId id) const {
    const auto param = [&](std::uint32_t i) { return p_.info.params[i].name; };
    const auto count = [&](std::uint32_t i) { return p_.info.counts[i].name; };
    return p_.info.exprs->print(id, param, count);
  }

  std::string type(const Type& t) const {
    std::string element = dtype_name(t.dtype);
    if (t.rank == 0) return element;
    std::string text = "[" + element + "; " + size(t.dims[0]);
    if (t.rank == 2) text += ", " + size(t.dims[1]);
    return text + "]";
  }

  void header() {
    for (const auto& c : p_.info.constants) line(1, fmt::format("const {} = {}", c.name, c.value));
    for (const auto& p : p_.info.params) {
      std::string text = p.is_input ? fmt::format("input {}: {}", p.name, dtype_name(p.dtype))
                                    : fmt::format("param {}: {} = {}", p.name, dtype_name(p.dtype),
                                                  p.default_value);
      if (p.range) text += " in " + rt::range_text(*p.range);
      line(1, text);
    }
    for (const auto& s : p_.info.sizes) line(1, "size " + s.name + " = " + size(s.value));
    for (std::size_t i = 0; i < p_.info.states.size(); ++i) {
      const auto& s = p_.info.states[i];
      if (s.is_input) {
        line(1, "input " + s.name + ": " + type(s.type));
        continue;
      }
      line(1, "state " + s.name + ": " + type(s.type) + " = " + expr(p_.state_inits[i]));
    }
    for (const Claim& claim : p_.claims) line(1, "claims " + claim.text);
    if (!p_.encode) return;
    line(1, "wire");
    for (const auto& c : p_.info.wire.counts) {
      line(2, "count " + c.name + " <= " + size(c.bound));
    }
    for (const auto& f : p_.info.wire.fields) {
      constexpr const char* kSums[] = {"", " by sum", " by min", " by max"};
      std::string text = f.name + ": " + type(f.type) + kSums[static_cast<std::size_t>(f.sum)];
      if (f.ascending) text += " ascending";
      if (f.index_limit) text += " below " + size(*f.index_limit);
      if (!f.packing.empty()) text += " packs " + f.packing;
      line(2, text);
    }
  }

  void body(const char* name, const std::optional<Body>& b) {
    if (!b) return;
    line(1, name);
    block(2, b->root);
  }

  const Expr& node(ExprId id) const { return p_.exprs[id.index()]; }

  void block(int indent, ExprId id) {
    if (!id) return;
    const Expr& e = node(id);
    if (e.kind != ExprKind::Block) {
      if (e.kind == ExprKind::If) return if_lines(indent, "", e);
      return line(indent, expr(id));
    }
    for (StmtId stmt : e.stmts) statement(indent, p_.stmts[stmt.index()]);
    if (!e.args.empty()) block(indent, e.args[0]);
  }

  void if_lines(int indent, const std::string& head, const Expr& e) {
    line(indent, head + "if " + expr(e.args[0]));
    block(indent + 1, e.args[1]);
    if (e.args.size() < 3 || !e.args[2]) return;
    line(indent, "else");
    block(indent + 1, e.args[2]);
  }

  // Prints `head` and the expression, on one line or as a nested block.
  void value(int indent, const std::string& head, ExprId id) {
    if (node(id).kind == ExprKind::If) return if_lines(indent, head, node(id));
    if (node(id).kind != ExprKind::Block) return line(indent, head + expr(id));
    line(indent, head + "do");
    block(indent + 1, id);
  }

  std::string var(VarId id) const {
    return fmt::format("{}.{}", p_.vars[id.index()].name, id.index());
  }

  static std::string proofs(bool unique, bool in_bounds) {
    return std::string(unique ? " unique" : "") + (in_bounds ? " in_bounds" : "");
  }

  void statement(int indent, const Stmt& s) {
    switch (s.kind) {
      case StmtKind::Let: {
        const Var& v = p_.vars[s.var.index()];
        const char* word = v.is_mutable ? "let mut " : "let ";
        return value(indent, word + var(s.var) + ": " + type(v.type) + " = ", s.expr);
      }
      case StmtKind::Assign:
        return value(indent, var(s.var) + " = ", s.expr);
      case StmtKind::AssignState:
        return value(indent, "state " + p_.info.states[s.index].name + " = ", s.expr);
      case StmtKind::AssignIndexed:
        return value(indent,
                     (s.is_state ? "state " + p_.info.states[s.index].name : var(s.var)) +
                         (s.is_by_element ? "[element " : "[") + expr(s.expr2) +
                         proofs(s.proved_unique, s.proved_in_bounds) + "] = ",
                     s.expr);
      case StmtKind::For:
        line(indent, "for " + var(s.var) + " in " + size(s.size) + ".." + size(s.size2));
        return block(indent + 1, s.expr);
      case StmtKind::While:
        value(indent, "while at_most " + size(s.size) + " ", s.expr2);
        return block(indent + 1, s.expr);
      case StmtKind::Expr:
        return block(indent, s.expr);
      case StmtKind::Assert:
        return line(indent, "assert " + expr(s.expr2) + ", \"" + s.text + "\"");
      case StmtKind::LetPayload:
        return value(indent, "payload " + var(s.var) + " = ", s.expr);
      case StmtKind::CheckHost:
        return line(indent, "check " + size(s.size) + ", \"" + s.text + "\"");
    }
  }

  std::string literal(const Expr& e) const {
    if (is_bool(e.type.dtype)) return e.bits != 0 ? "true" : "false";
    if (!is_float(e.type.dtype)) {
      return fmt::format("{}_{}", static_cast<std::int64_t>(e.bits), dtype_name(e.type.dtype));
    }
    double number;
    std::memcpy(&number, &e.bits, sizeof number);
    return fmt::format("{}_{}", number, dtype_name(e.type.dtype));
  }

  std::string args(const Expr& e) const {
    std::string text;
    for (ExprId arg : e.args) {
      if (!text.empty()) text += ", ";
      text += arg ? expr(arg) : "-";
    }
    return text;
  }

  std::string builtin(const Expr& e) const {
    std::string text = std::string(builtin_info(e.builtin).name) + "(" + args(e);
    if (e.size) text += fmt::format(", size {}", size(e.size));
    if (e.axis >= 0) text += fmt::format(", axis {}", e.axis);
    if (e.exclusive) text += ", exclusive";
    if (e.descending) text += ", descending";
    if (builtin_info(e.builtin).group == BuiltinGroup::Random) {
      text += fmt::format(", site {:#x}", e.stream.value_or(e.site));
      if (e.shared) text += " shared";
    }
    if (e.keep != Keep::Only) text += e.keep == Keep::First ? ", first" : ", last";
    if (e.builtin == BuiltinId::allreduce) {
      text += e.is_mean ? ", mean" : fmt::format(", {}", scalar_op_info(e.scalar_op).name);
    }
    if (e.travels_in) text += ", in " + dtype_name(*e.travels_in);
    if (e.group) text += fmt::format(", group {}, stride {}", size(e.group), size(e.stride));
    if (e.builtin == BuiltinId::filter || e.builtin == BuiltinId::nonzero) {
      text += ", " + p_.info.counts[e.index].name;
    }
    return text + proofs(e.proved_unique, e.proved_in_bounds) + "): " + type(e.type);
  }

  std::string expr(ExprId id) const {
    if (!id) return "-";
    const Expr& e = node(id);
    switch (e.kind) {
      case ExprKind::Literal:
        return literal(e);
      case ExprKind::Table:
        return "[" + args(e) + "]";
      case ExprKind::HostSize:
        return size(e.size) + "_" + dtype_name(e.type.dtype);
      case ExprKind::Param:
        return "param " + p_.info.params[e.index].name;
      case ExprKind::Var:
        return var(e.var);
      case ExprKind::State:
        return "state " + p_.info.states[e.index].name;
      case ExprKind::Gradient:
        return "gradient";
      case ExprKind::Field:
        return fmt::format("{}.#{}", var(e.var), e.index);
      case ExprKind::Scalar:
        return std::string(scalar_op_info(e.scalar_op).name) + "(" + args(e) + ")";
      case ExprKind::Convert:
        return "convert<" + dtype_name(e.type.dtype) + ">(" + args(e) + ")";
      case ExprKind::Bitcast:
        return "bitcast<" + dtype_name(e.type.dtype) + ">(" + args(e) + ")";
      case ExprKind::CallExtern:
        return "extern " + p_.info.externs[e.index].name + "(" + args(e) + ")";
      case ExprKind::Builtin:
        return builtin(e);
      case ExprKind::Index:
        return expr(e.args[0]) + "[" + expr(e.args[1]) + proofs(false, e.proved_in_bounds) + "]";
      case ExprKind::Slice:
        return expr(e.args[0]) + "[from " + (e.size ? size(e.size) : expr(e.args[1])) +
               proofs(false, e.proved_in_bounds) + "]: " + type(e.type);
      case ExprKind::Lambda:
        return lambda(e);
      case ExprKind::Block:
        return "do { " + inline_block(e) + " }";
      case ExprKind::If:
        return "if " + expr(e.args[0]) + " { " + expr(e.args[1]) + " } else { " +
               (e.args.size() > 2 ? expr(e.args[2]) : "") + " }";
      case ExprKind::WireLiteral:
        return "wire(" + args(e) + ")";
    }
    return "";
  }

  std::string inline_block(const Expr& e) const {
    Dumper inner(p_);
    for (StmtId stmt : e.stmts) inner.statement(0, p_.stmts[stmt.index()]);
    std::string text;
    for (char c : inner.out_) text += c == '\n' ? std::string("; ") : std::string(1, c);
    return e.args.empty() ? text : text + expr(e.args[0]);
  }

  std::string lambda(const Expr& e) const {
    std::string text = "|";
    for (std::size_t i = 0; i < e.params.size(); ++i) {
      text += (i > 0 ? ", " : "") + var(e.params[i]);
    }
    return text + "| " + expr(e.args[0]);
  }

  const CheckedProgram& p_;
  std::string out_;
};

}  // namespace

std::string dump(const CheckedProgram& program) {
  return Dumper(program).run();
}

}  // namespace cinch::sema
