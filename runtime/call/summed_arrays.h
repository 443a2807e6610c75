// How payloads of a summable wire are sent if the transport adds. Elements of fields go into arrays
// of types that transports can add: floats in their own type (f8 in f32), integers in the smallest
// type that holds the sum over all ranks. There is one array for each type and reduction. One of
// them ends with a mark, which is not 0 if some rank's payload is marked as non-finite. The result
// is that of sum_payloads (joins.h), with floats added in the transport's order.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/program_info.h"
#include "runtime/image/image.h"
#include "runtime/payload/payload.h"

namespace cinch::rt {

struct SumArray {
  DType dtype = kF32;
  RankReduction reduction = RankReduction::Sum;
  std::int64_t num_elems = 0;
  std::int64_t size_bytes() const { return num_elems * (dtype.bits / 8); }
};

/// A field's elements in an array.
struct SummedField {
  DType dtype = kF32, travels_as = kF32;
  std::size_t array = 0, first_byte = 0;
  FieldPlace place;  // in the payload
};

class SummedArrays {
 public:
  /// Nothing if the wire is not summable, or if the sum over this many ranks exceeds 64 bits.
  static std::optional<SummedArrays> of(const ProgramInfo& info, std::uint32_t world);

  /// Lists the arrays of a payload with this layout, in the memory that `arrays` has. There are
  /// always as many, of the same types in the same order.
  void list_arrays(const PayloadLayout& layout, std::vector<SumArray>& arrays) const;
  std::vector<SumArray> arrays(const PayloadLayout& layout) const;

  /// Lists the places of all fields of a payload, for callers that move elements themselves. The
  /// mark is the last element of its array.
  void find_fields(const PayloadLayout& layout, std::vector<SummedField>& fields) const;
  std::size_t array_of_mark() const { return mark_at_; }
  DType type_of_mark() const { return kinds_[mark_at_].dtype; }
  /// Does every field travel in its own type?
  bool moves_only() const;

  /// Copies from the payload of one rank, which has this layout, to the memory of each array, and
  /// uses up the spans in `arrays`. Errors: those of read_payload_header.
  Status spread(std::span<const std::uint8_t> payload, const PayloadLayout& layout,
                std::span<std::span<std::uint8_t>> arrays) const;
  /// Makes the joined payload from the joined arrays, given as for `spread`. On entry `payload`
  /// holds that of one rank. Errors: Overflow (an integer or f8 exceeds its field's type), those of
  /// read_payload_header.
  Status join(std::span<std::span<const std::uint8_t>> arrays, const PayloadLayout& layout,
              std::span<std::uint8_t> payload) const;

 private:
  struct Field {
    std::string name;
    DType dtype = kF32;
    std::size_t array = 0;
  };
  std::size_t array_for(DType dtype, RankReduction reduction);

  std::vector<SumArray> kinds_;  // without their elements
  std::vector<Field> fields_;
  std::size_t mark_at_ = 0;  // index of the array that ends with the mark
};

}  // namespace cinch::rt
