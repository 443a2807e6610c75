// Unique forms of sizes, their names, and new unknown sizes.
#include "dsl/sema/sizes/size_scope.h"

#include "runtime/core/check.h"

namespace cinch::sema {

HostExprId SizeScope::one_form(HostExprId size) {
  return forms_.try_emplace(prover_.canonical(size), size).first->second;
}

Type SizeScope::in_one_form(Type type) {
  for (int i = 0; i < type.rank; ++i) type.dims[i] = one_form(type.dims[i]);
  return type;
}

bool SizeScope::is_one(HostExprId size) {
  return prover_.constant(size) == 1;
}

bool SizeScope::same_shape(const Type& a, const Type& b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i) {
    if (!prover_.proves_equal(a.dims[i], b.dims[i])) return false;
  }
  return true;
}

HostExprId SizeScope::num_elems(const Type& type) {
  if (type.rank == 0) return pool().const_int(1);
  return type.rank == 1 ? type.dims[0] : pool().mul(type.dims[0], type.dims[1]);
}

bool SizeScope::all_constant_sizes(const Type& type) {
  for (int i = 0; i < type.rank; ++i) {
    if (!prover_.constant(type.dims[i])) return false;
  }
  return true;
}

HostExprId SizeScope::without_counts(HostExprId size) {
  if (!pool().has_count(size)) return size;
  try {
    return pool().upper_bound(size);
  } catch (const InternalError&) {
    return {};
  }
}

bool SizeScope::is_never_positive(HostExprId size) {
  const HostExprId opposite = pool().sub(pool().const_int(0), size);
  return !prover_.proves_nonnegative(size) && prover_.proves_nonnegative(opposite);
}

namespace {

// Sizes of a signature are parameters with numbers that no real parameter reaches.
constexpr std::uint32_t kFirstGenericSize = 1u << 22;

}  // namespace

HostExprId SizeScope::opaque_number(HostType type) {
  return pool().param(kFirstGenericSize + next_generic_++, type);
}

HostExprId SizeScope::length_of(HostExprId begin, HostExprId end) {
  return one_form(prover_.canonical(pool().sub(end, begin)));
}

}  // namespace cinch::sema
