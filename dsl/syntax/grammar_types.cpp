// Grammar of types: `f32`, `int<b>`, `[T; m]`, `[T; rows, cols]`, `compressor`.
#include "dsl/syntax/grammar.h"

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
constexpr auto add_compressor = [](auto& ctx) {
  x3::_val(ctx) = builder(ctx).add_type(x3::_attr(ctx).span, ast::CompressorType{});
};

constexpr x3::rule<struct ScalarClass, ScalarDraft> scalar{"a type"};
constexpr x3::rule<struct ArrayClass, ArrayDraft> array{"a type"};

const auto scalar_def = node[tok::Name[set_name<&ScalarDraft::name>] >>
                             -(tok::AngleOpen > width[set<&ScalarDraft::width>] > tok::AngleClose)];
const auto array_def = node[tok::LBracket > type[set<&ArrayDraft::element>] > tok::Semicolon >
                            expr_list[set<&ArrayDraft::dims>] > named("`,` or `]`")[tok::RBracket]];
const auto type_def =
    nested[scalar[add_scalar] | array[add_array] | tok::KwCompressor[add_compressor]];

BOOST_SPIRIT_DEFINE(scalar, array)

}  // namespace

BOOST_SPIRIT_DEFINE(type)
BOOST_SPIRIT_INSTANTIATE(TypeRule, Iterator, Context)

// NOLINTEND(readability-identifier-naming,bugprone-chained-comparison)

}  // namespace cinch::dsl::grammar
