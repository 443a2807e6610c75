#include <fmt/format.h>

#include "compiler/lower/parts/access.h"
#include "compiler/lower/prelude.h"

namespace cinch::lower {

using sema::CheckedField;
using sema::FieldCode;

namespace {

constexpr std::int64_t kMostBelow = 0xffffffff;

}  // namespace

ValueId PackingLowering::pack_field(std::size_t field, ValueId values) {
  const CheckedField& packed = cx().checked.fields[field];
  const rt::WireInfo& wire = cx().out.info.wire;
  const HostExprId most = wire.counts[packed.words].bound;
  const std::string& name = wire.fields[field].name;
  const PreludeContext context{name, "", cx().counts};
  if (packed.code == FieldCode::Ascending) {
    return call_prelude(emit(), "pack_rice", kU32, {values, packed.below, most}, &context)[0];
  }
  if (packed.code == FieldCode::EliasAscending) {
    return call_prelude(emit(), "pack_ascending_elias", kU32, {values, most}, &context)[0];
  }
  HostExprPool& pool = emit().exprs();
  const HostExprId below = pool.make(HostOp::Min, packed.below, pool.const_int(kMostBelow));
  const ValueId wide = emit().convert(values, kU64);
  const ValueId fits = emit().map(ScalarOp::lt, wide, emit().host_size(below, kU64));
  Checks(cx()).all(fits, fmt::format("field {}: a number is not below its limit", name));
  return call_prelude(emit(), "pack_elias", kU32, {emit().keep(values), most}, &context)[0];
}

ValueId PackingLowering::unpack_field(std::size_t field, ValueId words) {
  const CheckedField& packed = cx().checked.fields[field];
  const std::string& name = cx().out.info.wire.fields[field].name;
  const bool ascends = packed.code != FieldCode::Elias;
  const PreludeContext context{
      name,
      fmt::format("payload: field {}: its words are not {} below their limit", name,
                  ascends ? "indices that ascend" : "numbers"),
      cx().counts};
  const char* function = packed.code == FieldCode::Ascending ? "unpack_rice"
                         : ascends                           ? "unpack_ascending_elias"
                                                             : "unpack_elias";
  const ValueId values =
      call_prelude(emit(), function, kU32,
                   {words, packed.type.dims[0], packed.below, packed.most_unary}, &context)[0];
  emit().name(values, name);
  return values;
}

}  // namespace cinch::lower
