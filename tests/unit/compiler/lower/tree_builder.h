// Hand-written checked trees, as sema would make them, for tests of lowering that need no text.
#pragma once
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "dsl/sema/checked.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::sema {

class TreeBuilder {
 public:
  CheckedProgram program;

  // Adds the checker's notes about fields if a test has not: fields are not packed.
  const CheckedProgram& complete() {
    for (const auto& field : program.info.wire.fields) {
      if (program.fields.size() >= program.info.wire.fields.size()) break;
      program.fields.push_back({.type = field.type});
    }
    return program;
  }

  HostExprPool& sizes() { return *program.info.exprs; }
  HostExprId n() { return sizes().n(); }
  Type scalar(DType dtype) { return {dtype, 0, {}}; }
  Type vec(DType dtype, HostExprId size) { return {dtype, 1, {size, {}}}; }
  Type vec(DType dtype, std::int64_t size) { return vec(dtype, sizes().const_int(size)); }
  Type mat(DType dtype, HostExprId rows, HostExprId cols) { return {dtype, 2, {rows, cols}}; }

  ExprId add(Expr e) {
    program.exprs.push_back(std::move(e));
    return ExprId(program.exprs.size() - 1);
  }
  const Type& type(ExprId id) { return program.exprs[id.index()].type; }
  ExprId make(ExprKind kind, Type type, std::vector<ExprId> args = {}) {
    Expr e{};
    e.kind = kind;
    e.type = type;
    e.args = std::move(args);
    return add(std::move(e));
  }
  Expr& at(ExprId id) { return program.exprs[id.index()]; }

  ExprId num(double value, DType dtype = kF32) {
    const ExprId id = make(ExprKind::Literal, scalar(dtype));
    at(id).bits = is_float(dtype) ? std::bit_cast<std::uint64_t>(value)
                                  : static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    return id;
  }
  ExprId table(DType dtype, const std::vector<double>& values) {
    std::vector<ExprId> args;
    for (double v : values) args.push_back(num(v, dtype));
    const auto size = static_cast<std::int64_t>(values.size());
    return make(ExprKind::Table, vec(dtype, size), std::move(args));
  }
  ExprId gradient() { return make(ExprKind::Gradient, vec(kF32, n())); }
  ExprId op(ScalarOp op, std::vector<ExprId> args) {
    Type result = type(args.front());
    for (ExprId arg : args) {
      if (type(arg).rank > result.rank) result = type(arg);
    }
    result.dtype = type(args.back()).dtype;
    if (scalar_op_info(op).result == ScalarResult::Bool) result.dtype = kBool;
    const ExprId id = make(ExprKind::Scalar, result, std::move(args));
    at(id).scalar_op = op;
    return id;
  }
  ExprId call(BuiltinId builtin, Type type, std::vector<ExprId> args) {
    const ExprId id = make(ExprKind::Builtin, type, std::move(args));
    at(id).builtin = builtin;
    return id;
  }
  VarId var(std::string name, Type type, bool is_mutable = false) {
    program.vars.push_back({std::move(name), type, is_mutable, false, {}, {}, {}});
    return VarId(program.vars.size() - 1);
  }
  ExprId use(VarId v) {
    const ExprId id = make(ExprKind::Var, program.vars[v.index()].type);
    at(id).var = v;
    return id;
  }
  ExprId lambda(std::vector<VarId> params, ExprId body) {
    const ExprId id = make(ExprKind::Lambda, type(body), {body});
    at(id).params = std::move(params);
    return id;
  }
  ExprId if_else(ExprId condition, ExprId then, ExprId otherwise) {
    return make(ExprKind::If, type(then), {condition, then, otherwise});
  }

  StmtId stmt(StmtKind kind, VarId v, ExprId expr, ExprId expr2 = {}) {
    Stmt s{};
    s.kind = kind;
    s.var = v;
    s.expr = expr;
    s.expr2 = expr2;
    program.stmts.push_back(std::move(s));
    return StmtId(program.stmts.size() - 1);
  }
  Stmt& at(StmtId id) { return program.stmts[id.index()]; }
  StmtId let(VarId v, ExprId e) { return stmt(StmtKind::Let, v, e); }
  StmtId assign(VarId v, ExprId e) { return stmt(StmtKind::Assign, v, e); }
  ExprId block(std::vector<StmtId> stmts, ExprId value = {}) {
    const ExprId id = make(ExprKind::Block, value ? type(value) : Type{});
    at(id).stmts = std::move(stmts);
    if (value) at(id).args = {value};
    return id;
  }

  // decode(w) { … } for a program whose wire holds value: [f32; n].
  VarId wire_of_values() {
    program.info.name = "test";
    program.info.wire.fields = {{"value", vec(kF32, n()), {}, false, {}}};
    const VarId w = var("w", {});
    program.vars[w.index()].is_payload = true;
    program.vars[w.index()].field_types = {vec(kF32, n())};
    return w;
  }
  ExprId value_field(VarId w) {
    const ExprId id = make(ExprKind::Field, vec(kF32, n()));
    at(id).var = w;
    return id;
  }
};

}  // namespace cinch::sema
