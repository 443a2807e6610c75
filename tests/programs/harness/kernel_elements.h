// Elements of buffers and values of the kernel machine: 64 bits each, encoded as
// compiler/ir/scalar_eval.h says for the compute type of their dtype.
#pragma once
#include <cstdint>

#include "codegen/kir/kir.h"

namespace cinch::testing {

using Word = std::uint64_t;

Word load_word(const rt::BufferInfo& buffer, const void* memory, std::int64_t index);
void store_word(const rt::BufferInfo& buffer, void* memory, std::int64_t index, Word value);
/// Clears the bits of the last byte from bit `end` on, since a run of packed elements ends there.
void close_run(const rt::BufferInfo& buffer, void* memory, std::int64_t end);
/// The results of `scalar`, `convert` and `bitcast` for one element.
Word compute_word(const kir::Instr& instr, kir::ComputeType operand_type, const Word* operands);
/// The word of a `constant`.
Word constant_word(kir::ComputeType type, std::uint64_t bits);

}  // namespace cinch::testing
