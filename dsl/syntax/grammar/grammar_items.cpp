// Grammar of a compressor's items and of wires.
#include "dsl/syntax/grammar/grammar.h"

namespace cinch::dsl::grammar {
// NOLINTBEGIN(readability-identifier-naming,bugprone-chained-comparison): rules bear the names of
// the grammar, `>` is "then"

namespace {

template <ast::MethodKind kKind>
constexpr auto set_kind = [](auto& ctx) {
  x3::_val(ctx).kind = kKind;
  x3::_val(ctx).keyword_span = x3::_attr(ctx).span;
};
constexpr auto push_path = [](auto& ctx) {
  x3::_val(ctx).path.push_back(TreeBuilder::name_of(x3::_attr(ctx)));
};
constexpr auto set_input_range = [](auto& ctx) {
  x3::_val(ctx).range = builder(ctx).add_interval(x3::_attr(ctx));
};
constexpr auto set_item_node = [](auto& ctx) { x3::_val(ctx).node = std::move(x3::_attr(ctx)); };
// An item that only recovered from a mistake does not join the list.
constexpr auto push_item = [](auto& ctx) {
  if (x3::_attr(ctx)) x3::_val(ctx).push_back(x3::_attr(ctx));
};

constexpr x3::rule<struct SizeClass, ast::SizeItem> size{"`size`"};
constexpr x3::rule<struct SetClass, ast::SetItem> set_value{"`set`"};
constexpr x3::rule<struct StateClass, ast::StateItem> state{"`state`"};
constexpr x3::rule<struct InputClass, ast::InputItem> input{"`input`"};
constexpr x3::rule<struct MethodClass, ast::Method> method{"a method"};
constexpr x3::rule<struct ClaimsClass, ast::Claims> claims{"`claims`"};
constexpr x3::rule<struct AgainClass, ast::Again> again{"`again`"};
constexpr x3::rule<struct ItemClass, ast::Item> item{kItemRule};
struct ItemLineClass : LineRecovering {};
constexpr x3::rule<ItemLineClass, ast::ItemId> item_line{kItemRule};

const auto const_decl_def = tok::KwConst > tok::Name[set_name<&ast::Const::name>] > tok::Assign >
                            expr[set<&ast::Const::value>];
const auto size_def = word("size") > tok::Name[set_name<&ast::SizeItem::name>] > tok::Assign >
                      expr[set<&ast::SizeItem::value>];
const auto set_value_def = word("set") > tok::Name[push_path] > tok::Dot > tok::Name[push_path] >
                           *(tok::Dot > tok::Name[push_path]) > tok::Assign
                           > expr[set<&ast::SetItem::value>];
const auto state_def = word("state") > tok::Name[set_name<&ast::StateItem::name>] > tok::Colon >
                       type[set<&ast::StateItem::type>] > tok::Assign >
                       expr[set<&ast::StateItem::initial>];
const auto input_def = (word("input") > tok::Name[set_name<&ast::InputItem::name>] > tok::Colon >
                        type[set<&ast::InputItem::type>]) >>
                       -(word("in") > interval[set_input_range]);
const auto method_word = word("encode")[set_kind<ast::MethodKind::Encode>] |
                         word("decode")[set_kind<ast::MethodKind::Decode>] |
                         word("finish")[set_kind<ast::MethodKind::Finish>] |
                         word("sync")[set_kind<ast::MethodKind::Sync>];
const auto method_def =
    method_word > method_params[set_list<&ast::Method::params>] > block[set<&ast::Method::body>];
const auto claims_def = word("claims") > expr_list[set_list<&ast::Claims::claims>];
// Before a name, `shared` is a word. Otherwise it is the name of a compressor.
const auto shared_word = word("shared") >> &tok::Name;
const auto again_def = word("again") > -x3::omit[shared_word][set_true<&ast::Again::is_shared>] >
                       expr[set<&ast::Again::carrier>];
const auto item_def =
    node[const_decl[set_item_node] | size[set_item_node] | set_value[set_item_node] |
         state[set_item_node] | input[set_item_node] | wire_item[set_item_node] |
         method[set_item_node] | claims[set_item_node] | again[set_item_node]];

const auto end_of_item = named("the end of the item")[tok::End | &tok::RBrace];
const auto item_line_def = !tok::RBrace >> !tok::EndOfFile >> (x3::eps > item[add] > end_of_item);
const auto items_def = tok::LBrace >> *tok::End >>
                       *(item_line[push_item] >> *tok::End) > tok::RBrace;

BOOST_SPIRIT_DEFINE(size, set_value, state, input, method, claims, again, item, item_line)

}  // namespace

BOOST_SPIRIT_DEFINE(const_decl, items)
BOOST_SPIRIT_INSTANTIATE(ConstRule, Iterator, Context)
BOOST_SPIRIT_INSTANTIATE(ItemsRule, Iterator, Context)

// NOLINTEND(readability-identifier-naming,bugprone-chained-comparison)

// Grammar of `wire { count m <= e, field: T by sum, part: inner.wire, … }` and `wire inner.wire`.

// NOLINTBEGIN(readability-identifier-naming,bugprone-chained-comparison): rules bear the names of
// the grammar, `>` is "then"

namespace {

constexpr auto set_entry_node = [](auto& ctx) { x3::_val(ctx).node = std::move(x3::_attr(ctx)); };
template <ast::Aggregation kHow>
constexpr auto aggregate = [](auto& ctx) { x3::_val(ctx).aggregation = kHow; };
constexpr auto pack_by_elias = [](auto& ctx) { x3::_val(ctx).is_elias = true; };
constexpr auto pack_ascending = [](auto& ctx) { x3::_val(ctx).is_ascending = true; };
constexpr auto has_type = [](auto& ctx) { x3::_pass(ctx) = x3::_val(ctx).inner.text.empty(); };
// An entry that only recovered has no span and no place in the list.
constexpr auto push_entry = [](auto& ctx) {
  if (x3::_attr(ctx).span.is_empty()) return;
  x3::_val(ctx).push_back(builder(ctx).add(std::move(x3::_attr(ctx))));
};

constexpr x3::rule<struct WireCountClass, ast::WireCount> count{"`count`"};
constexpr x3::rule<struct WireFieldClass, ast::WireField> field{"a field"};
struct WireEntryClass : EntryRecovering {};
constexpr x3::rule<WireEntryClass, ast::WireEntry> entry{"a field or `count`"};
constexpr x3::rule<struct WireEntriesClass, std::vector<ast::WireEntryId>> entries{"`{`"};

const auto count_def = (&(word("count") >> tok::Name) >> word("count")) >
                       tok::Name[set_name<&ast::WireCount::name>] > tok::LessEqual >
                       additive[set<&ast::WireCount::bound>];
const auto aggregation = word("sum")[aggregate<ast::Aggregation::Sum>] |
                         word("min")[aggregate<ast::Aggregation::Min>] |
                         word("max")[aggregate<ast::Aggregation::Max>];
const auto limit = named("`below`")[word("below")] > additive[set<&ast::WireField::below>];
const auto packing = (word("elias")[pack_by_elias] >> -word("ascending")[pack_ascending] > limit) |
                     (word("ascending")[pack_ascending] > limit);
const auto inner_wire = &(tok::Name >> tok::Dot) >>
                        (x3::eps > tok::Name[set_name<&ast::WireField::inner>] > tok::Dot >
                         tok::KwWire);
const auto field_def = (tok::Name[set_name<&ast::WireField::name>] > tok::Colon >
                        named("a type")[inner_wire | type[set<&ast::WireField::type>]]) >>
                       -(x3::eps[has_type] >> packing) >>
                       -(word("by") > named("`sum`, `min` or `max`")[aggregation]);
const auto end = named("`,` or `}`")[&one_of(TokenKind::Comma, TokenKind::RBrace)];
const auto entry_def = node[(count[set_entry_node] | field[set_entry_node]) > end];
const auto entries_def = tok::LBrace >> optional_comma_list(entry[push_entry], tok::RBrace) >
                         named("`,` or `}`")[tok::RBrace];

const auto inherited = tok::Name[set_name<&ast::WireItem::inherited>] > tok::Dot > tok::KwWire;
const auto wire_item_def =
    tok::KwWire >
    named("`{` or the `wire` of a wrapped compressor")[entries[set_list<&ast::WireItem::entries>] |
                                                       inherited];

BOOST_SPIRIT_DEFINE(count, field, entry, entries)

}  // namespace

BOOST_SPIRIT_DEFINE(wire_item)
BOOST_SPIRIT_INSTANTIATE(WireRule, Iterator, Context)

// NOLINTEND(readability-identifier-naming,bugprone-chained-comparison)

}  // namespace cinch::dsl::grammar
