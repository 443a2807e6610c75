// Prints the items that reductions and scans join (scalars or tuples), and the functions that join
// two.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codegen/emit/cuda/kernel/printer.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// How a reduction's items are spelled.
struct CudaItem {
  std::string type;   // "f32" or "sweep_item0"
  std::string join;   // the joining lambda
  std::string empty;  // an expression
  std::vector<kir::ComputeType> types;
  bool is_tuple = false;
  bool has_flag = false;  // a tuple with `has`
  // Any order gives the same bits, so a lane needs no columns.
  bool is_unordered = false;

  /// An item that takes part.
  std::string of(const std::vector<std::string>& parts) const;
  std::string part(const std::string& text, std::size_t index) const;
};

class CudaItems : public CudaPrinter {
 public:
  /// `emit_instr` prints an instruction of a combiner's body.
  CudaItems(CudaContext& cx, std::function<void(const kir::Instr&)> emit_instr)
      : CudaPrinter(cx), emit_instr_(std::move(emit_instr)) {}
  /// The item of the instruction's combiner. The first call declares it.
  const CudaItem& item(const Instr& instr);

 private:
  void emit_tuple(const CudaItem& item);
  void emit_builtin_join(CudaItem& item, ScalarOp op);
  void emit_join(CudaItem& item, const kir::Combiner& combiner);

  std::function<void(const kir::Instr&)> emit_instr_;
  std::map<std::string, CudaItem> items_;
};

}  // namespace cinch::codegen
