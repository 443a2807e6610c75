// Grammar of blocks and statements. Each statement recovers from its own mistakes: they are
// reported, and the next statement is parsed normally.
#include "dsl/syntax/grammar/grammar.h"

namespace cinch::dsl::grammar {

// NOLINTBEGIN(readability-identifier-naming,bugprone-chained-comparison): rules bear the names of
// the grammar, `>` is "then"

namespace {

struct WhileDraft : ast::While {
  Token keyword;
};

constexpr auto set_stmt_node = [](auto& ctx) { x3::_val(ctx).node = std::move(x3::_attr(ctx)); };
constexpr auto set_while_node = [](auto& ctx) {
  x3::_val(ctx).node = static_cast<const ast::While&>(x3::_attr(ctx));
};
constexpr auto set_bounds = [](auto& ctx) {
  x3::_val(ctx).bounds = builder(ctx).add_interval(x3::_attr(ctx));
};
constexpr auto report_missing_limit = [](auto& ctx) {
  builder(ctx).report_missing_limit(x3::_val(ctx).keyword);
};
constexpr auto set_message = [](auto& ctx) {
  x3::_val(ctx).message = TreeBuilder::string_value(x3::_attr(ctx));
  x3::_val(ctx).message_span = x3::_attr(ctx).span;
};
constexpr auto add_stmt = [](auto& ctx) {
  x3::_val(ctx) = {builder(ctx).add_stmt(std::move(x3::_attr(ctx))), {}};
};
constexpr auto add_assign = [](auto& ctx) {
  x3::_val(ctx) = builder(ctx).add_assign(x3::_attr(ctx));
};
constexpr auto add_block = [](auto& ctx) {
  x3::_val(ctx) = builder(ctx).add_block(x3::_attr(ctx));
};

constexpr auto push_name = [](auto& ctx) {
  x3::_val(ctx).names.push_back(TreeBuilder::name_of(x3::_attr(ctx)));
};

constexpr x3::rule<struct LetClass, ast::Let> let{"`let`"};
constexpr x3::rule<struct LetTupleClass, ast::LetTuple> let_tuple{"`let`"};
constexpr x3::rule<struct ForClass, ast::For> for_loop{"`for`"};
constexpr x3::rule<struct WhileClass, WhileDraft> while_loop{"`while`"};
constexpr x3::rule<struct AssertClass, ast::Assert> assertion{"`assert`"};
constexpr x3::rule<struct StmtClass, ast::Stmt> stmt{"a statement"};
constexpr x3::rule<struct AssignClass, AssignDraft> assign{"a statement"};
constexpr x3::rule<struct ElementClass, BlockElement> element{"a statement"};
struct ElementLineClass : LineRecovering {};
constexpr x3::rule<ElementLineClass, BlockElement> element_line{"a statement"};
constexpr x3::rule<struct BlockDraftClass, BlockDraft> block_draft{"a block `{ … }`"};

const auto let_def = tok::KwLet > -tok::KwMut[set_true<&ast::Let::is_mutable>] >
                     tok::Name[set_name<&ast::Let::name>] > tok::Assign >
                     expr[set<&ast::Let::value>];
const auto let_tuple_def = (&(tok::KwLet >> tok::LParen) >> tok::KwLet) > tok::LParen >
                           tok::Name[push_name] >
                           named("`,`")[+(tok::Comma > tok::Name[push_name])] >
                           named("`,` or `)`")[tok::RParen] > tok::Assign
                           > expr[set<&ast::LetTuple::value>];
const auto for_loop_def = tok::KwFor > tok::Name[set_name<&ast::For::variable>] >
                          word("in") > interval[set_bounds] > block[set<&ast::For::body>];
const auto limit = (tok::Comma > word("at_most") > tok::Colon > expr[set<&ast::While::limit>]) |
                   (&tok::LBrace >> x3::eps[report_missing_limit]);
const auto while_loop_def = tok::KwWhile[set<&WhileDraft::keyword>] >
                            expr[set<&ast::While::condition>] >
                            named("`, at_most: N`")[limit] > block[set<&ast::While::body>];
const auto assertion_def = tok::KwAssert > expr[set<&ast::Assert::condition>] > tok::Comma >
                           named("a message in quotes")[tok::String[set_message]];
const auto stmt_def = node[let_tuple[set_stmt_node] | let[set_stmt_node] | for_loop[set_stmt_node] |
                           while_loop[set_while_node] | assertion[set_stmt_node]];
const auto assign_op =
    one_of(TokenKind::Assign, TokenKind::PlusAssign, TokenKind::MinusAssign, TokenKind::StarAssign,
           TokenKind::SlashAssign, TokenKind::PercentAssign, TokenKind::AmpAssign,
           TokenKind::CaretAssign, TokenKind::PipeAssign);
const auto assign_def = node[expr[set<&AssignDraft::lhs>] >>
                             -(assign_op[set<&AssignDraft::op>] > expr[set<&AssignDraft::rhs>])];
const auto element_def = stmt[add_stmt] | assign[add_assign];

const auto end_of_element = named("the end of the statement")[tok::End | &tok::RBrace];
const auto element_line_def = !tok::RBrace >> !tok::EndOfFile >>
                              (x3::eps > element[pass] > end_of_element);
const auto block_draft_def =
    node[tok::LBrace >> *tok::End >> *(element_line[push_to<&BlockDraft::elements>] >> *tok::End) >
         tok::RBrace];
const auto block_def = nested[block_draft[add_block]];

BOOST_SPIRIT_DEFINE(let, let_tuple, for_loop, while_loop, assertion, stmt, assign, element,
                    element_line, block_draft)

}  // namespace

BOOST_SPIRIT_DEFINE(block)
BOOST_SPIRIT_INSTANTIATE(BlockRule, Iterator, Context)

// NOLINTEND(readability-identifier-naming,bugprone-chained-comparison)

}  // namespace cinch::dsl::grammar
