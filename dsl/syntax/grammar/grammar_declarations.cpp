// Grammar of a file: imports, consts, fns, extern fns, compressors and compositions; their
// parameters and types.
#include "dsl/syntax/grammar/grammar.h"

namespace cinch::dsl::grammar {
// NOLINTBEGIN(readability-identifier-naming,bugprone-chained-comparison): rules bear the names of
// the grammar, `>` is "then"

namespace {

// The part after `compressor name`: `(params)`, then `{ items }` or `= value`.
struct CompressorDraft : ast::Compressor {
  ast::ExprId value;
};

constexpr auto push_path = [](auto& ctx) {
  x3::_val(ctx).path.push_back(TreeBuilder::name_of(x3::_attr(ctx)));
};
constexpr auto set_file = [](auto& ctx) {
  x3::_val(ctx).file = TreeBuilder::string_value(x3::_attr(ctx));
};
constexpr auto set_header = [](auto& ctx) {
  x3::_val(ctx).header = TreeBuilder::string_value(x3::_attr(ctx));
  x3::_val(ctx).header_span = x3::_attr(ctx).span;
};
constexpr auto set_decl_node = [](auto& ctx) { x3::_val(ctx).node = std::move(x3::_attr(ctx)); };
constexpr auto set_compressor_node = [](auto& ctx) {
  const CompressorDraft& draft = x3::_attr(ctx);
  if (draft.value) {
    x3::_val(ctx).node = ast::Composition{draft.name, draft.params, draft.value};
  } else {
    x3::_val(ctx).node = static_cast<const ast::Compressor&>(draft);
  }
};
constexpr auto add_decl = [](auto& ctx) { builder(ctx).add_decl(std::move(x3::_attr(ctx))); };

constexpr x3::rule<struct ImportClass, ast::Import> import{"`import`"};
constexpr x3::rule<struct FnClass, ast::Fn> fn{"`fn`"};
constexpr x3::rule<struct ExternFnClass, ast::ExternFn> extern_fn{"`extern`"};
constexpr x3::rule<struct CompressorClass, CompressorDraft> compressor{"`compressor`"};
constexpr x3::rule<struct DeclClass, ast::Decl> decl{kDeclarationRule};
struct DeclLineClass : LineRecovering {};
constexpr x3::rule<DeclLineClass> decl_line{kDeclarationRule};

const auto path = tok::Name[push_path] >> *(tok::Dot > tok::Name[push_path]);
const auto import_def =
    tok::KwImport >
    named("a name like `std.sparsify` or a file in quotes")[tok::String[set_file] | path];
const auto fn_def = tok::KwFn > tok::Name[set_name<&ast::Fn::name>] >
                    fn_params[set_list<&ast::Fn::params>] > tok::Arrow >
                    type[set<&ast::Fn::result>] > block[set<&ast::Fn::body>];
const auto extern_fn_def = tok::KwExtern > tok::KwFn > tok::Name[set_name<&ast::ExternFn::name>] >
                           fn_params[set_list<&ast::ExternFn::params>] > tok::Arrow >
                           type[set<&ast::ExternFn::result>] > word("from") >
                           named("the header's name in quotes")[tok::String[set_header]];

const auto items_part = items[set_list<&ast::Compressor::items>];
const auto value_part = tok::Assign > expr[set<&CompressorDraft::value>];
const auto params_part = compressor_params[set_list<&ast::Compressor::params>] >
                         named("`{` or `=`")[items_part | value_part];
const auto compressor_def = tok::KwCompressor > tok::Name[set_name<&ast::Compressor::name>] >
                            named("`(`, `{` or `=`")[params_part | items_part | value_part];
const auto decl_def = node[import[set_decl_node] | const_decl[set_decl_node] | fn[set_decl_node] |
                           extern_fn[set_decl_node] | compressor[set_compressor_node]];

const auto end_of_decl = named("the end of the declaration")[tok::End | &tok::EndOfFile];
const auto decl_line_def = !tok::EndOfFile >> (x3::eps > decl[add_decl] > end_of_decl);
const auto file_def = *tok::End >> *(decl_line >> *tok::End) > tok::EndOfFile;

BOOST_SPIRIT_DEFINE(import, fn, extern_fn, compressor, decl, decl_line)

}  // namespace

BOOST_SPIRIT_DEFINE(file)
BOOST_SPIRIT_INSTANTIATE(FileRule, Iterator, Context)

// NOLINTEND(readability-identifier-naming,bugprone-chained-comparison)

// Grammar of parameter lists: of compressors, fns, encode, decode, finish and sync.

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

// Grammar of types: `f32`, `int<b>`, `[T; m]`, `[T; rows, cols]`, `[T; ..]`, `(T, T)`, `{word,
// word}`, `compressor`.

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
struct TupleDraft {
  Span span;
  std::vector<ast::TypeId> elements;
};
struct EnumDraft : ast::EnumType {
  Span span;
};
constexpr auto add_tuple = [](auto& ctx) {
  const TupleDraft& draft = x3::_attr(ctx);
  const auto elements = builder(ctx).list(draft.elements);
  x3::_val(ctx) = builder(ctx).add_type(draft.span, ast::TupleType{elements});
};
constexpr auto add_enum = [](auto& ctx) {
  const EnumDraft& draft = x3::_attr(ctx);
  x3::_val(ctx) = builder(ctx).add_type(draft.span, static_cast<const ast::EnumType&>(draft));
};
constexpr auto push_word = [](auto& ctx) {
  x3::_val(ctx).names.push_back(TreeBuilder::name_of(x3::_attr(ctx)));
};
constexpr auto add_compressor = [](auto& ctx) {
  x3::_val(ctx) = builder(ctx).add_type(x3::_attr(ctx).span, ast::CompressorType{});
};

constexpr x3::rule<struct ScalarClass, ScalarDraft> scalar{"a type"};
constexpr x3::rule<struct ArrayClass, ArrayDraft> array{"a type"};
constexpr x3::rule<struct TupleClass, TupleDraft> tuple{"a type"};
constexpr x3::rule<struct EnumClass, EnumDraft> enumeration{"a type"};

const auto scalar_def = node[tok::Name[set_name<&ScalarDraft::name>] >>
                             -(tok::AngleOpen > width[set<&ScalarDraft::width>] > tok::AngleClose)];
const auto array_def =
    node[tok::LBracket > type[set<&ArrayDraft::element>] > tok::Semicolon >
         named("a size or `..`")[tok::DotDot | expr_list[set<&ArrayDraft::dims>]] >
         named("`,` or `]`")[tok::RBracket]];
const auto tuple_def = node[tok::LParen > type[push_to<&TupleDraft::elements>] >
                            named("`,`")[+(tok::Comma > type[push_to<&TupleDraft::elements>])] >
                            named("`,` or `)`")[tok::RParen]];
const auto enumeration_def = node[tok::LBrace > comma_list(tok::Name[push_word], tok::RBrace) >
                                  named("`,` or `}`")[tok::RBrace]];
const auto type_def = nested[scalar[add_scalar] | array[add_array] | tuple[add_tuple] |
                             enumeration[add_enum] | tok::KwCompressor[add_compressor]];

BOOST_SPIRIT_DEFINE(scalar, array, tuple, enumeration)

}  // namespace

BOOST_SPIRIT_DEFINE(type)
BOOST_SPIRIT_INSTANTIATE(TypeRule, Iterator, Context)

// NOLINTEND(readability-identifier-naming,bugprone-chained-comparison)

}  // namespace cinch::dsl::grammar
