// Bounds of integers, and how integers that ranks add up are sent: as fields of words, each as wide
// as the sum over all ranks.
#pragma once
#include <cstdint>
#include <optional>

#include "compiler/ir/ir.h"

namespace cinch::analysis {

// Bounds the integers in an array, whatever the inputs are. Conservative: if nothing better is
// known, the range is that of the type.

struct IntegerRange {
  std::int64_t least = 0, greatest = 0;
  friend bool operator==(const IntegerRange&, const IntegerRange&) = default;
};

/// The range of a value of an integer type; nothing if an end has a magnitude above 2^53.
std::optional<IntegerRange> find_integer_range(const ir::Program& program,
                                               const ir::Function& function, ir::ValueId value);

struct PackedSum {
  IntegerRange range;            // of the elements
  std::int64_t most_fields = 1;  // in a word, for two ranks
};

/// For a sum of integers by all_reduce or reduce_scatter, if the range of its elements is known and
/// makes the words shorter, and the length is known in advance. Nothing for single numbers, and for
/// elements of more than 16 bits.
std::optional<PackedSum> find_packed_sum(const ir::Program& program, const ir::Function& function,
                                         const ir::Op& op);

/// Bits of a field: ceil(log2(world * (greatest - least) + 1)).
HostExprId field_bits(HostExprPool& exprs, const PackedSum& sum);
/// Elements that share words: all; for reduce_scatter those of a row.
HostExprId num_packed_together(HostExprPool& exprs, const ir::Op& op, const ir::Type& type);
/// The number of 64-bit words for these elements. With m words, word i has the elements i, i + m, i
/// + 2 m …
HostExprId num_sum_words(HostExprPool& exprs, const PackedSum& sum, HostExprId num_elements);
/// Bytes of the words that a rank receives from an op; nothing if it has none.
std::optional<std::int64_t> packed_sum_bytes(const ir::Program& program,
                                             const ir::Function& function, const ir::Op& op,
                                             const HostEnv& env);

}  // namespace cinch::analysis
