// Prints random draws. Where the index runs with the elements, a tile's words are drawn at once
// into a stage; elsewhere each lane draws for itself.
#pragma once
#include <set>
#include <string>

#include "codegen/emit/cpu/kernel/printer.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

class CpuDraws : public CpuPrinter {
 public:
  using CpuPrinter::CpuPrinter;
  /// Declares what the draws of one site share, once.
  void need_stream(const Instr& instr);
  /// Before the vector loop of a tile: draws to their stages.
  void open_tile(const Instr& instr);
  void emit(const Instr& instr);

 private:
  std::string stream_name(const Instr& instr) const;
  std::string first_of_run(ValueId value) const;
  void emit_staged_int(const Instr& round);

  std::set<std::string> streams_done_;
};

}  // namespace cinch::codegen
