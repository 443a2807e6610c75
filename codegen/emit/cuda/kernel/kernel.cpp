#include "codegen/emit/cuda/kernel/kernel.h"

#include <fmt/format.h>

#include "codegen/emit/cuda/kernel/elements.h"

namespace cinch::codegen {

using kir::InstrKind;
using kir::SectionKind;

namespace {

// Prints the function's frame and the loop over groups.
class CudaKernelEmitter : public CudaPrinter {
 public:
  explicit CudaKernelEmitter(CudaContext& cx)
      : CudaPrinter(cx),
        uniform_(cx),
        elements_(cx, uniform_),
        short_rows_(cx, uniform_, elements_) {}

  CudaFunction emit() {
    emit_signature();
    const std::string signature = cx().out.take();
    emit_head();
    emit_shared();
    cx().level = Level::Kernel;
    for (const Instr& instr : kernel().sections[0].instrs) {
      uniform_.prepare(instr);
      uniform_.emit(instr);
    }
    emit_extent();
    for (std::size_t s = 1; s < kernel().sections.size(); ++s) {
      for (const Instr& instr : kernel().sections[s].instrs) uniform_.prepare(instr);
    }
    if (kernel().sections.size() > 1) {
      shape().has_look_back ? emit_ordered_groups() : emit_plain_groups();
    }
    emit_tail();
    std::string shared = "template <u32 kBlockWarps>\nstruct " + shared_type() + " {\n";
    for (const std::string& member : cx().shared_members) shared += "  " + member + ";\n";
    return {cx().preamble.take() + shared + "};\n" + signature, cx().out.take(), cx().places};
  }

 private:
  void emit_signature() {
    line("template <u32 kBlockWarps, bool kIsStep>");
    line(
        "CINCH_FN void {}_body(const GpuLaunch& launch, const GpuStep& step, "
        "GpuTensor& args, u32* status, Place place, {}<kBlockWarps>& shared) {{",
        cx().name, shared_type());
  }

  void emit_head() {
    if (kir::is_of_scalars(kernel())) line("if (place.block != 0u || threadIdx.x != 0u) return;");
    line("const u32 lane = lane_index(), warp = warp_index();");
    line("const {} team{{{}}};", team_type(), shape().team_warps == 1 ? "lane" : "threadIdx.x");
    if (uses(kernel(), InstrKind::flag_nonfinite)) line("f32 nonfinite = 0.0f;");
    if (uses(kernel(), InstrKind::finish_reduce)) {
      line("const Folding folding = folding_of(step, place);");
    }
  }

  // Arrays are declared for a block. Each team takes its own part.
  void emit_shared() {
    const char* const teams = shape().team_warps == 1 ? "[kBlockWarps]" : "[1]";
    for (std::size_t i = 0; i < kernel().locals.size(); ++i) {
      const char* element = c_type(kernel().locals[i].type);
      const std::string held =
          share(element, fmt::format("local{}", i), std::string(teams) + "[kTileElems]");
      line("{}* const local{} = {}[{}];", element, i, held, shape().team_warps == 1 ? "warp" : "0");
    }
    if (shape().stage_bits) {
      const std::string held =
          share("u32", "stage", fmt::format("[kBlockWarps][stage_words({})]", shape().stage_bits));
      line("u32* const stage = {}[warp];", held);
    }
    if (shape().has_look_back) {
      line("u64* const slots = {};", share("u64", "slots", "[kBlockWarps + 1u]"));
    }
    if (uses(kernel(), InstrKind::argsort_row)) {
      line("u32* const digits = {}[{}];", share("u32", "digits", "[kBlockWarps][kSortWords]"),
           shape().team_warps == 1 ? "warp" : "0");
    }
    bool has_bins = false;
    for (const kir::Section& section : kernel().sections) {
      for (const Instr& instr : section.instrs) {
        if (instr.kind != InstrKind::hist_add || instr.bits > kSharedBins) continue;
        const std::string bins = "bins_" + buffer_name(instr.buffers[0]);
        const std::string held =
            share("u32", bins, fmt::format("[{}]", std::max<std::uint64_t>(instr.bits, 1)));
        line("u32* const {} = {};", bins, held);
        if (!has_bins) line("const Team<kBlockWarps> block{threadIdx.x};");
        line("clear_bins(block, {}, {}u);", bins, instr.bits);
        has_bins = true;
      }
    }
    if (has_bins) line("block.sync();");
  }

  // Prints the actual number of elements and groups.
  void emit_extent() {
    if (kernel().sections.size() == 1) return;
    const ValueId actual = kernel().extent_value;
    switch (kernel().group_kind) {
      case kir::GroupKind::Tile:
        line("const u64 extent = at_most(u64({}), {});", cx().places.size(kernel().extent),
             actual ? name(actual) : cx().places.size(kernel().extent));
        line(
            "const u64 num_groups = at_most(launched_groups, i64((extent + kTileElems - 1) / "
            "kTileElems));");
        break;
      case kir::GroupKind::Row:
      case kir::GroupKind::Single:
        line("const u64 group_elems = u64({});", cx().places.size(kernel().group_len));
        line("const u64 num_groups = {};",
             actual ? fmt::format("at_most(launched_groups, {})", name(actual))
                    : std::string("launched_groups"));
        break;
    }
  }

  // Without look-back, no team waits for another.
  void emit_plain_groups() {
    const std::string per_block =
        shape().team_warps > 1 ? "1u" : fmt::format("(kBlockWarps * {}u)", shape().multiple);
    const std::string own =
        shape().team_warps > 1 ? "" : fmt::format(" + u64(warp) * {}u", shape().multiple);
    line(
        "for (u64 first = u64(place.block) * {0}{1}; first < num_groups; "
        "first += u64(place.num_blocks) * {0}) {{",
        per_block, own);
    if (facts().short_lanes() > 0) {
      emit_short_groups();
      return line("}");
    }
    if (shape().multiple > 1) {
      line("for (u64 group = first; group < first + {}u && group < num_groups; ++group) {{",
           shape().multiple);
    } else {
      line("const u64 group = first;");
    }
    line("constexpr bool is_active = true;");
    emit_group_body();
    if (shape().multiple > 1) line("}");
    line("}");
  }

  // The groups of a warp from `first` on, several at a time while there are enough.
  void emit_short_groups() {
    line("constexpr u32 kRowLanes = {}u;", facts().short_lanes());
    line("constexpr u64 kRows = 32u / kRowLanes;");
    line("const u64 end = first + {0}u < num_groups ? first + {0}u : num_groups;",
         shape().multiple);
    line("for (u64 next = first; next < end;) {");
    short_rows_.emit();
    line("const u64 group = next++;");
    line("constexpr bool is_active = true;");
    emit_group_body();
    line("}");
  }

  // With look-back, blocks take tickets, so the groups that a block waits for are running or done.
  // Warps without a group take part with nothing to do.
  void emit_ordered_groups() {
    rt::BufferIndex state = rt::kNoIndex;
    for (const kir::Section& section : kernel().sections) {
      for (const Instr& instr : section.instrs) {
        if (instr.kind == InstrKind::look_back && state == rt::kNoIndex) state = instr.buffers[0];
      }
    }
    line("for (;;) {");
    line(
        "const u64 ticket = take_ticket(reinterpret_cast<u64*>({}) + 2u * "
        "launched_groups, slots);",
        buffer_name(state));
    const bool is_own = shape().team_warps == 1;
    line("const u64 first = ticket * {};", is_own ? "kBlockWarps" : "1u");
    line("if (first >= num_groups) break;");
    line("const u64 group = first{};", is_own ? " + warp" : "");
    line("const bool is_active = group < num_groups;");
    emit_group_body();
    line("}");
  }

  void emit_group_body() {
    if (kernel().group_kind == kir::GroupKind::Tile) {
      line("const u64 group_first = group * kTileElems;");
      line(
          "const u32 len = is_active ? u32(at_most(u64(kTileElems), i64(extent - group_first))) : "
          "0u;");
    } else {
      line("const u64 group_first = group * group_elems;");
      line("const u32 len = is_active ? u32(group_elems) : 0u;");
    }
    emit_sections();
  }

  void emit_sections() {
    for (std::size_t s = 1; s < kernel().sections.size(); ++s) {
      const kir::Section& section = kernel().sections[s];
      // A section may read what the one before it stored in shared or global memory.
      line("team.sync();");
      if (section.kind == SectionKind::Elements) {
        elements_.emit(section);
      } else {
        cx().level = Level::Group;
        for (const Instr& instr : section.instrs) uniform_.emit(instr);
      }
    }
  }

  void emit_tail() {
    if (uses(kernel(), InstrKind::flag_nonfinite))
      line("if (nonfinite != 0.0f) flag_nonfinite(status);");
    bool is_synced = false;
    for (const kir::Section& section : kernel().sections) {
      for (const Instr& instr : section.instrs) {
        if (instr.kind != InstrKind::hist_add || instr.bits > kSharedBins) continue;
        if (!is_synced) line("block.sync();");
        is_synced = true;
        line("add_bins(block, reinterpret_cast<u32*>({0}), bins_{0}, {1}u);",
             buffer_name(instr.buffers[0]), instr.bits);
      }
    }
    line("}");
  }

  std::string shared_type() const { return cx().name + "_shared"; }

  CudaUniform uniform_;
  CudaElements elements_;
  CudaShortRows short_rows_;
};

}  // namespace

CudaFunction emit_cuda_kernel(const kir::KernelProgram& program, const kir::Kernel& kernel,
                              std::uint32_t block_warps, std::string name) {
  const CudaKernelFacts facts(program, kernel, block_warps);
  CudaContext cx{facts, std::move(name), CudaPlaces(program, kernel), {}, {}, {}};
  return CudaKernelEmitter(cx).emit();
}

}  // namespace cinch::codegen
