#include "dsl/sema/tree/descriptions.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

std::string Descriptions::number_text(const Value& value) {
  if (value.is_big) return std::to_string(pool().const_value(value.host).bits);
  const std::string text = pool().print(value.host);
  const bool looks_whole = text.find_first_not_of("-0123456789") == std::string::npos;
  return pool().type(value.host) == HostType::F64 && looks_whole ? text + ".0" : text;
}

std::string Descriptions::describe(const Value& value) {
  switch (value.kind) {
    case ValueKind::Error:
      return "an error";
    case ValueKind::Unit:
      return "nothing";
    case ValueKind::Host: {
      const HostType type = pool().type(value.host);
      if (type == HostType::Bool) return "bool";
      if (type == HostType::F32) return "f32";
      if (value.declared && !mode_.in_host) return std::string(dtype_name(*value.declared));
      if (pool().is_const(value.host)) return "the number " + number_text(value);
      if (type == HostType::F64) return "f64";
      return "the size " + sizes_.size_text(value.host);
    }
    case ValueKind::Table:
      return "a table of " + std::to_string(value.table.size()) + " numbers";
    case ValueKind::Typed:
      return sizes_.type_text(value.type);
    case ValueKind::Payload:
    case ValueKind::Wire:
      return "a payload";
    case ValueKind::Tuple:
      return std::to_string(value.elements.size()) + " values";
  }
  return "";
}

// An inlined body has the types of the place of the call. Only at its declaration does it have the
// types in its text.
bool Descriptions::records_types(Span span) const {
  const TypeRecord* types = module_.types;
  if (types == nullptr || span.file != types->file || env_ == nullptr) return false;
  if (env_->instance != nullptr && !env_->instance->prefix.empty()) return false;
  if (all_.functions.is_inlining()) return false;
  return !types->types.contains({span.begin, span.end});
}

void Descriptions::record_text(Span span, std::string text) const {
  module_.types->types.emplace(std::pair(span.begin, span.end), std::move(text));
}

void Descriptions::record_type(Span span, const Value& value) {
  const bool is_known = !value.is_error() && value.kind != ValueKind::Unit;
  if (is_known && records_types(span)) record_text(span, describe(value));
}

void Descriptions::record_type(Span span, const Symbol& symbol) {
  if (!records_types(span)) return;
  if (symbol.kind == SymbolKind::State) {
    record_text(span, sizes_.type_text(out_.info.states[symbol.index].type));
  } else if (symbol.kind == SymbolKind::Param) {
    record_text(span, dtype_name(symbol.value.type.dtype));
  } else {
    record_type(span, symbol.value);
  }
}

dsl::Diagnostic& Descriptions::note_sizes(dsl::Diagnostic& diag,
                                          std::initializer_list<const Value*> values) {
  std::vector<std::pair<std::string, Span>> found;
  std::set<HostExprId> seen;
  for (const Value* value : values) {
    if (!value->is_typed()) continue;
    for (int i = 0; i < value->type.rank; ++i)
      sizes_.collect_sizes(value->type.dims[i], found, seen);
  }
  for (const auto& [name, span] : found) {
    if (span.has_file()) diag.note(span, "`" + name + "` comes from here");
  }
  all_.counts.note_masks(diag, values);
  return diag;
}

}  // namespace cinch::sema
