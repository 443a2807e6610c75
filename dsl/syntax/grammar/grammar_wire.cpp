// Grammar of `wire { count m <= e, field: T by sum, part: inner.wire, … }` and `wire inner.wire`.
#include "dsl/syntax/grammar/grammar.h"

namespace cinch::dsl::grammar {

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
