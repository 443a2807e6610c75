// The attributes that each op kind reads, and small facts about kinds that ops.def does not list.
// Printer, parser, verifier and value numbering all use this one table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "compiler/ir/ir.h"
#include "runtime/core/numbers/dtype.h"

namespace cinch::ir {
/// Flags of OpInfo::attrs.
struct AttrUse {
  enum Flag : std::uint32_t {
    None = 0,
    Scalar = 1u << 0,      // scalar_op
    Value = 1u << 1,       // bits, as a value of the result type
    Width = 1u << 2,       // bits, as a number of bits
    Index = 1u << 3,       // index
    Size = 1u << 4,        // size
    Size2 = 1u << 5,       // size2
    Axis = 1u << 6,        // axis
    Exclusive = 1u << 7,   // exclusive
    Descending = 1u << 8,  // descending
    Mean = 1u << 9,        // mean
    Limit = 1u << 10,      // has_limit, and size where it is set
    Draw = 1u << 11,       // draw
    Combiner = 1u << 12,   // combiner
    Text = 1u << 13,       // text
    Proved = 1u << 14,     // proved
    InRows = 1u << 15,     // in_rows
    Groups = 1u << 16,     // size and size2, if the collective is of groups of ranks
  };
};

inline constexpr int kNumOpKinds = 0
#define OP(name, min_operands, max_operands, results, effect, reads, forces, cost, attrs, meaning) \
  +1
#include "compiler/ir/ops.def"
    ;

inline bool uses_attr(OpKind kind, std::uint32_t use) {
  return (op_info(kind).attrs & use) != 0;
}
/// The kind with that name, if there is one.
std::optional<OpKind> find_op_kind(std::string_view name);
/// Which elements of operand `operand` an element of the result needs: the kind's column of
/// ops.def, except that indices of a gather are Index.
Reads reads_of(const Op& op, std::size_t operand);
/// Is the operator a sweep of its own? All other operators are computed where they are needed.
bool is_sweep(OpKind kind);
/// Cost of an element's arithmetic, as the number of element loads that take equally long.
int cost_of_element(const rt::ProgramInfo& info, const Op& op);
/// if_else 2 (then, else), for_loop 1 (body), while_loop 2 (cond, body), all others 0.
int num_regions(OpKind kind);
/// random, random_bits, normal, random_index, stochastic_round.
bool is_draw(OpKind kind);
/// all_reduce, all_gather, all_to_all, reduce_scatter, broadcast, broadcast_from, send_receive and
/// those of counts.
bool is_collective(OpKind kind);

/// Number of values N that a reduce or scan joins: operands are N values, N inits and, for a
/// reduce, perhaps a mask.
std::size_t num_reduced_values(const Op& op);
/// Whether a reduce has a mask (its last operand).
bool has_mask(const Op& op);

/// "encode", "decode", "finish", "sync".
std::string_view function_kind_name(FunctionKind kind);

// When orthonormalize treats a column as a sum of the columns before it, with the same numbers for
// the interpreter and for kernels. Both are shares of squared lengths.

/// If a column depends on the columns before it, at most this share of it is left when they are
/// taken out, from rounding alone: eight units in the last place, squared. Types below f32 compute
/// in f32.
constexpr double least_left(DType dtype) {
  return dtype == kF64 ? 0x1p-98 : 0x1p-40;
}

/// If a column does not depend on the columns before it, taking them out a second time leaves more
/// than this share.
inline constexpr double kLeastKept = 0.25;

}  // namespace cinch::ir
