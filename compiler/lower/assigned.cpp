// A walk over the checked tree that collects assignments and draws; see assigned.h.
#include "compiler/lower/assigned.h"

#include <algorithm>
#include <unordered_set>

namespace cinch::lower {

namespace {

using sema::Expr;
using sema::ExprId;
using sema::ExprKind;
using sema::Stmt;
using sema::StmtId;
using sema::StmtKind;

bool is_draw(const Expr& e) {
  return e.kind == ExprKind::Builtin &&
         sema::builtin_info(e.builtin).group == sema::BuiltinGroup::Random;
}

class Walk {
 public:
  explicit Walk(const sema::CheckedProgram& program) : program_(program) {}

  void visit(ExprId id) {
    if (!id) return;
    const Expr& e = program_.exprs[id.index()];
    arrays_ = arrays_ || e.type.rank > 0 || e.kind == ExprKind::Lambda;
    for (StmtId stmt : e.stmts) visit(stmt);
    for (ExprId arg : e.args) visit(arg);
    if (is_draw(e)) result_.draws.push_back({id, loops_});
  }

  Assigned take() {
    std::erase_if(result_.vars, [&](sema::VarId v) { return declared_.contains(v); });
    sort_unique(result_.vars);
    sort_unique(result_.states);
    return std::move(result_);
  }
  bool arrays() const { return arrays_; }

 private:
  void visit(StmtId id) {
    const Stmt& s = program_.stmts[id.index()];
    if (s.kind == StmtKind::Let) declared_.insert(s.var);
    if (s.kind == StmtKind::Assign || (s.kind == StmtKind::AssignIndexed && !s.is_state)) {
      result_.vars.push_back(s.var);
    }
    if (s.kind == StmtKind::AssignState || (s.kind == StmtKind::AssignIndexed && s.is_state)) {
      result_.states.push_back(s.index);
    }
    const bool is_loop = s.kind == StmtKind::For || s.kind == StmtKind::While;
    if (is_loop) loops_.push_back({id, true});
    visit(s.expr2);
    if (is_loop) loops_.back().is_condition = false;
    visit(s.expr);
    if (is_loop) loops_.pop_back();
  }

  template <typename T>
  static void sort_unique(std::vector<T>& items) {
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
  }

  const sema::CheckedProgram& program_;
  std::unordered_set<sema::VarId> declared_;
  Assigned result_;
  std::vector<Draw::Loop> loops_;
  bool arrays_ = false;
};

}  // namespace

Assigned find_assigned(const sema::CheckedProgram& program, const std::vector<ExprId>& roots) {
  Walk walk(program);
  for (ExprId root : roots) walk.visit(root);
  return walk.take();
}

bool touches_arrays(const sema::CheckedProgram& program, ExprId root) {
  Walk walk(program);
  walk.visit(root);
  return walk.arrays();
}

}  // namespace cinch::lower
