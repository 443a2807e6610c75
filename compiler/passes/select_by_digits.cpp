#include "compiler/passes/selection.h"

namespace cinch::passes {
namespace {

using ir::ValueId;
using ir::ValueIds;

// State of the search for one rank after some digits.
struct FoundDigit {
  ValueId need;  // how many of the elements with these digits are wanted
  ValueId num;   // how many elements have these digits
  ValueId key;   // the digits
};
constexpr std::size_t kFoundSize = 3;

// One step of the search: the digit at `shift`, of `width` bits.
class DigitStep {
 public:
  DigitStep(ir::Builder& builder, const SelectionKeys& keys, int digit_bits, ValueId i)
      : b_(builder), key_type_(keys.key_type), num_bins_(std::int64_t{1} << digit_bits) {
    const ValueId done = b_.map(ScalarOp::mul, b_.convert(i, kU32), u32(digit_bits));
    const ValueId left = b_.map(ScalarOp::sub, u32(keys.bits), done);
    const ValueId width = b_.map(ScalarOp::min, left, u32(digit_bits));
    width_ = b_.convert(width, key_type_);
    upper_ =
        b_.map(ScalarOp::shr, keys.keys, b_.convert(b_.map(ScalarOp::sub, left, width), key_type_));
    const ValueId one = b_.constant_int(key_type_, 1);
    const ValueId ones = b_.map(ScalarOp::sub, b_.map(ScalarOp::shl, one, width_), one);
    digit_ = b_.convert(b_.map(ScalarOp::bit_and, upper_, ones), kU32);
    before_ = b_.map(ScalarOp::shr, upper_, width_);
  }

  // The highest bin that, with the bins above, holds at least `need` elements. The elements above
  // it are then no longer needed.
  FoundDigit next(const FoundDigit& found) {
    const HostExprId bins = b_.exprs().const_int(num_bins_);
    const ValueId counts = b_.histogram(digit_, bins, b_.map(ScalarOp::eq, before_, found.key));
    const ValueId below = b_.scan(ScalarOp::add, counts, ir::kAll, /*exclusive=*/true);
    const ValueId from_here = b_.map(ScalarOp::sub, found.num, below);
    const ValueId is_enough = b_.map(ScalarOp::ge, from_here, found.need);
    const ValueId num_enough = b_.reduce(ScalarOp::add, b_.convert(is_enough, kU32));
    const ValueId above = b_.reduce(ScalarOp::max, b_.select(is_enough, u32(0), from_here));
    const ValueId bin = b_.map(ScalarOp::sub, num_enough, u32(1));
    const ValueId moved = b_.map(ScalarOp::shl, found.key, width_);
    return {b_.map(ScalarOp::sub, found.need, above), b_.gather(counts, bin),
            b_.map(ScalarOp::bit_or, moved, b_.convert(bin, key_type_))};
  }

 private:
  ValueId u32(std::int64_t value) { return b_.constant_int(kU32, value); }

  ir::Builder& b_;
  DType key_type_;
  std::int64_t num_bins_;
  ValueId width_;   // of the digit, as a scalar of the keys' type
  ValueId upper_;   // keys without the bits below the digit
  ValueId digit_;   // u32
  ValueId before_;  // the digits above it
};

// The size of the array as a scalar.
ValueId num_keys(ir::Builder& b, ValueId keys) {
  const ir::Type type = b.type(keys);
  HostExprId size = b.exprs().const_int(1);
  for (int d = 0; d < type.rank; ++d) size = b.exprs().mul(size, type.dims[d]);
  return b.host_size(size, kU32);
}

}  // namespace

std::vector<RankedKey> find_keys(ir::Builder& b, const SelectionKeys& keys, const ValueIds& needs,
                                 int digit_bits) {
  const int num_digits = (keys.bits + digit_bits - 1) / digit_bits;
  ValueIds inits;
  for (const ValueId need : needs) {
    inits.insert(inits.end(), {need, num_keys(b, keys.keys), b.constant_int(keys.key_type, 0)});
  }
  const ValueIds found = b.for_loop(
      b.exprs().const_int(0), b.exprs().const_int(num_digits), inits,
      [&](ValueId i, std::span<const ValueId> carried) {
        DigitStep step(b, keys, digit_bits, i);
        ValueIds next;
        for (std::size_t at = 0; at < carried.size(); at += kFoundSize) {
          const FoundDigit f = step.next({carried[at], carried[at + 1], carried[at + 2]});
          next.insert(next.end(), {f.need, f.num, f.key});
        }
        return next;
      });
  std::vector<RankedKey> result;
  for (std::size_t at = 0; at < found.size(); at += kFoundSize) {
    result.push_back({found[at + 2], found[at]});
  }
  return result;
}

ValueId mask_of_largest(ir::Builder& b, ValueId keys, const RankedKey& found) {
  const ValueId above = b.map(ScalarOp::gt, keys, found.key);
  const ValueId equal = b.map(ScalarOp::eq, keys, found.key);
  const ValueId before =
      b.scan(ScalarOp::add, b.convert(equal, kU32), ir::kAll, /*exclusive=*/true);
  const ValueId in_time = b.map(ScalarOp::lt, before, found.need);
  return b.map(ScalarOp::bit_or, above, b.map(ScalarOp::bit_and, equal, in_time));
}

ValueId first_of(ir::Builder& b, ValueId mask, HostExprId k) {
  // Even if only the device knows k, the mask has no more than k elements.
  const HostExprId most = b.exprs().has_count(k) ? b.exprs().upper_bound(k) : k;
  const ir::Builder::Nonzero found = b.nonzero(mask, b.new_count("selected", most), most);
  return b.reshape(found.index, ir::vector_type(kU32, k), /*proved=*/true);
}

}  // namespace cinch::passes
