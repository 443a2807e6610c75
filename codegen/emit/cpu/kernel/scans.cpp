// CpuReductions: the end of reductions and scans of several groups, and scans and transforms of
// local arrays.
#include <fmt/format.h>

#include "codegen/emit/cpu/kernel/reductions.h"
#include "codegen/emit/cpu/reuse.h"
#include "codegen/kir/compute_type.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using kir::ComputeType;
using kir::InstrKind;

std::string CpuReductions::stored_tuple(const Instr& instr, const std::string& place,
                                        bool is_part) const {
  const std::size_t members = instr.buffers.size() - (is_part ? 1 : 0);
  std::vector<std::string> loads;
  for (rt::BufferIndex b : instr.buffers) {
    const Storage s = facts().storage(b);
    CINCH_CHECK(!s.is_packed, "partial results in a packed buffer");
    loads.push_back(
        from_storage(s, fmt::format("load_lanes<{}>(b{}, {}, count)", s.element, b, place)));
  }
  const std::string list = element_list(facts().combined_types(kernel().combiners[instr.combiner]));
  std::string values;
  for (std::size_t i = 0; i < members; ++i) values += (i == 0 ? "" : ", ") + loads[i];
  const std::string tuple = fmt::format("make_tuple_of<{}>({})", list, values);
  return is_part ? fmt::format("Part<{}>{{{}, {}}}", list, tuple, loads.back()) : tuple;
}

void CpuReductions::emit_finish_reduce(const Instr& instr) {
  need_combiner(instr.combiner);
  const kir::Combiner& combiner = kernel().combiners[instr.combiner];
  const std::string count = fmt::format("i64({})", uniform(instr.operands[0]));
  if (!combiner.op) {
    for (ValueId result : instr.results) {
      line(fmt::format("{} {};", c_type(type(result)), name(result)));
    }
    emit_parts(instr, fmt::format("reduce_stored_parts<{}>(join_{}, {}, [&](i64 first, u32 count) "
                                  "{{ return {}; }})",
                                  element_list(facts().combined_types(combiner)), instr.combiner,
                                  count, stored_tuple(instr, "first", true)));
  }
  for (std::size_t i = 0; i < instr.buffers.size(); ++i) {
    const Storage s = facts().storage(instr.buffers[i]);
    if (facts().counts_accesses()) {
      line(fmt::format("bits_read += u64({}) * {};", count, s.bits));
    }
    if (!combiner.op) continue;
    const std::string op = operation(*combiner.op, type(instr.results[i]));
    const bool is_as_stored = s.element == c_type(type(instr.results[i]));
    const std::string load = from_storage(
        s, fmt::format("load_lanes<{}>(b{}, first, count)", s.element, instr.buffers[i]));
    define(instr.results[i],
           is_as_stored
               ? fmt::format("reduce_stored<{}>({}, b{})", op, count, instr.buffers[i])
               : fmt::format("reduce_loaded<{}>({}, [&](i64 first, u32 count) {{ return {}; }})",
                             op, count, load));
  }
}

void CpuReductions::emit_finish_scan(const Instr& instr) {
  need_combiner(instr.combiner);
  const kir::Combiner& combiner = kernel().combiners[instr.combiner];
  CINCH_CHECK(!combiner.op || instr.buffers.size() == 1,
              "a scan of several arrays by an operation");
  const std::string rows = uniform(instr.operands[0]), len = uniform(instr.operands[1]);
  std::vector<ComputeType> types;
  types.reserve(instr.buffers.size());
  for (rt::BufferIndex b : instr.buffers) {
    types.push_back(kir::compute_type(facts().program().buffers[b].dtype));
  }
  const std::string list = element_list(types);
  line(fmt::format("for (i64 row = 0; row < {}; ++row) {{", rows));
  line(fmt::format("const i64 row_base = row * {};", len));
  std::string loads, stores, member = "x";
  for (rt::BufferIndex b : instr.buffers) {
    const Storage s = facts().storage(b);
    const std::string load =
        fmt::format("load_lanes<{}>(b{}, row_base + first, count)", s.element, b);
    loads += (loads.empty() ? "" : ", ") + from_storage(s, load);
    stores += fmt::format("store_lanes<{}>(b{}, row_base + first, count, {}); ", s.element, b,
                          to_storage(s, member + ".head"));
    member += ".tail";
  }
  line(fmt::format(
      "const auto load = [&](i64 first, u32 count) {{ return make_tuple_of<{}>({}); }};", list,
      loads));
  line(fmt::format("const auto store = [&](i64 first, u32 count, Tuple<{}> x) {{ {}}};", list,
                   stores));
  line("StoredRow<decltype(load), decltype(store)> stored = {load, store};");
  const std::string join =
      combiner.op ? fmt::format("OperationJoin<{}>{{}}", operation(*combiner.op, types[0]))
                  : fmt::format("join_{}", instr.combiner);
  line(fmt::format("scan_row<kMaxPartials, {}>({}, stored, u32({}));", list, join, len));
  line("}");
  if (!facts().counts_accesses()) return;
  for (rt::BufferIndex b : instr.buffers) {
    line(fmt::format("bits_read += u64({0} * {1}) * {2}, bits_written += u64({0} * {1}) * {2};",
                     rows, len, facts().storage(b).bits));
  }
}

void CpuReductions::emit_local_scan(const Instr& instr) {
  const kir::Combiner& combiner = kernel().combiners[instr.combiner];
  const std::size_t members = combiner.op ? 1 : combiner.results.size();
  std::vector<ComputeType> types;
  std::string refs;
  for (std::size_t i = 0; i < members; ++i) {
    const auto index = static_cast<std::uint32_t>(instr.index + i);
    types.push_back(kernel().locals.at(index).type);
    refs += fmt::format("{}, {{", local(index));
  }
  refs += std::string(members, '}');
  const std::string join =
      combiner.op ? fmt::format("OperationJoin<{}>{{}}", operation(*combiner.op, types[0]))
                  : fmt::format("join_{}", instr.combiner);
  line(fmt::format("scan_local({}, LocalArrays<{}>{{{}}}, len);", join, element_list(types), refs));
}

void CpuReductions::emit_local_transform(const Instr& instr) {
  const std::int64_t len = facts().program().info.exprs.const_value(kernel().group_len).as_int();
  if (instr.kind == InstrKind::local_butterflies) {
    return line(fmt::format("butterflies_of_row<{}>({});", len, local(instr.index)));
  }
  if (instr.kind == InstrKind::local_largest) {
    return line(fmt::format("mark_largest({}, {}, {});", local(instr.index), len,
                            uniform(instr.operands[0])));
  }
  const rt::BufferInfo& matrix = facts().program().buffers.at(instr.buffers[0]);
  const int folds = matrix.role == rt::BufferRole::Constant
                        ? matrix_folds(facts().program().constants.at(matrix.role_index), len)
                        : 0;
  line(fmt::format("multiply_row<{}{}>({}, b{}, {});", len,
                   folds > 0 ? fmt::format(", {}", folds) : std::string(), local(instr.index),
                   instr.buffers[0], local(instr.index + 1)));
}

}  // namespace cinch::codegen
