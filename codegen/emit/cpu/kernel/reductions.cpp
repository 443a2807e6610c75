// Reductions and running sums of element sections, and combiners.
#include <fmt/format.h>

#include "codegen/emit/cpu/kernel/instrs.h"
#include "codegen/emit/cpu/prelude.h"
#include "codegen/emit/cpu/reuse.h"
#include "runtime/core/check.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::codegen {
using kir::ComputeType;
using kir::InstrKind;

std::string CpuReductions::operation(ScalarOp op, ComputeType t) const {
  return fmt::format("{}<{}>", operation_struct(op, t), c_type(t));
}

std::string CpuReductions::element_list(const std::vector<ComputeType>& types) const {
  std::string text;
  for (ComputeType t : types) text += (text.empty() ? "" : ", ") + std::string(c_type(t));
  return text;
}

// A region combiner is a function of two tuples. `live` are the lanes whose results count.
void CpuReductions::need_combiner(std::uint32_t index) {
  const kir::Combiner& combiner = kernel().combiners[index];
  if (combiner.op || !combiners_done_.insert(index).second) return;
  const std::vector<ComputeType> types = facts().combined_types(combiner);
  const std::string list = element_list(types);
  line("const auto join_{} = [&](Tuple<{}> a, Tuple<{}> b, Truth live) {{", index, list, list);
  const Level outer = cx().level;
  cx().level = Level::Combiner;
  for (std::size_t i = 0; i < combiner.args.size(); ++i) {
    std::string member = i < types.size() ? "a" : "b";
    for (std::size_t k = 0; k < i % types.size(); ++k) member += ".tail";
    define(combiner.args[i], member + ".head");
  }
  for (const Instr& instr : combiner.body) emit_instr_(instr);
  std::string results;
  for (ValueId result : combiner.results) results += (results.empty() ? "" : ", ") + lanes(result);
  line("return make_tuple_of<{}>({});", list, results);
  line("};");
  cx().level = outer;
}

// ---- around the loops of an element section ----

void CpuReductions::declare_results(const Instr& instr) {
  const auto declare = [&](ValueId value) { line("{} {};", c_type(type(value)), name(value)); };
  if (instr.kind == InstrKind::reduce) {
    for (ValueId result : instr.results) declare(result);
  } else if (instr.kind == InstrKind::running_sum) {
    declare(instr.results[1]);
  }
}

void CpuReductions::open_section(const Instr& instr) {
  if (instr.kind == InstrKind::running_sum) {
    line("Running{}<{}> sum_{} = {{0}};", facts().counted_truth(instr) ? "Count" : "Sum",
         c_type(type(instr.results[0])), name(instr.results[0]));
  }
  if (instr.kind != InstrKind::reduce || !facts().has_many_tiles()) return;
  declare_folds(instr, "Levels");
}

void CpuReductions::open_tile(const Instr& instr) {
  if (instr.kind == InstrKind::reduce) declare_folds(instr, "Columns");
}

void CpuReductions::declare_folds(const Instr& instr, std::string_view kind) {
  const auto declare = [&](const std::string& type, ValueId of) {
    const std::string variable = (kind == "Levels" ? "levels_" : "columns_") + name(of);
    line("{} {};", type, variable);
    line(variable + ".clear();");
  };
  const kir::Combiner& combiner = kernel().combiners[instr.combiner];
  if (!combiner.op) {
    const std::string list = element_list(facts().combined_types(combiner));
    return declare(fmt::format("Tuple{}<{}>", kind, list), instr.results[0]);
  }
  const bool is_any = kind == "Columns" && facts().is_any_order(instr);
  for (std::size_t i = 0; i < instr.results.size(); ++i) {
    const ValueId result = instr.results[i];
    const std::string_view type_kind = !is_any                                   ? kind
                                       : facts().is_magnitude(instr.operands[i]) ? "Magnitudes"
                                                                                 : "AnyOrder";
    declare(fmt::format("{}<{}>", type_kind, operation(*combiner.op, type(result))), result);
  }
}

// The values that a region combiner takes. Members without a bit in `shown` become 0.
std::string CpuReductions::tuple_text(const Instr& instr, unsigned shown) const {
  const auto types = facts().combined_types(kernel().combiners[instr.combiner]);
  std::string values;
  for (std::size_t i = 0; i < types.size(); ++i) {
    values +=
        (values.empty() ? "" : ", ") +
        (shown >> i & 1 ? lanes(instr.operands[i]) : fmt::format("Lanes<{}>(0)", c_type(types[i])));
  }
  return fmt::format("make_tuple_of<{}>({})", element_list(types), values);
}

void CpuReductions::end_row(const Instr& instr) {
  const unsigned same = facts().same_in_rows(instr);
  if (same == 0) return;
  line("if constexpr (whole.value) columns_{}.end_row(join_{}, row, {});", name(instr.results[0]),
       instr.combiner, tuple_text(instr, same));
}

// Assigns lane 0 of each member of a Part to the results, which are declared already, and then
// `has`. A member is 0 if nothing took part.
void CpuReductions::emit_parts(const Instr& instr, const std::string& part) {
  line("{");
  line("const auto part = {};", part);
  std::string member = "part.value";
  for (std::size_t i = 0; i + 1 < instr.results.size(); ++i, member += ".tail") {
    assign(instr.results[i],
           fmt::format("lane_of<bool>(part.has, 0) ? lane_of<{0}>({1}.head, 0) : {0}(0)",
                       c_type(type(instr.results[i])), member));
  }
  assign(instr.results.back(), "lane_of<bool>(part.has, 0)");
  line("}");
}

void CpuReductions::close_tile(const Instr& instr) {
  if (instr.kind != InstrKind::reduce) return;
  const kir::Combiner& combiner = kernel().combiners[instr.combiner];
  if (!combiner.op) {
    const std::string result = name(instr.results[0]);
    std::string part = fmt::format("columns_{}.result(join_{})", result, instr.combiner);
    if (const unsigned same = facts().same_in_rows(instr)) {
      part = fmt::format(
          "columns_{0}.is_whole ? columns_{0}.template result_of_rows<{1}u>(join_{2}) : {3}",
          result, same, instr.combiner, part);
    }
    if (facts().has_many_tiles()) {
      line("levels_{}.push(join_{}, 0, {});", result, instr.combiner, part);
    } else {
      emit_parts(instr, part);
    }
    return;
  }
  for (ValueId result : instr.results) {
    if (facts().has_many_tiles()) {
      line("levels_{0}.push(0, columns_{0}.result());", name(result));
    } else {
      assign(result, fmt::format("columns_{}.result()", name(result)));
    }
  }
}

void CpuReductions::close_section(const Instr& instr) {
  if (instr.kind == InstrKind::running_sum) {
    assign(instr.results[1], fmt::format("sum_{}.total", name(instr.results[0])));
  }
  if (instr.kind != InstrKind::reduce || !facts().has_many_tiles()) return;
  if (!kernel().combiners[instr.combiner].op) {
    emit_parts(instr,
               fmt::format("levels_{}.result(join_{})", name(instr.results[0]), instr.combiner));
    return;
  }
  for (ValueId result : instr.results) {
    assign(result, fmt::format("levels_{}.result()", name(result)));
  }
}

// ---- instructions of element sections ----

void CpuReductions::emit_reduce(const Instr& instr) {
  const kir::Combiner& combiner = kernel().combiners[instr.combiner];
  const std::size_t num_values = combiner.op ? instr.results.size() : instr.results.size() - 1;
  const std::string part = acting(optional_operand(instr, num_values));
  if (combiner.op) {
    for (std::size_t i = 0; i < num_values; ++i) {
      const std::string result = name(instr.results[i]), x = lanes(instr.operands[i]);
      const std::string take = fmt::format("columns_{}.take(i, {}, {});", result, x, part);
      if (!cx().goes_by_columns || facts().is_any_order(instr)) {
        line(take);
        continue;
      }
      line("if constexpr (whole.value) columns_{0}.take_in(column_{0}, {1}, {2});", result, x,
           part);
      line("else " + take);
    }
    return;
  }
  const std::string columns = "columns_" + name(instr.results[0]);
  const std::string tuple = tuple_text(instr, ~0u);
  const std::string take =
      fmt::format("{}.take(join_{}, i, {}, {});", columns, instr.combiner, tuple, part);
  const unsigned same = facts().same_in_rows(instr);
  if (same == 0) return line(take);
  line("if constexpr (whole.value) {}.template take_of_row<{}u>(join_{}, i, {});", columns, same,
       instr.combiner, tuple);
  line("else " + take);
}

void CpuReductions::emit_running_sum(const Instr& instr) {
  const ValueId truth = facts().counted_truth(instr);
  const std::string result = name(instr.results[0]), x = lanes(instr.operands[0]);
  constexpr double kMostOfSmall = 0x1p28;  // a sixteenth of what 32 bits hold
  const bool is_small = type(instr.results[0]) == ComputeType::U64 &&
                        facts().range(instr.operands[0]).high < kMostOfSmall;
  if (is_small) {
    return define(instr.results[0], "sum_{}.take_small(lang::convert<u32>({}), live, {})", result,
                  x, instr.exclusive);
  }
  const std::string values = truth ? acting(truth) : x + ", live";
  define(instr.results[0], "sum_{}.take({}, {})", result, values, instr.exclusive);
}

void CpuReductions::emit(const Instr& instr) {
  switch (instr.kind) {
    case InstrKind::reduce:
      return emit_reduce(instr);
    case InstrKind::running_sum:
      return emit_running_sum(instr);
    case InstrKind::finish_reduce:
      return emit_finish_reduce(instr);
    case InstrKind::finish_scan:
      return emit_finish_scan(instr);
    case InstrKind::local_scan:
      return emit_local_scan(instr);
    default:
      return emit_local_transform(instr);
  }
}

// CpuReductions: the end of reductions and scans of several groups, and scans and transforms of
// local arrays.

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
      line("{} {};", c_type(type(result)), name(result));
    }
    emit_parts(instr, fmt::format("reduce_stored_parts<{}>(join_{}, {}, [&](i64 first, u32 count) "
                                  "{{ return {}; }})",
                                  element_list(facts().combined_types(combiner)), instr.combiner,
                                  count, stored_tuple(instr, "first", true)));
  }
  for (std::size_t i = 0; i < instr.buffers.size(); ++i) {
    const Storage s = facts().storage(instr.buffers[i]);
    if (facts().counts_accesses()) {
      line("bits_read += u64({}) * {};", count, s.bits);
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
  line("for (i64 row = 0; row < {}; ++row) {{", rows);
  line("const i64 row_base = row * {};", len);
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
  line("const auto load = [&](i64 first, u32 count) {{ return make_tuple_of<{}>({}); }};", list,
       loads);
  line("const auto store = [&](i64 first, u32 count, Tuple<{}> x) {{ {}}};", list, stores);
  line("StoredRow<decltype(load), decltype(store)> stored = {load, store};");
  const std::string join =
      combiner.op ? fmt::format("OperationJoin<{}>{{}}", operation(*combiner.op, types[0]))
                  : fmt::format("join_{}", instr.combiner);
  line("scan_row<kMaxPartials, {}>({}, stored, u32({}));", list, join, len);
  line("}");
  if (!facts().counts_accesses()) return;
  for (rt::BufferIndex b : instr.buffers) {
    line("bits_read += u64({0} * {1}) * {2}, bits_written += u64({0} * {1}) * {2};", rows, len,
         facts().storage(b).bits);
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
  line("scan_local({}, LocalArrays<{}>{{{}}}, len);", join, element_list(types), refs);
}

void CpuReductions::emit_local_transform(const Instr& instr) {
  const std::int64_t len = facts().program().info.exprs->const_value(kernel().group_len).as_int();
  if (instr.kind == InstrKind::local_butterflies) {
    return line("butterflies_of_row<{}>({});", len, local(instr.index));
  }
  if (instr.kind == InstrKind::local_largest) {
    return line("mark_largest({}, {}, {});", local(instr.index), len, uniform(instr.operands[0]));
  }
  const rt::BufferInfo& matrix = facts().program().buffers.at(instr.buffers[0]);
  const int folds = matrix.role == rt::BufferRole::Constant
                        ? matrix_folds(facts().program().constants.at(matrix.role_index), len)
                        : 0;
  line("multiply_row<{}{}>({}, b{}, {});", len,
       folds > 0 ? fmt::format(", {}", folds) : std::string(), local(instr.index), instr.buffers[0],
       local(instr.index + 1));
}

}  // namespace cinch::codegen
