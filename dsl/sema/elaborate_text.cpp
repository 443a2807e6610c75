// Types, sizes and values as people write them, and notes that say where a size comes from.
#include "dsl/sema/elaborator.h"

#include <algorithm>
#include <set>

namespace cinch::sema {

namespace {

const char* infix_of(HostOp op) {
  switch (op) {
    case HostOp::Add:
      return " + ";
    case HostOp::Sub:
      return " - ";
    case HostOp::Mul:
      return " * ";
    case HostOp::Div:
      return " / ";
    case HostOp::Mod:
      return " % ";
    default:
      return nullptr;
  }
}

// What is deeper or longer is "…": sizes are graphs, which as text may be of any length.
constexpr int kMaxTextDepth = 200, kMaxTextNodes = 500;

bool is_sum(HostOp op) {
  return op == HostOp::Add || op == HostOp::Sub;
}

}  // namespace

std::string Elaborator::size_text(HostExprId id) {
  int left = kMaxTextNodes;
  return size_text_within(id, 0, left);
}

std::string Elaborator::size_text_within(HostExprId id, int depth, int& left) {
  if (depth > kMaxTextDepth || left-- <= 0) return "…";
  const auto inner = [&](HostExprId arg) { return size_text_within(arg, depth + 1, left); };
  if (const auto named = size_names_.find(id); named != size_names_.end()) {
    return named->second.first;
  }
  const HostExprNode node = pool().node(id);
  if (node.op == HostOp::Const) return pool().print(id);
  if (node.op == HostOp::Param && node.payload < out_.info.params.size()) {
    return out_.info.params[node.payload].name;
  }
  if (node.op == HostOp::Count) {
    return node.payload < out_.info.counts.size() ? out_.info.counts[node.payload].name : "m";
  }
  if (node.op == HostOp::Cast) return inner(node.args[0]);
  const int num_args = host_op_num_args(node.op);
  if (num_args == 0) return host_op_name(node.op);
  if (node.op == HostOp::Neg) {
    const bool needs =
        infix_of(pool().node(node.args[0]).op) != nullptr && !size_names_.contains(node.args[0]);
    return needs ? "-(" + inner(node.args[0]) + ")" : "-" + inner(node.args[0]);
  }
  if (const char* infix = infix_of(node.op)) {
    const auto side = [&](HostExprId arg, bool is_right) {
      const HostOp op = pool().node(arg).op;
      const bool is_sum_in_product = is_sum(op) && node.op != HostOp::Add;
      const bool is_later = is_right && !is_sum(node.op) && infix_of(op) != nullptr &&
                            (op != HostOp::Mul || node.op != HostOp::Mul);
      const bool needs = !size_names_.contains(arg) && (is_sum_in_product || is_later);
      return needs ? "(" + inner(arg) + ")" : inner(arg);
    };
    const std::string left_side = side(node.args[0], false);
    return left_side + infix + side(node.args[1], true);
  }
  std::string text = std::string(host_op_name(node.op)) + "(";
  for (int i = 0; i < num_args; ++i) {
    if (i > 0) text += ", ";
    text += inner(node.args[i]);
  }
  return text + ")";
}

std::string Elaborator::type_text(const Type& type) {
  std::string element = dtype_name(type.dtype);
  if (type.rank == 0) return element;
  std::string text = "[" + element + "; " + size_text(type.dims[0]);
  if (type.rank == 2) text += ", " + size_text(type.dims[1]);
  return text + "]";
}

// A constant of the host.
std::string Elaborator::number_text(const Value& value) {
  if (value.is_big) return std::to_string(pool().const_value(value.host).bits);
  const std::string text = pool().print(value.host);
  const bool looks_whole = text.find_first_not_of("-0123456789") == std::string::npos;
  return pool().type(value.host) == HostType::F64 && looks_whole ? text + ".0" : text;
}

std::string Elaborator::describe(const Value& value) {
  switch (value.kind) {
    case ValueKind::Error:
      return "an error";
    case ValueKind::Unit:
      return "nothing";
    case ValueKind::Host: {
      const HostType type = pool().type(value.host);
      if (type == HostType::Bool) return "bool";
      if (type == HostType::F32) return "f32";
      if (value.declared && !in_host_) return std::string(dtype_name(*value.declared));
      if (pool().is_const(value.host)) return "the number " + number_text(value);
      if (type == HostType::F64) return "f64";
      return "the size " + size_text(value.host);
    }
    case ValueKind::Table:
      return "a table of " + std::to_string(value.table.size()) + " numbers";
    case ValueKind::Typed:
      return type_text(value.type);
    case ValueKind::Payload:
    case ValueKind::Wire:
      return "a payload";
    case ValueKind::Tuple:
      return std::to_string(value.elements.size()) + " values";
  }
  return "";
}

// What is put in place elsewhere has the types of that place: only where a body is declared are
// they those that it says.
bool Elaborator::records_types(Span span) const {
  const TypeRecord* types = module_.types;
  if (types == nullptr || span.file != types->file || env_ == nullptr) return false;
  if (env_->instance != nullptr && !env_->instance->prefix.empty()) return false;
  if (open_fns_.size() > (is_of_fn_ ? 1u : 0u)) return false;
  return !types->types.contains({span.begin, span.end});
}

void Elaborator::record_text(Span span, std::string text) const {
  module_.types->types.emplace(std::pair(span.begin, span.end), std::move(text));
}

void Elaborator::record_type(Span span, const Value& value) {
  const bool is_known = !value.is_error() && value.kind != ValueKind::Unit;
  if (is_known && records_types(span)) record_text(span, describe(value));
}

void Elaborator::record_type(Span span, const Symbol& symbol) {
  if (!records_types(span)) return;
  if (symbol.kind == SymbolKind::State) {
    record_text(span, type_text(out_.info.states[symbol.index].type));
  } else if (symbol.kind == SymbolKind::Param) {
    record_text(span, dtype_name(symbol.value.type.dtype));
  } else {
    record_type(span, symbol.value);
  }
}

// The named sizes and leaves that a size is made of, each with the place it comes from.
void Elaborator::collect_sizes(HostExprId id, std::vector<std::pair<std::string, Span>>& out,
                               std::set<HostExprId>& seen) {
  if (!seen.insert(id).second) return;
  if (const auto named = size_names_.find(id); named != size_names_.end()) {
    const auto same = [&](const auto& entry) { return entry.first == named->second.first; };
    if (std::none_of(out.begin(), out.end(), same)) out.push_back(named->second);
    return;
  }
  const HostExprNode node = pool().node(id);
  for (HostExprId arg : node.args) {
    if (arg) collect_sizes(arg, out, seen);
  }
}

dsl::Diagnostic& Elaborator::note_sizes(dsl::Diagnostic& diag,
                                        std::initializer_list<const Value*> values) {
  std::vector<std::pair<std::string, Span>> found;
  std::set<HostExprId> seen;
  for (const Value* value : values) {
    if (!value->is_typed()) continue;
    for (int i = 0; i < value->type.rank; ++i) collect_sizes(value->type.dims[i], found, seen);
  }
  for (const auto& [name, span] : found) {
    if (span.has_file()) diag.note(span, "`" + name + "` comes from here");
  }
  note_masks(diag, values);
  return diag;
}

}  // namespace cinch::sema
