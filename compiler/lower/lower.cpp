// Lowers the program: one function per body and one per state's initial value; see lower.h.
#include "compiler/lower/lower.h"

#include "compiler/lower/body_lowering.h"
#include "runtime/core/check.h"

namespace cinch::lower {

namespace {

using LowerBody = void (BodyLowering::*)(const sema::Body&);

void add_function(const Input& input, const std::optional<sema::Body>& body, ir::FunctionKind kind,
                  LowerBody lower_body, ir::Program& out) {
  if (!body) return;
  ir::Function function = ir::make_function(kind);
  BodyContext cx(input, out, function);
  BodyLowering lowering(cx);
  (lowering.*lower_body)(*body);
  out.functions.push_back(std::move(function));
}

void add_state_inits(const Input& input, ir::Program& out) {
  const sema::CheckedProgram& checked = input.checked;
  CINCH_CHECK(checked.state_inits.size() == checked.info.states.size(),
              "every state needs an initial value");
  for (std::size_t i = 0; i < checked.state_inits.size(); ++i) {
    ir::Function function = ir::make_function(ir::FunctionKind::Encode);
    BodyContext cx(input, out, function);
    BodyLowering(cx).lower_state_init(checked.state_inits[i], checked.info.states[i].type);
    out.state_inits.push_back(std::move(function));
  }
}

// Does a value or a length in the function depend on `leaf`?
bool uses(const ir::Program& program, const ir::Function& function, HostOp leaf) {
  const auto depends = [&](HostExprId id) {
    return id.is_valid() && program.info.exprs.depends_on(id, leaf);
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
  ir::Program out;
  out.info = checked.info;
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

}  // namespace cinch::lower
