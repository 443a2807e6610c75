// What the printers of a kernel's parts share: the text so far, the current place in the kernel,
// and how values are spelled there.
#pragma once

#include <utility>

#include "codegen/emit/cpu/kernel/facts.h"

namespace cinch::codegen {
// Finds sections that only store selected lanes at running places, and what earlier phases know of
// these lanes.

class CpuCompaction {
 public:
  CpuCompaction(const CpuKernelFacts& facts, const CpuPhases& phases);

  /// The truth value by which such a section may skip vectors, or none.
  kir::ValueId placed_truth(const std::vector<kir::Instr>& instrs) const;
  /// Instructions of an element section that compute the truth value of its only running count, if
  /// vectors without a true lane have no effect. Otherwise none.
  std::set<std::size_t> needed_to_place(const std::vector<kir::Instr>& instrs) const;
  /// For truth values of earlier phases: the later section that places the lanes for which the
  /// value is true, and needs only vectors with such a lane.
  const std::map<std::uint32_t, std::size_t>& hits() const { return hits_; }
  bool is_placed_by_hits(std::size_t section) const;
  /// The instructions of such a section that only compute what the hits tell.
  std::set<std::size_t> known_by_hits(const std::vector<kir::Instr>& instrs) const;

 private:
  using Instr = kir::Instr;
  using ValueId = kir::ValueId;
  using KnownPairs = std::set<std::pair<std::uint32_t, std::uint32_t>>;

  std::optional<ValueId> same_truth(ValueId truth, std::size_t before_section) const;
  bool is_same_element(ValueId a, ValueId b, KnownPairs& known) const;
  bool is_only_read(rt::BufferIndex buffer) const;

  const CpuKernelFacts& facts_;
  std::map<std::uint32_t, std::size_t> hits_;
};

struct CpuContext {
  const CpuKernelFacts& facts;
  const CpuPhases& phases;
  const CpuCompaction& compaction;
  SourceWriter out;
  Level level = Level::Kernel;
  std::size_t section = 0, instr = 0;  // of the current instruction
  bool goes_by_columns = false;        // do whole tiles of the current section?
};

class CpuPrinter {
 public:
  explicit CpuPrinter(CpuContext& cx) : cx_(cx) {}

 protected:
  using Instr = kir::Instr;
  using ValueId = kir::ValueId;

  CpuContext& cx() const { return cx_; }
  const CpuKernelFacts& facts() const { return cx_.facts; }
  const kir::Kernel& kernel() const { return cx_.facts.kernel(); }

  void line(const std::string& text) { cx_.out.line(text); }
  kir::ComputeType type(ValueId value) const { return cx_.facts.type(value); }
  std::string name(ValueId value) const { return cx_.facts.name(value); }
  /// Are instructions printed for the lanes of a vector?
  bool is_lanes() const {
    return cx_.level == Level::Element || cx_.level == Level::Combiner || cx_.level == Level::Rows;
  }

  /// A scalar. Constants are literals.
  std::string uniform(ValueId value) const;
  std::string lanes(ValueId value) const;
  /// Lanes or a scalar, depending on the level.
  std::string operand(ValueId value) const;
  /// The lanes (or the truth value) for which the instruction acts: live and its predicate.
  std::string acting(ValueId pred) const;
  void define(ValueId value, const std::string& text);
  void assign(ValueId value, const std::string& text);

  std::string local(std::uint32_t index) const;
  std::string stage_name(const Instr& instr) const;
  std::string base_text(ValueId base, const char* place) const;
  std::string count_text(ValueId limit, const char* place, const char* count) const;

 private:
  CpuContext& cx_;
};

}  // namespace cinch::codegen
