// Prints instructions that compute a value from others: element-wise operators, with shorter forms
// if more is known of their operands, calls of C++ functions, and leaves.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/emit/cpu/kernel/facts.h"
#include "codegen/emit/cpu/kernel/printer.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {
class CpuValues : public CpuPrinter {
 public:
  using CpuPrinter::CpuPrinter;
  void emit_element_wise(const Instr& instr);
  void emit_call_extern(const Instr& instr);
  void emit_leaf(const Instr& instr);

 private:
  // ---- bounds.cpp ----
  std::string bounded_text(const std::string& x, ValueId bound, bool is_least);
  /// Prints a min, max or clamp of float elements. Returns false for other instructions.
  bool emit_bounded(const Instr& instr);

  // ---- values.cpp ----
  /// Prints the bits of a float that is canonical already. Returns false for other instructions.
  bool emit_plain_bits(const Instr& instr);
  /// Prints a conversion to an integer type that can hold the value. Returns false for other
  /// instructions.
  bool emit_known_convert(const Instr& instr);

  ValueId narrow_form(ValueId wide) const;
  /// Prints a comparison of a u32 with a bound of 64 bits. Returns false for other instructions.
  bool emit_narrow_comparison(const Instr& instr);
  /// Prints the upper 32 bits of a product of 64 bits. Returns false for other instructions.
  bool emit_high_product(const Instr& instr);

  // ---- values.cpp ----
  struct Steps {
    ValueId of;
    std::vector<float> ends;
    std::set<std::uint32_t> seen;
  };
  struct Code {
    ValueId of;
    std::size_t num_instrs = 0;
    std::set<std::uint32_t> seen;
  };
  std::string value_literals(ValueId value, ValueId variable,
                             const std::vector<std::uint64_t>& elements) const;
  const Instr* find_end(ValueId value, ValueId& x, float& end) const;
  bool note_ends(ValueId value, Steps& steps) const;
  std::optional<Steps> find_steps(ValueId value) const;
  bool is_used_otherwise(ValueId value, const std::function<bool(ValueId)>& is_looked_up_too) const;
  /// Prints what only depends on the size of one float, in few steps. Returns false for other
  /// instructions.
  bool emit_steps(const Instr& instr);
  bool note_code(ValueId value, Code& code) const;
  /// Prints what only depends on one loaded integer of at most four bits. Returns false for other
  /// instructions.
  bool emit_code(const Instr& instr);
};

}  // namespace cinch::codegen
