#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/shape.h"
#include "codegen/emit/value_facts.h"
#include "runtime/core/check.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::codegen {
namespace {

using kir::InstrKind;

// Limits of a multiprocessor that all architectures have, except that sm_75 has less shared memory.
constexpr std::uint32_t kMultiprocessorRegisters = 65536, kMultiprocessorBlocks = 16;
constexpr std::uint32_t kMultiprocessorShared = 100 * 1024;
// The most that a block may declare without asking the driver.
constexpr std::uint64_t kSharedBytes = std::uint64_t{47} * 1024;
// Shared bytes of a sort for each warp: kSortWords of the prelude.
constexpr std::uint64_t kSortBytes = std::uint64_t{4} * (256 + 1);
// A warp takes rows up to this length.
constexpr std::int64_t kWarpRowElems = 4096;

struct Uses {
  bool running_sum = false, look_back = false, argsort = false, draws = false, reduces = false;
  std::uint32_t stage_bits = 0;
  std::uint64_t block_bytes = 0;  // shared once per block
  std::uint64_t item_bytes = 0;   // for all reductions, per warp of a team
};

// Shared data of a block is aligned to this.
std::uint64_t whole_words(std::uint64_t num_bytes) {
  return (num_bytes + 7) / 8 * 8;
}

// An upper bound: each part as wide as the widest, and the flag.
std::uint64_t tuple_bytes(const std::vector<kir::ComputeType>& types) {
  return types.size() == 1 ? 16 : 8 * (types.size() + 1);
}

void note(const kir::KernelProgram& program, const kir::Kernel& kernel, const kir::Instr& instr,
          Uses& uses) {
  uses.draws = uses.draws || is_draw(instr.kind);
  switch (instr.kind) {
    case InstrKind::running_sum:
      uses.running_sum = true;
      return;
    case InstrKind::look_back:
      uses.look_back = true;
      return;
    case InstrKind::argsort_row:
      uses.argsort = true;
      return;
    case InstrKind::store_linear: {
      const rt::BufferInfo& buffer = program.buffers[instr.buffers[0]];
      if (!is_whole_element(buffer)) {
        uses.stage_bits = std::max<std::uint32_t>(uses.stage_bits, buffer.storage_bits);
      }
      return;
    }
    case InstrKind::hist_add:
      uses.reduces = true;
      if (instr.bits <= kSharedBins) uses.block_bytes += whole_words(4 * instr.bits + 4);
      return;
    case InstrKind::reduce:
    case InstrKind::finish_reduce:
      uses.reduces = true;
      uses.item_bytes += tuple_bytes(combined_types(program, kernel, instr));
      return;
    case InstrKind::finish_scan:
      uses.block_bytes += 1024 * tuple_bytes(combined_types(program, kernel, instr));
      return;
    default:
      return;
  }
}

std::uint32_t team_warps(const kir::Kernel& kernel, const Uses& uses, std::int64_t longest,
                         std::uint32_t block_warps) {
  if (kernel.info.is_sequential) return 1;
  if (kernel.group_kind == kir::GroupKind::Single) return block_warps;
  // A running sum takes its group in order, and rows that share bytes are packed in order.
  const bool needs_warp =
      uses.running_sum || !kernel.locals.empty() || kernel.info.group_multiple > 1;
  return longest <= kWarpRowElems || needs_warp ? 1 : block_warps;
}

std::uint64_t shared_bytes(const kir::Kernel& kernel, const Uses& uses, const CudaShape& shape) {
  std::uint64_t per_team = 0;
  for (const kir::LocalArray& local : kernel.locals) {
    per_team += std::uint64_t{kir::kTileElems} *
                static_cast<std::uint64_t>(kir::compute_type_bytes(local.type));
  }
  std::uint64_t per_warp = uses.stage_bits ? 4 * (4 * std::uint64_t{uses.stage_bits} + 2) : 0;
  if (shape.team_warps > 1) per_warp += uses.item_bytes;
  if (uses.argsort) per_warp += kSortBytes;
  const std::uint64_t teams = shape.block_warps / shape.team_warps;
  const std::uint64_t slots = uses.look_back ? 8 * (shape.block_warps + std::uint64_t{1}) : 0;
  return uses.block_bytes + slots + teams * per_team + whole_words(shape.block_warps * per_warp);
}

// Registers of a thread. Kernels that compute little get few, so that enough threads keep memory
// busy. Kernels that hold much get enough to avoid spills.
std::uint32_t thread_registers(const kir::Kernel& kernel, const Uses& uses,
                               std::uint32_t result_levels) {
  constexpr std::size_t kFewInstrs = 24;
  // A reduction's columns take as many registers as so many instructions. So do the levels of the
  // results of long rows, if there are several reductions.
  constexpr std::size_t kColumnsInstrs = 8;
  // So many rows that are read side by side hold their places, their ends and four elements each.
  constexpr std::size_t kManyLoads = 16;
  std::size_t most = 0, most_loads = 0;
  for (const kir::Section& section : kernel.sections) {
    const auto num_reduces = static_cast<std::size_t>(
        std::ranges::count(section.instrs, InstrKind::reduce, &kir::Instr::kind));
    const std::size_t num_columns =
        num_reduces > 1 ? num_reduces * (1 + result_levels) : num_reduces;
    most = std::max(most, section.instrs.size() + kColumnsInstrs * num_columns);
    most_loads = std::max<std::size_t>(
        most_loads, static_cast<std::size_t>(std::ranges::count(
                        section.instrs, InstrKind::load_linear, &kir::Instr::kind)));
  }
  if (most_loads >= kManyLoads) return 255;
  if (most > kTwiceInstrs || (uses.look_back && uses.draws)) return 128;
  if (uses.look_back || uses.draws) return 80;
  return most <= kFewInstrs ? 64 : 80;
}

// Follows the measurements in docs/benchmarks/gpu.md. Blocks that stay pay off if they keep
// something from group to group, or prepare draws. Otherwise the device distributes short blocks
// better.
std::uint32_t waves_of(const kir::Kernel& kernel, const Uses& uses) {
  constexpr std::uint32_t kWavesOfDraws = 3;
  // If a count decides, most groups may have nothing to do.
  const bool is_counted = bool{kernel.extent_value};
  const bool is_of_tiles = kernel.group_kind == kir::GroupKind::Tile;
  if (!is_of_tiles || is_counted || uses.reduces || uses.look_back) return 1;
  return uses.draws ? kWavesOfDraws : 0;
}

// The index of `item` in the list. Appends it if it is new.
template <typename T>
std::size_t place_in(std::vector<T>& list, const T& item) {
  const auto found = std::ranges::find(list, item);
  const auto place = static_cast<std::size_t>(found - list.begin());
  if (found == list.end()) list.push_back(item);
  return place;
}

}  // namespace

std::int64_t longest_group(const kir::KernelProgram& program, const kir::Kernel& kernel) {
  if (kernel.group_kind == kir::GroupKind::Tile) return kir::kTileElems;
  if (kernel.group_kind == kir::GroupKind::Single) return 1;
  const HostExprPool& pool = *program.info.exprs;
  return pool.is_const(kernel.group_len) ? pool.const_value(kernel.group_len).as_int() : INT64_MAX;
}

bool is_whole_element(const rt::BufferInfo& buffer) {
  const auto bits = buffer.storage_bits;
  return bits == 8 || bits == 16 || bits == 32 || bits == 64;
}

std::vector<kir::ComputeType> combined_types(const kir::KernelProgram& program,
                                             const kir::Kernel& kernel, const kir::Instr& instr) {
  const kir::Combiner& combiner = kernel.combiners[instr.combiner];
  std::vector<kir::ComputeType> types;
  if (!combiner.op) {
    for (kir::ValueId result : combiner.results)
      types.push_back(kernel.values[result.index()].type);
    return types;
  }
  if (instr.kind == InstrKind::local_scan) return {kernel.locals[instr.index].type};
  if (instr.kind == InstrKind::finish_scan) {
    for (rt::BufferIndex buffer : instr.buffers) {
      types.push_back(kir::compute_type(program.buffers[buffer].dtype));
    }
    return types;
  }
  for (kir::ValueId result : instr.results) types.push_back(kernel.values[result.index()].type);
  return types;
}

CudaShape cuda_shape(const kir::KernelProgram& program, const kir::Kernel& kernel,
                     std::uint32_t block_warps) {
  Uses uses;
  for (const kir::Section& section : kernel.sections) {
    for (const kir::Instr& instr : section.instrs) note(program, kernel, instr, uses);
  }
  const std::int64_t longest = longest_group(program, kernel);
  const bool in_order = kernel.info.is_sequential;
  CudaShape shape{.block_warps = in_order ? 1 : block_warps,
                  .team_warps = team_warps(kernel, uses, longest, block_warps),
                  .multiple = std::max<std::uint32_t>(kernel.info.group_multiple, 1)};
  const bool has_short_rows =
      kernel.group_kind == kir::GroupKind::Row && longest >= 1 && longest <= kMostShortRow;
  if (has_short_rows && !in_order && shape.team_warps == 1 && !uses.look_back) {
    // Rows that share a warp at once, and twice as many of longer ones.
    constexpr std::uint32_t kAtLeast = 16;
    shape.multiple = std::max({shape.multiple, kAtLeast, 32 / short_row_lanes(longest)});
  }
  shape.result_levels = longest <= 1024 ? 0 : longest <= std::int64_t{1024} * 1024 ? 1 : 3;
  shape.stage_bits = uses.stage_bits;
  shape.has_look_back = uses.look_back;
  shape.is_single_block = in_order || kernel.group_kind == kir::GroupKind::Single;
  while (shared_bytes(kernel, uses, shape) > kSharedBytes && shape.team_warps == 1 &&
         shape.block_warps > 1) {
    shape.block_warps /= 2;
  }
  if (shared_bytes(kernel, uses, shape) > kSharedBytes) {
    CINCH_LIMITATION("kernel " + kernel.info.symbol + " needs more shared memory than a block has");
  }
  shape.shared_bytes = static_cast<std::uint32_t>(shared_bytes(kernel, uses, shape));
  if (!shape.is_single_block) {
    shape.waves = waves_of(kernel, uses);
    const std::uint32_t by_registers =
        kMultiprocessorRegisters /
        (thread_registers(kernel, uses, shape.result_levels) * 32 * shape.block_warps);
    const std::uint32_t by_memory = kMultiprocessorShared / std::max(shape.shared_bytes, 1u);
    shape.resident_blocks =
        std::clamp(std::min(by_registers, by_memory), 1u, kMultiprocessorBlocks);
  }
  if (shape.has_look_back && (shape.multiple > 1 || in_order)) {
    CINCH_LIMITATION("kernel " + kernel.info.symbol +
                     ": a look-back over groups that go in order anyway");
  }
  return shape;
}

CudaPlaces::CudaPlaces(const kir::KernelProgram& program, const kir::Kernel& kernel)
    : program_(program), kernel_(static_cast<std::size_t>(&kernel - program.kernels.data())) {
  entry("at_groups", static_cast<std::uint32_t>(kernel_));
  const auto note = [&](const std::vector<kir::Instr>& instrs) {
    for (const kir::Instr& instr : instrs) {
      for (const rt::BufferIndex buffer : instr.buffers) {
        const std::size_t which = place_in(buffers_, buffer);
        entry(fmt::format("at_b{}", which), buffer);
        // A state has a pair of buffers, which change places.
        const auto other = other_buffer(program_, buffer);
        if (!other) continue;
        entry(fmt::format("state_b{}", which), program_.buffers[buffer].role_index);
        entry(fmt::format("other_b{}", which), *other);
      }
    }
  };
  for (const kir::Section& section : kernel.sections) note(section.instrs);
  for (const kir::Combiner& combiner : kernel.combiners) note(combiner.body);
}

std::size_t CudaPlaces::number(rt::BufferIndex buffer) const {
  const auto found = std::ranges::find(buffers_, buffer);
  CINCH_CHECK(found != buffers_.end(), "a buffer that the kernel does not mention");
  return static_cast<std::size_t>(found - buffers_.begin());
}

std::string CudaPlaces::entry(std::string name, std::uint32_t index) {
  std::pair<std::string, std::uint32_t> made(std::move(name), index);
  place_in(entries_, made);
  return made.first;
}

std::string CudaPlaces::kinds() const {
  std::string names;
  for (const auto& [name, index] : entries_) names += name + " ";
  return names;
}

// In the order of the program's buffers, for which compilers make the best code.
std::string CudaPlaces::buffer_lines() const {
  std::vector<rt::BufferIndex> sorted = buffers_;
  std::ranges::sort(sorted);
  std::string text;
  for (const rt::BufferIndex buffer : sorted) {
    const std::size_t which = number(buffer);
    const std::string at = fmt::format("args.buffers[at_b{}]", which);
    const std::string either =
        other_buffer(program_, buffer)
            ? fmt::format("state_swapped(launch, tensor, state_b{0}) ? args.buffers[other_b{0}] : ",
                          which)
            : std::string();
    text +=
        fmt::format("  u8* const b{} = in_global(static_cast<u8*>({}{}));\n", which, either, at);
  }
  return text;
}

std::string CudaPlaces::size_entry(std::size_t index) {
  const std::string name = fmt::format("at_size{}", place_in(sizes_, index));
  return fmt::format("args.sizes[{}]", entry(name, static_cast<std::uint32_t>(index)));
}

std::string CudaPlaces::size(HostExprId expr) {
  const HostExprPool& pool = *program_.info.exprs;
  if (pool.is_const(expr)) return fmt::format("i64({}ll)", pool.const_value(expr).as_int());
  const auto index = kir::find_size(program_, expr);
  CINCH_CHECK(index, "a kernel's size is not in the size table");
  return fmt::format("i64({})", size_entry(*index));
}

std::string CudaPlaces::lines(std::span<const CudaPlaces> same) {
  std::string text;
  for (std::size_t i = 0; i < same[0].entries_.size(); ++i) {
    const auto& [name, first] = same[0].entries_[i];
    std::string chosen = fmt::format("{}u", first);
    bool is_constant = true;
    for (const CudaPlaces& other : same.subspan(1)) {
      const std::uint32_t index = other.entries_[i].second;
      if (index == first) continue;
      is_constant = false;
      chosen = fmt::format("step.kernel == {}u ? {}u : {}", other.kernel_, index, chosen);
    }
    text += fmt::format("  {} u32 {} = {};\n", is_constant ? "constexpr" : "const", name, chosen);
  }
  return text +
         "  const u32 tensor = place.tensor;\n"
         "  const u64 launched_groups = args.groups[at_groups];\n"
         "  if (launched_groups == 0u) return;\n" +
         same[0].buffer_lines();
}

std::string stored_type(DType dtype, int storage_bits) {
  static constexpr const char* kKinds[] = {
#define CINCH_DTYPE(Kind, spelling, bits, digits, max_exponent, min_exponent) #Kind,
#include "runtime/core/numbers/dtype.def"
  };
  return fmt::format("Stored<Kind::{}, {}, {}>", kKinds[static_cast<std::size_t>(dtype.kind)],
                     dtype.bits, storage_bits);
}

}  // namespace cinch::codegen
