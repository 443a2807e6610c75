// What the printers of a kernel's parts share: the text so far, the current place in the kernel,
// and how values are spelled there.
#pragma once
#include <cstddef>
#include <string>

#include "codegen/emit/c_family.h"
#include "codegen/emit/cpu/kernel/compaction.h"
#include "codegen/emit/cpu/kernel/facts.h"
#include "codegen/emit/cpu/kernel/phases.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

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
