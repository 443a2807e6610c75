// The table of operators that programs call by name, and the parameters of a compressor in the
// words of its text.
#include <algorithm>
#include <array>
#include <iterator>
#include <ranges>

#include "dsl/sema/builtins.h"
#include "dsl/sema/composition.h"
#include "dsl/sema/sema.h"

namespace cinch::sema {
namespace {

constexpr std::array kTable{
#define BUILTIN(name, group, call, signature, meaning) \
  BuiltinInfo{#name, BuiltinGroup::group, signature, meaning},
#include "dsl/sema/builtins.def"
};

constexpr std::string_view kScalarFunctions[] = {
    "abs",   "sign",     "sqrt",     "rsqrt", "exp",    "exp2",           "log",
    "log1p", "log2",     "pow",      "sin",   "cos",    "tanh",           "floor",
    "ceil",  "round",    "trunc",    "min",   "max",    "clamp",          "fma",
    "isnan", "isfinite", "popcount", "clz",   "select", "divide_or_zero", "ceil_div"};

}  // namespace

const BuiltinInfo& builtin_info(BuiltinId id) {
  return kTable[static_cast<std::size_t>(id)];
}

std::optional<BuiltinId> find_builtin(std::string_view name) {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].name == name) return static_cast<BuiltinId>(i);
  }
  return std::nullopt;
}

std::size_t num_builtins() {
  return kTable.size();
}

std::span<const std::string_view> scalar_functions() {
  return kScalarFunctions;
}

std::optional<ScalarOp> find_scalar_function(std::string_view name) {
  const auto at = std::find(std::begin(kScalarFunctions), std::end(kScalarFunctions), name);
  return at == std::end(kScalarFunctions) ? std::nullopt : find_scalar_op(name);
}

bool is_operator_name(std::string_view name) {
  return find_builtin(name).has_value() || find_scalar_function(name).has_value();
}

namespace {

std::string text_of(const FileUnit& unit, Span span) {
  return std::string(unit.source->text(span));
}

// Adds facts from `param` that an outer parameter, which a composition passes on to it, did not
// state.
void add_missing(const FileUnit& unit, const ast::Param& param, OpenParameter& open) {
  const ast::Module& tree = unit.tree;
  if (open.type.empty() && param.type.has_value()) {
    open.type = text_of(unit, tree[param.type].span);
    if (const auto* words = std::get_if<ast::EnumType>(&tree[param.type].node)) {
      for (const ast::Name& word : words->names) open.words.push_back(word.text);
    }
  }
  if (open.initial.empty() && param.initial.has_value())
    open.initial = text_of(unit, tree[param.initial].span);
  if (open.range.empty() && param.range.has_value())
    open.range = text_of(unit, tree[param.range].span);
  if (open.doc.empty()) open.doc = param.doc;
}

// Adds the compressors that the outermost one still needs.
void add_wanted(const Spec& spec, std::vector<OpenParameter>& all) {
  const FileUnit& unit = *spec.decl.unit;
  for (ast::ParamId id : unit.tree.list(spec.node->params)) {
    const ast::Param& param = unit.tree[id];
    const bool is_compressor =
        param.type.has_value() &&
        std::holds_alternative<ast::CompressorType>(unit.tree[param.type].node);
    if (!is_compressor || spec.inner.contains(param.name.text)) continue;
    OpenParameter wanted{.name = param.name.text};
    add_missing(unit, param, wanted);
    all.push_back(std::move(wanted));
  }
}

}  // namespace

std::vector<OpenParameter> open_parameters(const CheckedModule& module, std::string_view compressor,
                                           dsl::DiagSink& sink) {
  ModuleData& data = module.data();
  const FileUnit& unit = data.root();
  const auto at = unit.names.find(compressor);
  if (at == unit.names.end()) return {};
  Reporter reporter(sink);
  const auto spec = make_spec(data, {&unit, at->second}, reporter);
  if (spec == nullptr) return {};
  std::vector<OpenParameter> all;
  add_wanted(*spec, all);
  for (const OpenParam& param : open_params(*spec)) {
    // A parameter that a composition passes on to several compressors is listed once.
    if (std::ranges::find(all, param.name, &OpenParameter::name) != all.end()) continue;
    OpenParameter open{.name = param.name, .is_const = param.param->is_const};
    const auto named = param.spec->named.find(param.param->name.text);
    if (named != param.spec->named.end()) {
      for (const NamedParam& outer : std::views::reverse(named->second))
        add_missing(*outer.unit, *outer.declared, open);
    }
    add_missing(*param.spec->decl.unit, *param.param, open);
    all.push_back(std::move(open));
  }
  return all;
}

}  // namespace cinch::sema
