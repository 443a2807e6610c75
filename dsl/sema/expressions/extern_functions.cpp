// Headers of `extern fn`s, and calls of their functions.
#include "dsl/sema/expressions/expressions.h"

#include <algorithm>

#include "dsl/sema/elaboration/elaboration.h"
#include "runtime/core/hash.h"
#include "runtime/core/mapped.h"

namespace cinch::sema {

using dsl::DiagKind;

std::optional<DType> Calls::extern_type(ast::TypeId id) {
  const std::size_t errors = reporter_.num_errors();
  const auto type = conversions_.dtype_of(id);
  if (type && rt::is_cpp_type(*type)) return type;
  if (reporter_.num_errors() == errors) {
    reporter_.report<DiagKind::ExternType>(tree()[id].span,
                                           std::string(env_->unit->source->text(tree()[id].span)));
  }
  return std::nullopt;
}

// The types of the parameters, then the type of the result.
std::optional<std::vector<DType>> Calls::extern_types(const ast::ExternFn& fn) {
  std::vector<DType> types;
  for (std::uint32_t i = 0; i < fn.params.count; ++i) {
    const ast::Param& param = tree()[tree().params.pool[fn.params.first + i]];
    types.push_back(FOUND(extern_type(param.type)));
  }
  if (types.empty()) return mistake<DiagKind::ExternType>(fn.name.span, "()");
  types.push_back(FOUND(extern_type(fn.result)));
  return types;
}

void Calls::report_extern(const ast::ExternFn& fn, const rt::ExternReply& reply) {
  const auto add = [&]() -> dsl::Diagnostic& {
    const std::string& name = fn.name.text;
    switch (reply.outcome) {
      case rt::ExternOutcome::NotFound:
        return reporter_.report<DiagKind::ExternNotFound>(fn.header_span, fn.header, name);
      case rt::ExternOutcome::Mismatch:
        return reporter_.report<DiagKind::ExternMismatch>(fn.name.span, name, fn.header);
      case rt::ExternOutcome::Ambiguous:
        return reporter_.report<DiagKind::ExternAmbiguous>(fn.name.span, name, fn.header);
      case rt::ExternOutcome::Refused:
        return reporter_.report<DiagKind::ExternRefused>(fn.name.span, name, reply.message);
      default:
        return reporter_.report<DiagKind::ExternHeader>(fn.header_span, fn.header, reply.message);
    }
  };
  dsl::Diagnostic& diag = add();
  for (const rt::ExternNote& note : reply.notes) {
    const dsl::SourceBuffer* file = module_.sources->find_name(note.path);
    if (file == nullptr) {
      diag.note(note.text);
    } else {
      diag.note({file->id(), static_cast<std::uint32_t>(note.begin),
                 static_cast<std::uint32_t>(note.end)},
                note.text);
    }
  }
}

// Adds the headers to the files of the run: diagnostics point into them, and the cache compares
// them.
void Calls::add_headers(rt::ExternReply& reply) const {
  for (rt::ExternFile& file : reply.files) {
    const dsl::SourceBuffer* known = module_.sources->find_name(file.path);
    if (known == nullptr) {
      module_.sources->add(std::move(file.path), std::move(file.text));
    } else if (known->text() != file.text) {
      reply = {.message = "'" + file.path + "' changed while the program was read"};
      return;
    }
  }
}

const rt::ExternInfo* Calls::find_extern(const DeclRef& decl) {
  const auto& fn = std::get<ast::ExternFn>((*decl).node);
  const auto known = module_.externs.find(&fn);
  if (known != module_.externs.end()) return known->second.get();
  std::unique_ptr<const rt::ExternInfo>& found = module_.externs[&fn];
  Environment env{decl.unit, nullptr, {Scope{}}};
  std::optional<std::vector<DType>> types;
  all_.exprs.with_environment(env, [&] { types = extern_types(fn); });
  if (!types) return nullptr;
  rt::ExternRequest request{fn.header, decl.unit->source->name(), fn.name.text, *types, {}};
  request.result = types->back();
  request.params.pop_back();
  rt::ExternReply reply = module_.read_extern(request);
  add_headers(reply);
  if (reply.outcome != rt::ExternOutcome::Found) {
    if (reply.outcome == rt::ExternOutcome::Mismatch) {
      std::string params;
      for (const DType type : request.params)
        params += (params.empty() ? "" : ", ") + dtype_name(type);
      const std::string wanted = "wanted is (" + params + ") -> " + dtype_name(request.result);
      reply.notes.insert(reply.notes.begin(), {wanted, {}, 0, 0});
    }
    report_extern(fn, reply);
    return nullptr;
  }
  const Hash128 digest = hash128(reply.source);
  found = std::make_unique<const rt::ExternInfo>(rt::ExternInfo{fn.name.text,
                                                                request.params,
                                                                request.result,
                                                                reply.work,
                                                                std::move(reply.source),
                                                                {digest.low, digest.high}});
  return found.get();
}

std::uint32_t Calls::extern_index(const rt::ExternInfo& function) {
  auto& all = out_.info.externs;
  const auto known = std::find_if(all.begin(), all.end(), [&](const rt::ExternInfo& each) {
    return each.name == function.name && each.digest == function.digest;
  });
  if (known == all.end()) {
    all.push_back(function);
    return static_cast<std::uint32_t>(all.size() - 1);
  }
  return static_cast<std::uint32_t>(known - all.begin());
}

Value Calls::call_extern(const DeclRef& decl, const ast::ExternFn& fn, const ast::Call& node,
                         Span span) {
  if (!module_.read_extern && !mode_.is_check)
    return error_value(
        reporter_.report<DiagKind::ExternNotCompiled>(span).note(fn.name.span, "declared here"));
  const CallArgs args = sort_args(node, fn.name.text, span, {}, fn.params.count, fn.params.count);
  if (args.is_bad) return error_value(span);
  auto operands =
      mapped<Value>(args.positional, [&](ast::ExprId id) { return all_.exprs.expr(id); });
  Environment env{decl.unit, nullptr, {Scope{}}};
  std::optional<std::vector<DType>> types;
  all_.exprs.with_environment(env, [&] { types = extern_types(fn); });
  if (!types) return error_value(span);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    operands[i] = conversions_.coerce(operands[i], (*types)[i]);
    if (operands[i].is_error()) return error_value(span);
  }
  const rt::ExternInfo* function = module_.read_extern ? find_extern(decl) : nullptr;
  if (function == nullptr && module_.read_extern) return error_value(span);
  const auto shape = FOUND(all_.operators.broadcast(operands, span, fn.name.text));
  Expr made{function ? ExprKind::CallExtern : ExprKind::Literal, shape, span};
  made.type.dtype = types->back();
  if (function != nullptr) {
    made.index = extern_index(*function);
    for (const Value& operand : operands)
      made.args.push_back(all_.operators.as_row(operand, shape).expr);
  }
  return build_.typed(std::move(made));
}

}  // namespace cinch::sema
