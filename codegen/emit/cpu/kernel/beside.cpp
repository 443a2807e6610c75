#include "codegen/emit/cpu/kernel/beside.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cpu/kernel/instrs.h"
#include "codegen/emit/cpu/reuse.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::codegen {
using kir::Instr;
using kir::InstrKind;
using kir::SectionKind;
using kir::ValueId;

namespace {

// Measured. Rows of a constant length that several vectors fill are faster one after the other.
constexpr std::int64_t kLongestAlongMemory = 48;
constexpr std::int64_t kLongestAcross = std::int64_t{1} << 20;  // two levels of reductions
// What a stage or a local array holds for each of the rows that go together.
constexpr std::int64_t kLongestStaged = 64;

/// How a place in memory moves from one row to the next one.
enum class Step : std::uint8_t { None, One, Other };

class RowsBesideChoice {
 public:
  explicit RowsBesideChoice(const CpuKernelFacts& facts) : facts_(facts) {}

  std::int64_t longest() {
    const kir::Kernel& kernel = facts_.kernel();
    if (kernel.group_kind != kir::GroupKind::Row || facts_.counts_accesses()) return 0;
    const HostExprPool& pool = *facts_.program().info.exprs;
    is_length_known_ = pool.is_const(kernel.group_len);
    if (is_length_known_) length_ = pool.const_value(kernel.group_len).as_int();
    for (std::size_t s = 1; s < kernel.sections.size(); ++s) {
      for (const Instr& instr : kernel.sections[s].instrs) {
        if (!allows(kernel.sections[s].kind, instr)) return 0;
      }
    }
    if (!has_reduction_) return 0;
    const std::int64_t most = are_loads_across_ ? kLongestAcross : kLongestAlongMemory;
    if (!is_length_known_) return facts_.is_quick() ? 0 : most;
    if (length_ > most || length_ < 1) return 0;
    return are_loads_across_ || !fills_vectors() ? most : 0;
  }

 private:
  bool is_short() const { return is_length_known_ && length_ <= kLongestStaged; }

  // Rows of these lengths are whole vectors at every level of x86-64. What they draw is drawn
  // sooner for several rows together, unless they are as long as four vectors.
  bool fills_vectors() const {
    constexpr std::int64_t kWidestVector = 16;
    return length_ % kWidestVector == 0 && (!has_draws_ || length_ >= 4 * kWidestVector);
  }

  // Draws of consecutive elements, from row to row.
  bool allows_draw(const Instr& draw) {
    has_draws_ = true;
    if (!is_short() || draw.kind == InstrKind::random_index) return false;
    const auto run = facts_.find_run(draw.operands[index_operand(draw)]);
    return run && run->is_of_tensor && std::ranges::all_of(run->addends, [&](ValueId addend) {
             return facts_.level(addend) == Level::Kernel;
           });
  }

  bool allows(SectionKind kind, const Instr& instr) {
    switch (instr.kind) {
      case InstrKind::group:
      case InstrKind::group_len:
      case InstrKind::column:
      case InstrKind::element:
      case InstrKind::constant:
      case InstrKind::flag_nonfinite:
        return true;
      case InstrKind::reduce:
        has_reduction_ = true;
        return true;
      case InstrKind::local_scan:
        has_reduction_ = true;
        return is_short();
      case InstrKind::local_store:
      case InstrKind::local_load:
      case InstrKind::local_last:
      case InstrKind::local_previous:
        return is_short();
      case InstrKind::load_linear:
        are_loads_across_ &= !base_of(instr) || step_of(base_of(instr)) == Step::None;
        return run_of_rows(facts_, instr).has_value();
      case InstrKind::load_at:
        if (kind == SectionKind::Elements)
          are_loads_across_ &= step_of(instr.operands[0]) != Step::Other;
        return true;
      case InstrKind::store_linear:
        return facts_.storage(instr.buffers[0]).is_packed
                   ? is_short() && is_packed_run(facts_, instr, length_)
                   : run_of_rows(facts_, instr).has_value();
      case InstrKind::store_at:
        return !instr.is_compact;
      case InstrKind::fail_if:
        return kind == SectionKind::Elements;
      default:
        if (kir::is_draw(instr.kind)) return kind == SectionKind::Elements && allows_draw(instr);
        return kir::is_element_wise(instr.kind);
    }
  }

  Step step_of(ValueId place) const {
    const Instr* made = facts_.definition(place);
    if (made == nullptr) return Step::Other;
    if (made->kind == InstrKind::group) return Step::One;
    if (made->kind == InstrKind::column || facts_.level(place) == Level::Kernel) return Step::None;
    if (made->kind == InstrKind::convert) return step_of(made->operands[0]);
    if (!kir::is_element_wise(made->kind)) return Step::Other;
    std::vector<Step> steps;
    steps.reserve(made->operands.size());
    for (const ValueId operand : made->operands) steps.push_back(step_of(operand));
    const auto num_ones = std::ranges::count(steps, Step::One);
    if (std::ranges::count(steps, Step::Other) != 0) return Step::Other;
    if (num_ones == 0) return Step::None;
    const bool is_sum = made->kind == InstrKind::scalar && made->scalar_op == ScalarOp::add;
    return is_sum && num_ones == 1 ? Step::One : Step::Other;
  }

  const CpuKernelFacts& facts_;
  std::int64_t length_ = 0;
  bool is_length_known_ = false;
  bool has_draws_ = false;
  bool has_reduction_ = false;  // or a scan
  bool are_loads_across_ = true;
};

class CpuRowsBeside : public CpuPrinter {
 public:
  explicit CpuRowsBeside(CpuContext& cx) : CpuPrinter(cx), instrs_(cx), draws_(cx) {}

  void emit() {
    cx().level = Level::Element;
    line("for (u64 first = group_begin; first < group_stop; first += kRowsBeside) {");
    line("const u32 rows = u32(least(group_stop - first, u64(kRowsBeside)));");
    each_staged(&CpuRowsBeside::open_stage);
    line("for (u32 row = 0; row < rows; row += W) {");
    line("const u32 active = least(rows - row, u32(W));");
    line("const Truth live = first_lanes(active);");
    line("constexpr Known<false> whole;");
    for (std::size_t i = 0; i < kernel().locals.size(); ++i)
      line("LocalOfRows<{}, {}> local_{};", c_type(kernel().locals[i].type), length_text(), i);
    for (cx().section = 1; cx().section < kernel().sections.size(); ++cx().section) {
      const kir::Section& section = kernel().sections[cx().section];
      section.kind == SectionKind::Elements ? emit_elements(section.instrs)
                                            : emit_instrs(section.instrs);
    }
    line("}");
    each_staged(&CpuRowsBeside::close_stage);
    line("}");
  }

 private:
  void emit_instrs(const std::vector<Instr>& instrs) {
    for (cx().instr = 0; cx().instr < instrs.size(); ++cx().instr) emit_instr(instrs[cx().instr]);
  }

  void emit_elements(const std::vector<Instr>& instrs) {
    if (instrs.empty()) return;
    for (const Instr& instr : instrs) {
      if (instr.kind != InstrKind::reduce) continue;
      for (const ValueId result : instr.results)
        line("Lanes<{}> {};", c_type(type(result)), name(result));
    }
    line("{");
    runs_.clear();
    for (const Instr& instr : instrs) {
      if (kir::is_linear(instr.kind)) need_runs(instr);
      if (instr.kind == InstrKind::reduce) declare_columns(instr);
    }
    constexpr std::int64_t kLongestUnrolled = 8;
    const auto& pool = *facts().program().info.exprs;
    const bool is_unrolled = pool.is_const(kernel().group_len) &&
                             pool.const_value(kernel().group_len).as_int() <= kLongestUnrolled;
    if (is_unrolled) line("#pragma clang loop unroll(full)");
    line("for (u32 j = 0; j < {}; ++j) {{", is_unrolled ? length_text() : "len");
    emit_instrs(instrs);
    line("}");
    for (const Instr& instr : instrs) {
      if (instr.kind == InstrKind::reduce) assign_results(instr);
    }
    line("}");
  }

  std::string length_text() const {
    const auto& pool = *facts().program().info.exprs;
    return fmt::format("{}u", pool.const_value(kernel().group_len).as_int());
  }

  // ---- reductions ----

  const kir::Combiner& combiner_of(const Instr& reduce) const {
    return kernel().combiners[reduce.combiner];
  }
  std::string type_list(const kir::Combiner& combiner) const {
    std::string text;
    for (const kir::ComputeType t : facts().combined_types(combiner))
      text += (text.empty() ? "" : ", ") + std::string(c_type(t));
    return text;
  }
  std::string columns(ValueId result) const { return "columns_" + name(result); }

  void declare_columns(const Instr& instr) {
    const kir::Combiner& combiner = combiner_of(instr);
    const bool is_long = facts().has_many_tiles();
    if (!combiner.op) {
      return line("RowsOrderedTuples<{}, {}> {};", is_long, type_list(combiner),
                  columns(instr.results[0]));
    }
    for (std::size_t i = 0; i < instr.results.size(); ++i) {
      const kir::ComputeType t = type(instr.results[i]);
      const std::string op = fmt::format("{}<{}>", operation_struct(*combiner.op, t), c_type(t));
      const std::string variable = columns(instr.results[i]);
      if (!facts().is_any_order(instr)) {
        line("RowsOrdered<{}, {}> {};", op, is_long, variable);
        continue;
      }
      line("{}<{}> {};", facts().is_magnitude(instr.operands[i]) ? "Magnitudes" : "AnyOrder", op,
           variable);
      line(variable + ".clear();");
    }
  }

  void emit_reduce(const Instr& instr) {
    const kir::Combiner& combiner = combiner_of(instr);
    const std::size_t num_values = instr.results.size() - (combiner.op ? 0 : 1);
    const std::string part = acting(optional_operand(instr, num_values));
    if (combiner.op) {
      for (std::size_t i = 0; i < num_values; ++i)
        line("{}.take(j, {}, {});", columns(instr.results[i]), lanes(instr.operands[i]), part);
      return;
    }
    std::string values;
    for (std::size_t i = 0; i < num_values; ++i)
      values += (i == 0 ? "" : ", ") + lanes(instr.operands[i]);
    line("{}.take(join_{}, j, make_tuple_of<{}>({}), {});", columns(instr.results[0]),
         instr.combiner, type_list(combiner), values, part);
  }

  void assign_results(const Instr& instr) {
    if (combiner_of(instr).op) {
      const char* result = facts().is_any_order(instr) ? "of_lanes()" : "result(len)";
      for (const ValueId value : instr.results)
        assign(value, fmt::format("{}.{}", columns(value), result));
      return;
    }
    line("{");
    line("const auto part = {}.result(join_{}, len);", columns(instr.results[0]), instr.combiner);
    std::string member = "part.value";
    for (std::size_t i = 0; i + 1 < instr.results.size(); ++i, member += ".tail") {
      assign(instr.results[i], fmt::format("op_select(part.has, {}.head, Lanes<{}>(0))", member,
                                           c_type(type(instr.results[i]))));
    }
    assign(instr.results.back(), "part.has");
    line("}");
  }

  // Goes from the end down, so that elements are read before this distance changes them.
  void emit_local_scan(const Instr& instr) {
    const kir::Combiner& combiner = combiner_of(instr);
    const std::size_t num = combiner.op ? 1 : combiner.results.size();
    const auto tuple = [&](const char* place) {
      std::string members;
      for (std::size_t i = 0; i < num; ++i)
        members += fmt::format("{}local_{}.at[{}]", i == 0 ? "" : ", ", instr.index + i, place);
      return members;
    };
    line("for (u32 d = 1; d < len; d *= 2) {");
    line("for (u32 j = len - 1; j >= d; --j) {");
    if (combiner.op) {
      const kir::ComputeType t = kernel().locals[instr.index].type;
      line("{} = {}<{}>::join({}, {});", tuple("j"), operation_struct(*combiner.op, t), c_type(t),
           tuple("j - d"), tuple("j"));
    } else {
      const std::string list = type_list(combiner);
      line("const auto joined = join_{0}(make_tuple_of<{1}>({2}), make_tuple_of<{1}>({3}), live);",
           instr.combiner, list, tuple("j - d"), tuple("j"));
      std::string member = "joined";
      for (std::size_t i = 0; i < num; ++i, member += ".tail")
        line("local_{}.at[j] = {}.head;", instr.index + i, member);
    }
    line("}");
    line("}");
  }

  void emit_local_previous(const Instr& instr) {
    define(instr.results[0], "j == 0 ? {0} : local_{1}.at[j == 0 ? 0 : j - 1]",
           lanes(instr.operands[0]), instr.index);
  }

  // ---- memory ----

  std::pair<std::uint32_t, std::uint32_t> run_key(const Instr& instr) const {
    const auto index = [](ValueId value) { return value ? value.index() + 1 : 0; };
    return {index(base_of(instr)), index(limit_of(instr))};
  }
  void need_runs(const Instr& instr) {
    const auto [known, is_new] = runs_.emplace(run_key(instr), runs_.size());
    if (!is_new) return;
    const RowRun run = *run_of_rows(facts(), instr);
    const std::string stride = run.stride ? uniform(run.stride) : "i64(0)";
    const std::string first = run.stride ? fmt::format("i64(first + row) * {}", stride)
                              : run.base ? uniform(run.base)
                                         : "i64(0)";
    constexpr const char* kNoEnd = "i64(0x7fffffffffffffff)";
    line("const RowRuns runs_{} = RowRuns::of({}, {}, {}, len, active);", known->second, first,
         stride, run.end ? uniform(run.end) : kNoEnd);
  }
  std::string runs_of(const Instr& instr) const {
    return fmt::format("runs_{}", runs_.at(run_key(instr)));
  }

  void emit_load_linear(const Instr& instr) {
    const Storage s = facts().storage(instr.buffers[0]);
    const std::string runs = runs_of(instr);
    const ValueId result = instr.results[0];
    if (s.is_bit() && is_bool(s.dtype)) {
      return define(result, "gather_bits(b{0}, {1}.places(j), {1}.live(j, live))", instr.buffers[0],
                    runs);
    }
    define(result,
           from_storage(s, s.is_packed ? fmt::format("gather_packed<{0}, {1}>(b{2}, {3}.places(j), "
                                                     "{3}.live(j, live))",
                                                     s.bits, s.element, instr.buffers[0], runs)
                                       : fmt::format("load_of_rows<{}>(b{}, {}, j, live)",
                                                     s.element, instr.buffers[0], runs)));
  }

  void emit_load_at(const Instr& instr) {
    const Storage s = facts().storage(instr.buffers[0]);
    const std::string index = lanes(instr.operands[0]), part = acting(predicate_of(instr));
    if (s.is_bit() && is_bool(s.dtype)) {
      return define(instr.results[0], "gather_bits(b{}, {}, {})", instr.buffers[0], index, part);
    }
    const std::string function = s.is_packed
                                     ? fmt::format("gather_packed<{}, {}>", s.bits, s.element)
                                     : fmt::format("load_beside<{}>", s.element);
    define(instr.results[0], from_storage(s, fmt::format("{}(b{}, {}, {})", function,
                                                         instr.buffers[0], index, part)));
  }

  void emit_store_linear(const Instr& instr) {
    const Storage s = facts().storage(instr.buffers[0]);
    const std::string x = to_storage(s, lanes(instr.operands[0]));
    if (s.is_packed)
      return line("stage_of_rows<{}>({}, row, len, j, {});", s.element, stage_name(instr), x);
    line("store_of_rows<{}>(b{}, {}, j, {}, live);", s.element, instr.buffers[0], runs_of(instr),
         x);
  }

  void emit_store_at(const Instr& instr) {
    const Storage s = facts().storage(instr.buffers[0]);
    const Instr* index = facts().definition(instr.operands[0]);
    if (index && index->kind == InstrKind::group && !predicate_of(instr)) {
      return line("store_lanes<{}>(b{}, i64(first + row), active, {});", s.element,
                  instr.buffers[0], to_storage(s, lanes(instr.operands[1])));
    }
    line("store_beside<{}>(b{}, {}, {}, {});", s.element, instr.buffers[0],
         lanes(instr.operands[0]), to_storage(s, lanes(instr.operands[1])),
         acting(predicate_of(instr)));
  }

  void each_staged(void (CpuRowsBeside::*emit)(const Instr&)) {
    for (cx().section = 1; cx().section < kernel().sections.size(); ++cx().section) {
      const auto& instrs = kernel().sections[cx().section].instrs;
      for (cx().instr = 0; cx().instr < instrs.size(); ++cx().instr) {
        const Instr& instr = instrs[cx().instr];
        const bool is_staged =
            instr.kind == InstrKind::store_linear && facts().storage(instr.buffers[0]).is_packed;
        if (is_staged || kir::is_draw(instr.kind)) (this->*emit)(instr);
      }
    }
  }
  void open_stage(const Instr& store) {
    if (kir::is_draw(store.kind)) return draws_.open_rows(store);
    line("{} {}[kRowsBeside * {}];", facts().storage(store.buffers[0]).element, stage_name(store),
         length_text());
  }
  // The limit of each row counts from its base; the difference between them is the end of all rows.
  void close_stage(const Instr& store) {
    if (kir::is_draw(store.kind)) return;
    const ValueId limit = limit_of(store);
    const std::string begin = "i64(first * len)", count = "rows * len";
    line("pack_run<{}>(b{}, {}, {}, {});", facts().storage(store.buffers[0]).bits, store.buffers[0],
         begin, stage_name(store),
         limit ? fmt::format("places_below(i64({}) - {}, i64(0), {})",
                             uniform(facts().definition(limit)->operands[0]), begin, count)
               : count);
  }

  // A row's number as u32, without lanes of 64 bits.
  bool emit_narrow_group(const Instr& convert) {
    const Instr* made = facts().definition(convert.operands[0]);
    if (made == nullptr || made->kind != InstrKind::group || convert.dtype != kU32) return false;
    define(convert.results[0], "lane_numbers() + wide(u32(first + row))");
    return true;
  }

  void emit_instr(const Instr& instr) {
    switch (instr.kind) {
      case InstrKind::group:
        return define(instr.results[0],
                      "lang::convert<i64>(lane_numbers()) + wide(i64(first + row))");
      case InstrKind::group_len:
        return define(instr.results[0], "wide(i64(len))");
      case InstrKind::column:
        return define(instr.results[0], "wide(j)");
      case InstrKind::element:
        return define(instr.results[0],
                      "(lane_numbers() + wide(u32(first + row))) * wide(len) + wide(j)");
      case InstrKind::load_linear:
        return emit_load_linear(instr);
      case InstrKind::load_at:
        return emit_load_at(instr);
      case InstrKind::store_linear:
        return emit_store_linear(instr);
      case InstrKind::store_at:
        return emit_store_at(instr);
      case InstrKind::reduce:
        return emit_reduce(instr);
      case InstrKind::local_store:
        return line("local_{}.at[j] = {};", instr.index, lanes(instr.operands[0]));
      case InstrKind::local_load:
        return define(instr.results[0], "local_{}.at[j]", instr.index);
      case InstrKind::local_last:
        return define(instr.results[0], "local_{}.at[len - 1]", instr.index);
      case InstrKind::local_previous:
        return emit_local_previous(instr);
      case InstrKind::local_scan:
        return emit_local_scan(instr);
      case InstrKind::convert:
        if (emit_narrow_group(instr)) return;
        return instrs_.emit(instr);
      default:
        return kir::is_draw(instr.kind) ? draws_.emit_of_rows(instr) : instrs_.emit(instr);
    }
  }

  CpuInstrs instrs_;
  CpuDraws draws_;
  // The number of each base and limit in this section.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> runs_;
};

}  // namespace

std::int64_t longest_rows_beside(const CpuKernelFacts& facts) {
  return RowsBesideChoice(facts).longest();
}

SourceWriter emit_rows_beside(const CpuKernelFacts& facts, SourceWriter out) {
  const CpuOptions options{.effort = facts.is_quick() ? Effort::Quick : Effort::Full};
  const CpuKernelFacts of_lanes(facts.program(), facts.kernel(), options, true);
  const CpuPhases phases(of_lanes);
  const CpuCompaction compaction(of_lanes, phases);
  CpuContext cx{of_lanes, phases, compaction, std::move(out)};
  CpuRowsBeside(cx).emit();
  return std::move(cx.out);
}

}  // namespace cinch::codegen
