// CudaKernelEmitter: the function's frame and the loop over groups.
#include "codegen/emit/cuda_kernel.h"

#include <fmt/format.h>

#include "codegen/emit/cuda_wire.h"
#include "codegen/kir/builder.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using kir::InstrKind;
using kir::SectionKind;

CudaKernelEmitter::CudaKernelEmitter(const kir::KernelProgram& program, const kir::Kernel& kernel,
                                     std::uint32_t block_warps)
    : program_(program),
      kernel_(kernel),
      shape_(cuda_shape(program, kernel, block_warps)),
      value_levels_(value_levels(kernel)) {}

std::string CudaKernelEmitter::emit() {
  emit_head();
  emit_shared();
  level_ = Level::Kernel;
  for (const Instr& instr : kernel_.sections[0].instrs) {
    prepare(instr);
    emit_uniform(instr);
  }
  emit_extent();
  for (std::size_t s = 1; s < kernel_.sections.size(); ++s) {
    for (const Instr& instr : kernel_.sections[s].instrs) prepare(instr);
  }
  if (kernel_.sections.size() > 1) {
    shape_.has_look_back ? emit_ordered_groups() : emit_plain_groups();
  }
  emit_tail();
  return preamble_.take() + out_.take();
}

void CudaKernelEmitter::emit_head() {
  line(fmt::format("extern \"C\" __global__ void __launch_bounds__({})", 32 * shape_.block_warps));
  line(fmt::format("{}(const __grid_constant__ CinchLaunch launch) {{", kernel_.info.symbol));
  line("const Place place = find_place(launch);");
  line("const u32 tensor = place.tensor;");
  line("CinchTensor& args = launch.tensors[place.tensor];");
  line("u32* const status = launch.status + kStatusWords * place.tensor;");
  line("if (!takes_part(launch, args, status)) return;");
  line(fmt::format("const u64 launched_groups = args.groups[{}];",
                   &kernel_ - program_.kernels.data()));
  line("if (launched_groups == 0u) return;");
  std::set<rt::BufferIndex> buffers;
  const auto note = [&](const std::vector<Instr>& instrs) {
    for (const Instr& instr : instrs) buffers.insert(instr.buffers.begin(), instr.buffers.end());
  };
  for (const kir::Section& section : kernel_.sections) note(section.instrs);
  for (const kir::Combiner& combiner : kernel_.combiners) note(combiner.body);
  for (rt::BufferIndex b : buffers) {
    line(fmt::format("u8* const {} = {};", buffer_name(b), buffer_text(program_, b)));
  }
  line("const u32 lane = lane_index(), warp = warp_index();");
  line(fmt::format("const Team<{}> team{{{}}};", shape_.team_warps,
                   shape_.team_warps == 1 ? "lane" : "threadIdx.x"));
  if (uses(kernel_, InstrKind::flag_nonfinite)) line("bool nonfinite = false;");
}

// Arrays are declared per block; a team takes its own part.
void CudaKernelEmitter::emit_shared() {
  const std::uint32_t teams = shape_.block_warps / shape_.team_warps;
  for (std::size_t i = 0; i < kernel_.locals.size(); ++i) {
    const char* element = c_type(kernel_.locals[i].type);
    line(fmt::format("__shared__ {} shared_local{}[{}][kTileElems];", element, i, teams));
    line(fmt::format("{0}* const local{1} = shared_local{1}[{2}];", element, i,
                     shape_.team_warps == 1 ? "warp" : "0"));
  }
  if (shape_.stage_bits) {
    line(fmt::format("__shared__ u32 shared_stage[{}][stage_words({})];", shape_.block_warps,
                     shape_.stage_bits));
    line("u32* const stage = shared_stage[warp];");
  }
  if (shape_.has_look_back) line(fmt::format("__shared__ u64 slots[{}];", shape_.block_warps + 1));
  bool has_bins = false;
  for (const kir::Section& section : kernel_.sections) {
    for (const Instr& instr : section.instrs) {
      if (instr.kind != InstrKind::hist_add || instr.bits > kSharedBins) continue;
      const std::string bins = fmt::format("bins{}", instr.buffers[0]);
      line(fmt::format("__shared__ u32 {}[{}];", bins, std::max<std::uint64_t>(instr.bits, 1)));
      line(fmt::format("for (u32 i = threadIdx.x; i < {}u; i += blockDim.x) {}[i] = 0u;",
                       instr.bits, bins));
      has_bins = true;
    }
  }
  if (has_bins) line("__syncthreads();");
}

// How many elements and groups there really are.
void CudaKernelEmitter::emit_extent() {
  if (kernel_.sections.size() == 1) return;
  const ValueId actual = kernel_.extent_value;
  switch (kernel_.group_kind) {
    case kir::GroupKind::Tile:
      line(fmt::format("const u64 extent = at_most(u64({}), {});", size_text(kernel_.extent),
                       actual ? name(actual) : size_text(kernel_.extent)));
      line(
          "const u64 num_groups = at_most(launched_groups, i64((extent + kTileElems - 1) / "
          "kTileElems));");
      break;
    case kir::GroupKind::Row:
    case kir::GroupKind::Single:
      line(fmt::format("const u64 group_elems = u64({});", size_text(kernel_.group_len)));
      line(fmt::format("const u64 num_groups = {};",
                       actual ? fmt::format("at_most(launched_groups, {})", name(actual))
                              : std::string("launched_groups")));
      break;
  }
}

// Without look-back: no team waits for another, so each goes its own way.
void CudaKernelEmitter::emit_plain_groups() {
  const std::uint64_t per_block = shape_.groups_per_block();
  const std::string own =
      shape_.team_warps > 1 ? "" : fmt::format(" + u64(warp) * {}u", shape_.multiple);
  line(
      fmt::format("for (u64 first = u64(place.block) * {0}u{1}; first < num_groups; "
                  "first += u64(place.num_blocks) * {0}u) {{",
                  per_block, own));
  if (shape_.multiple > 1) {
    line(fmt::format(
        "for (u64 group = first; group < first + {}u && group < num_groups; ++group) {{",
        shape_.multiple));
  } else {
    line("const u64 group = first;");
  }
  line("constexpr bool is_active = true;");
  emit_group_body();
  if (shape_.multiple > 1) line("}");
  line("}");
}

// With look-back: blocks take tickets, so that the groups waited for are running or done. Warps
// without a group of their own go along with nothing to do.
void CudaKernelEmitter::emit_ordered_groups() {
  rt::BufferIndex state = rt::kNoIndex;
  for (const kir::Section& section : kernel_.sections) {
    for (const Instr& instr : section.instrs) {
      if (instr.kind == InstrKind::look_back && state == rt::kNoIndex) state = instr.buffers[0];
    }
  }
  line("for (;;) {");
  line(
      fmt::format("const u64 ticket = take_ticket(reinterpret_cast<u64*>({}) + 2u * "
                  "launched_groups, slots);",
                  buffer_name(state)));
  line(fmt::format("if (ticket * {}u >= num_groups) break;", shape_.groups_per_block()));
  line(fmt::format("const u64 group = ticket * {}u{};", shape_.groups_per_block(),
                   shape_.team_warps > 1 ? "" : " + warp"));
  line("const bool is_active = group < num_groups;");
  emit_group_body();
  line("}");
}

void CudaKernelEmitter::emit_group_body() {
  if (kernel_.group_kind == kir::GroupKind::Tile) {
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

void CudaKernelEmitter::emit_sections() {
  for (std::size_t s = 1; s < kernel_.sections.size(); ++s) {
    const kir::Section& section = kernel_.sections[s];
    // What one section stored, in shared or global memory, the next may read.
    line("team.sync();");
    if (section.kind == SectionKind::Elements) {
      emit_elements(section);
    } else {
      level_ = Level::Group;
      for (const Instr& instr : section.instrs) emit_uniform(instr);
    }
  }
}

void CudaKernelEmitter::emit_tail() {
  if (uses(kernel_, InstrKind::flag_nonfinite)) line("if (nonfinite) flag_nonfinite(status);");
  bool is_synced = false;
  for (const kir::Section& section : kernel_.sections) {
    for (const Instr& instr : section.instrs) {
      if (instr.kind != InstrKind::hist_add || instr.bits > kSharedBins) continue;
      if (!is_synced) line("__syncthreads();");
      is_synced = true;
      line(fmt::format("add_bins(reinterpret_cast<u32*>({}), bins{}, {}u);",
                       buffer_name(instr.buffers[0]), instr.buffers[0], instr.bits));
    }
  }
  line("}");
}

}  // namespace cinch::codegen
