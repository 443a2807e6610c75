// Prints an element section: a loop over tiles of 1024, and inside it a loop over vectors. The
// inner loop is usually printed twice: with masks, and without masks for tiles in which all lanes
// of all vectors take part. A value that is the same for all elements of a row of a tile, like the
// norm of their bucket, is computed once for the row.
#pragma once

#include "codegen/emit/cpu/kernel/instrs.h"

namespace cinch::codegen {

class CpuElements : public CpuPrinter {
 public:
  CpuElements(CpuContext& cx, CpuInstrs& instrs)
      : CpuPrinter(cx),
        instrs_(instrs),
        memory_(instrs.memory()),
        reductions_(instrs.reductions()) {}
  void emit(const std::vector<kir::Instr>& instrs);

 private:
  // ---- elements.cpp ----
  std::string is_whole_text(const std::vector<Instr>& instrs) const;
  void emit_vectors(const std::vector<Instr>& instrs);
  void open_loops(const std::vector<Instr>& instrs, bool has_rows, bool is_placed);
  void emit_lanes_of_vector();
  void emit_vector(const std::vector<Instr>& instrs);
  bool loads_for_placed(const std::vector<Instr>& instrs, const std::set<std::size_t>& first) const;

  // ---- elements.cpp ----
  /// Which loops over a tile's vectors are printed: without masks, with masks, or both.
  enum class Loops : std::uint8_t { Both, Whole, Masked };
  Loops loops_of(const std::vector<Instr>& instrs) const;
  bool can_go_by_columns(const std::vector<Instr>& instrs) const;
  /// Prints a line for each ordered reduction of the section; {0} is its result.
  void each_column(const std::vector<Instr>& instrs, std::string_view pattern);
  /// Instructions whose results are the same for all elements of a row of a tile.
  std::set<std::size_t> alike_in_rows(const std::vector<Instr>& instrs) const;
  void begin_row(const std::vector<Instr>& instrs);

  CpuInstrs& instrs_;
  CpuMemory& memory_;
  CpuReductions& reductions_;
  std::set<std::size_t> alike_;  // of this section: computed once for a row
};

}  // namespace cinch::codegen
