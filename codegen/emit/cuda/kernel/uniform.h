// Printers of random draws and their streams, and of instructions of kernel and group sections.
#pragma once

#include "codegen/emit/cuda/kernel/printer.h"

namespace cinch::codegen {

class CudaDraws : public CudaPrinter {
 public:
  using CudaPrinter::CudaPrinter;
  /// Declares the draw's stream once.
  void prepare(const Instr& instr);
  /// In kernel and group sections.
  void emit_uniform(const Instr& instr);
  /// In element sections.
  void emit(const Instr& instr);

  // ---- by rows ----
  /// Does the index of the draw grow from lane to lane, so that a row's draws are known?
  bool is_by_rows(const Instr& instr) const;
  /// The draw's index at the group's first element.
  std::string first_drawn(const Instr& draw) const;
  /// The 16 bits that round each element of the rows.
  void emit_ahead(const kir::Section& section, int num_rows);

 private:
  static ValueId iteration(const Instr& instr);
  std::string stream_name(const Instr& instr) const;
  std::string permutation_name(const Instr& instr) const;
  std::string halves_name(const Instr& round) const;
  void emit_round(const Instr& instr);

  std::set<std::string> streams_done_;
};

/// Prints instructions of kernel and group sections, and of combiners' bodies. Every thread
/// computes the same; one thread stores, or reports a failure. Owns the printers of items and
/// draws.
class CudaUniform : public CudaPrinter {
 public:
  explicit CudaUniform(CudaContext& cx);
  void emit(const Instr& instr);
  /// Prints combiners and streams in front of their uses, outside of all loops.
  void prepare(const Instr& instr);

  // ---- instructions that are the same in element sections ----
  void emit_leaf(const Instr& instr);
  void emit_call_extern(const Instr& instr);

  CudaItems& items() { return items_; }
  CudaDraws& draws() { return draws_; }

 private:
  void emit_memory(const Instr& instr);
  void emit_look_back(const Instr& instr);
  void emit_finish_reduce(const Instr& instr);
  void emit_finish_scan(const Instr& instr);
  void emit_local_scan(const Instr& instr);
  void emit_local_transform(const Instr& instr);
  std::string only_once(const std::string& condition) const;

  CudaItems items_;
  CudaDraws draws_;
  std::size_t num_folds_ = 0;  // reductions that are printed
};

}  // namespace cinch::codegen
