// CudaKernelEmitter: values, storage, combiners and streams of draws as text.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/kernel.h"
#include "codegen/emit/cuda/storage.h"
#include "codegen/emit/value_facts.h"
#include "codegen/kir/builder.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using kir::InstrKind;

bool CudaKernelEmitter::is_element(ValueId value) const {
  return facts_.level(value) == Level::Element;
}

std::string CudaKernelEmitter::operand(ValueId value) const {
  return is_element(value) ? name(value) + "[c]" : name(value);
}

std::string CudaKernelEmitter::quad(ValueId value) {
  if (is_element(value)) return name(value);
  const std::string made = fmt::format("same{}", num_quads_++);
  line(fmt::format("{} {}[4];", c_type(type(value)), made));
  line(fmt::format("CINCH_EACH {}[c] = {};", made, name(value)));
  return made;
}

// " && p" for the optional predicate at `index`.
std::string CudaKernelEmitter::pred_text(const Instr& instr, std::size_t index) const {
  if (index >= instr.operands.size() || !instr.operands[index]) return {};
  return " && " + operand(instr.operands[index]);
}

std::string CudaKernelEmitter::buffer_name(rt::BufferIndex buffer) const {
  return fmt::format("b{}", places_.number(buffer));
}

std::string CudaKernelEmitter::storage(rt::BufferIndex buffer) const {
  const rt::BufferInfo& info = program_.buffers[buffer];
  return stored_type(info.dtype, info.storage_bits);
}

void CudaKernelEmitter::define_quad(ValueId value) {
  line(fmt::format("{} {}[4];", c_type(type(value)), name(value)));
}

void CudaKernelEmitter::define(const Instr& instr, const std::string& text) {
  const ValueId value = instr.results[0];
  if (level_ == Level::Element) {
    define_quad(value);
    if (is_whole_ && instr.is_alike) {
      line("{");
      line("constexpr u32 c = 0;");
      line(fmt::format("fill_columns({}, {}({}));", name(value), c_type(type(value)), text));
      return line("}");
    }
    line(fmt::format("CINCH_EACH {}[c] = {};", name(value), text));
  } else {
    // Only numbers are const: NVRTC tries to evaluate what a const integer begins with, and what
    // that is made of, again for each use, so that a chain of them takes exponential time.
    const std::string_view held = instr.kind == InstrKind::constant ? "const " : "";
    line(fmt::format("{}{} {} = {};", held, c_type(type(value)), name(value), text));
  }
}

// ---- combiners ----

namespace {
// Sums and products of floats round; nothing else that combiners do depends on its order.
bool goes_in_any_order(ScalarOp op, kir::ComputeType type) {
  return !kir::is_float(type) || (op != ScalarOp::add && op != ScalarOp::mul);
}
}  // namespace

const CudaKernelEmitter::Item& CudaKernelEmitter::item(const Instr& instr) {
  const kir::Combiner& combiner = kernel_.combiners[instr.combiner];
  std::string key = fmt::format("{}", instr.combiner);
  const std::vector<ComputeType> types = combined_types(program_, kernel_, instr);
  for (ComputeType type : types) key += std::string("_") + c_type(type);
  const auto [it, is_new] = items_.try_emplace(key);
  Item& made = it->second;
  if (!is_new) return made;
  made.types = types;
  made.join = "join_" + key;
  made.has_flag = !combiner.op;
  made.is_tuple = made.has_flag || types.size() > 1;
  made.type = made.is_tuple ? fmt::format("{}_item_{}", name_, key) : std::string(c_type(types[0]));
  std::vector<std::string> parts;
  parts.reserve(types.size());
  for (ComputeType type : types) {
    parts.push_back(literal(type, combiner.op ? kir::identity_bits(*combiner.op, type) : 0));
  }
  made.empty = made.is_tuple ? "empty_" + key : parts[0];
  made.is_unordered = combiner.op && std::ranges::all_of(types, [&](kir::ComputeType type) {
                        return goes_in_any_order(*combiner.op, type);
                      });
  if (made.is_tuple) emit_tuple(made);
  if (made.is_tuple) {
    std::string list;
    for (const std::string& part : parts) list += (list.empty() ? "" : ", ") + part;
    if (made.has_flag) list += ", false";
    line(fmt::format("const {} {}{{{}}};", made.type, made.empty, list));
  }
  emit_join(made, combiner);
  return made;
}

// A tuple with its shuffles, in front of the function.
void CudaKernelEmitter::emit_tuple(Item& item) {
  std::string fields, shuffled;
  const std::size_t n = item.types.size() + (item.has_flag ? 1 : 0);
  for (std::size_t i = 0; i < n; ++i) {
    const bool is_flag = i == item.types.size();
    const std::string field = is_flag ? "has" : fmt::format("v{}", i);
    fields += fmt::format(" {} {};", is_flag ? "bool" : c_type(item.types[i]), field);
    shuffled += fmt::format("{}lane_xor(x.{}, bits)", i ? ", " : "", field);
  }
  preamble_.line(fmt::format("struct {} {{{} }};", item.type, fields));
  preamble_.line(fmt::format("CINCH_FN {0} lane_xor(const {0}& x, u32 bits) {{ return {{{1}}}; }}",
                             item.type, shuffled));
}

std::string CudaKernelEmitter::item_part(const Item& item, const std::string& text,
                                         std::size_t index) {
  if (!item.is_tuple) return text;
  return index == item.types.size() ? text + ".has" : fmt::format("{}.v{}", text, index);
}

// An item that is there.
std::string CudaKernelEmitter::item_of(const Item& item,
                                       const std::vector<std::string>& parts) const {
  if (!item.is_tuple) return parts[0];
  std::string list;
  for (const std::string& part : parts) list += (list.empty() ? "" : ", ") + part;
  if (item.has_flag && parts.size() == item.types.size()) list += ", true";
  return fmt::format("{}{{{}}}", item.type, list);
}

// A builtin operation is a type of its own, the same for all kernels of the text: what is compiled
// for it once (reduce_partials) serves them all.
void CudaKernelEmitter::emit_builtin_join(Item& item, ScalarOp op) {
  Instr instr{.kind = InstrKind::scalar};
  instr.scalar_op = op;
  instr.dtype = kir::dtype_of(item.types[0]);
  const ComputeType types[] = {item.types[0], item.types[0]};
  const std::string sides[] = {"a", "b"};
  const std::string name = fmt::format("Join_{}_{}", scalar_op_info(op).name, item.type);
  preamble_.raw(fmt::format("#ifndef CINCH_{0}\n#define CINCH_{0}\n", name));
  preamble_.line(fmt::format("struct {} {{", name));
  preamble_.line(fmt::format("static constexpr bool kInAnyOrder = {};", item.is_unordered));
  preamble_.line(
      fmt::format("__device__ __forceinline__ {0} operator()(const {0}& a, const {0}& b) "
                  "const {{ return {1}; }}",
                  item.type, element_wise(instr, types, sides)));
  preamble_.line("};");
  preamble_.raw("#endif\n");
  item.join = name + "{}";
}

void CudaKernelEmitter::emit_join(Item& item, const kir::Combiner& combiner) {
  if (combiner.op && !item.is_tuple) return emit_builtin_join(item, *combiner.op);
  line(fmt::format("const auto {0} = [&](const {1}& a, const {1}& b) -> {1} {{", item.join,
                   item.type));
  const std::size_t n = item.types.size();
  std::vector<std::string> parts;
  if (combiner.op) {
    for (std::size_t i = 0; i < n; ++i) {
      Instr instr{.kind = InstrKind::scalar};
      instr.scalar_op = *combiner.op;
      instr.dtype = kir::dtype_of(item.types[i]);
      const ComputeType types[] = {item.types[i], item.types[i]};
      const std::string sides[] = {item_part(item, "a", i), item_part(item, "b", i)};
      parts.push_back(element_wise(instr, types, sides));
    }
  } else {
    line("if (!b.has) return a;");
    line("if (!a.has) return b;");
    for (std::size_t i = 0; i < 2 * n; ++i) {
      line(fmt::format("const {} {} = {};", c_type(item.types[i % n]), name(combiner.args[i]),
                       item_part(item, i < n ? "a" : "b", i % n)));
    }
    const Level saved = std::exchange(level_, Level::Combiner);
    for (const Instr& instr : combiner.body) emit_uniform(instr);
    level_ = saved;
    for (ValueId result : combiner.results) parts.push_back(name(result));
  }
  line(fmt::format("return {};", item_of(item, parts)));
  line("};");
}

// ---- draws ----

CudaKernelEmitter::ValueId CudaKernelEmitter::iteration(const Instr& instr) {
  return optional_operand(instr, iteration_operand(instr));
}

std::string CudaKernelEmitter::stream_name(const Instr& instr) const {
  const ValueId at = iteration(instr);
  return fmt::format("stream{}{}{}", instr.draw.site, instr.draw.shared ? "_shared" : "",
                     at ? "_" + name(at) : "");
}

std::string CudaKernelEmitter::permutation_name(const Instr& instr) const {
  return fmt::format("permutation_{}_{}", stream_name(instr), name(instr.operands[1]));
}

void CudaKernelEmitter::prepare_stream(const Instr& instr) {
  const ValueId at = iteration(instr);
  const std::string stream = stream_name(instr);
  if (streams_done_.insert(stream).second) {
    line(fmt::format("const lang::DrawStream {} = lang::draw_stream(args.draw, {}u{}, {});", stream,
                     instr.draw.site, at ? fmt::format(" + u32({})", name(at)) : "",
                     instr.draw.shared));
  }
  if (instr.kind != InstrKind::random_index) return;
  const std::string permutation = permutation_name(instr);
  if (streams_done_.insert(permutation).second) {
    line(fmt::format("const lang::IndexPermutation {} = lang::index_permutation({}, u64({}));",
                     permutation, stream, name(instr.operands[1])));
  }
}

// Combiners and streams stand in front of what uses them, outside of all loops.
void CudaKernelEmitter::prepare(const Instr& instr) {
  if (instr.combiner != rt::kNoIndex) item(instr);
  if (is_draw(instr.kind)) prepare_stream(instr);
}

}  // namespace cinch::codegen
