// From text to image.
#include "compiler/service/compile.h"

#include <algorithm>
#include <map>

#include "codegen/jit/compile_program.h"
#include "codegen/kir/cost.h"
#include "codegen/kir/verifier.h"
#include "compiler/interp/interp.h"
#include "compiler/ir/verifier.h"
#include "compiler/lower/lower.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/image/image_file.h"
#include "runtime/tuning/tuning.h"

namespace cinch::service {

std::optional<std::vector<std::uint64_t>> evaluate_constant(const ir::Program& program,
                                                            const ir::Function& function) {
  const rt::Result<interp::Array> value = interp::evaluate_constant(program, function);
  if (!value) return std::nullopt;
  return value->bits;
}

namespace {

ir::Program lower_program(const FrontEnd& front_end, const sema::CheckedProgram& checked) {
  ir::Program program = lower::lower(checked, &front_end.sources);
  ir::verify(program, "lower");
  return program;
}

void run_passes(ir::Program& program, rt::StepLimit& steps) {
  const auto report =
      pipeline::run(program, {.pass_limit = steps.left(), .evaluate = evaluate_constant});
  steps.count(report.num_rewrites);
  if (steps.has_leave()) return;
  // Kernels need these passes, whatever the limit.
  pipeline::run(program,
                {.passes = {"expand_matrix_ops", "expand_selection", "expand_scatter_reduce"},
                 .evaluate = evaluate_constant});
}

// The request's bindings on which the code depends: constant parameters, and the names of run-time
// ones without a default, which must be bound.
std::vector<std::string> bindings_of_code(const std::vector<std::string>& bindings,
                                          const sema::CheckedProgram& checked) {
  std::map<std::string, std::string> chosen;  // by name; the last binding of a name counts
  for (const std::string& word : bindings) chosen[word.substr(0, word.find('='))] = word;
  for (std::size_t i = 0; i < checked.info.params.size(); ++i) {
    const std::string& name = checked.info.params[i].name;
    if (checked.declared_defaults[i]) {
      chosen.erase(name);
    } else {
      chosen[name] = name;
    }
  }
  std::vector<std::string> words;
  words.reserve(chosen.size());
  for (const auto& [name, word] : chosen) words.push_back(word);
  return words;
}

// A program compiled for one request.
struct Compilation {
  const ProgramRequest& request;
  ProgramText text;
  // Set if the request binds something; otherwise only programs that are not in the cache are
  // checked.
  std::optional<sema::CheckedProgram> checked;
  std::vector<std::string> bindings_of_code;
};

Compilation begin(FrontEnd& front_end, const ProgramRequest& request) {
  Compilation compilation{request, find_program(request), std::nullopt, {}};
  if (request.bindings.empty()) return compilation;
  compilation.checked =
      check_program(front_end, compilation.text, request.bindings, request.is_carrier);
  compilation.bindings_of_code = bindings_of_code(request.bindings, *compilation.checked);
  return compilation;
}

// The text of what carries sums has values of parameters, and the cache holds it with those in the
// program's text.
void declare_carrier(const Compilation& compilation, const sema::CheckedProgram& checked,
                     rt::ProgramImage& image) {
  if (image.info.carrier.kind != rt::CarrierKind::Program) return;
  std::vector<std::string> fixed;
  for (const std::string& word : compilation.request.bindings) {
    const std::string name = word.substr(0, word.find('='));
    const auto at = std::ranges::find(checked.info.params, name, &rt::ParamInfo::name);
    const auto place = static_cast<std::size_t>(at - checked.info.params.begin());
    const bool is_default = at != checked.info.params.end() && checked.declared_defaults[place];
    if (!is_default) fixed.push_back(word);
  }
  if (fixed.size() == compilation.request.bindings.size()) return;
  FrontEnd declared;
  declared.show = [](const dsl::DiagSink&, const dsl::SourceSet&) {};  // it was shown
  image.info.carrier = check_program(declared, compilation.text, fixed).info.carrier;
}

using codegen::Effort;

bool needs_nvrtc(const codegen::Target& target) {
  return target.kind == codegen::TargetKind::Cuda && target.arch != codegen::kEmulatedArch;
}

// May quickly compiled code serve the request now?
bool may_be_quick(const ProgramRequest& request, const codegen::Target& target) {
  if (request.is_ahead_of_time) return false;
  if (needs_nvrtc(target) && !request.replaces_code) return true;
  const bool has_quick = needs_nvrtc(target) || target.kind == codegen::TargetKind::Cpu;
  return has_quick && request.replaces_code && !request.pass_limit && can_improve();
}

// Code of a program without states is the same in both forms. It is kept as with a second buffer.
CompileCache cache_of(const Compilation& compilation, const codegen::Target& target,
                      CodeChoice code, bool has_states = true) {
  code.is_carrier = compilation.request.is_carrier;
  const auto states = has_states ? compilation.request.states : codegen::StateUpdate::SecondBuffer;
  return {compilation.text, compilation.bindings_of_code, states, target, code};
}

// A program that was found or made.
struct Made {
  rt::CacheEntry entry;
  Effort effort = Effort::Full;
  bool is_improved = false;  // better code is being made
};

// Looks up this key, and that of a program without states, which is perhaps none yet.
std::optional<rt::CacheEntry> find_code(const Compilation& compilation,
                                        const codegen::Target& target, const CodeChoice& code) {
  if (auto kept = cache_of(compilation, target, code).find()) return kept;
  if (compilation.request.states != codegen::StateUpdate::InPlace) return std::nullopt;
  auto kept = cache_of(compilation, target, code, false).find();
  return kept && kept->image.info.states.empty() ? std::move(kept) : std::nullopt;
}

// Calls `find` for the efforts whose code serves the request, best first, until it finds one.
template <typename Find>
auto find_best(const ProgramRequest& request, const codegen::Target& target, const Find& find)
    -> decltype(find(Effort::Full)) {
  if (auto found = find(Effort::Full)) return found;
  // Quickly compiled code serves ahead-of-time requests for GPUs only if there is no NVRTC.
  const bool serves_if_quick =
      may_be_quick(request, target) || (needs_nvrtc(target) && !codegen::nvrtc_report().is_found);
  if (!serves_if_quick) return std::nullopt;
  return find(Effort::Quick);
}

std::optional<Made> find_kept(const Compilation& compilation, const codegen::Target& target,
                              std::uint32_t block_warps) {
  return find_best(compilation.request, target, [&](Effort effort) -> std::optional<Made> {
    auto kept = find_code(compilation, target, {block_warps, effort});
    if (!kept) return std::nullopt;
    return Made{std::move(*kept), effort};
  });
}

// Code in the cache that serves although it was made for blocks of another size or another
// architecture: results are the same, and without NVRTC there is no other.
std::optional<Made> find_other_code(const Compilation& compilation, const codegen::Target& target) {
  if (!needs_nvrtc(target) || codegen::nvrtc_report().is_found) return std::nullopt;
  for (const std::string& arch : codegen::archs_that_serve(target.arch)) {
    for (const std::uint32_t warps : {8u, 4u, 16u, 2u}) {  // all values that CudaOptions accepts
      auto kept = find_kept(compilation, {target.kind, arch}, warps);
      if (!kept) continue;
      kept->entry.image.target = "cuda:" + target.arch;
      return kept;
    }
  }
  return std::nullopt;
}

// The architecture, if `target` is PTX.
codegen::Target target_of_code(const codegen::Target& target) {
  return {target.kind, target.arch == codegen::kPtx ? codegen::kPtxArch : target.arch};
}

std::uint32_t block_warps_of(const codegen::Target& target) {
  return tuned_cuda_options(target_of_code(target).arch).block_warps;
}

// Warnings are shown whenever the program is used, so a program with warnings is not kept. Better
// code for it could not be handed over.
Effort choose_effort(const FrontEnd& front_end, const ProgramRequest& request,
                     const codegen::Target& target, const kir::KernelProgram& kernels) {
  const bool is_kept = front_end.sink.all().empty();
  const bool is_quick = may_be_quick(request, target) &&
                        codegen::is_quick_worth_it(kernels, target) &&
                        (is_kept || !request.replaces_code);
  return is_quick ? Effort::Quick : Effort::Full;
}

Made compile_and_keep(FrontEnd& front_end, Compilation& compilation, const codegen::Target& target,
                      codegen::ImageOptions options, bool allows_quick) {
  const ProgramRequest& request = compilation.request;
  if (!compilation.checked) {
    compilation.checked = check_program(front_end, compilation.text, {}, request.is_carrier);
  }
  rt::StepLimit steps = step_limit(request);
  ir::Program program = lower_program(front_end, *compilation.checked);
  run_passes(program, steps);
  const kir::KernelProgram kernels = make_kernels(program, {request.states, &steps});
  options.effort = allows_quick ? choose_effort(front_end, request, target, kernels) : Effort::Full;
  const CompileCache cache = cache_of(compilation, target, {options.block_warps, options.effort},
                                      !kernels.info.states.empty());
  Made made{{{},
             cache.stamps_of(front_end.sources),
             value_or_throw(codegen::make_image(kernels, target_of_code(target), options))},
            options.effort};
  if (!request.pass_limit && front_end.sink.all().empty()) {
    // The cache holds an image with the defaults in the text; `made` has the bound values.
    rt::ProgramImage kept = made.entry.image;
    for (std::size_t i = 0; i < kept.info.params.size(); ++i) {
      if (const auto& declared = compilation.checked->declared_defaults[i])
        kept.info.params[i].default_value = *declared;
    }
    kept.info.carrier.text = compilation.checked->declared_carrier;
    declare_carrier(compilation, *compilation.checked, kept);
    cache.put(kept, made.entry.imports);
  }
  return made;
}

// Quickly made code is used this time; better code is made in the background. Returns false if
// nobody makes it.
bool improve_if_asked(const ProgramRequest& request, const codegen::Target& target, Effort effort,
                      std::uint32_t block_warps) {
  if (effort == Effort::Full || !request.is_improved_later || request.pass_limit) return false;
  const rt::CacheSettings settings = cache_settings();
  return settings.is_on && settings.improves && improve_later({request, target, block_warps});
}

// Is it code that only serves until better code takes its place? Without NVRTC there is no better.
bool must_be_replaced(const ProgramRequest& request, const codegen::Target& target, Effort effort) {
  const bool can_be_better = !needs_nvrtc(target) || codegen::nvrtc_report().is_found;
  return effort == Effort::Quick && request.replaces_code && can_be_better;
}

// What takes the place of quickly compiled code.
std::optional<BetterCode> better_than(const Compilation& compilation, const codegen::Target& target,
                                      const Made& made, bool has_states) {
  if (!made.is_improved || !compilation.request.replaces_code) return std::nullopt;
  const CodeChoice better{block_warps_of(target), Effort::Full};
  return cache_of(compilation, target, better, has_states).code_from(made.entry.imports);
}

Made find_or_compile(FrontEnd& front_end, Compilation& compilation, const codegen::Target& target,
                     std::optional<std::uint32_t> block_warps) {
  codegen::ImageOptions options{.block_warps = block_warps.value_or(block_warps_of(target)),
                                .is_ptx = target.arch == codegen::kPtx};
  const bool is_limited = compilation.request.pass_limit.has_value();
  std::optional<Made> made;
  if (!is_limited) made = find_kept(compilation, target, options.block_warps);
  if (!made && !block_warps && !is_limited) {
    if (auto kept = find_other_code(compilation, target)) return std::move(*kept);
  }
  bool can_be_kept = true;
  if (!made) {
    made = compile_and_keep(front_end, compilation, target, options, true);
    // Where the quick code cannot be kept, nor can the better code.
    if (must_be_replaced(compilation.request, target, made->effort))
      can_be_kept = find_kept(compilation, target, options.block_warps).has_value();
  }
  made->is_improved = can_be_kept && improve_if_asked(compilation.request, target, made->effort,
                                                      options.block_warps);
  if (must_be_replaced(compilation.request, target, made->effort) && !made->is_improved)
    made = compile_and_keep(front_end, compilation, target, options, false);
  return std::move(*made);
}

// The program with the request's values as defaults.
Made make_program(FrontEnd& front_end, Compilation& compilation, const codegen::Target& target,
                  std::optional<std::uint32_t> block_warps) {
  Made made = find_or_compile(front_end, compilation, target, block_warps);
  if (compilation.checked) {
    made.entry.image.info.params = compilation.checked->info.params;
    made.entry.image.info.carrier = compilation.checked->info.carrier;
  }
  return made;
}

}  // namespace

rt::StepLimit step_limit(const ProgramRequest& request) {
  return request.pass_limit ? rt::StepLimit(*request.pass_limit) : rt::StepLimit();
}

ir::Program make_ir(FrontEnd& front_end, const ProgramRequest& request, bool with_passes,
                    rt::StepLimit* steps) {
  ir::Program program = lower_program(
      front_end,
      check_program(front_end, find_program(request), request.bindings, request.is_carrier));
  rt::StepLimit own = step_limit(request);
  if (with_passes) run_passes(program, steps != nullptr ? *steps : own);
  return program;
}

kir::KernelProgram make_kernels(const ir::Program& program,
                                const codegen::KernelizeOptions& options) {
  kir::KernelProgram kernels = codegen::kernelize(program, options);
  kir::verify(kernels, "kernelize");
  kir::annotate_costs(kernels);
  return kernels;
}

codegen::CudaOptions tuned_cuda_options(const std::string& arch) {
  return {arch, static_cast<std::uint32_t>(rt::gpu_tuning(arch).block_warps)};
}

rt::ProgramImage make_program_image(FrontEnd& front_end, const ProgramRequest& request,
                                    const codegen::Target& target,
                                    std::optional<std::uint32_t> block_warps) {
  Compilation compilation = begin(front_end, request);
  return std::move(make_program(front_end, compilation, target, block_warps).entry.image);
}

ImageBytes make_image_bytes(FrontEnd& front_end, const ProgramRequest& request,
                            const codegen::Target& target) {
  Compilation compilation = begin(front_end, request);
  if (request.bindings.empty() && !request.pass_limit) {
    const std::uint32_t block_warps = block_warps_of(target);
    Effort effort = Effort::Full;
    auto kept = find_best(request, target, [&](Effort tried) {
      effort = tried;
      return cache_of(compilation, target, {block_warps, tried}).find_stored();
    });
    const bool is_improved = kept && improve_if_asked(request, target, effort, block_warps);
    if (kept && (is_improved || !must_be_replaced(request, target, effort))) {
      const Made stored{{{}, std::move(kept->imports)}, effort, is_improved};
      // Without states it would lie under the other key.
      return {std::move(kept->image), better_than(compilation, target, stored,
                                                  request.states == codegen::StateUpdate::InPlace)};
    }
  }
  const Made made = make_program(front_end, compilation, target, {});
  return {rt::write_image(made.entry.image),
          better_than(compilation, target, made, !made.entry.image.info.states.empty())};
}

bool is_kept(FrontEnd& front_end, const ProgramRequest& request, const codegen::Target& target) {
  const Compilation compilation = begin(front_end, request);
  return find_kept(compilation, target, block_warps_of(target)) ||
         find_other_code(compilation, target);
}

}  // namespace cinch::service
