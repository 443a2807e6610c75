// The public functions: load files, check everything in a file, elaborate one compressor.
#include "dsl/sema/sema.h"

#include <algorithm>

#include "dsl/sema/carriers.h"
#include "dsl/sema/elaboration/elaboration.h"
#include "dsl/syntax/syntax.h"
#include "runtime/core/check.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

// A wrapper that has nothing to wrap is checked around this compressor.
constexpr const char* kStandIn =
    "compressor plain {\n"
    "  wire { value: [f32; n] }\n"
    "  encode(g: [f32; n]) { wire { value: g } }\n"
    "  decode(w) { w.value }\n"
    "}\n";

// Reports mistakes in the library's files at the composition, if this is one.
class BlameScope {
 public:
  BlameScope(const ModuleData& data, const DeclRef& decl, Reporter& reporter)
      : reporter_(reporter) {
    const auto* composition = std::get_if<ast::Composition>(&(*decl).node);
    if (composition != nullptr) reporter.blame(&data, decl.unit->tree[composition->value].span);
  }
  ~BlameScope() { reporter_.blame(nullptr, {}); }
  BlameScope(const BlameScope&) = delete;
  BlameScope& operator=(const BlameScope&) = delete;

 private:
  Reporter& reporter_;
};

void check_decl(ModuleData& data, const DeclRef& decl, Reporter& reporter) {
  const ast::Decl& node = *decl;
  if (std::holds_alternative<ast::Const>(node.node)) {
    Elaboration(data, reporter).numbers.check_const(decl);
  } else if (std::holds_alternative<ast::Fn>(node.node)) {
    Elaboration(data, reporter).calls.check_fn(decl);
  } else if (std::holds_alternative<ast::ExternFn>(node.node) && data.read_extern) {
    Elaboration(data, reporter).calls.find_extern(decl);
  } else if (std::holds_alternative<ast::Compressor>(node.node) ||
             std::holds_alternative<ast::Composition>(node.node)) {
    const BlameScope scope(data, decl, reporter);
    const auto spec = make_spec(data, decl, reporter);
    if (spec == nullptr) return;
    wants_inner(data, *spec, true);
    if (Elaboration(data, reporter).run(*spec, *declared_name(node), {}, true)) {
      const std::size_t errors = reporter.num_errors();
      const Carrier carrier = Carriers(data, reporter).of_program(*spec);
      if (carrier.spec != nullptr && reporter.num_errors() == errors)
        Elaboration(data, reporter).run(*carrier.spec, *declared_name(node), {}, true);
    }
  }
}

void check_everything(ModuleData& data, Reporter& reporter) {
  for (ast::DeclId id : data.root().tree.decls) {
    if (reporter.work().is_over) return;
    check_decl(data, {&data.root(), id}, reporter);
  }
}

// A mistake in types, which remains when the syntax errors are fixed.
bool is_of_types(dsl::DiagKind kind) {
  constexpr dsl::DiagKind kKinds[] = {
      dsl::DiagKind::CannotCombine,     dsl::DiagKind::CannotApply,
      dsl::DiagKind::CannotConvert,     dsl::DiagKind::Mismatch,
      dsl::DiagKind::BadIndex,          dsl::DiagKind::CannotAssignType,
      dsl::DiagKind::UnknownType,       dsl::DiagKind::BranchesDiffer,
      dsl::DiagKind::ConstantOutOfRange};
  return std::ranges::find(kKinds, kind) != std::end(kKinds);
}

// Finds other mistakes in a file with syntax errors. Missing names are not mistakes there, since
// the parser may have skipped their declarations.
void check_what_was_read(ModuleData& data, dsl::DiagSink& sink) {
  dsl::DiagSink found;
  Reporter reporter(found);
  check_everything(data, reporter);
  for (const dsl::Diagnostic& diag : found.all()) {
    if (is_of_types(diag.kind)) sink.add(diag);
  }
}

bool is_compressor(const ast::Decl& decl) {
  return std::holds_alternative<ast::Compressor>(decl.node) ||
         std::holds_alternative<ast::Composition>(decl.node);
}

bool takes_compressor(const ast::Module& tree, const ast::Compressor& node) {
  for (std::uint32_t i = 0; i < node.params.count; ++i) {
    const ast::Param& param = tree[tree.params.pool[node.params.first + i]];
    if (param.type.has_value() &&
        std::holds_alternative<ast::CompressorType>(tree[param.type].node)) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<CompressorEntry> CheckedModule::compressors() const {
  std::vector<CompressorEntry> entries;
  const ast::Module& tree = data_->root().tree;
  for (ast::DeclId id : tree.decls) {
    const ast::Decl& decl = tree[id];
    if (!is_compressor(decl)) continue;
    CompressorEntry entry{
        .name = declared_name(decl)->text, .doc = decl.doc, .span = declared_name(decl)->span};
    const auto* node = std::get_if<ast::Compressor>(&decl.node);
    entry.is_composition = node == nullptr;
    entry.is_wrapper = node != nullptr && takes_compressor(tree, *node);
    if (node != nullptr) {
      for (ast::ItemId item : tree.list(node->items)) {
        if (const auto* state = std::get_if<ast::StateItem>(&tree[item].node))
          entry.states.push_back(state->name.text);
        if (const auto* input = std::get_if<ast::InputItem>(&tree[item].node))
          entry.inputs.push_back(input->name.text);
        const auto* claims = std::get_if<ast::Claims>(&tree[item].node);
        if (claims == nullptr) continue;
        for (ast::ExprId claim : tree.list(claims->claims))
          entry.claims.emplace_back(data_->root().source->text(tree[claim].span));
      }
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

CheckedModule check_module(dsl::SourceSet& sources, dsl::FileId file, const Loader& loader,
                           dsl::DiagSink& sink, CheckDepth depth, ExternReader read_extern,
                           TypeRecord* types) {
  const std::size_t errors = sink.num_errors();
  std::shared_ptr<ModuleData> data = load_files(sources, file, loader, sink);
  data->load = loader;
  data->read_extern = std::move(read_extern);
  data->types = types;
  data->stand_in = std::make_unique<FileUnit>();
  data->stand_in->source = &data->sources->add("<plain compressor>", kStandIn);
  data->stand_in->tree = dsl::parse(*data->stand_in->source, sink);
  if (depth == CheckDepth::Everything && sink.num_errors() == errors) {
    Reporter reporter(sink);
    check_everything(*data, reporter);
  } else if (depth == CheckDepth::Everything) {
    check_what_was_read(*data, sink);
  }
  return CheckedModule(std::move(data));
}

namespace {

// A compressor of the module that works alone.
struct Found {
  DeclRef decl;
  std::unique_ptr<Spec> spec;
};

std::optional<DeclRef> find_compressor(const FileUnit& unit, std::string_view compressor,
                                       Reporter& reporter) {
  const auto at = unit.names.find(compressor);
  if (at != unit.names.end() && is_compressor(unit.tree[at->second])) {
    return DeclRef{&unit, at->second};
  }
  std::vector<std::string_view> names;
  for (const auto& [name, id] : unit.names) {
    if (is_compressor(unit.tree[id])) names.push_back(name);
  }
  auto& diag = reporter.report<DiagKind::UnknownCompressor>(Span{unit.source->id(), 0, 0},
                                                            std::string(compressor));
  const std::string_view near = dsl::nearest_name(compressor, names);
  if (!near.empty()) {
    diag.note("did you mean `" + std::string(near) + "`?");
  } else {
    diag.note(names_text("the file has", names));
  }
  return std::nullopt;
}

std::optional<Found> find_spec(ModuleData& data, std::string_view compressor, Reporter& reporter) {
  const auto decl = FOUND(find_compressor(data.root(), compressor, reporter));
  const BlameScope scope(data, decl, reporter);
  auto spec = make_spec(data, decl, reporter);
  if (spec == nullptr) return std::nullopt;
  if (wants_inner(data, *spec, false)) {
    const ast::Name& name = *declared_name(*decl);
    reporter.report<DiagKind::NeedsInner>(name.span, spec->node->name.text, "inner");
    return std::nullopt;
  }
  return Found{decl, std::move(spec)};
}

std::optional<CheckedProgram> elaborate_spec(ModuleData& data, const DeclRef& decl, Spec& spec,
                                             const std::vector<Binding>& bindings,
                                             Reporter& reporter) {
  const BlameScope scope(data, decl, reporter);
  Elaboration elaboration(data, reporter);
  if (!elaboration.run(spec, *declared_name(*decl), bindings, false)) return std::nullopt;
  CheckedProgram program = std::move(elaboration.out);
  program.info.doc = (*decl).doc;
  program.name_span = declared_name(*decl)->span;
  return program;
}

}  // namespace

std::optional<CheckedProgram> elaborate(const CheckedModule& module, std::string_view compressor,
                                        const std::vector<Binding>& bindings, dsl::DiagSink& sink) {
  ModuleData& data = module.data();
  Reporter reporter(sink);
  const auto found = FOUND(find_spec(data, compressor, reporter));
  auto program = elaborate_spec(data, found.decl, *found.spec, bindings, reporter);
  if (!program) return std::nullopt;
  const std::size_t errors = reporter.num_errors();
  Carriers carriers(data, reporter);
  const Carrier carrier = carriers.of_program(*found.spec);
  program->info.carrier = carriers.describe(carrier, bindings);
  program->declared_carrier = carriers.describe(carrier, {}).text;
  if (reporter.num_errors() != errors) return std::nullopt;
  return program;
}

std::optional<CheckedProgram> elaborate_carrier(const CheckedModule& module,
                                                std::string_view compressor,
                                                const std::vector<Binding>& bindings,
                                                dsl::DiagSink& sink) {
  ModuleData& data = module.data();
  Reporter reporter(sink);
  const auto found = FOUND(find_spec(data, compressor, reporter));
  const std::size_t errors = reporter.num_errors();
  const Carrier carrier = Carriers(data, reporter).of_program(*found.spec);
  if (carrier.spec == nullptr || reporter.num_errors() != errors) return std::nullopt;
  auto program = elaborate_spec(data, found.decl, *carrier.spec,
                                bindings_of_carrier(*carrier.spec, bindings), reporter);
  if (program) program->info.name += ".again";
  return program;
}

CheckedCall elaborate_call(const CheckedModule& module, std::string_view fn, DType element,
                           const std::vector<FnArgument>& arguments, rt::ProgramInfo info,
                           Span span, dsl::DiagSink& sink) {
  ModuleData& data = module.data();
  const auto decl = data.root().names.find(fn);
  CINCH_CHECK(decl != data.root().names.end(), "no fn " + std::string(fn));
  Reporter reporter(sink);
  Elaboration elaboration(data, reporter);
  elaboration.out.info = std::move(info);
  elaboration.sizes.prover().set_matrix(elaboration.out.info.is_matrix);
  return elaboration.calls.call_alone({&data.root(), decl->second}, element, arguments, span);
}

}  // namespace cinch::sema
