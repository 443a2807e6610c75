#include "codegen/emit/cuda/places.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/program.h"
#include "codegen/kir/compute_type.h"
#include "runtime/core/check.h"

namespace cinch::codegen {
namespace {

// The index of `item` in the list. Appends it if it is new.
template <typename T>
std::size_t place_in(std::vector<T>& list, const T& item) {
  const auto found = std::ranges::find(list, item);
  const auto place = static_cast<std::size_t>(found - list.begin());
  if (found == list.end()) list.push_back(item);
  return place;
}

}  // namespace

CudaPlaces::CudaPlaces(const kir::KernelProgram& program, const kir::Kernel& kernel)
    : program_(program), kernel_(static_cast<std::size_t>(&kernel - program.kernels.data())) {
  entry("at_groups", static_cast<std::uint32_t>(kernel_));
  const auto note = [&](const std::vector<kir::Instr>& instrs) {
    for (const kir::Instr& instr : instrs) {
      for (const rt::BufferIndex buffer : instr.buffers) note_buffer(buffer);
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

// A state has a pair of buffers, which change places.
void CudaPlaces::note_buffer(rt::BufferIndex buffer) {
  const std::size_t which = place_in(buffers_, buffer);
  entry(fmt::format("at_b{}", which), buffer);
  const auto other = other_buffer(program_, buffer);
  if (!other) return;
  entry(fmt::format("state_b{}", which), program_.buffers[buffer].role_index);
  entry(fmt::format("other_b{}", which), *other);
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
  const HostExprPool& pool = program_.info.exprs;
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

namespace {
const char* kind_name(DTypeKind kind) {
  switch (kind) {
    case DTypeKind::Bool:
      return "Bool";
    case DTypeKind::UInt:
      return "UInt";
    case DTypeKind::Int:
      return "Int";
    case DTypeKind::F16:
      return "F16";
    case DTypeKind::BF16:
      return "BF16";
    case DTypeKind::F8E4M3:
      return "F8E4M3";
    case DTypeKind::F8E5M2:
      return "F8E5M2";
    case DTypeKind::F32:
      return "F32";
    case DTypeKind::F64:
      return "F64";
  }
  CINCH_BUG("unknown dtype");
}
}  // namespace

std::string stored_type(DType dtype, int storage_bits) {
  return fmt::format("Stored<Kind::{}, {}, {}>", kind_name(dtype.kind), dtype.bits, storage_bits);
}

}  // namespace cinch::codegen
