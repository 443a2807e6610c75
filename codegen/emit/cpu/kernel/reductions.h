// Prints reductions, running sums and scans, in the prelude's terms.
#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/emit/cpu/kernel/printer.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

class CpuReductions : public CpuPrinter {
 public:
  /// `emit_instr` prints an instruction of a combiner's body.
  CpuReductions(CpuContext& cx, std::function<void(const kir::Instr&)> emit_instr)
      : CpuPrinter(cx), emit_instr_(std::move(emit_instr)) {}

  /// Declares the function of a region combiner, once.
  void need_combiner(std::uint32_t index);

  // ---- around the loops of an element section ----
  /// Declares the results outside of the section's block.
  void declare_results(const Instr& instr);
  void open_section(const Instr& instr);
  void open_tile(const Instr& instr);
  void end_row(const Instr& instr);
  void close_tile(const Instr& instr);
  void close_section(const Instr& instr);

  /// Prints a reduction, a running sum, what finishes partials, or an operation on a whole local
  /// array.
  void emit(const Instr& instr);

 private:
  void emit_reduce(const Instr& instr);
  void emit_running_sum(const Instr& instr);
  void emit_finish_reduce(const Instr& instr);
  void emit_finish_scan(const Instr& instr);
  void emit_local_scan(const Instr& instr);
  void emit_local_transform(const Instr& instr);
  std::string operation(ScalarOp op, kir::ComputeType type) const;
  std::string element_list(const std::vector<kir::ComputeType>& types) const;
  /// Declares the empty "Levels" or "Columns" of a reduction.
  void declare_folds(const Instr& instr, std::string_view kind);
  std::string tuple_text(const Instr& instr, unsigned shown) const;
  void emit_parts(const Instr& instr, const std::string& part);
  /// A tuple of W stored partials. With `is_part` a Part, whose last buffer is `has`.
  std::string stored_tuple(const Instr& instr, const std::string& place, bool is_part) const;

  std::function<void(const kir::Instr&)> emit_instr_;
  std::set<std::uint32_t> combiners_done_;
};

}  // namespace cinch::codegen
