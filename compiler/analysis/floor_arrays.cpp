// Bodies of floor_arrays.h.
#include "compiler/analysis/floor_arrays.h"

#include "compiler/analysis/forced_sweeps.h"

namespace cinch::analysis {

const std::vector<ir::ValueId>& FloorArrays::yielded(ir::RegionId region) const {
  return function_.ops[function_.regions[region.index()].ops.back().index()].operands;
}

bool FloorArrays::is_array(ir::ValueId value) const {
  return lies_in_memory(program_, ir::type_of(function_, value));
}

std::int64_t FloorArrays::num_elems(ir::ValueId value) {
  constexpr std::int64_t kMostElems = std::int64_t{1} << 56;
  const ir::Type& type = ir::type_of(function_, value);
  std::int64_t elements = 1;
  for (int d = 0; d < type.rank; ++d) {
    const bool overflows = __builtin_mul_overflow(elements, evaluated(type.dims[d]), &elements);
    if (!overflows && elements <= kMostElems) continue;
    if (status_) status_ = rt::fail(rt::ErrorKind::Overflow, "an array of 2^56 elements or more");
    return 0;
  }
  return elements;
}

std::int64_t FloorArrays::size_bytes(ir::ValueId value, std::int64_t elements) const {
  const auto travels = travelling_.find(value);
  return travels != travelling_.end() ? travels->second
                                      : packed_bytes(ir::type_of(function_, value).dtype, elements);
}

std::string FloorArrays::place_of(ir::ValueId value) const {
  const auto place = places_.find(value);
  if (place != places_.end()) return place->second;
  return function_.values[value.index()].name + "%" + std::to_string(value.index());
}

std::int64_t FloorArrays::evaluated(HostExprId expr) {
  if (!request_.env.counts.empty()) {
    if (const auto exact = exprs_.eval_int(expr, request_.env)) return *exact;
  }
  const auto bound = exprs_.eval_int(exprs_.upper_bound(expr), request_.env);
  if (!bound && status_) status_ = tl::unexpected<rt::Error>(bound.error());
  return bound.value_or(0);
}

}  // namespace cinch::analysis
