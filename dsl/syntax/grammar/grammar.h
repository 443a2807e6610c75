// The rules of the language's grammar, by family. grammar_FAMILY.cpp defines each family. If an
// expected rule does not match, the message contains the rule's name.
#pragma once

#include <boost/spirit/home/x3.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include "dsl/syntax/tree_builder.h"

// Spirit X3 over tokens: parsers for one token, directives for TreeBuilder, and actions that fill
// structs. Only grammar*.cpp and parser.cpp include this.

namespace cinch::dsl::grammar {

// NOLINTBEGIN(readability-identifier-naming): rules have the names of the grammar

namespace x3 = boost::spirit::x3;

using Iterator = const Token*;
struct BuilderTag;
/// The context with which every rule is instantiated. It holds the TreeBuilder.
using Context = x3::context<BuilderTag, TreeBuilder>;

/// Puts the token at `first` into `attr`, if the caller wants it, and steps over it.
template <class Attr>
bool take_token(Iterator& first, Attr& attr) {
  if constexpr (std::is_same_v<Attr, Token>) attr = *first;
  ++first;
  return true;
}

/// One token of a kind. Its attribute is the Token.
struct TokenParser : x3::parser<TokenParser> {
  using attribute_type = Token;
  static constexpr bool has_attribute = true;

  TokenKind kind;
  const char* name;
  constexpr TokenParser(TokenKind token_kind, const char* shown) : kind(token_kind), name(shown) {}

  template <class Ctx, class RuleCtx, class Attr>
  bool parse(Iterator& first, const Iterator& last, const Ctx&, RuleCtx&, Attr& attr) const {
    return first != last && first->kind == kind && take_token(first, attr);
  }
};

/// A name with this text, which is a word only where the grammar expects it.
struct WordParser : x3::parser<WordParser> {
  using attribute_type = Token;
  static constexpr bool has_attribute = true;

  std::string_view text;
  constexpr explicit WordParser(std::string_view word) : text(word) {}

  template <class Ctx, class RuleCtx, class Attr>
  bool parse(Iterator& first, const Iterator& last, const Ctx&, RuleCtx&, Attr& attr) const {
    return first != last && first->kind == TokenKind::Name && first->text == text &&
           take_token(first, attr);
  }
};
constexpr WordParser word(std::string_view text) {
  return WordParser(text);
}

/// One token of any of several kinds. (`a | b` would make a variant of two tokens.)
template <std::size_t kCount>
struct OneOfParser : x3::parser<OneOfParser<kCount>> {
  using attribute_type = Token;
  static constexpr bool has_attribute = true;

  std::array<TokenKind, kCount> kinds;
  constexpr explicit OneOfParser(const std::array<TokenKind, kCount>& of) : kinds(of) {}

  template <class Ctx, class RuleCtx, class Attr>
  bool parse(Iterator& first, const Iterator& last, const Ctx&, RuleCtx&, Attr& attr) const {
    return first != last && std::find(kinds.begin(), kinds.end(), first->kind) != kinds.end() &&
           take_token(first, attr);
  }
};
template <class... Kinds>
constexpr auto one_of(Kinds... kinds) {
  return OneOfParser<sizeof...(Kinds)>(std::array<TokenKind, sizeof...(Kinds)>{kinds...});
}

namespace tok {
#define CINCH_KEYWORD(kind, text) inline constexpr TokenParser kind{TokenKind::kind, "`" text "`"};
#define CINCH_PUNCT(kind, text) inline constexpr TokenParser kind{TokenKind::kind, "`" text "`"};
#include "dsl/syntax/token.def"
#undef CINCH_KEYWORD
#undef CINCH_PUNCT
inline constexpr TokenParser Name{TokenKind::Name, "a name"};
inline constexpr TokenParser Integer{TokenKind::Integer, "a number"};
inline constexpr TokenParser Float{TokenKind::Float, "a number"};
inline constexpr TokenParser String{TokenKind::String, "a string"};
inline constexpr TokenParser AngleOpen{TokenKind::AngleOpen, "`<`"};
inline constexpr TokenParser AngleClose{TokenKind::AngleClose, "`>`"};
inline constexpr TokenParser IntervalOpen{TokenKind::IntervalOpen, "an interval"};
inline constexpr TokenParser IntervalClose{TokenKind::IntervalClose, "`)` or `]`"};
inline constexpr TokenParser End{TokenKind::End, "the end of the line"};
inline constexpr TokenParser EndOfFile{TokenKind::EndOfFile, "the end of the file"};
}  // namespace tok

// ---- directives

/// named("x")[p]: p, which messages call x if it is expected and missing.
template <class Subject>
struct NamedDirective : x3::unary_parser<Subject, NamedDirective<Subject>> {
  using base_type = x3::unary_parser<Subject, NamedDirective<Subject>>;
  static constexpr bool is_pass_through_unary = true;
  const char* name;
  constexpr NamedDirective(const Subject& subject, const char* shown)
      : base_type(subject), name(shown) {}

  template <class Ctx, class RuleCtx, class Attr>
  bool parse(Iterator& first, const Iterator& last, const Ctx& ctx, RuleCtx& rule_ctx,
             Attr& attr) const {
    return this->subject.parse(first, last, ctx, rule_ctx, attr);
  }
};

struct Named {
  const char* name;
  template <class Subject>
  constexpr auto operator[](const Subject& subject) const {
    using Parser = typename x3::extension::as_parser<Subject>::value_type;
    return NamedDirective<Parser>(x3::as_parser(subject), name);
  }
};
constexpr Named named(const char* name) {
  return {name};
}

/// node[p]: after p, sets the span of the struct that the rule makes, and its doc comment if it has
/// one.
template <class Subject>
struct NodeDirective : x3::unary_parser<Subject, NodeDirective<Subject>> {
  using base_type = x3::unary_parser<Subject, NodeDirective<Subject>>;
  static constexpr bool is_pass_through_unary = true;
  constexpr explicit NodeDirective(const Subject& subject) : base_type(subject) {}

  template <class Ctx, class RuleCtx, class Attr>
  bool parse(Iterator& first, const Iterator& last, const Ctx& ctx, RuleCtx& rule_ctx,
             Attr& attr) const {
    const Iterator begin = first;
    if (!this->subject.parse(first, last, ctx, rule_ctx, attr)) return false;
    rule_ctx.span = join(begin->span, first[-1].span);
    if constexpr (requires { rule_ctx.doc; }) {
      rule_ctx.doc = x3::get<BuilderTag>(ctx).doc_of(*begin);
    }
    return true;
  }
};

/// nested[p]: p, one level deeper. Too many levels end the parse.
template <class Subject>
struct NestedDirective : x3::unary_parser<Subject, NestedDirective<Subject>> {
  using base_type = x3::unary_parser<Subject, NestedDirective<Subject>>;
  static constexpr bool is_pass_through_unary = true;
  constexpr explicit NestedDirective(const Subject& subject) : base_type(subject) {}

  template <class Ctx, class RuleCtx, class Attr>
  bool parse(Iterator& first, const Iterator& last, const Ctx& ctx, RuleCtx& rule_ctx,
             Attr& attr) const {
    struct Level {
      TreeBuilder& builder;
      Level(TreeBuilder& b, const Token& where) : builder(b) { builder.enter(where); }
      ~Level() { builder.leave(); }
    } level(x3::get<BuilderTag>(ctx), *first);
    return this->subject.parse(first, last, ctx, rule_ctx, attr);
  }
};

template <template <class> class Directive>
struct DirectiveMaker {
  template <class Subject>
  constexpr auto operator[](const Subject& subject) const {
    using Parser = typename x3::extension::as_parser<Subject>::value_type;
    return Directive<Parser>(x3::as_parser(subject));
  }
};
inline constexpr DirectiveMaker<NodeDirective> node{};
inline constexpr DirectiveMaker<NestedDirective> nested{};

/// One or more items, separated by commas, with an optional last comma, before `closer`. A missing
/// item after a comma is an error.
template <class Item, class Closer>
constexpr auto comma_list(const Item& item, const Closer& closer) {
  return item >> *((tok::Comma >> !closer) > item) >> -tok::Comma;
}

/// The same, but possibly empty: items or `closer` follow the opening bracket.
template <class Item, class Closer>
constexpr auto optional_comma_list(const Item& item, const Closer& closer) {
  return &closer | (x3::eps > comma_list(item, closer));
}

// ---- actions: they write to the struct that the rule makes

template <class Ctx>
TreeBuilder& builder(const Ctx& ctx) {
  return x3::get<BuilderTag>(ctx);
}

/// field = attribute.
template <auto kField>
constexpr auto set = [](auto& ctx) { x3::_val(ctx).*kField = std::move(x3::_attr(ctx)); };
/// field = true.
template <auto kField>
constexpr auto set_true = [](auto& ctx) { x3::_val(ctx).*kField = true; };
/// field = the token as a Name.
template <auto kField>
constexpr auto set_name =
    [](auto& ctx) { x3::_val(ctx).*kField = TreeBuilder::name_of(x3::_attr(ctx)); };
/// field = the ids as a list of the module.
template <auto kField>
constexpr auto set_list =
    [](auto& ctx) { x3::_val(ctx).*kField = builder(ctx).list(x3::_attr(ctx)); };
/// field.push_back(attribute).
template <auto kField>
constexpr auto push_to =
    [](auto& ctx) { (x3::_val(ctx).*kField).push_back(std::move(x3::_attr(ctx))); };
/// Pushes the attribute into the vector that the rule makes.
constexpr auto push = [](auto& ctx) { x3::_val(ctx).push_back(std::move(x3::_attr(ctx))); };
/// The rule makes the attribute itself.
constexpr auto pass = [](auto& ctx) { x3::_val(ctx) = std::move(x3::_attr(ctx)); };
/// The rule makes an id: adds the node to the module.
constexpr auto add = [](auto& ctx) { x3::_val(ctx) = builder(ctx).add(std::move(x3::_attr(ctx))); };

// NOLINTEND(readability-identifier-naming)

}  // namespace cinch::dsl::grammar

// The names of these parsers in messages about a failed expectation.
namespace boost::spirit::x3 {

template <>
struct get_info<cinch::dsl::grammar::TokenParser> {
  using result_type = std::string;
  std::string operator()(const cinch::dsl::grammar::TokenParser& p) const { return p.name; }
};

template <>
struct get_info<cinch::dsl::grammar::WordParser> {
  using result_type = std::string;
  std::string operator()(const cinch::dsl::grammar::WordParser& p) const {
    return "`" + std::string(p.text) + "`";
  }
};

template <class Subject>
struct get_info<cinch::dsl::grammar::NamedDirective<Subject>> {
  using result_type = std::string;
  std::string operator()(const cinch::dsl::grammar::NamedDirective<Subject>& p) const {
    return p.name;
  }
};

template <class Subject>
struct get_info<cinch::dsl::grammar::NodeDirective<Subject>> {
  using result_type = std::string;
  std::string operator()(const cinch::dsl::grammar::NodeDirective<Subject>& p) const {
    return what(p.subject);
  }
};

template <class Subject, class Action>
struct get_info<action<Subject, Action>> {
  using result_type = std::string;
  std::string operator()(const action<Subject, Action>& p) const { return what(p.subject); }
};

// A missing sequence is called by its first part.
template <class Left, class Right>
struct get_info<sequence<Left, Right>> {
  using result_type = std::string;
  std::string operator()(const sequence<Left, Right>& p) const { return what(p.left); }
};

}  // namespace boost::spirit::x3

namespace cinch::dsl::grammar {
// NOLINTBEGIN(readability-identifier-naming): rules have the names of the grammar

// ---- types (grammar_declarations.cpp)
using TypeRule = x3::rule<struct TypeClass, ast::TypeId>;
inline constexpr TypeRule type{"a type"};
BOOST_SPIRIT_DECLARE(TypeRule)

// ---- expressions (grammar_expressions.cpp)
using ExprRule = x3::rule<struct ExprClass, ast::ExprId>;
inline constexpr ExprRule expr{"an expression"};
using AdditiveRule = x3::rule<struct AdditiveClass, ast::ExprId>;
/// An expression of `* / % @ + -` and of operators that bind tighter.
inline constexpr AdditiveRule additive{"an expression"};
using IntervalRule = x3::rule<struct IntervalClass, ast::Interval>;
/// `a..b`, `a..=b`, `(a, b]`, … after `in`.
inline constexpr IntervalRule interval{"a range like `a..b` or `[a, b)`"};
using ExprListRule = x3::rule<struct ExprListClass, std::vector<ast::ExprId>>;
/// One or more expressions, separated by commas.
inline constexpr ExprListRule expr_list{"an expression"};
BOOST_SPIRIT_DECLARE(ExprRule)
BOOST_SPIRIT_DECLARE(AdditiveRule)
BOOST_SPIRIT_DECLARE(IntervalRule)
BOOST_SPIRIT_DECLARE(ExprListRule)

// ---- operands with prefixes and suffixes (grammar_suffixes.cpp)
using CastRule = x3::rule<struct CastClass, ast::ExprId>;
/// An operand of a binary operator, with prefixes, suffixes and `as`.
inline constexpr CastRule cast{"an expression"};
BOOST_SPIRIT_DECLARE(CastRule)

// ---- operands (grammar_operands.cpp)
using OperandRule = x3::rule<struct OperandClass, ast::ExprId>;
inline constexpr OperandRule operand{"an expression"};
/// The width between the angle brackets of `int<b>`: a name, a number, or an expression in
/// parentheses.
using WidthRule = x3::rule<struct WidthClass, ast::ExprId>;
inline constexpr WidthRule width{"a width: a name, a number or an expression in parentheses"};
BOOST_SPIRIT_DECLARE(OperandRule)
BOOST_SPIRIT_DECLARE(WidthRule)

// ---- blocks and statements (grammar_statements.cpp)
using BlockRule = x3::rule<struct BlockClass, ast::BlockId>;
inline constexpr BlockRule block{"a block `{ … }`"};
BOOST_SPIRIT_DECLARE(BlockRule)

// ---- parameters (grammar_declarations.cpp)
using ParamsRule = x3::rule<struct ParamsClass, std::vector<ast::ParamId>>;
/// `(name: type = default in range, …)` of a compressor.
inline constexpr ParamsRule compressor_params{"`(`"};
/// `(name: type, …)` of a fn; `(name, …)` and `(name: type, …)` of a method.
using FnParamsRule = x3::rule<struct FnParamsClass, std::vector<ast::ParamId>>;
inline constexpr FnParamsRule fn_params{"`(`"};
using MethodParamsRule = x3::rule<struct MethodParamsClass, std::vector<ast::ParamId>>;
inline constexpr MethodParamsRule method_params{"`(`"};
BOOST_SPIRIT_DECLARE(ParamsRule)
BOOST_SPIRIT_DECLARE(FnParamsRule)
BOOST_SPIRIT_DECLARE(MethodParamsRule)

// ---- items of compressors (grammar_items.cpp)
using ConstRule = x3::rule<struct ConstClass, ast::Const>;
inline constexpr ConstRule const_decl{"`const`"};
using ItemsRule = x3::rule<struct ItemsClass, std::vector<ast::ItemId>>;
/// `{ items }`.
inline constexpr ItemsRule items{"`{`"};
BOOST_SPIRIT_DECLARE(ConstRule)
BOOST_SPIRIT_DECLARE(ItemsRule)

// ---- wire declarations (grammar_items.cpp)
using WireRule = x3::rule<struct WireClass, ast::WireItem>;
inline constexpr WireRule wire_item{"`wire`"};
BOOST_SPIRIT_DECLARE(WireRule)

// ---- files (grammar_declarations.cpp)
using FileRule = x3::rule<struct FileClass>;
inline constexpr FileRule file{"a file"};
BOOST_SPIRIT_DECLARE(FileRule)

using Failure = x3::expectation_failure<Iterator>;

/// Reports a failed expectation and moves `first` to the end of the statement, item or declaration
/// that began there: past the End at its own level, or to the closing brace.
void recover_line(Iterator& first, Iterator last, const Failure& failure, TreeBuilder& builder);

/// The same for an entry of a list: moves `first` to the next comma or closing bracket.
void recover_entry(Iterator& first, Iterator last, const Failure& failure, TreeBuilder& builder);

/// The id of a rule that recovers from mistakes in it: after a mistake the rule matches and makes
/// nothing.
template <void (*kRecover)(Iterator&, Iterator, const Failure&, TreeBuilder&)>
struct Recovering {
  template <class Ctx>
  x3::error_handler_result on_error(Iterator& first, const Iterator& last, const Failure& failure,
                                    const Ctx& ctx) const {
    kRecover(first, last, failure, builder(ctx));
    return x3::error_handler_result::accept;
  }
};
using LineRecovering = Recovering<recover_line>;
using EntryRecovering = Recovering<recover_entry>;

// NOLINTEND(readability-identifier-naming)

}  // namespace cinch::dsl::grammar
