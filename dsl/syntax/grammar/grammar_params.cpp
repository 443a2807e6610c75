// Grammar of parameter lists: of compressors, fns, encode, decode, finish and sync.
#include "dsl/syntax/grammar/grammar.h"

namespace cinch::dsl::grammar {

// NOLINTBEGIN(readability-identifier-naming,bugprone-chained-comparison): rules bear the names of
// the grammar, `>` is "then"

namespace {

constexpr auto set_range = [](auto& ctx) {
  x3::_val(ctx).range = builder(ctx).add_interval(x3::_attr(ctx));
};
// An entry that only recovered from a mistake has no span, and does not join the list.
constexpr auto push_param = [](auto& ctx) {
  if (x3::_attr(ctx).span.is_empty()) return;
  x3::_val(ctx).push_back(builder(ctx).add(std::move(x3::_attr(ctx))));
};

struct CompressorParamClass : EntryRecovering {};
constexpr x3::rule<CompressorParamClass, ast::Param> compressor_param{"a parameter"};
struct FnParamClass : EntryRecovering {};
constexpr x3::rule<FnParamClass, ast::Param> fn_param{"a parameter"};
struct MethodParamClass : EntryRecovering {};
constexpr x3::rule<MethodParamClass, ast::Param> method_param{"a parameter"};

const auto name = tok::Name[set_name<&ast::Param::name>];
const auto const_name = tok::KwConst[set_true<&ast::Param::is_const>] > name;
const auto type_part = tok::Colon > type[set<&ast::Param::type>];
const auto initial_part = tok::Assign > expr[set<&ast::Param::initial>];
const auto range_part = word("in") > interval[set_range];

// Recovery works only if a mistake is found inside an entry, so each entry checks the token after
// it.
const auto close = named("`,` or `)`")[tok::RParen];
const auto end = named("`,` or `)`")[&one_of(TokenKind::Comma, TokenKind::RParen)];
const auto compressor_param_def =
    node[(((const_name | name) > type_part) >> -initial_part >> -range_part) > end];
const auto fn_param_def = node[name > type_part > end];
const auto method_param_def = node[(name >> -type_part) > end];

const auto compressor_params_def = tok::LParen >> optional_comma_list(compressor_param[push_param],
                                                                      tok::RParen) > close;
const auto fn_params_def = tok::LParen >>
                           optional_comma_list(fn_param[push_param], tok::RParen) > close;
const auto method_params_def = tok::LParen >>
                               optional_comma_list(method_param[push_param], tok::RParen) > close;

BOOST_SPIRIT_DEFINE(compressor_param, fn_param, method_param)

}  // namespace

BOOST_SPIRIT_DEFINE(compressor_params, fn_params, method_params)
BOOST_SPIRIT_INSTANTIATE(ParamsRule, Iterator, Context)
BOOST_SPIRIT_INSTANTIATE(FnParamsRule, Iterator, Context)
BOOST_SPIRIT_INSTANTIATE(MethodParamsRule, Iterator, Context)

// NOLINTEND(readability-identifier-naming,bugprone-chained-comparison)

}  // namespace cinch::dsl::grammar
