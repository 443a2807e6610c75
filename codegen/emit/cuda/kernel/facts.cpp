#include "codegen/emit/cuda/kernel/facts.h"

#include <algorithm>

namespace cinch::codegen {

using kir::ComputeType;
using kir::Instr;
using kir::InstrKind;
using kir::SectionKind;
using kir::ValueId;

namespace {

// Limits for the bytes that a lane loads ahead, and for the instructions of a turn of the loop.
constexpr std::uint32_t kAheadBytes = 64;
constexpr std::size_t kTurnInstrs = 160, kEightRowsInstrs = 8;
// Sections that draw take at least two rows, so that lanes share blocks of random words.
constexpr int kMostRows = 8, kMostDrawRows = 4;

// Does a lane do this alone, for its own elements or its own row?
bool is_for_a_lane(const kir::Instr& instr, SectionKind kind) {
  switch (instr.kind) {
    case InstrKind::load_at:
    case InstrKind::fail_if:
    case InstrKind::constant:
    case InstrKind::group:
    case InstrKind::group_len:
    case InstrKind::param:
    case InstrKind::host_size:
      return true;
    case InstrKind::store_at:
      return kind == SectionKind::Group;
    case InstrKind::load_linear:
    case InstrKind::store_linear:
    case InstrKind::column:
    case InstrKind::element:
    case InstrKind::reduce:
    case InstrKind::flag_nonfinite:
      return kind == SectionKind::Elements;
    default:
      return is_element_wise(instr.kind) || is_draw(instr.kind);
  }
}

}  // namespace

int rows_ahead(const kir::KernelProgram& program, const kir::Section& section,
               std::int64_t longest_group) {
  if (section.kind != kir::SectionKind::Elements || section.instrs.size() > kTwiceInstrs) return 0;
  if (std::ranges::none_of(section.instrs, kir::is_linear, &Instr::kind)) return 0;
  std::uint32_t lane_bytes = 0;
  bool draws = false;
  for (const kir::Instr& instr : section.instrs) {
    draws = draws || is_draw(instr.kind);
    if (instr.kind != InstrKind::load_linear) continue;
    lane_bytes += std::max<std::uint32_t>(1, program.buffers[instr.buffers[0]].storage_bits / 2);
  }
  int rows = draws ? kMostDrawRows : kMostRows;
  while (rows > (draws ? 2 : 1) &&
         (static_cast<std::uint32_t>(rows) * lane_bytes > kAheadBytes ||
          (rows == kMostRows && section.instrs.size() > kEightRowsInstrs) ||
          static_cast<std::size_t>(rows) * section.instrs.size() > kTurnInstrs)) {
    rows /= 2;
  }
  while (rows > 1 && longest_group < std::int64_t{rows} * kir::kRowElems) rows /= 2;
  return longest_group < kir::kRowElems ? 0 : rows;
}

bool has_whole_rows(const kir::KernelProgram& program, const kir::Kernel& kernel) {
  const std::int64_t longest = longest_group(program, kernel);
  return std::ranges::any_of(kernel.sections, [&](const kir::Section& section) {
    return rows_ahead(program, section, longest) > 0;
  });
}

CudaKernelFacts::CudaKernelFacts(const kir::KernelProgram& program, const kir::Kernel& kernel,
                                 std::uint32_t block_warps)
    : ValueFacts(program, kernel),
      shape_(cuda_shape(program, kernel, block_warps)),
      longest_(longest_group(program, kernel)),
      short_lanes_(find_short_lanes()) {}

ValueId CudaKernelFacts::counted_truth(const Instr& reduce) const {
  const std::optional<ScalarOp> op = kernel().combiners[reduce.combiner].op;
  if (op != ScalarOp::add || reduce.operands.size() != 1) return {};
  const Instr* made = definition(reduce.operands[0]);
  const ComputeType to = type(reduce.operands[0]);
  if (!made || made->kind != InstrKind::convert ||
      (to != ComputeType::U32 && to != ComputeType::I32)) {
    return {};
  }
  const ValueId truth = made->operands[0];
  return type(truth) == ComputeType::Bool && is_element(truth) ? truth : ValueId();
}

bool CudaKernelFacts::is_one_turn(int num_rows) const {
  return kernel().group_kind == kir::GroupKind::Row && num_rows > 0 &&
         longest_ == std::int64_t{num_rows} * kir::kRowElems && shape_.team_warps == 1;
}

bool CudaKernelFacts::is_packed_by_rows(const kir::Section& section, const Instr& store) const {
  if (store.kind != InstrKind::store_linear) return false;
  const auto bits = program().buffers[store.buffers[0]].storage_bits;
  return (bits == 1 || bits == 2 || bits == 4) &&
         std::ranges::none_of(section.instrs, [&](const Instr& instr) {
           return &instr != &store &&
                  std::ranges::find(instr.buffers, store.buffers[0]) != instr.buffers.end();
         });
}

// ---- short rows ----

// Rows of a packed buffer begin and end at words if their distance is a number of whole words.
bool CudaKernelFacts::has_whole_words(const Instr& store) const {
  const auto bits = program().buffers[store.buffers[0]].storage_bits;
  if (bits != 1 && bits != 2 && bits != 4) return false;
  const ValueId base = kir::base_of(store);
  const Instr* made = base ? definition(base) : nullptr;
  if (!made || made->kind != InstrKind::scalar || made->scalar_op != ScalarOp::mul) return false;
  const Instr *group = definition(made->operands[0]), *distance = definition(made->operands[1]);
  return group && distance && group->kind == InstrKind::group &&
         distance->kind == InstrKind::constant && distance->bits * bits % 32 == 0;
}

std::uint32_t CudaKernelFacts::find_short_lanes() const {
  const bool is_apart = kernel().group_kind == kir::GroupKind::Row && longest_ >= 1 &&
                        longest_ <= kMostShortRow && !kernel().info.is_sequential &&
                        kernel().locals.empty();
  if (!is_apart) return 0;
  for (const kir::Section& section : kernel().sections) {
    if (section.kind == SectionKind::Kernel) continue;
    if (section.instrs.size() > kTwiceInstrs || loads_its_stores(section)) return 0;
    for (const Instr& instr : section.instrs) {
      if (!is_for_a_lane(instr, section.kind)) return 0;
      if (instr.kind == InstrKind::store_linear &&
          !is_whole_element(program().buffers[instr.buffers[0]]) && !has_whole_words(instr)) {
        return 0;
      }
    }
  }
  return short_row_lanes(longest_);
}

// Does the section load neighbours from a buffer that it stores? Short rows load first.
bool CudaKernelFacts::loads_its_stores(const kir::Section& section) {
  std::set<rt::BufferIndex> loaded, stored;
  for (const Instr& instr : section.instrs) {
    (instr.kind == InstrKind::load_linear ? loaded : stored)
        .insert(instr.buffers.begin(), instr.buffers.end());
  }
  return std::ranges::any_of(loaded, [&](rt::BufferIndex b) { return stored.contains(b); });
}

}  // namespace cinch::codegen
