// Printers of random draws, and of any instruction by its kind.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "codegen/emit/cpu/kernel/printer.h"
#include "codegen/emit/cpu/kernel/reductions.h"
#include "codegen/emit/cpu/kernel/values.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {
// Prints loads, stores, histograms, row sorts, and counted bytes. Packed elements go through a
// stage on the stack, which is filled before the vector loop of a tile and emptied after it.

class CpuMemory : public CpuPrinter {
 public:
  using CpuPrinter::CpuPrinter;
  void emit(const Instr& instr);
  /// Before the vector loop of a tile: prepares stages of packed elements, and counts bytes.
  void open_tile(const Instr& instr);
  /// In the vector loop, if it is printed both with and without masks: reads packed elements to
  /// their stages.
  void fill_stage(const Instr& instr);
  void fetch_ahead(const Instr& instr);
  /// After the vector loop: writes stages to packed buffers.
  void close_tile(const Instr& instr);
  /// Before and after the loop over the rows of a chunk (bounds.cpp): the stage of a store.
  void open_rows(const Instr& store);
  void close_rows(const Instr& store);

 private:
  void emit_load_linear(const Instr& instr);
  void emit_store_linear(const Instr& instr);
  void emit_load_at(const Instr& instr);
  std::int64_t elems_of_small_table(rt::BufferIndex buffer) const;
  std::string load_function(const Instr& load) const;
  void emit_store_at(const Instr& instr);
  std::pair<ValueId, ValueId> limited_pred(const Instr& store) const;
  void emit_add_at(const Instr& instr);
  void emit_max_at(const Instr& instr);
  void emit_argsort(const Instr& instr);
  std::string active_text(ValueId limit) const;
  std::string stored_text(const Storage& storage, ValueId value);
  void count_run(const Instr& instr, bool is_store);
  void count_lanes(const Instr& instr, bool is_store, ValueId pred);
};

/// Prints random draws. If the index runs with the elements, the words of a tile are drawn at once
/// into a stage. Otherwise each lane draws for itself.
class CpuDraws : public CpuPrinter {
 public:
  using CpuPrinter::CpuPrinter;
  /// Declares once what the draws of one site share.
  void need_stream(const Instr& instr);
  /// Prints draws to their stages, before the vector loop of a tile.
  void open_tile(const Instr& instr);
  void emit(const Instr& instr);

 private:
  std::string stream_name(const Instr& instr) const;
  std::string first_of_run(ValueId value) const;
  void emit_staged_int(const Instr& round);

  std::set<std::string> streams_done_;
};

/// Prints any instruction of a kernel, and what it needs around the elements of a tile. Owns the
/// printers of the families of instructions.
class CpuInstrs : public CpuPrinter {
 public:
  explicit CpuInstrs(CpuContext& cx);
  void emit(const Instr& instr);
  /// Prints what an instruction of a group or an element section needs before the loop over groups.
  void prepare(const Instr& instr);
  void open_tile(const Instr& instr);
  void close_tile(const Instr& instr);
  CpuMemory& memory() { return memory_; }
  CpuReductions& reductions() { return reductions_; }

 private:
  void emit_status(const Instr& instr);
  void emit_local(const Instr& instr);

  CpuValues values_;
  CpuMemory memory_;
  CpuReductions reductions_;
  CpuDraws draws_;
};

}  // namespace cinch::codegen
