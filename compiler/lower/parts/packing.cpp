#include <fmt/format.h>

#include "compiler/lower/parts/body_lowering.h"
#include "compiler/lower/prelude.h"

namespace cinch::lower {

using sema::CheckedField;
using sema::FieldCode;

namespace {

constexpr std::int64_t kMostBelow = 0xffffffff;

}  // namespace

ValueId BodyLowering::pack_field(std::size_t field, std::span<const ValueId> fields) {
  const ValueId values = fields[field];
  const CheckedField& packed = checked_.fields[field];
  const rt::WireInfo& wire = out_.info.wire;
  const HostExprId most = wire.counts[packed.words].bound;
  const std::string& name = wire.fields[field].name;
  if (packed.code == FieldCode::Huffman) {
    const std::string& table = wire.fields[packed.table].name;
    const std::string message =
        fmt::format("field {}: a number has no code, or {} holds no lengths of codes", name, table);
    const ValueId lengths = emit_.convert(fields[packed.table], kU32);
    const PreludeContext checked{name, message, counts_};
    return call_prelude(emit_, "pack_huffman", kU32, {emit_.keep(values), lengths, most},
                        &checked)[0];
  }
  const PreludeContext context{name, "", counts_};
  if (packed.code == FieldCode::Ascending) {
    return call_prelude(emit_, "pack_rice", kU32, {values, packed.below, most}, &context)[0];
  }
  if (packed.code == FieldCode::EliasAscending) {
    return call_prelude(emit_, "pack_ascending_elias", kU32, {values, most}, &context)[0];
  }
  HostExprPool& pool = emit_.exprs();
  const HostExprId below = pool.make(HostOp::Min, packed.below, pool.const_int(kMostBelow));
  const ValueId wide = emit_.convert(values, kU64);
  const ValueId fits = emit_.map(ScalarOp::lt, wide, emit_.host_size(below, kU64));
  check_all(fits, fmt::format("field {}: a number is not below its limit", name));
  return call_prelude(emit_, "pack_elias", kU32, {emit_.keep(values), most}, &context)[0];
}

ValueId BodyLowering::unpack_field(std::size_t field, std::span<const ValueId> fields) {
  const ValueId words = fields[field];
  const CheckedField& packed = checked_.fields[field];
  const std::string& name = out_.info.wire.fields[field].name;
  const bool ascends = sema::ascends(packed.code);
  const bool has_table = packed.code == FieldCode::Huffman;
  const char* const wanted = has_table ? "codes of its table"
                             : ascends ? "indices that ascend below their limit"
                                       : "numbers below their limit";
  const PreludeContext context{
      name, fmt::format("payload: field {}: its words are not {}", name, wanted), counts_};
  if (has_table) {
    const ValueId lengths = emit_.convert(fields[packed.table], kU32);
    const ValueId values = call_prelude(emit_, "unpack_huffman", kU32,
                                        {words, lengths, packed.type.dims[0]}, &context)[0];
    emit_.name(values, name);
    return values;
  }
  const char* function = packed.code == FieldCode::Ascending ? "unpack_rice"
                         : ascends                           ? "unpack_ascending_elias"
                                                             : "unpack_elias";
  const ValueId values =
      call_prelude(emit_, function, kU32,
                   {words, packed.type.dims[0], packed.below, packed.most_unary}, &context)[0];
  emit_.name(values, name);
  return values;
}

}  // namespace cinch::lower
