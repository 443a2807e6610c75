// Grammar of a file: imports, consts, fns, extern fns, compressors and compositions. Each
// declaration recovers from its own mistakes.
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

}  // namespace cinch::dsl::grammar
