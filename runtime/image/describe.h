// Each struct of a program and of its image is described once, by a `describe` that names its
// members to an archive. Archives write and read JSON (image_json.cpp) and text
// (codegen/text/members.h). So a member cannot be written and forgotten on reading.
#pragma once
#include <array>
#include <string_view>

#include "runtime/image/image.h"

namespace cinch::rt {

// Names of enumerators, in order.

constexpr std::array<std::string_view, 4> names_of(FieldSum) {
  return {"none", "sum", "min", "max"};
}
constexpr std::array<std::string_view, 3> names_of(Aggregation) {
  return {"gather", "sum_proved", "sum_to_test"};
}
constexpr std::array<std::string_view, 4> names_of(CarrierKind) {
  return {"itself", "exact", "program", "none"};
}
constexpr std::array<std::string_view, 9> names_of(BufferRole) {
  return {"gradient",   "output",         "field",    "count",    "state",
          "state_next", "state_in_place", "constant", "workspace"};
}
constexpr std::array<std::string_view, 2> names_of(KernelRole) {
  return {"sweep", "finish"};
}
constexpr std::array<std::string_view, 8> names_of(StepKind) {
  return {"launch", "zero", "copy", "check", "if", "while", "for", "collective"};
}
constexpr std::array<std::string_view, 10> names_of(CollectiveKind) {
  return {
      "none",      "all_reduce",     "all_gather",   "all_to_all",         "reduce_scatter",
      "broadcast", "broadcast_from", "send_receive", "all_gather_counted", "send_receive_counted"};
}
constexpr std::array<std::string_view, 5> names_of(RankReduction) {
  return {"none", "sum", "mean", "min", "max"};
}

void describe(auto& a, ConstantInfo& x) {
  a("name", x.name)("value", x.value);
}
void describe(auto& a, SizeInfo& x) {
  a("name", x.name)("value", x.value);
}
void describe(auto& a, CountInfo& x) {
  a("name", x.name)("bound", x.bound);
}
void describe(auto& a, StateInfo& x) {
  a("name", x.name)("type", x.type);
  a.if_any("is_input", x.is_input);
}
void describe(auto& a, ArrayType& x) {
  a("dtype", x.dtype)("rank", x.rank)("rows", x.dims[0])("cols", x.dims[1]);
}
void describe(auto& a, ParamRange& x) {
  a("low", x.low)("high", x.high)("low_open", x.low_open)("high_open", x.high_open);
}
void describe(auto& a, ParamInfo& x) {
  a("name", x.name)("dtype", x.dtype)("default", x.default_value)("range", x.range);
  a.if_any("words", x.words);
  a.if_any("is_input", x.is_input);
}
void describe(auto& a, FieldInfo& x) {
  a("name", x.name)("type", x.type)("sum", x.sum)("ascending", x.ascending);
  a("index_limit", x.index_limit)("packing", x.packing);
}
template <typename A>
void describe(A& a, ExternInfo& x) {
  // An image leaves the source out. A text holds it instead of its digest.
  if constexpr (A::kIsText) {
    a("name", x.name)("params", x.params)("result", x.result)("work", x.work)("source", x.source);
  } else {
    a("name", x.name)("digest", x.digest);
  }
}
void describe(auto& a, WireInfo& x) {
  a("counts", x.counts)("fields", x.fields);
}
void describe(auto& a, SumCarrier& x) {
  a("kind", x.kind)("text", x.text)("shares_draws", x.shares_draws);
}
void describe(auto& a, ProgramInfo& x) {
  a("name", x.name)("source", x.source)("doc", x.doc)("constants", x.constants);
  // A text names sizes in bounds of counts, and both in types.
  a("params", x.params)("sizes", x.sizes)("counts", x.counts)("states", x.states)("wire", x.wire);
  a("is_matrix", x.is_matrix)("decode_draws", x.decode_draws);
  a("decode_world", x.decode_world)("decode_step", x.decode_step)("has_finish", x.has_finish);
  a("is_finish_linear", x.is_finish_linear)("has_sync", x.has_sync);
  a("is_local", x.is_local);
  a("aggregation", x.aggregation)("is_linear", x.is_linear)("carrier", x.carrier);
  a.if_any("externs", x.externs);
}
void describe(auto& a, BufferInfo& x) {
  a("name", x.name)("dtype", x.dtype)("storage_bits", x.storage_bits)("num_elems", x.num_elems);
  a("role", x.role)("role_index", x.role_index)("size_bytes", x.size_bytes);
}
void describe(auto& a, CudaLaunch& x) {
  a("block_threads", x.block_threads)("groups_per_block", x.groups_per_block);
  a("is_single_block", x.is_single_block)("resident_blocks", x.resident_blocks);
  a("shared_bytes", x.shared_bytes)("waves", x.waves);
  a("is_foldable", x.is_foldable);
}
void describe(auto& a, KernelInfo& x) {
  a("symbol", x.symbol)("role", x.role)("num_groups", x.num_groups);
  a("group_multiple", x.group_multiple)("is_ordered", x.is_ordered);
  a("is_sequential", x.is_sequential)("fused", x.fused);
  a("bytes_read", x.bytes_read)("bytes_written", x.bytes_written)("cuda", x.cuda);
  a.if_any("group_elems", x.group_elems);
  a.if_any("tiled", x.tiled);
  a.if_any("untouched", x.untouched);
}
void describe(auto& a, CollectiveInfo& x) {
  a("kind", x.kind)("reduction", x.reduction)("root", x.root);
}
void describe(auto& a, Step& x) {
  a("kind", x.kind).index("index", x.index).index("index2", x.index2);
  a("expr", x.expr)("expr2", x.expr2);
  a("collective", x.collective)("cond", x.cond)("body", x.body)("orelse", x.orelse);
  a.if_any("scalars", x.scalars);
  a.if_any("message", x.message);
}
void describe(auto& a, Entry& x) {
  a("present", x.present)("buffers", x.buffers).index("commit_step", x.commit_step);
  a("steps", x.steps);
}
void describe(auto& a, ProgramImage& x) {
  a("target", x.target)("fingerprint", x.fingerprint)("info", x.info)("buffers", x.buffers);
  a("size_exprs", x.size_exprs)("kernels", x.kernels)("messages", x.messages);
  a("entries", x.entries)("counts_accesses", x.counts_accesses);
  a("gpu_steps_threads", x.gpu_steps_threads);
  a("gpu_steps_shared_bytes", x.gpu_steps_shared_bytes);
}

}  // namespace cinch::rt
