// Prints loads, stores, histograms, row sorts, and counted bytes. Packed elements go through a
// stage on the stack, which is filled before the vector loop of a tile and emptied after it.
#pragma once
#include <string>
#include <utility>

#include "codegen/emit/cpu/kernel/printer.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

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
  /// Before and after the loop over the rows of a chunk (short_rows.cpp): the stage of a store.
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

}  // namespace cinch::codegen
