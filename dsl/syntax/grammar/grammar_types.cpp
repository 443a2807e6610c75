// Grammar of types: `f32`, `int<b>`, `[T; m]`, `[T; rows, cols]`, `[T; ..]`, `(T, T)`, `{word,
// word}`, `compressor`.
#include "dsl/syntax/grammar/grammar.h"

namespace cinch::dsl::grammar {

// NOLINTBEGIN(readability-identifier-naming,bugprone-chained-comparison): rules bear the names of
// the grammar, `>` is "then"

namespace {

struct ScalarDraft : ast::ScalarType {
  Span span;
};
struct ArrayDraft {
  Span span;
  ast::TypeId element;
  std::vector<ast::ExprId> dims;
};

constexpr auto add_scalar = [](auto& ctx) {
  const ScalarDraft& draft = x3::_attr(ctx);
  x3::_val(ctx) = builder(ctx).add_type(draft.span, static_cast<const ast::ScalarType&>(draft));
};
constexpr auto add_array = [](auto& ctx) {
  const ArrayDraft& draft = x3::_attr(ctx);
  const auto dims = builder(ctx).list(draft.dims);
  x3::_val(ctx) = builder(ctx).add_type(draft.span, ast::ArrayType{draft.element, dims});
};
struct TupleDraft {
  Span span;
  std::vector<ast::TypeId> elements;
};
struct EnumDraft : ast::EnumType {
  Span span;
};
constexpr auto add_tuple = [](auto& ctx) {
  const TupleDraft& draft = x3::_attr(ctx);
  const auto elements = builder(ctx).list(draft.elements);
  x3::_val(ctx) = builder(ctx).add_type(draft.span, ast::TupleType{elements});
};
constexpr auto add_enum = [](auto& ctx) {
  const EnumDraft& draft = x3::_attr(ctx);
  x3::_val(ctx) = builder(ctx).add_type(draft.span, static_cast<const ast::EnumType&>(draft));
};
constexpr auto push_word = [](auto& ctx) {
  x3::_val(ctx).names.push_back(TreeBuilder::name_of(x3::_attr(ctx)));
};
constexpr auto add_compressor = [](auto& ctx) {
  x3::_val(ctx) = builder(ctx).add_type(x3::_attr(ctx).span, ast::CompressorType{});
};

constexpr x3::rule<struct ScalarClass, ScalarDraft> scalar{"a type"};
constexpr x3::rule<struct ArrayClass, ArrayDraft> array{"a type"};
constexpr x3::rule<struct TupleClass, TupleDraft> tuple{"a type"};
constexpr x3::rule<struct EnumClass, EnumDraft> enumeration{"a type"};

const auto scalar_def = node[tok::Name[set_name<&ScalarDraft::name>] >>
                             -(tok::AngleOpen > width[set<&ScalarDraft::width>] > tok::AngleClose)];
const auto array_def =
    node[tok::LBracket > type[set<&ArrayDraft::element>] > tok::Semicolon >
         named("a size or `..`")[tok::DotDot | expr_list[set<&ArrayDraft::dims>]] >
         named("`,` or `]`")[tok::RBracket]];
const auto tuple_def = node[tok::LParen > type[push_to<&TupleDraft::elements>] >
                            named("`,`")[+(tok::Comma > type[push_to<&TupleDraft::elements>])] >
                            named("`,` or `)`")[tok::RParen]];
const auto enumeration_def = node[tok::LBrace > comma_list(tok::Name[push_word], tok::RBrace) >
                                  named("`,` or `}`")[tok::RBrace]];
const auto type_def = nested[scalar[add_scalar] | array[add_array] | tuple[add_tuple] |
                             enumeration[add_enum] | tok::KwCompressor[add_compressor]];

BOOST_SPIRIT_DEFINE(scalar, array, tuple, enumeration)

}  // namespace

BOOST_SPIRIT_DEFINE(type)
BOOST_SPIRIT_INSTANTIATE(TypeRule, Iterator, Context)

// NOLINTEND(readability-identifier-naming,bugprone-chained-comparison)

}  // namespace cinch::dsl::grammar
