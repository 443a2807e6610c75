// CpuKernelEmitter: levels, phases, and the function's frame.
#include "codegen/emit/cpu/kernel.h"
#include "codegen/emit/value_facts.h"

#include <fmt/format.h>

#include "codegen/kir/builder.h"
#include "codegen/kir/structure.h"
#include "codegen/kir/text/text.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using kir::InstrKind;
using kir::SectionKind;

CpuKernelEmitter::CpuKernelEmitter(const kir::KernelProgram& program, const kir::Kernel& kernel,
                                   const CpuOptions& options)
    : program_(program),
      kernel_(kernel),
      options_(options),
      value_levels_(value_levels(kernel)),
      definitions_(find_definitions(kernel)) {
  find_phases();
  find_hits();
}

void CpuKernelEmitter::note_uses(const Instr& instr, std::size_t phase) {
  for (ValueId value : instr.operands) {
    if (!value || value_levels_[value.index()] != Level::Group) continue;
    if (def_phase_[value.index()] < phase) crossing_.insert(value.index());
  }
  for (ValueId value : instr.results) def_phase_[value.index()] = phase;
  const bool is_local =
      instr.kind == InstrKind::local_store || instr.kind == InstrKind::local_load ||
      instr.kind == InstrKind::local_last || instr.kind == InstrKind::local_previous;
  if (is_local) local_phases_[instr.index].insert(phase);
}

// A look_back ends its phase; its result belongs to the next one, but is kept like the values that
// cross.
void CpuKernelEmitter::find_phases() {
  def_phase_.assign(kernel_.values.size(), 0);
  phases_.emplace_back();
  for (std::size_t s = 1; s < kernel_.sections.size(); ++s) {
    const auto& instrs = kernel_.sections[s].instrs;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < instrs.size(); ++i) {
      note_uses(instrs[i], phases_.size() - 1);
      if (instrs[i].kind != InstrKind::look_back) continue;
      const ValueId total = instrs[i].operands[0];
      if (value_levels_[total.index()] == Level::Group) crossing_.insert(total.index());
      crossing_.insert(instrs[i].results[0].index());
      phases_.back().pieces.push_back({s, begin, i});
      phases_.back().look_back = &instrs[i];
      phases_.emplace_back();
      begin = i + 1;
    }
    phases_.back().pieces.push_back({s, begin, instrs.size()});
  }
}

// Can a group be longer than one tile?
bool CpuKernelEmitter::has_many_tiles() const {
  if (kernel_.group_kind != kir::GroupKind::Row) return false;
  const HostExprPool& pool = program_.info.exprs;
  return !pool.is_const(kernel_.group_len) ||
         pool.const_value(kernel_.group_len).as_int() > kir::kTileElems;
}

std::string CpuKernelEmitter::emit() {
  emit_head();
  emit_kernel_section();
  emit_extent();
  emit_task_state();
  emit_groups();
  emit_tail();
  return out_.take();
}

void CpuKernelEmitter::emit_head() {
  line(fmt::format(R"(extern "C" __attribute__((visibility("default"))) void {}()",
                   kernel_.info.symbol));
  line("    const KernelArgs* args, u64 group_begin, u64 group_end) {");
  std::set<rt::BufferIndex> buffers;
  const auto note = [&](const std::vector<Instr>& instrs) {
    for (const Instr& instr : instrs) buffers.insert(instr.buffers.begin(), instr.buffers.end());
  };
  for (const kir::Section& section : kernel_.sections) note(section.instrs);
  for (const kir::Combiner& combiner : kernel_.combiners) note(combiner.body);
  for (rt::BufferIndex b : buffers) {
    line(fmt::format("u8* const b{} = (u8*)args->buffers[{}];", b, b));
  }
  if (options_.count_accesses) line("u64 bits_read = 0, bits_written = 0;");
}

void CpuKernelEmitter::emit_kernel_section() {
  level_ = Level::Kernel;
  section_ = 0;
  const auto& instrs = kernel_.sections[0].instrs;
  for (instr_ = 0; instr_ < instrs.size(); ++instr_) emit_instr(instrs[instr_]);
}

// How many elements and groups there really are.
void CpuKernelEmitter::emit_extent() {
  const bool counted = kernel_.extent_value.is_valid();
  const std::string actual = counted ? uniform(kernel_.extent_value) : std::string();
  switch (kernel_.group_kind) {
    case kir::GroupKind::Tile:
      line(fmt::format("const i64 bound = {};", size_text(kernel_.extent)));
      line(counted ? fmt::format("const i64 extent = {0} < 0 ? 0 : least({0}, bound);", actual)
                   : std::string("const i64 extent = bound;"));
      line("const u64 group_stop = least(group_end, u64((extent + 1023) / 1024));");
      break;
    case kir::GroupKind::Row:
      line(fmt::format("const u32 len = u32({});", size_text(kernel_.group_len)));
      line(counted ? fmt::format("const u64 group_stop = {0} < 0 ? 0 : least(group_end, u64({0}));",
                                 actual)
                   : std::string("const u64 group_stop = group_end;"));
      break;
    case kir::GroupKind::Single:
      line("const u32 len = 1;");
      line("const u64 group_stop = group_end;");
      break;
  }
}

void CpuKernelEmitter::note_histogram(const Instr& instr) {
  const auto [known, is_new] = histograms_.emplace(instr.buffers[0], instr.bits);
  CINCH_CHECK(is_new || known->second == instr.bits, "histograms of several sizes in one buffer");
}

// What a task carries through its groups: combiners, streams, local arrays, flags, histograms.
void CpuKernelEmitter::emit_task_state() {
  std::set<std::uint32_t> locals;
  for (std::size_t s = 1; s < kernel_.sections.size(); ++s) {
    for (const Instr& instr : kernel_.sections[s].instrs) {
      const bool is_element = kernel_.sections[s].kind == SectionKind::Elements;
      if (instr.combiner != rt::kNoIndex) need_combiner(instr.combiner);
      if (is_draw(instr.kind)) need_stream(instr);
      if (instr.kind == InstrKind::fail_if && is_element) failures_.insert(instr.index);
      if (instr.kind == InstrKind::hist_add) note_histogram(instr);
      if (instr.kind == InstrKind::add_at &&
          kir::adds_in_any_order(program_.buffers[instr.buffers[0]])) {
        cells_.insert(instr.buffers[0]);
      }
    }
  }
  if (uses(kernel_, InstrKind::flag_nonfinite)) line("Truth nonfinite = Truth(0);");
  for (std::uint32_t message : failures_) line(fmt::format("Truth failed_{} = Truth(0);", message));
  const char* group_elems = kernel_.group_kind == kir::GroupKind::Tile ? "kTile" : "len";
  for (const auto& [buffer, bins] : histograms_) {
    line(fmt::format("Histogram<{}u> histogram_{};", bins, buffer));
    line(fmt::format("histogram_{0}.open(b{0}, (group_end - group_begin) * {1});", buffer,
                     group_elems));
  }
  for (const rt::BufferIndex buffer : cells_) {
    line(fmt::format("Cells<u{0}> cells_{1} = {{b{1}}};", program_.buffers[buffer].dtype.bits,
                     buffer));
  }
  for (std::size_t i = 0; i < kernel_.locals.size(); ++i) {
    CINCH_CHECK(!has_many_tiles(), "a local array in a kernel of long rows");
    const auto index = static_cast<std::uint32_t>(i);
    const bool is_kept = local_phases_[index].size() > 1;
    line(fmt::format("LocalArray<{}> local_{}{};", c_type(kernel_.locals[i].type), i,
                     is_kept ? "[kMaxChunk]" : ""));
  }
}

void CpuKernelEmitter::emit_tail() {
  if (uses(kernel_, InstrKind::flag_nonfinite)) {
    line(fmt::format("if (lang::any(nonfinite)) raise_flag(args, {}u);", rt::kFlagNonFinite));
  }
  for (std::uint32_t message : failures_) {
    line(fmt::format("if (any_lane(failed_{0})) report_failure(args, {0}u);", message));
  }
  for (const auto& [buffer, bins] : histograms_) {
    line(fmt::format("histogram_{}.close();", buffer));
    // Its bins count once, however many tasks add to them.
    if (options_.count_accesses) {
      line(fmt::format("if (group_begin == 0) bits_written += u64({}) * 32;", bins));
    }
  }
  for (const rt::BufferIndex buffer : cells_) line(fmt::format("cells_{}.close();", buffer));
  if (options_.count_accesses) line("add_counted(args, bits_read, bits_written);");
  line("}");
}

}  // namespace cinch::codegen
