// Reads scalar types and array types.
#include "dsl/sema/types/conversions.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

std::optional<DType> WrittenTypes::dtype_of(ast::TypeId id) {
  const ast::Type& type = tree()[id];
  const auto* scalar = std::get_if<ast::ScalarType>(&type.node);
  if (scalar == nullptr) {
    const bool has_words = std::holds_alternative<ast::EnumType>(type.node);
    reporter_.report<DiagKind::BadType>(
        type.span, "a scalar type",
        has_words ? "words, which parameters of compressors take" : "another type");
    return std::nullopt;
  }
  const std::string& name = scalar->name.text;
  if (scalar->width.has_value()) {
    const auto bits = all_.constants.constant_int(scalar->width);
    if (!bits) return std::nullopt;
    const auto made = name == "int" ? make_int(*bits) : make_uint(*bits);
    if (!made) reporter_.report<DiagKind::BadWidth>(tree()[scalar->width].span, name, *bits);
    return made;
  }
  const auto found = parse_dtype(name);
  if (!found) {
    static const std::vector<std::string_view> kNames = {"bool", "f16", "bf16",   "f32",    "f64",
                                                         "u8",   "u16", "f8e4m3", "f8e5m2", "u32",
                                                         "u64",  "i8",  "i16",    "i32",    "i64"};
    reporter_.report<DiagKind::UnknownType>(type.span, name)
        .suggest(type.span, std::string(dsl::nearest_name(name, kNames)));
  }
  return found;
}

std::optional<Type> WrittenTypes::type_of(ast::TypeId id) {
  const ast::Type& node = tree()[id];
  if (std::holds_alternative<ast::CompressorType>(node.node)) {
    reporter_.report<DiagKind::BadType>(node.span, "a scalar or an array", "`compressor`");
    return std::nullopt;
  }
  if (std::holds_alternative<ast::TupleType>(node.node)) {
    reporter_.report<DiagKind::BadType>(node.span, "a scalar or an array", "several types");
    return std::nullopt;
  }
  const auto* array = std::get_if<ast::ArrayType>(&node.node);
  if (array != nullptr && array->is_any()) {
    reporter_.report<DiagKind::BadType>(node.span, "sizes", "`..`")
        .note("`..` stands for any sizes in the signature of a fn");
    return std::nullopt;
  }
  if (array == nullptr) {
    const auto dtype = dtype_of(id);
    return dtype ? std::optional(scalar_type(*dtype)) : std::nullopt;
  }
  const auto element = dtype_of(array->element);
  Type type = scalar_type(element.value_or(kF32));
  bool is_good = element.has_value();
  const auto dims = tree().list(array->dims);
  if (dims.size() > 2) {
    reporter_.report<DiagKind::BadType>(node.span, "one or two sizes", std::to_string(dims.size()));
    return std::nullopt;
  }
  for (ast::ExprId dim : dims) {
    const auto size = all_.constants.host_size(dim, "a size of a type");
    if (size) type.dims[type.rank++] = *size;
    is_good &= size.has_value();
  }
  return is_good ? std::optional(type) : std::nullopt;
}

}  // namespace cinch::sema
