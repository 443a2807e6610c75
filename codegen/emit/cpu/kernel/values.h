// Prints instructions that compute a value from others: element-wise operators, with shorter forms
// if more is known of their operands, calls of C++ functions, and leaves.
#pragma once
#include <string>
#include <vector>

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

  // ---- known.cpp ----
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

  // ---- steps.cpp ----
  struct Steps {
    ValueId of;
    std::vector<float> ends;
  };
  bool note_ends(ValueId value, Steps& steps) const;
  std::string step_literal(ValueId value, const float* end) const;
  /// Prints a choice among constants that depends on the size of one value. Returns false for other
  /// instructions.
  bool emit_steps(const Instr& instr);
};

}  // namespace cinch::codegen
