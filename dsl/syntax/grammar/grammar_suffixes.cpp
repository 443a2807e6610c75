// Grammar of prefixes `- !`, suffixes `(…)` `[…]` `.name`, and `as T`.
#include "dsl/syntax/grammar/grammar.h"

namespace cinch::dsl::grammar {

// NOLINTBEGIN(readability-identifier-naming,bugprone-chained-comparison): rules bear the names of
// the grammar, `>` is "then"

namespace {

struct CallSuffix {
  Span span;
  std::vector<ast::ArgId> args;
};
struct IndexSuffix {
  Span span;
  std::vector<ast::ExprId> indices;
};
struct PrefixDraft {
  Span span;
  ast::UnaryOp op = ast::UnaryOp::Negate;
  ast::ExprId operand;
};
struct RangeDraft : ast::Range {
  Span span;
  bool is_range = false;
};

// The expression so far becomes the base of the suffix.
constexpr auto add_call = [](auto& ctx) {
  TreeBuilder& b = builder(ctx);
  const CallSuffix& suffix = x3::_attr(ctx);
  const Span span = join(b.span_of(x3::_val(ctx)), suffix.span);
  x3::_val(ctx) = b.add_expr(span, ast::Call{x3::_val(ctx), b.list(suffix.args)});
};
constexpr auto add_index = [](auto& ctx) {
  TreeBuilder& b = builder(ctx);
  const IndexSuffix& suffix = x3::_attr(ctx);
  const Span span = join(b.span_of(x3::_val(ctx)), suffix.span);
  x3::_val(ctx) = b.add_expr(span, ast::Index{x3::_val(ctx), b.list(suffix.indices)});
};
constexpr auto add_field = [](auto& ctx) {
  TreeBuilder& b = builder(ctx);
  const Token& field = x3::_attr(ctx);
  const Span span = join(b.span_of(x3::_val(ctx)), field.span);
  x3::_val(ctx) = b.add_expr(span, ast::FieldRef{x3::_val(ctx), TreeBuilder::name_of(field)});
};
constexpr auto add_cast = [](auto& ctx) {
  TreeBuilder& b = builder(ctx);
  const Span span = join(b.span_of(x3::_val(ctx)), b.span_of(x3::_attr(ctx)));
  x3::_val(ctx) = b.add_expr(span, ast::Cast{x3::_val(ctx), x3::_attr(ctx)});
};
constexpr auto add_prefix = [](auto& ctx) {
  const PrefixDraft& draft = x3::_attr(ctx);
  x3::_val(ctx) = builder(ctx).add_expr(draft.span, ast::Unary{draft.op, draft.operand});
};
constexpr auto push_arg = [](auto& ctx) {
  x3::_val(ctx).args.push_back(builder(ctx).add(std::move(x3::_attr(ctx))));
};
constexpr auto make_not = [](auto& ctx) { x3::_val(ctx).op = ast::UnaryOp::Not; };
constexpr auto set_range = [](auto& ctx) { x3::_val(ctx).is_range = true; };
constexpr auto add_range = [](auto& ctx) {
  const RangeDraft& draft = x3::_attr(ctx);
  // Without `..`, the index is the expression itself.
  x3::_val(ctx) = draft.is_range
                      ? builder(ctx).add_expr(draft.span, static_cast<const ast::Range&>(draft))
                      : draft.lo;
};

constexpr x3::rule<struct ArgClass, ast::Arg> arg{"an expression"};
constexpr x3::rule<struct CallClass, CallSuffix> call_suffix{"`(`"};
constexpr x3::rule<struct RangeClass, RangeDraft> range{"an expression"};
constexpr x3::rule<struct IndexExprClass, ast::ExprId> index_expr{"an expression"};
constexpr x3::rule<struct IndexClass, IndexSuffix> index_suffix{"`[`"};
constexpr x3::rule<struct SuffixedClass, ast::ExprId> suffixed{"an expression"};
constexpr x3::rule<struct PrefixClass, PrefixDraft> prefix{"an expression"};
constexpr x3::rule<struct PrefixedClass, ast::ExprId> prefixed{"an expression"};

const auto labelled = &(tok::Name >> tok::Colon) >> tok::Name[set_name<&ast::Arg::label>] >>
                      (tok::Colon > expr[set<&ast::Arg::value>]);
const auto arg_def = node[labelled | expr[set<&ast::Arg::value>]];
const auto call_suffix_def = node[tok::LParen >> optional_comma_list(arg[push_arg], tok::RParen) >
                                  named("`,` or `)`")[tok::RParen]];

const auto range_op =
    (tok::DotDotEqual[set_true<&ast::Range::is_inclusive>] | tok::DotDot) >> x3::eps[set_range];
const auto upper_end = expr[set<&ast::Range::hi>];
// `a..` runs to the end of the array, and `..` is all of it.
const auto open_end = tok::DotDot[set_range] >> &one_of(TokenKind::Comma, TokenKind::RBracket);
const auto range_def = node[open_end | (range_op > upper_end) |
                            (expr[set<&ast::Range::lo>] >> -(open_end | (range_op > upper_end)))];
const auto index_expr_def = range[add_range];
const auto index_suffix_def =
    node[tok::LBracket > comma_list(index_expr[push_to<&IndexSuffix::indices>], tok::RBracket) >
         named("`,` or `]`")[tok::RBracket]];

// Fields have a name space of their own, so reserved words are allowed (`inner.wire`).
const auto field_name = named("a field name")[one_of(
#define CINCH_KEYWORD(kind, text) TokenKind::kind,
#define CINCH_PUNCT(kind, text)
#include "dsl/syntax/token.def"
#undef CINCH_KEYWORD
#undef CINCH_PUNCT
    TokenKind::Name)];
const auto field_suffix = tok::Dot > field_name[add_field];
const auto suffixed_def = operand[pass] >>
                          *(call_suffix[add_call] | index_suffix[add_index] | field_suffix);

const auto prefix_def =
    node[(tok::Minus | tok::Bang[make_not]) > prefixed[set<&PrefixDraft::operand>]];
const auto prefixed_def = nested[prefix[add_prefix] | suffixed[pass]];
const auto cast_def = prefixed[pass] >> *(tok::KwAs > type[add_cast]);

BOOST_SPIRIT_DEFINE(arg, call_suffix, range, index_expr, index_suffix, suffixed, prefix, prefixed)

}  // namespace

BOOST_SPIRIT_DEFINE(cast)
BOOST_SPIRIT_INSTANTIATE(CastRule, Iterator, Context)

// NOLINTEND(readability-identifier-naming,bugprone-chained-comparison)

}  // namespace cinch::dsl::grammar
