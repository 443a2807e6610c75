// The program: one function per body, one per state's initial value; see lower.h.
#include "compiler/lower/lower.h"

#include "compiler/lower/body_lowering.h"
#include "runtime/core/check.h"

namespace cinch::lower {

namespace {

using LowerBody = void (BodyLowering::*)(const sema::Body&);

void add_function(const sema::CheckedProgram& checked, const std::optional<sema::Body>& body,
                  ir::FunctionKind kind, LowerBody lower_body, ir::Program& out) {
  if (!body) return;
  ir::Function function = ir::make_function(kind);
  BodyLowering lowering(checked, out, function);
  (lowering.*lower_body)(*body);
  out.functions.push_back(std::move(function));
}

void add_state_inits(const sema::CheckedProgram& checked, ir::Program& out) {
  CINCH_CHECK(checked.state_inits.size() == checked.info.states.size(),
              "every state needs an initial value");
  for (std::size_t i = 0; i < checked.state_inits.size(); ++i) {
    ir::Function function = ir::make_function(ir::FunctionKind::Encode);
    BodyLowering lowering(checked, out, function);
    lowering.lower_state_init(checked.state_inits[i], checked.info.states[i].type);
    out.state_inits.push_back(std::move(function));
  }
}

}  // namespace

ir::Program lower(const sema::CheckedProgram& checked) {
  ir::Program out;
  out.info = checked.info;
  add_function(checked, checked.encode, ir::FunctionKind::Encode, &BodyLowering::lower_encode, out);
  add_function(checked, checked.decode, ir::FunctionKind::Decode, &BodyLowering::lower_decode, out);
  add_function(checked, checked.finish, ir::FunctionKind::Finish, &BodyLowering::lower_update, out);
  add_function(checked, checked.sync, ir::FunctionKind::Sync, &BodyLowering::lower_update, out);
  add_state_inits(checked, out);
  return out;
}

}  // namespace cinch::lower
