// Grammar of binary operators, ranges and intervals. A rule collects operands and operators in a
// chain, and TreeBuilder folds the chain by precedence. This needs one level of recursion per
// bracket instead of one per precedence.
#include "dsl/syntax/grammar/grammar.h"

namespace cinch::dsl::grammar {

// NOLINTBEGIN(readability-identifier-naming,bugprone-chained-comparison): rules bear the names of
// the grammar, `>` is "then"

namespace {

constexpr auto add_chain = [](auto& ctx) {
  x3::_val(ctx) = builder(ctx).add_chain(x3::_attr(ctx));
};

// `a..b` and bracketed intervals both fill an Interval. Only the last token tells whether its end
// is excluded.
constexpr auto open_interval = [](auto& ctx) {
  x3::_val(ctx).is_bracketed = true;
  x3::_val(ctx).includes_lo = x3::_attr(ctx).text == "[";
};
constexpr auto close_interval = [](auto& ctx) {
  x3::_val(ctx).includes_hi = x3::_attr(ctx).text == "]";
};

constexpr x3::rule<struct ChainClass, OperatorChain> chain{"an expression"};
constexpr x3::rule<struct AdditiveChainClass, OperatorChain> additive_chain{"an expression"};

constexpr auto push_operand = push_to<&OperatorChain::operands>;
constexpr auto push_operator = push_to<&OperatorChain::operators>;

using Kind = TokenKind;
const auto additive_op =
    one_of(Kind::Star, Kind::Slash, Kind::Percent, Kind::At, Kind::Plus, Kind::Minus);
const auto any_op =
    one_of(Kind::Star, Kind::Slash, Kind::Percent, Kind::At, Kind::Plus, Kind::Minus, Kind::Shl,
           Kind::Shr, Kind::Amp, Kind::Caret, Kind::Pipe, Kind::Equal, Kind::NotEqual, Kind::Less,
           Kind::LessEqual, Kind::Greater, Kind::GreaterEqual, Kind::AndAnd, Kind::OrOr);

const auto chain_def = cast[push_operand] >> *(any_op[push_operator] > cast[push_operand]);
const auto additive_chain_def = cast[push_operand] >>
                                *(additive_op[push_operator] > cast[push_operand]);

const auto expr_def = chain[add_chain];
const auto additive_def = additive_chain[add_chain];
const auto expr_list_def = expr[push] >> *(tok::Comma > expr[push]);

const auto bracketed = tok::IntervalOpen[open_interval] > expr[set<&ast::Interval::lo>] >
                       tok::Comma > expr[set<&ast::Interval::hi>] >
                       tok::IntervalClose[close_interval];
const auto range_op = tok::DotDotEqual[set_true<&ast::Interval::includes_hi>] | tok::DotDot;
const auto dotted = expr[set<&ast::Interval::lo>] >
                    named("`..` or `..=`")[range_op] > expr[set<&ast::Interval::hi>];
const auto interval_def = node[bracketed | dotted];

BOOST_SPIRIT_DEFINE(chain, additive_chain)

}  // namespace

BOOST_SPIRIT_DEFINE(expr, additive, expr_list, interval)
BOOST_SPIRIT_INSTANTIATE(ExprRule, Iterator, Context)
BOOST_SPIRIT_INSTANTIATE(AdditiveRule, Iterator, Context)
BOOST_SPIRIT_INSTANTIATE(ExprListRule, Iterator, Context)
BOOST_SPIRIT_INSTANTIATE(IntervalRule, Iterator, Context)

// NOLINTEND(readability-identifier-naming,bugprone-chained-comparison)

}  // namespace cinch::dsl::grammar
