// CpuKernelEmitter: reductions, running sums and scans, in the prelude's terms.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/emit/cpu/helpers.h"
#include "codegen/emit/cpu/kernel.h"
#include "codegen/emit/cpu/matrix_folds.h"
#include "codegen/kir/builder.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using kir::ComputeType;
using kir::InstrKind;

std::string CpuKernelEmitter::operation(ScalarOp op, ComputeType t) const {
  return fmt::format("{}<{}>", operation_struct(op, t), c_type(t));
}

std::string CpuKernelEmitter::element_list(const std::vector<ComputeType>& types) const {
  std::string text;
  for (ComputeType t : types) text += (text.empty() ? "" : ", ") + std::string(c_type(t));
  return text;
}

std::vector<ComputeType> CpuKernelEmitter::combined_types(const kir::Combiner& combiner) const {
  std::vector<ComputeType> types;
  types.reserve(combiner.results.size());
  for (ValueId result : combiner.results) types.push_back(type(result));
  return types;
}

bool CpuKernelEmitter::is_any_order(const Instr& instr) const {
  const kir::Combiner& combiner = kernel_.combiners[instr.combiner];
  if (!combiner.op) return false;
  const bool is_bound = *combiner.op == ScalarOp::min || *combiner.op == ScalarOp::max;
  return is_bound || !kir::is_float(type(instr.results[0]));
}

unsigned CpuKernelEmitter::same_in_rows(const Instr& instr) const {
  if (instr.kind != InstrKind::reduce || kernel_.group_kind != kir::GroupKind::Tile) return 0;
  const kir::Combiner& combiner = kernel_.combiners[instr.combiner];
  const std::size_t members = instr.results.size() - 1;
  if (combiner.op || instr.operands.size() > members || members > 32) return 0;
  unsigned same = 0;
  for (std::size_t i = 0; i < members; ++i) {
    if (!is_element(instr.operands[i]) || is_constant(instr.operands[i])) same |= 1u << i;
  }
  for (unsigned before = 0; same != before;) {
    before = same;
    std::set<ValueId> varying;
    for (std::size_t i = 0; i < combiner.args.size(); ++i) {
      if (!(same >> i % members & 1)) varying.insert(combiner.args[i]);
    }
    for (const Instr& step : combiner.body) {
      const bool varies = std::any_of(step.operands.begin(), step.operands.end(),
                                      [&](ValueId operand) { return varying.contains(operand); });
      if (varies) varying.insert(step.results.begin(), step.results.end());
    }
    for (std::size_t i = 0; i < members; ++i) {
      if (varying.contains(combiner.results[i])) same &= ~(1u << i);
    }
  }
  return same;
}

// A region combiner is a function of two tuples; `live` are the lanes whose result counts.
void CpuKernelEmitter::need_combiner(std::uint32_t index) {
  const kir::Combiner& combiner = kernel_.combiners[index];
  if (combiner.op || !combiners_done_.insert(index).second) return;
  const std::vector<ComputeType> types = combined_types(combiner);
  const std::string list = element_list(types);
  line(fmt::format("const auto join_{} = [&](Tuple<{}> a, Tuple<{}> b, Truth live) {{", index, list,
                   list));
  const Level outer = level_;
  level_ = Level::Combiner;
  for (std::size_t i = 0; i < combiner.args.size(); ++i) {
    std::string member = i < types.size() ? "a" : "b";
    for (std::size_t k = 0; k < i % types.size(); ++k) member += ".tail";
    define(combiner.args[i], member + ".head");
  }
  for (const Instr& instr : combiner.body) emit_instr(instr);
  std::string results;
  for (ValueId result : combiner.results) results += (results.empty() ? "" : ", ") + lanes(result);
  line(fmt::format("return make_tuple_of<{}>({});", list, results));
  line("};");
  level_ = outer;
}

// ---- reduce ----

void CpuKernelEmitter::declare_results(const Instr& instr) {
  const auto declare = [&](ValueId value) {
    line(fmt::format("{} {};", c_type(type(value)), name(value)));
  };
  if (instr.kind == InstrKind::reduce) {
    for (ValueId result : instr.results) declare(result);
  } else if (instr.kind == InstrKind::running_sum) {
    declare(instr.results[1]);
  }
}

void CpuKernelEmitter::open_section(const Instr& instr) {
  if (instr.kind == InstrKind::running_sum) {
    line(fmt::format("Running{}<{}> sum_{} = {{0}};", counted_truth(instr) ? "Count" : "Sum",
                     c_type(type(instr.results[0])), name(instr.results[0])));
  }
  if (instr.kind != InstrKind::reduce || !has_many_tiles()) return;
  declare_folds(instr, "Levels");
}

void CpuKernelEmitter::open_reduce_tile(const Instr& instr) {
  if (instr.kind == InstrKind::reduce) declare_folds(instr, "Columns");
}

void CpuKernelEmitter::declare_folds(const Instr& instr, std::string_view kind) {
  const auto declare = [&](const std::string& type, ValueId of) {
    const std::string variable = (kind == "Levels" ? "levels_" : "columns_") + name(of);
    line(fmt::format("{} {};", type, variable));
    line(variable + ".clear();");
  };
  const kir::Combiner& combiner = kernel_.combiners[instr.combiner];
  if (!combiner.op) {
    const std::string list = element_list(combined_types(combiner));
    return declare(fmt::format("Tuple{}<{}>", kind, list), instr.results[0]);
  }
  const bool is_any = kind == "Columns" && is_any_order(instr);
  for (std::size_t i = 0; i < instr.results.size(); ++i) {
    const ValueId result = instr.results[i];
    const std::string_view type_kind = !is_any                           ? kind
                                       : is_magnitude(instr.operands[i]) ? "Magnitudes"
                                                                         : "AnyOrder";
    declare(fmt::format("{}<{}>", type_kind, operation(*combiner.op, type(result))), result);
  }
}

void CpuKernelEmitter::emit_reduce(const Instr& instr) {
  const kir::Combiner& combiner = kernel_.combiners[instr.combiner];
  const std::size_t num_values = combiner.op ? instr.results.size() : instr.results.size() - 1;
  const std::string part = acting(optional_operand(instr, num_values));
  if (combiner.op) {
    for (std::size_t i = 0; i < num_values; ++i) {
      const std::string result = name(instr.results[i]), x = lanes(instr.operands[i]);
      const std::string take = fmt::format("columns_{}.take(i, {}, {});", result, x, part);
      if (!goes_by_columns_ || is_any_order(instr)) {
        line(take);
        continue;
      }
      line(fmt::format("if constexpr (whole.value) columns_{0}.take_in(column_{0}, {1}, {2});",
                       result, x, part));
      line("else " + take);
    }
    return;
  }
  const std::string columns = "columns_" + name(instr.results[0]);
  const std::string tuple = tuple_text(instr, ~0u);
  const std::string take =
      fmt::format("{}.take(join_{}, i, {}, {});", columns, instr.combiner, tuple, part);
  const unsigned same = same_in_rows(instr);
  if (same == 0) return line(take);
  line(fmt::format("if constexpr (whole.value) {}.template take_of_row<{}u>(join_{}, i, {});",
                   columns, same, instr.combiner, tuple));
  line("else " + take);
}

// The values that a region combiner takes in; 0 in place of members that `shown` has no bit for.
std::string CpuKernelEmitter::tuple_text(const Instr& instr, unsigned shown) const {
  const auto types = combined_types(kernel_.combiners[instr.combiner]);
  std::string values;
  for (std::size_t i = 0; i < types.size(); ++i) {
    values +=
        (values.empty() ? "" : ", ") +
        (shown >> i & 1 ? lanes(instr.operands[i]) : fmt::format("Lanes<{}>(0)", c_type(types[i])));
  }
  return fmt::format("make_tuple_of<{}>({})", element_list(types), values);
}

void CpuKernelEmitter::end_row(const Instr& instr) {
  const unsigned same = same_in_rows(instr);
  if (same == 0) return;
  line(fmt::format("if constexpr (whole.value) columns_{}.end_row(join_{}, row, {});",
                   name(instr.results[0]), instr.combiner, tuple_text(instr, same)));
}

void CpuKernelEmitter::close_reduce_tile(const Instr& instr) {
  if (instr.kind != InstrKind::reduce) return;
  const kir::Combiner& combiner = kernel_.combiners[instr.combiner];
  if (!combiner.op) {
    const std::string result = name(instr.results[0]);
    std::string part = fmt::format("columns_{}.result(join_{})", result, instr.combiner);
    if (const unsigned same = same_in_rows(instr)) {
      part = fmt::format(
          "columns_{0}.is_whole ? columns_{0}.template result_of_rows<{1}u>(join_{2}) : {3}",
          result, same, instr.combiner, part);
    }
    if (has_many_tiles()) {
      line(fmt::format("levels_{}.push(join_{}, 0, {});", result, instr.combiner, part));
    } else {
      emit_parts(instr, part);
    }
    return;
  }
  for (ValueId result : instr.results) {
    if (has_many_tiles()) {
      line(fmt::format("levels_{0}.push(0, columns_{0}.result());", name(result)));
    } else {
      assign(result, fmt::format("columns_{}.result()", name(result)));
    }
  }
}

void CpuKernelEmitter::close_section(const Instr& instr) {
  if (instr.kind == InstrKind::running_sum) {
    assign(instr.results[1], fmt::format("sum_{}.total", name(instr.results[0])));
  }
  if (instr.kind != InstrKind::reduce || !has_many_tiles()) return;
  if (!kernel_.combiners[instr.combiner].op) {
    emit_parts(instr,
               fmt::format("levels_{}.result(join_{})", name(instr.results[0]), instr.combiner));
    return;
  }
  for (ValueId result : instr.results) {
    assign(result, fmt::format("levels_{}.result()", name(result)));
  }
}

// Lane 0 of each member of a Part, 0 where nothing took part, then of `has`, to the results, which
// are declared.
void CpuKernelEmitter::emit_parts(const Instr& instr, const std::string& part) {
  line("{");
  line(fmt::format("const auto part = {};", part));
  std::string member = "part.value";
  for (std::size_t i = 0; i + 1 < instr.results.size(); ++i, member += ".tail") {
    assign(instr.results[i],
           fmt::format("lane_of<bool>(part.has, 0) ? lane_of<{0}>({1}.head, 0) : {0}(0)",
                       c_type(type(instr.results[i])), member));
  }
  assign(instr.results.back(), "lane_of<bool>(part.has, 0)");
  line("}");
}

void CpuKernelEmitter::emit_running_sum(const Instr& instr) {
  const ValueId truth = counted_truth(instr);
  const std::string result = name(instr.results[0]), x = lanes(instr.operands[0]);
  constexpr double kMostOfSmall = 0x1p28;  // a sixteenth of what 32 bits hold
  const bool is_small = type(instr.results[0]) == ComputeType::U64 &&
                        ranges_.of(instr.operands[0]).high < kMostOfSmall;
  if (is_small) {
    return define(instr.results[0],
                  fmt::format("sum_{}.take_small(lang::convert<u32>({}), live, {})", result, x,
                              instr.exclusive));
  }
  const std::string values = truth ? acting(truth) : x + ", live";
  define(instr.results[0], fmt::format("sum_{}.take({}, {})", result, values, instr.exclusive));
}

// ---- finish and local scans ----

std::string CpuKernelEmitter::stored_tuple(const Instr& instr, const std::string& place,
                                           bool is_part) const {
  const std::size_t members = instr.buffers.size() - (is_part ? 1 : 0);
  std::vector<std::string> loads;
  for (rt::BufferIndex b : instr.buffers) {
    const Storage s = storage(b);
    CINCH_CHECK(!s.is_packed, "partial results in a packed buffer");
    loads.push_back(
        from_storage(s, fmt::format("load_lanes<{}>(b{}, {}, count)", s.element, b, place)));
  }
  const std::string list = element_list(combined_types(kernel_.combiners[instr.combiner]));
  std::string values;
  for (std::size_t i = 0; i < members; ++i) values += (i == 0 ? "" : ", ") + loads[i];
  const std::string tuple = fmt::format("make_tuple_of<{}>({})", list, values);
  return is_part ? fmt::format("Part<{}>{{{}, {}}}", list, tuple, loads.back()) : tuple;
}

void CpuKernelEmitter::emit_finish_reduce(const Instr& instr) {
  need_combiner(instr.combiner);
  const kir::Combiner& combiner = kernel_.combiners[instr.combiner];
  const std::string count = fmt::format("i64({})", uniform(instr.operands[0]));
  if (!combiner.op) {
    for (ValueId result : instr.results) {
      line(fmt::format("{} {};", c_type(type(result)), name(result)));
    }
    emit_parts(instr, fmt::format("reduce_stored_parts<{}>(join_{}, {}, [&](i64 first, u32 count) "
                                  "{{ return {}; }})",
                                  element_list(combined_types(combiner)), instr.combiner, count,
                                  stored_tuple(instr, "first", true)));
  }
  for (std::size_t i = 0; i < instr.buffers.size(); ++i) {
    const Storage s = storage(instr.buffers[i]);
    if (options_.count_accesses) {
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

void CpuKernelEmitter::emit_finish_scan(const Instr& instr) {
  need_combiner(instr.combiner);
  const kir::Combiner& combiner = kernel_.combiners[instr.combiner];
  CINCH_CHECK(!combiner.op || instr.buffers.size() == 1,
              "a scan of several arrays by an operation");
  const std::string rows = uniform(instr.operands[0]), len = uniform(instr.operands[1]);
  std::vector<ComputeType> types;
  types.reserve(instr.buffers.size());
  for (rt::BufferIndex b : instr.buffers) {
    types.push_back(kir::compute_type(program_.buffers[b].dtype));
  }
  const std::string list = element_list(types);
  line(fmt::format("for (i64 row = 0; row < {}; ++row) {{", rows));
  line(fmt::format("const i64 row_base = row * {};", len));
  std::string loads, stores, member = "x";
  for (rt::BufferIndex b : instr.buffers) {
    const Storage s = storage(b);
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
  if (!options_.count_accesses) return;
  for (rt::BufferIndex b : instr.buffers) {
    line(fmt::format("bits_read += u64({0} * {1}) * {2}, bits_written += u64({0} * {1}) * {2};",
                     rows, len, storage(b).bits));
  }
}

void CpuKernelEmitter::emit_local_scan(const Instr& instr) {
  const kir::Combiner& combiner = kernel_.combiners[instr.combiner];
  const std::size_t members = combiner.op ? 1 : combiner.results.size();
  std::vector<ComputeType> types;
  std::string refs;
  for (std::size_t i = 0; i < members; ++i) {
    const auto index = static_cast<std::uint32_t>(instr.index + i);
    types.push_back(kernel_.locals.at(index).type);
    refs += fmt::format("{}, {{", local(index));
  }
  refs += std::string(members, '}');
  const std::string join =
      combiner.op ? fmt::format("OperationJoin<{}>{{}}", operation(*combiner.op, types[0]))
                  : fmt::format("join_{}", instr.combiner);
  line(fmt::format("scan_local({}, LocalArrays<{}>{{{}}}, len);", join, element_list(types), refs));
}

void CpuKernelEmitter::emit_local_transform(const Instr& instr) {
  const std::int64_t len = program_.info.exprs.const_value(kernel_.group_len).as_int();
  if (instr.kind == InstrKind::local_butterflies) {
    return line(fmt::format("butterflies_of_row<{}>({});", len, local(instr.index)));
  }
  const rt::BufferInfo& matrix = program_.buffers.at(instr.buffers[0]);
  const int folds = matrix.role == rt::BufferRole::Constant
                        ? matrix_folds(program_.constants.at(matrix.role_index), len)
                        : 0;
  line(fmt::format("multiply_row<{}{}>({}, b{}, {});", len,
                   folds > 0 ? fmt::format(", {}", folds) : std::string(), local(instr.index),
                   instr.buffers[0], local(instr.index + 1)));
}

}  // namespace cinch::codegen
