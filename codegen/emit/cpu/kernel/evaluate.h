// Values of elements that depend on one value only, computed while the emitter prints.
#pragma once
#include <cstdint>
#include <map>
#include <optional>

#include "codegen/emit/cpu/kernel/facts.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Evaluates element-wise instructions and constants, if one value, the variable, is `at`. Values
/// are encoded elements (runtime/core/numbers/scalar_eval.h) of their compute type.
class CpuEvaluator {
 public:
  CpuEvaluator(const CpuKernelFacts& facts, kir::ValueId variable, std::uint64_t at)
      : facts_(facts), known_{{variable.index(), at}} {}
  /// None if the value depends on something else.
  std::optional<std::uint64_t> of(kir::ValueId value);

 private:
  std::optional<std::uint64_t> find(const kir::Instr& made);

  const CpuKernelFacts& facts_;
  std::map<std::uint32_t, std::optional<std::uint64_t>> known_;  // by value
};

}  // namespace cinch::codegen
