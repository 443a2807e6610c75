// What the printers share, and the items that reductions and scans join.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/kernel/printer.h"

namespace cinch::codegen {
using kir::InstrKind;

std::string CudaPrinter::operand(ValueId value) const {
  return facts().is_element(value) ? name(value) + "[c]" : name(value);
}

std::string CudaPrinter::quad(ValueId value) {
  if (facts().is_element(value)) return name(value);
  const std::string made = fmt::format("same{}", cx().num_quads++);
  line("{} {}[4];", c_type(type(value)), made);
  line("CINCH_EACH {}[c] = {};", made, name(value));
  return made;
}

// " && p" for the optional predicate at `index`.
std::string CudaPrinter::pred_text(const Instr& instr, std::size_t index) const {
  if (index >= instr.operands.size() || !instr.operands[index]) return {};
  return " && " + operand(instr.operands[index]);
}

std::string CudaPrinter::acting(const Instr& instr, std::size_t pred_index) const {
  return "c < live" + pred_text(instr, pred_index);
}

void CudaPrinter::define_quad(ValueId value) {
  line("{} {}[4];", c_type(type(value)), name(value));
}

void CudaPrinter::define(const Instr& instr, const std::string& text) {
  const ValueId value = instr.results[0];
  if (cx().level == Level::Element) {
    define_quad(value);
    if (cx().is_whole && instr.is_alike) {
      line("{");
      line("constexpr u32 c = 0;");
      line("fill_columns({}, {}({}));", name(value), c_type(type(value)), text);
      return line("}");
    }
    line("CINCH_EACH {}[c] = {};", name(value), text);
  } else {
    // Only numbers are const. NVRTC tries to evaluate the initializer of a const integer, and all
    // that it depends on, at each use. So a chain of const integers would take exponential time.
    const std::string_view held = instr.kind == InstrKind::constant ? "const " : "";
    line("{}{} {} = {};", held, c_type(type(value)), name(value), text);
  }
}

// ---- memory ----

std::string CudaPrinter::storage(rt::BufferIndex buffer) const {
  const rt::BufferInfo& info = program().buffers[buffer];
  return stored_type(info.dtype, info.storage_bits);
}

std::string CudaPrinter::buffer_name(rt::BufferIndex buffer) const {
  return fmt::format("b{}", cx().places.number(buffer));
}

std::string CudaPrinter::base_text(ValueId base) const {
  return base ? name(base) + " + " : std::string();
}

std::string CudaPrinter::limited_live(ValueId limit) const {
  return limit && !cx().is_whole ? fmt::format("live_elems(live, j, {})", name(limit)) : "live";
}

std::string CudaPrinter::lane_place(ValueId base) const {
  return base_text(base) + (cx().is_whole ? "lane_begin, turn" : "i64(j), 0u");
}

std::string CudaPrinter::share(const std::string& type, const std::string& name,
                               const std::string& extents) {
  cx().shared_members.push_back(type + " " + name + extents);
  return "shared." + name;
}

std::string CudaPrinter::team_type() const {
  return shape().team_warps > 1 ? "Team<kBlockWarps>" : "Team<1u>";
}

std::string CudaItem::part(const std::string& text, std::size_t index) const {
  if (!is_tuple) return text;
  return index == types.size() ? text + ".has" : fmt::format("{}.v{}", text, index);
}

std::string CudaItem::of(const std::vector<std::string>& parts) const {
  if (!is_tuple) return parts[0];
  std::string list;
  for (const std::string& part : parts) list += (list.empty() ? "" : ", ") + part;
  if (has_flag && parts.size() == types.size()) list += ", true";
  return fmt::format("{}{{{}}}", type, list);
}

// Prints a tuple and its shuffles, in front of the function.
void CudaItems::emit_tuple(const CudaItem& item) {
  std::string fields, shuffled;
  const std::size_t n = item.types.size() + (item.has_flag ? 1 : 0);
  for (std::size_t i = 0; i < n; ++i) {
    const bool is_flag = i == item.types.size();
    const std::string field = is_flag ? "has" : fmt::format("v{}", i);
    fields += fmt::format(" {} {};", is_flag ? "bool" : c_type(item.types[i]), field);
    shuffled += fmt::format("{}lane_xor(x.{}, bits)", i ? ", " : "", field);
  }
  cx().preamble.line("struct {} {{{} }};", item.type, fields);
  cx().preamble.line("CINCH_FN {0} lane_xor(const {0}& x, u32 bits) {{ return {{{1}}}; }}",
                     item.type, shuffled);
}

// A builtin operation has a type of its own, the same for all kernels of the text. So all kernels
// share what is compiled for it (reduce_partials).
void CudaItems::emit_builtin_join(CudaItem& item, ScalarOp op) {
  Instr instr{.kind = InstrKind::scalar, .scalar_op = op, .dtype = kir::dtype_of(item.types[0])};
  const ComputeType types[] = {item.types[0], item.types[0]};
  const std::string sides[] = {"a", "b"};
  const std::string name = fmt::format("Join_{}_{}", scalar_op_info(op).name, item.type);
  cx().preamble.raw(fmt::format("#ifndef CINCH_{0}\n#define CINCH_{0}\n", name));
  cx().preamble.line("struct {} {{", name);
  cx().preamble.line("static constexpr bool kInAnyOrder = {};", item.is_unordered);
  cx().preamble.line(
      "__device__ __forceinline__ {0} operator()(const {0}& a, const {0}& b) "
      "const {{ return {1}; }}",
      item.type, element_wise(instr, types, sides));
  cx().preamble.line("};");
  cx().preamble.raw("#endif\n");
  item.join = name + "{}";
}

void CudaItems::emit_join(CudaItem& item, const kir::Combiner& combiner) {
  if (combiner.op && !item.is_tuple) return emit_builtin_join(item, *combiner.op);
  line("const auto {0} = [&](const {1}& a, const {1}& b) -> {1} {{", item.join, item.type);
  const std::size_t n = item.types.size();
  std::vector<std::string> parts;
  if (combiner.op) {
    for (std::size_t i = 0; i < n; ++i) {
      Instr instr{.kind = InstrKind::scalar,
                  .scalar_op = *combiner.op,
                  .dtype = kir::dtype_of(item.types[i])};
      const ComputeType types[] = {item.types[i], item.types[i]};
      const std::string sides[] = {item.part("a", i), item.part("b", i)};
      parts.push_back(element_wise(instr, types, sides));
    }
  } else {
    line("if (!b.has) return a;");
    line("if (!a.has) return b;");
    for (std::size_t i = 0; i < 2 * n; ++i) {
      line("const {} {} = {};", c_type(item.types[i % n]), name(combiner.args[i]),
           item.part(i < n ? "a" : "b", i % n));
    }
    const Level saved = std::exchange(cx().level, Level::Combiner);
    for (const Instr& instr : combiner.body) emit_instr_(instr);
    cx().level = saved;
    for (ValueId result : combiner.results) parts.push_back(name(result));
  }
  line("return {};", item.of(parts));
  line("};");
}

const CudaItem& CudaItems::item(const Instr& instr) {
  const kir::Combiner& combiner = kernel().combiners[instr.combiner];
  std::string key = fmt::format("{}", instr.combiner);
  const std::vector<ComputeType> types = combined_types(program(), kernel(), instr);
  for (ComputeType type : types) key += std::string("_") + c_type(type);
  const auto [it, is_new] = items_.try_emplace(key);
  CudaItem& made = it->second;
  if (!is_new) return made;
  made.types = types;
  made.join = "join_" + key;
  made.has_flag = !combiner.op;
  made.is_tuple = made.has_flag || types.size() > 1;
  made.type =
      made.is_tuple ? fmt::format("{}_item_{}", cx().name, key) : std::string(c_type(types[0]));
  std::vector<std::string> parts;
  parts.reserve(types.size());
  for (ComputeType type : types) {
    parts.push_back(literal(type, combiner.op ? kir::identity_bits(*combiner.op, type) : 0));
  }
  made.empty = made.is_tuple ? "empty_" + key : parts[0];
  // Only sums and products of floats depend on the order, because they round.
  const bool may_round = combiner.op == ScalarOp::add || combiner.op == ScalarOp::mul;
  made.is_unordered = combiner.op && !(may_round && std::ranges::any_of(types, kir::is_float));
  if (made.is_tuple) emit_tuple(made);
  if (made.is_tuple) {
    std::string list;
    for (const std::string& part : parts) list += (list.empty() ? "" : ", ") + part;
    if (made.has_flag) list += ", false";
    line("const {} {}{{{}}};", made.type, made.empty, list);
  }
  emit_join(made, combiner);
  return made;
}

}  // namespace cinch::codegen
