// Lowers the program: one function per body and one per state's initial value. First it numbers the
// draws, and finds what loops and branches change.
#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "compiler/lower/emitter.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/parts/body_lowering.h"
#include "runtime/core/check.h"
#include "runtime/core/params.h"

namespace cinch::lower {
void BodyLowering::lower_encode(const sema::Body& body) {
  enter_gradient();
  enter_states();
  std::vector<ValueId> fields = lower_payload(body.root);
  const rt::WireInfo& wire = out_.info.wire;
  CINCH_CHECK(fields.size() == wire.fields.size(), "one value per wire field");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    // Of the field's type the sizes stand in the wire's counts; here the array's own stand.
    const Type& type = checked_.fields[i].type;
    const ValueId stored = emit_.convert(fields[i], type.dtype);
    const bool is_repeated = emit_.type(stored).rank == 0 && type.rank > 0;
    fields[i] = is_repeated ? emit_.spread(stored, type) : stored;
    emit_.name(stored, wire.fields[i].name);
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const sema::CheckedField& field = checked_.fields[i];
    const bool is_packed = field.code != sema::FieldCode::Plain;
    function_.results.fields.push_back(is_packed ? pack_field(i, fields) : fields[i]);
  }
  hand_out_counts(fields);
  hand_out_states();
  emit_.yield({});
}

void BodyLowering::lower_decode(const sema::Body& body) {
  std::vector<ValueId> fields;
  for (std::size_t i = 0; i < out_.info.wire.fields.size(); ++i) {
    fields.push_back(emit_.field(static_cast<std::uint32_t>(i)));
    emit_.name(fields.back(), out_.info.wire.fields[i].name);
    if (checked_.fields[i].code != sema::FieldCode::Plain) {
      fields.back() = unpack_field(i, fields);
    }
  }
  payloads_[body.payload] = std::move(fields);
  function_.results.output = emit_.fit(value(body.root).id, output_type());
  emit_.yield({});
}

void BodyLowering::lower_update(const sema::Body& body) {
  enter_gradient();
  enter_states();
  function_.results.output = emit_.fit(value(body.root).id, output_type());
  hand_out_states();
  emit_.yield({});
}

void BodyLowering::lower_state_init(ExprId init, const Type& type) {
  function_.results.output = emit_.fit(value(init).id, type);
  emit_.yield({});
}

void BodyLowering::enter_gradient() {
  gradient_ = emit_.gradient();
  emit_.name(gradient_, "g");
}

// The result of decode, finish and sync has the gradient's type.
Type BodyLowering::output_type() {
  HostExprPool& pool = emit_.exprs();
  return out_.info.is_matrix ? matrix_type(kF32, pool.rows(), pool.cols())
                             : vector_type(kF32, pool.n());
}

void BodyLowering::enter_states() {
  for (std::size_t i = 0; i < out_.info.states.size(); ++i) {
    states_.push_back(emit_.state(static_cast<std::uint32_t>(i)));
    emit_.name(states_.back(), out_.info.states[i].name);
  }
}

void BodyLowering::hand_out_states() {
  function_.results.states = states_;
}

// A wire count is the length of the arrays that are stored under it, or of the words from packing
// them.
void BodyLowering::hand_out_counts(const std::vector<ValueId>& fields) {
  const rt::WireInfo& wire = out_.info.wire;
  for (std::uint32_t count = 0; count < wire.counts.size(); ++count) {
    ValueId found;
    for (std::size_t i = 0; i < wire.fields.size() && !found; ++i) {
      found = length_under(count, checked_.fields[i].type, fields[i]);
      if (found) break;
      found = length_under(count, wire.fields[i].type, function_.results.fields[i]);
    }
    CINCH_CHECK(found.is_valid(), "no field has the wire count " + wire.counts[count].name);
    function_.results.counts.push_back(found);
  }
}

// The length of the dimension whose size in a field's type is `count`; invalid if there is none.
ValueId BodyLowering::length_under(std::uint32_t count, const Type& type, ValueId value) {
  for (int d = 0; d < type.rank; ++d) {
    const HostExprNode& node = emit_.exprs().node(type.dims[d]);
    if (node.op != HostOp::Count || node.payload != count) continue;
    return host_scalar(emit_.type(value).dims[d], kU32);
  }
  return {};
}

namespace {

using LowerBody = void (BodyLowering::*)(const sema::Body&);

void add_function(const Input& input, const std::optional<sema::Body>& body, ir::FunctionKind kind,
                  LowerBody lower_body, ir::Program& out) {
  if (!body) return;
  ir::Function function = ir::make_function(kind);
  BodyLowering lowering(input, out, function);
  (lowering.*lower_body)(*body);
  out.functions.push_back(std::move(function));
}

void add_state_inits(const Input& input, ir::Program& out) {
  const sema::CheckedProgram& checked = input.checked;
  CINCH_CHECK(checked.state_inits.size() == checked.info.states.size(),
              "every state needs an initial value");
  for (std::size_t i = 0; i < checked.state_inits.size(); ++i) {
    ir::Function function = ir::make_function(ir::FunctionKind::Encode);
    BodyLowering lowering(input, out, function);
    lowering.lower_state_init(checked.state_inits[i], checked.info.states[i].type);
    out.state_inits.push_back(std::move(function));
  }
}

// Does a value or a length in the function depend on `leaf`?
bool uses(const ir::Program& program, const ir::Function& function, HostOp leaf) {
  const auto depends = [&](HostExprId id) {
    return id.is_valid() && program.info.exprs->depends_on(id, leaf);
  };
  for (const ir::Op& op : function.ops) {
    if (depends(op.attrs.size) || depends(op.attrs.size2)) return true;
    for (const ir::ValueId result : op.results) {
      const ir::Type& type = function.values[result.index()].type;
      for (int d = 0; d < type.rank; ++d) {
        if (depends(type.dims[d])) return true;
      }
    }
  }
  return false;
}

}  // namespace

ir::Program lower(const sema::CheckedProgram& checked, const dsl::SourceSet* sources) {
  const Input input{checked, sources};
  ir::Program out{.info = checked.info};
  add_function(input, checked.encode, ir::FunctionKind::Encode, &BodyLowering::lower_encode, out);
  add_function(input, checked.decode, ir::FunctionKind::Decode, &BodyLowering::lower_decode, out);
  add_function(input, checked.finish, ir::FunctionKind::Finish, &BodyLowering::lower_update, out);
  add_function(input, checked.sync, ir::FunctionKind::Sync, &BodyLowering::lower_update, out);
  add_state_inits(input, out);
  if (const ir::Function* decode = out.find(ir::FunctionKind::Decode)) {
    out.info.decode_world = uses(out, *decode, HostOp::World);
    out.info.decode_step = uses(out, *decode, HostOp::Step);
  }
  return out;
}

// Counts the draws of loops.

using sema::Expr;
using sema::Stmt;
using sema::StmtKind;

DrawSpace draw_space(const Expr& draw) {
  const bool is_owners = (draw.site & 0xe000) == sema::kOwnerSites;
  return {draw.index, (draw.site >> 16) << 2 | (is_owners ? 2 : 0) | (draw.shared ? 1 : 0)};
}

// A `while` counts as if it ran as often as it may. Its condition is computed once more.
static HostExprId num_rounds(const Stmt& loop, bool is_condition, HostExprPool& pool) {
  const HostExprId zero = pool.const_int(0);
  if (loop.kind == StmtKind::For) return pool.max(zero, pool.sub(loop.size2, loop.size));
  const HostExprId rounds = pool.max(zero, loop.size);
  return is_condition ? pool.add(rounds, pool.const_int(1)) : rounds;
}

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

// A walk over the checked tree that collects assignments and draws.

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
