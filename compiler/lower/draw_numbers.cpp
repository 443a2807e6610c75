// Counts the draws of loops; see draw_numbers.h.
#include "compiler/lower/draw_numbers.h"

#include <set>

namespace cinch::lower {

using sema::Expr;
using sema::Stmt;
using sema::StmtKind;

DrawSpace draw_space(const Expr& draw) {
  const bool is_owners = (draw.site & 0xe000) == sema::kOwnerSites;
  return {draw.index, (draw.site >> 16) << 2 | (is_owners ? 2 : 0) | (draw.shared ? 1 : 0)};
}

namespace {

// A `while` counts as if it ran as often as it may. Its condition is computed once more.
HostExprId num_rounds(const Stmt& loop, bool is_condition, HostExprPool& pool) {
  const HostExprId zero = pool.const_int(0);
  if (loop.kind == StmtKind::For) return pool.max(zero, pool.sub(loop.size2, loop.size));
  const HostExprId rounds = pool.max(zero, loop.size);
  return is_condition ? pool.add(rounds, pool.const_int(1)) : rounds;
}

}  // namespace

std::map<DrawSpace, LoopDraws> loop_draws(const sema::CheckedProgram& program, const Stmt& loop,
                                          HostExprPool& pool) {
  std::map<DrawSpace, LoopDraws> result;
  std::set<std::uint64_t> counted;  // a `fn` of several results has its draws once for each
  const auto count = [&](sema::ExprId root, bool is_condition) {
    for (const Draw& draw : find_assigned(program, {root}).draws) {
      const Expr& e = program.exprs[draw.expr.index()];
      const bool is_of_inner_call = e.index > loop.index;
      if (e.stream || is_of_inner_call) continue;
      const DrawSpace space = draw_space(e);
      const std::uint64_t site = std::uint64_t{space.method} << 32 | e.site;
      if (!counted.insert(site << 1 | (e.shared ? 1 : 0)).second) continue;
      HostExprId times = pool.const_int(1);
      for (const Draw::Loop& inner : draw.loops) {
        const Stmt& stmt = program.stmts[inner.stmt.index()];
        times = pool.mul(times, num_rounds(stmt, inner.is_condition, pool));
      }
      const HostExprId all = pool.mul(times, num_rounds(loop, is_condition, pool));
      const HostExprId beyond = pool.sub(all, pool.const_int(1));
      const auto [at, is_first] = result.try_emplace(space, LoopDraws{times, beyond});
      if (is_first) continue;
      at->second.of_round = pool.add(at->second.of_round, times);
      at->second.beyond_sites = pool.add(at->second.beyond_sites, beyond);
    }
  };
  count(loop.expr2, true);
  count(loop.expr, false);
  return result;
}

}  // namespace cinch::lower
