// Grammar of operands: literals, names, parentheses, arrays, lambdas, `bitcast`, `if`, blocks and
// wire literals.
#include "dsl/syntax/grammar/grammar.h"

namespace cinch::dsl::grammar {

// NOLINTBEGIN(readability-identifier-naming,bugprone-chained-comparison): rules bear the names of
// the grammar, `>` is "then"

namespace {

template <class Node>
struct Draft : Node {
  Span span;
};
struct ArrayDraft {
  Span span;
  std::vector<ast::ExprId> elements;
};
struct WireDraft {
  Span span;
  std::vector<ast::FieldInitId> fields;
};

constexpr auto add_literal = [](auto& ctx) {
  x3::_val(ctx) = builder(ctx).add_literal(x3::_attr(ctx));
};
constexpr auto add_name = [](auto& ctx) { x3::_val(ctx) = builder(ctx).add_name(x3::_attr(ctx)); };
// Makes an expression of the node that the draft extends.
template <class Node>
constexpr auto add_node = [](auto& ctx) {
  const Draft<Node>& draft = x3::_attr(ctx);
  x3::_val(ctx) = builder(ctx).add_expr(draft.span, static_cast<const Node&>(draft));
};
constexpr auto add_array = [](auto& ctx) {
  const ArrayDraft& draft = x3::_attr(ctx);
  const auto elements = builder(ctx).list(draft.elements);
  x3::_val(ctx) = builder(ctx).add_expr(draft.span, ast::ArrayLiteral{elements});
};
struct TupleDraft {
  Span span;
  std::vector<ast::ExprId> elements;
};
// Parentheses around one expression make no tuple.
constexpr auto add_tuple = [](auto& ctx) {
  const TupleDraft& draft = x3::_attr(ctx);
  if (draft.elements.size() == 1) {
    x3::_val(ctx) = builder(ctx).add_expr(draft.span, ast::Paren{draft.elements.front()});
    return;
  }
  const auto elements = builder(ctx).list(draft.elements);
  x3::_val(ctx) = builder(ctx).add_expr(draft.span, ast::Tuple{elements});
};
constexpr auto add_wire = [](auto& ctx) {
  const WireDraft& draft = x3::_attr(ctx);
  const auto fields = builder(ctx).list(draft.fields);
  x3::_val(ctx) = builder(ctx).add_expr(draft.span, ast::WireLiteral{fields});
};
constexpr auto push_param = [](auto& ctx) {
  x3::_val(ctx).params.push_back(TreeBuilder::name_of(x3::_attr(ctx)));
};
// `name` alone means `name: name`.
constexpr auto start_field = [](auto& ctx) {
  x3::_val(ctx).name = TreeBuilder::name_of(x3::_attr(ctx));
  x3::_val(ctx).value = builder(ctx).add_name(x3::_attr(ctx));
  x3::_val(ctx).is_shorthand = true;
};
constexpr auto set_field_value = [](auto& ctx) {
  x3::_val(ctx).value = x3::_attr(ctx);
  x3::_val(ctx).is_shorthand = false;
};
constexpr auto push_field = [](auto& ctx) {
  x3::_val(ctx).fields.push_back(builder(ctx).add(std::move(x3::_attr(ctx))));
};

constexpr x3::rule<struct ParenClass, TupleDraft> paren{"an expression"};
constexpr x3::rule<struct ParenExprClass, ast::ExprId> paren_expr{"an expression"};
constexpr x3::rule<struct ArrayClass, ArrayDraft> array{"an expression"};
constexpr x3::rule<struct LambdaClass, Draft<ast::Lambda>> lambda{"an expression"};
constexpr x3::rule<struct BitcastClass, Draft<ast::Bitcast>> bitcast{"an expression"};
constexpr x3::rule<struct BlockExprClass, Draft<ast::BlockExpr>> block_expr{"a block `{ … }`"};
constexpr x3::rule<struct IfClass, Draft<ast::If>> if_draft{"`if`"};
constexpr x3::rule<struct IfExprClass, ast::ExprId> if_expr{"`if`"};
constexpr x3::rule<struct ElseClass, ast::ExprId> else_part{"a block `{ … }` or `if`"};
constexpr x3::rule<struct FieldInitClass, ast::FieldInit> field_init{"the name of a field"};
constexpr x3::rule<struct WireLiteralClass, WireDraft> wire_literal{"a wire literal"};

const auto paren_def = node[tok::LParen > expr[push_to<&TupleDraft::elements>] >>
                            *(tok::Comma > expr[push_to<&TupleDraft::elements>]) > tok::RParen];
const auto paren_expr_def = paren[add_tuple];
const auto array_def =
    node[tok::LBracket > comma_list(expr[push_to<&ArrayDraft::elements>], tok::RBracket) >
         named("`,` or `]`")[tok::RBracket]];
const auto lambda_def =
    node[tok::Pipe > tok::Name[push_param] >> *(tok::Comma > tok::Name[push_param]) >
         named("`,` or `|`")[tok::Pipe] > expr[set<&Draft<ast::Lambda>::body>]];
const auto bitcast_def =
    node[(word("bitcast") >> tok::AngleOpen) > type[set<&Draft<ast::Bitcast>::type>] >
         tok::AngleClose > tok::LParen > expr[set<&Draft<ast::Bitcast>::operand>] > tok::RParen];
const auto block_expr_def = node[&tok::LBrace >> block[set<&Draft<ast::BlockExpr>::block>]];
const auto if_draft_def =
    node[tok::KwIf > expr[set<&Draft<ast::If>::condition>] > block[set<&Draft<ast::If>::then>] >>
         -(tok::KwElse > else_part[set<&Draft<ast::If>::otherwise>])];
const auto if_expr_def = nested[if_draft[add_node<ast::If>]];
const auto else_part_def = if_expr[pass] | block_expr[add_node<ast::BlockExpr>];
const auto field_init_def = node[tok::Name[start_field] >> -(tok::Colon > expr[set_field_value])];
const auto wire_literal_def =
    node[(tok::KwWire > tok::LBrace) >> optional_comma_list(field_init[push_field], tok::RBrace) >
         named("`,` or `}`")[tok::RBrace]];

const auto literal =
    one_of(TokenKind::Integer, TokenKind::Float, TokenKind::KwTrue, TokenKind::KwFalse,
           TokenKind::KwInf, TokenKind::KwNan, TokenKind::KwPi);
const auto operand_def = literal[add_literal] | bitcast[add_node<ast::Bitcast>] |
                         tok::Name[add_name] | paren_expr[pass] | array[add_array] |
                         lambda[add_node<ast::Lambda>] | if_expr[pass] |
                         block_expr[add_node<ast::BlockExpr>] | wire_literal[add_wire];
const auto width_def = tok::Integer[add_literal] | tok::Name[add_name] | paren_expr[pass];

BOOST_SPIRIT_DEFINE(paren, paren_expr, array, lambda, bitcast, block_expr, if_draft, if_expr,
                    else_part, field_init, wire_literal)

}  // namespace

BOOST_SPIRIT_DEFINE(operand, width)
BOOST_SPIRIT_INSTANTIATE(OperandRule, Iterator, Context)
BOOST_SPIRIT_INSTANTIATE(WidthRule, Iterator, Context)

// NOLINTEND(readability-identifier-naming,bugprone-chained-comparison)

}  // namespace cinch::dsl::grammar
