// Values of elements that depend on one value only, computed while the emitter prints.
#pragma once
#include <cstddef>
#include <map>
#include <optional>

#include "codegen/emit/cpu/kernel/facts.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Evaluates element-wise instructions of f32, of integers of 32 bits, and of truth values, if one
/// value, the variable, is `at`. All of these numbers are exact as doubles.
class CpuEvaluator {
 public:
  CpuEvaluator(const CpuKernelFacts& facts, kir::ValueId variable, double at)
      : facts_(facts), variable_(variable), at_(at) {}
  /// None for NaN, and for what it does not know.
  std::optional<double> of(kir::ValueId value);

 private:
  std::optional<double> find(kir::ValueId value);
  std::optional<double> scalar(const kir::Instr& instr);
  std::optional<double> convert(const kir::Instr& instr);

  const CpuKernelFacts& facts_;
  kir::ValueId variable_;
  double at_;
  std::map<std::uint32_t, std::optional<double>> known_;
};

/// The bits of a number of the type: f32, or an integer of 32 bits.
std::uint32_t bits_of_number(double number, kir::ComputeType type);

}  // namespace cinch::codegen
