// The rules of the language's grammar, by family. grammar_FAMILY.cpp defines each family. If an
// expected rule does not match, the message contains the rule's name.
#pragma once

#include <vector>

#include "dsl/syntax/grammar/grammar_tokens.h"

namespace cinch::dsl::grammar {

// NOLINTBEGIN(readability-identifier-naming): rules have the names of the grammar

// ---- types (grammar_types.cpp)
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

// ---- parameters (grammar_params.cpp)
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

// ---- wire declarations (grammar_wire.cpp)
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
