// top_k of a long vector in one sweep. A sample of constant size gives two keys between which the
// k-th largest lies almost surely. One sweep counts the elements above both and lists those between
// them; then the list is searched for the k-th largest. If k is small there is no upper key: the
// list holds all selected elements in order, and no further sweep is needed. If the list cannot
// contain the k-th largest, because the guess was wrong or ties overflow it, all keys are searched.
#include <algorithm>

#include "compiler/passes/selection.h"

namespace cinch::passes {
namespace {

using ir::ValueId;
using ir::ValueIds;

// Number of sampled elements: one of kSampleShare, and at most kSampleMost.
constexpr std::int64_t kSampleShare = 16;
constexpr std::int64_t kSampleMost = 16384;
// Of the sample, the search reads only the first digits of keys, which a group of 1024 bins each
// counts. The two keys need not be exact, only below and above.
constexpr int kSampleDigitBits = 10;
constexpr int kSampleBits = 2 * kSampleDigitBits;
// The list takes at most 1 / kListShare of the elements, so that index and key take well below half
// a byte per element; a short list costs nothing.
constexpr std::int64_t kListShare = 20;
constexpr std::int64_t kListLeast = 4096;

class SampledTopK {
 public:
  SampledTopK(ir::Builder& builder, const SelectionKeys& keys, HostExprId k)
      : b_(builder), e_(builder.exprs()), keys_(keys), k_(k), n_(b_.type(keys.keys).dims[0]) {}

  ValueId build() {
    guess();
    make_list();
    const ValueId is_found = is_list_enough();
    const ValueIds found = b_.if_else(
        is_found, [&] { return search(list_keys_, need_in_list_); },
        [&] { return search(keys_.keys, b_.host_size(k_, kU32)); });
    const RankedKey ranked{found[0], found[1]};
    const auto from_list = [&] {
      const ValueId place = first_of(b_, mask_of_largest(b_, list_keys_, ranked), k_);
      return ValueIds{b_.gather(list_, place)};
    };
    const auto from_all = [&] {
      return ValueIds{first_of(b_, mask_of_largest(b_, keys_.keys, ranked), k_)};
    };
    return b_.if_else(b_.map(ScalarOp::bit_and, is_found, is_small_), from_list, from_all)[0];
  }

 private:
  HostExprId size(std::int64_t value) { return e_.const_int(value); }
  // The capacity of the list.
  HostExprId most() { return e_.add(e_.ceil_div(n_, size(kListShare)), size(kListLeast)); }
  ValueId u32(std::int64_t value) { return b_.constant_int(kU32, value); }
  ValueId key_constant(std::int64_t value) { return b_.constant_int(keys_.key_type, value); }

  // One place in each of `num` strides, chosen by a hash of its number, so that periods of the
  // array do not matter; the last strides may wrap around to its start.
  ValueId sampled_places(HostExprId num) {
    const ValueId i = b_.iota(num);
    const ValueId stride = b_.host_size(e_.ceil_div(n_, e_.max(num, size(1))), kU32);
    ValueId hash = b_.map(ScalarOp::mul, i, u32(0x9E3779B1));
    hash = b_.map(ScalarOp::bit_xor, hash, b_.map(ScalarOp::shr, hash, u32(15)));
    hash = b_.map(ScalarOp::mul, hash, u32(0x85EBCA6B));
    hash = b_.map(ScalarOp::shr, hash, u32(4));
    const ValueId place = b_.map(ScalarOp::add, b_.map(ScalarOp::mul, i, stride),
                                 b_.map(ScalarOp::mod, hash, stride));
    return b_.map(ScalarOp::mod, place, b_.host_size(n_, kU32));
  }

  // Keys of the sample a good four standard deviations below and above the rank of the k-th
  // largest. The deviation is at most sqrt(rank), and sqrt(num) / 2.
  void guess() {
    const HostExprId num = e_.min(e_.ceil_div(n_, size(kSampleShare)), size(kSampleMost));
    const HostExprId rank = e_.div(e_.mul(k_, num), e_.max(n_, size(1)));
    const HostExprId margin =
        e_.min(e_.add(e_.div(rank, size(4)), size(16)), e_.add(e_.div(num, size(112)), size(144)));
    const ValueId low_rank = b_.host_size(e_.add(rank, margin), kU32);
    const ValueId sampled = b_.host_size(num, kU32);
    // The rank at which the list is nine tenths full.
    const HostExprId full =
        e_.div(e_.mul(e_.mul(most(), num), size(9)), e_.max(e_.mul(n_, size(10)), size(1)));
    is_small_ = b_.map(ScalarOp::le, low_rank, b_.host_size(full, kU32));
    const HostExprId high = e_.max(e_.sub(rank, margin), size(0));
    const ValueId high_rank = b_.select(is_small_, u32(0), b_.host_size(high, kU32));
    const int dropped = std::max(keys_.bits - kSampleBits, 0);
    SelectionKeys sample = keys_;
    sample.bits = keys_.bits - dropped;
    sample.keys = b_.keep(
        b_.map(ScalarOp::shr, b_.gather(keys_.keys, sampled_places(num)), key_constant(dropped)));
    const auto found = find_keys(b_, sample, {b_.map(ScalarOp::min, low_rank, sampled), high_rank},
                                 kSampleDigitBits);
    const ValueId is_all = b_.map(ScalarOp::ge, low_rank, sampled);
    const auto restored = [&](ValueId key) {
      return b_.map(ScalarOp::shl, key, key_constant(dropped));
    };
    low_ = b_.select(is_all, key_constant(0), restored(found[0].key));
    high_ = b_.map(ScalarOp::bit_or, restored(found[1].key),
                   key_constant((std::int64_t{1} << dropped) - 1));
  }

  void make_list() {
    const ValueId is_above = b_.map(ScalarOp::gt, keys_.keys, high_);
    above_ = b_.reduce(ScalarOp::add, b_.convert(is_above, kU32));
    const ValueId is_between = b_.map(ScalarOp::bit_and, b_.map(ScalarOp::ge, keys_.keys, low_),
                                      b_.map(ScalarOp::bit_not, is_above));
    const auto found =
        b_.nonzero(is_between, b_.new_count("candidates", e_.min(most(), n_)), most());
    list_ = found.index;
    in_list_ = found.count;
    list_keys_ = b_.gather(keys_.keys, list_);
    most_ = b_.host_size(most(), kU32);
  }

  // Does the list hold all elements between the two keys, including the k-th largest?
  ValueId is_list_enough() {
    const ValueId k = b_.host_size(k_, kU32);
    need_in_list_ = b_.map(ScalarOp::sub, k, above_);
    const ValueId is_whole = b_.map(ScalarOp::lt, in_list_, most_);
    const ValueId is_not_above = b_.map(ScalarOp::lt, above_, k);
    const ValueId is_not_below = b_.map(ScalarOp::le, need_in_list_, in_list_);
    return b_.map(ScalarOp::bit_and, is_whole,
                  b_.map(ScalarOp::bit_and, is_not_above, is_not_below));
  }

  ValueIds search(ValueId keys, ValueId need) {
    SelectionKeys searched = keys_;
    searched.keys = keys;
    const RankedKey found = find_keys(b_, searched, {need})[0];
    return {found.key, found.need};
  }

  ir::Builder& b_;
  HostExprPool& e_;
  SelectionKeys keys_;
  HostExprId k_, n_;
  ValueId is_small_;          // is everything selected expected to fit the list?
  ValueId low_, high_;        // the two keys
  ValueId above_;             // number of keys above both
  ValueId list_, list_keys_;  // places and keys of the elements between, ascending by place
  ValueId in_list_, most_;    // how many there are, and how many fit
  ValueId need_in_list_;      // how many of the k largest are in the list
};

}  // namespace

bool can_sample(ir::Builder& b, const SelectionKeys& keys, HostExprId k) {
  const ir::Type& type = b.type(keys.keys);
  if (type.rank != 1 || b.exprs().has_count(type.dims[0]) || b.exprs().has_count(k)) return false;
  const auto constant = ir::constant_size(b.exprs(), type.dims[0]);
  return !constant || *constant > 4 * kSampleMost;
}

ValueId sampled_top_k(ir::Builder& b, const SelectionKeys& keys, HostExprId k) {
  return SampledTopK(b, keys, k).build();
}

}  // namespace cinch::passes
