// Printers of an element section's loops: row by row, several whole rows at a time, several short
// rows in a warp.
#pragma once

#include <tuple>

#include "codegen/emit/cuda/kernel/uniform.h"

namespace cinch::codegen {
// Prints instructions of element sections. Every element value is an array of four, for the four
// elements of the current row that the lane owns. Every instruction is a loop over them.

/// Variables of reductions and running sums, named after their result.
std::string columns_name(const std::string& value);
std::string carry_name(const std::string& value);

class CudaElementInstrs : public CudaPrinter {
 public:
  CudaElementInstrs(CudaContext& cx, CudaUniform& uniform)
      : CudaPrinter(cx), uniform_(uniform), items_(uniform.items()), draws_(uniform.draws()) {}
  void emit(const Instr& instr);

 private:
  void emit_load(const Instr& instr);
  void emit_store_linear(const Instr& instr);
  void emit_store_at(const Instr& instr);
  void emit_add_at(const Instr& instr);
  void emit_max_at(const Instr& instr);
  void emit_hist_add(const Instr& instr);
  void emit_reduce(const Instr& instr);
  void emit_running_sum(const Instr& instr);
  void emit_local(const Instr& instr);
  void emit_status(const Instr& instr);

  CudaUniform& uniform_;
  CudaItems& items_;
  CudaDraws& draws_;
};

/// Prints the part of an element section that takes tiles of whole rows without masks, several rows
/// at a time. The loads of these rows overlap, and a block of random words serves the lanes that
/// share it.
class CudaRows : public CudaPrinter {
 public:
  CudaRows(CudaContext& cx, CudaElementInstrs& instrs, CudaDraws& draws)
      : CudaPrinter(cx), instrs_(instrs), draws_(draws) {}
  /// Opens a block for the tiles that are left. Returns false if there is no such loop. A tile with
  /// a draw that ties is done again by the general loop, if a second run leaves no trace of the
  /// first.
  bool emit(const kir::Section& section);

 private:
  std::set<std::string> conditions(const kir::Section& section, int num_rows) const;
  void open_loop(int num_rows);
  void open_turn(int num_rows);
  std::set<std::size_t> emit_loads_ahead(const kir::Section& section, int num_rows);
  void emit_alike_ahead(const kir::Section& section, int num_rows);

  CudaElementInstrs& instrs_;
  CudaDraws& draws_;
};

/// Prints an element section: a loop over tiles of the group, and inside it a loop over the 8 rows
/// of a tile. A lane holds four elements of a row, of which the first `live` exist.
class CudaElements : public CudaPrinter {
 public:
  CudaElements(CudaContext& cx, CudaUniform& uniform);
  void emit(const kir::Section& section);

  // ---- what surrounds a section's rows ----
  void open_reductions(const kir::Section& section);
  void open_tile(const kir::Section& section);
  void close_tile(const kir::Section& section);
  void close_reductions(const kir::Section& section);
  CudaElementInstrs& instrs() { return instrs_; }

 private:
  CudaItems& items_;
  CudaElementInstrs instrs_;
  CudaRows rows_;
};

/// Prints groups that are rows of a few elements, several of which share a warp. A row gets a lane
/// for each four elements, and each lane computes the values of its row.
class CudaShortRows : public CudaPrinter {
 public:
  CudaShortRows(CudaContext& cx, CudaUniform& uniform, CudaElements& elements)
      : CudaPrinter(cx), uniform_(uniform), elements_(elements) {}
  /// Takes as many rows of the warp's groups, from `next` on, as fit its lanes.
  void emit();

 private:
  using KeptKey = std::tuple<rt::BufferIndex, std::size_t, std::size_t>;
  void emit_load(const Instr& load);
  void emit_elements(const kir::Section& section);

  CudaUniform& uniform_;
  CudaElements& elements_;
  std::map<KeptKey, std::string> kept_;  // names of values that are loaded already
};

}  // namespace cinch::codegen
