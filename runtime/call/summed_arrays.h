// How payloads of a summable wire travel where the transport adds: fields' elements in arrays of
// types that transports join: floats in their own (f8 in f32), integers in the smallest one that
// holds what all ranks add up to.
// One array for each type and reduction; one of them ends with a mark, which is not 0 where some
// rank's payload is marked as non-finite. The result is that of sum_payloads (payload_sum.h),
// floats in the transport's order.
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

/// A field's elements where they travel.
struct SummedField {
  DType dtype = kF32, travels_as = kF32;
  std::size_t array = 0, first_byte = 0;
  FieldPlace place;  // in the payload
};

class SummedArrays {
 public:
  /// Nothing where the wire is not summable, or so many ranks add up to more than 64 bits.
  static std::optional<SummedArrays> of(const ProgramInfo& info, std::uint32_t world);

  /// Of a payload with this layout; always as many, of the same types in the same order. In the
  /// memory that `arrays` has.
  void list_arrays(const PayloadLayout& layout, std::vector<SumArray>& arrays) const;
  std::vector<SumArray> arrays(const PayloadLayout& layout) const;

  /// Where everything is, for who moves it himself: `fields` gets all of a payload's. The mark is
  /// the last element of its array.
  void find_fields(const PayloadLayout& layout, std::vector<SummedField>& fields) const;
  std::size_t array_of_mark() const { return mark_at_; }
  DType type_of_mark() const { return kinds_[mark_at_].dtype; }
  /// Does every field travel in its own type?
  bool moves_only() const;

  /// From the payload of one rank, which has this layout, to the memory of each array, which
  /// `arrays` does not tell any more afterwards. Errors: those of read_payload_header.
  Status spread(std::span<const std::uint8_t> payload, const PayloadLayout& layout,
                std::span<std::span<std::uint8_t>> arrays) const;
  /// From joined arrays, told as for `spread`, to the payload that stands for all: `payload` is
  /// that of one rank before. Errors: Overflow (an integer or f8 that its field's type does not
  /// hold), those of read_payload_header.
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
  std::size_t mark_at_ = 0;  // the array that ends with the mark
};

}  // namespace cinch::rt
