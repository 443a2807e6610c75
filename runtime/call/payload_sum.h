// Payloads of all ranks joined field by field, without decoding: for wires whose every field says
// how it adds up.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/program_info.h"
#include "runtime/image/image.h"
#include "runtime/payload/payload.h"

namespace cinch::rt {

/// Does every field have a `by`, and is none counted?
bool has_summable_wire(const ProgramInfo& info);

/// How ranks join a field that has a `by`.
RankReduction reduction_of(FieldSum how);

/// Is a field of f16 or f8? What ranks add up to may be beyond it where their mean is not: added by
/// the transport f16 becomes infinite then, and f8 is an error.
bool has_narrow_fields(const ProgramInfo& info);

/// The f8 that is nearest to a sum. Nothing where it is beyond the type and not infinite.
std::optional<std::uint64_t> f8_of_sum(DType dtype, float sum);

/// One payload that stands for those of all ranks, by rank: floats added in f32 (f64) in rank order
/// and rounded once to the field's type, integers exactly; marked where any of them is. Errors:
/// InvalidArgument (a wire that is not summable, no payload), Overflow (a sum of integers or of f8
/// that its field's type does not hold), those of read_payload.
Result<std::vector<std::uint8_t>> sum_payloads(
    const PayloadExpectation& expected, std::span<const std::span<const std::uint8_t>> payloads);

}  // namespace cinch::rt
