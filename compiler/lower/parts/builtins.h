// Lowers named operators: dispatches by group; fill, len, draws and collectives.
#pragma once
#include <cstdint>
#include <vector>

#include "compiler/lower/parts/body_part.h"

namespace cinch::lower {

// Operators that select, pack or move elements, and those on matrices.

class MoveLowering : public BodyPart {
 public:
  using BodyPart::BodyPart;
  Lowered lower(const Expr& e);
  /// Ascending places where the mask is true; `len` is their count, entry `count` of the program's.
  ValueId select_counted(ValueId mask, std::uint32_t count, HostExprId len, HostExprId limit);

 private:
  Lowered lower_plain(const Expr& e, OpKind kind);  // keeps operands and type as they are
  Lowered lower_filter(const Expr& e);
  Lowered lower_concat(const Expr& e);
  Lowered lower_histogram(const Expr& e);
  Lowered lower_reshape(const Expr& e);
  Lowered lower_product(const Expr& e);
  Lowered lower_hadamard(const Expr& e);
  ValueId nonzero(const Expr& e, ValueId mask, HostExprId len);
  Lowered lower_pack(const Expr& e);
  Lowered lower_scatter(const Expr& e);
  Lowered lower_scatter_keep(const Expr& e);
  Lowered lower_scatter_join(const Expr& e);
  ValueId elements_or_zeros(ValueId values, ValueId place, const Type& result);
  ValueId places_of_rows(ValueId row, HostExprId cols);
  ValueId scatter_index(const Expr& e, bool must_be_unique);
};

class BuiltinLowering : public BodyPart {
 public:
  using BodyPart::BodyPart;
  Lowered lower(const Expr& e);

 private:
  Lowered lower_fill(const Expr& e);
  Lowered lower_len(const Expr& e);
  Lowered lower_random(const Expr& e);
  Lowered lower_stochastic_round(const Expr& e);
  ir::Attrs draw_attrs(const Expr& e) const;
  std::vector<ValueId> draw_operands(const Expr& e, std::vector<ValueId> operands);
  Lowered lower_collective(const Expr& e);
  Lowered lower_counted_collective(const Expr& e);
  ValueId receiver(const Expr& e);  // of a sendrecv
};

}  // namespace cinch::lower
