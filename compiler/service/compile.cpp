// From text to image; see compile.h.
#include "compiler/service/compile.h"

#include <map>

#include "codegen/jit/compile_program.h"
#include "codegen/jit/nvrtc.h"
#include "codegen/kir/cost.h"
#include "codegen/kir/verifier.h"
#include "compiler/interp/interp.h"
#include "compiler/ir/verifier.h"
#include "compiler/kernelize/kernelize.h"
#include "compiler/lower/lower.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/service/compile_cache.h"
#include "compiler/service/improve.h"
#include "compiler/service/service_error.h"
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

// The cache holds an image with the defaults in the text; the returned image has the bound values.
rt::ProgramImage with_declared_defaults(rt::ProgramImage image,
                                        const sema::CheckedProgram& checked) {
  for (std::size_t i = 0; i < image.info.params.size(); ++i) {
    if (const auto& declared = checked.declared_defaults[i]) {
      image.info.params[i].default_value = *declared;
    }
  }
  return image;
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
  compilation.checked = check_program(front_end, compilation.text, request.bindings);
  compilation.bindings_of_code = bindings_of_code(request.bindings, *compilation.checked);
  return compilation;
}

bool needs_nvrtc(const codegen::Target& target) {
  return target.kind == codegen::TargetKind::Cuda && target.arch != codegen::kEmulatedArch;
}

// How code for the request is optimised.
codegen::CudaEffort effort_of(const ProgramRequest& request, const codegen::Target& target) {
  return request.is_ahead_of_time || !needs_nvrtc(target) ? codegen::CudaEffort::Full
                                                          : codegen::CudaEffort::Quick;
}

// The efforts whose code in the cache serves the request, best first. Quickly made code serves
// ahead-of-time requests only if there is no NVRTC.
std::vector<codegen::CudaEffort> efforts_that_serve(const ProgramRequest& request,
                                                    const codegen::Target& target) {
  if (!needs_nvrtc(target) || (request.is_ahead_of_time && codegen::nvrtc_report().is_found)) {
    return {codegen::CudaEffort::Full};
  }
  return {codegen::CudaEffort::Full, codegen::CudaEffort::Quick};
}

CompileCache cache_of(const Compilation& compilation, const codegen::Target& target,
                      const CudaCode& code) {
  return {compilation.text, compilation.bindings_of_code, compilation.request.states, target, code};
}

// Looks up this key. For a program without states also finds code that was made for states in a
// second buffer, which is then the same.
std::optional<rt::ProgramImage> find_code(const Compilation& compilation,
                                          const codegen::Target& target, const CudaCode& code) {
  if (auto kept = cache_of(compilation, target, code).find()) return kept;
  if (compilation.request.states != codegen::StateUpdate::InPlace) return std::nullopt;
  auto kept = CompileCache(compilation.text, compilation.bindings_of_code,
                           codegen::StateUpdate::SecondBuffer, target, code)
                  .find();
  if (kept && kept->info.states.empty()) return kept;
  return std::nullopt;
}

struct KeptCode {
  rt::ProgramImage image;
  codegen::CudaEffort effort;
};
std::optional<KeptCode> find_kept(const Compilation& compilation, const codegen::Target& target,
                                  std::uint32_t block_warps) {
  for (const codegen::CudaEffort effort : efforts_that_serve(compilation.request, target)) {
    if (auto kept = find_code(compilation, target, {block_warps, effort}))
      return KeptCode{std::move(*kept), effort};
  }
  return std::nullopt;
}

// Code in the cache that serves although it was made for blocks of another size or another
// architecture: results are the same, and without NVRTC there is no other.
std::optional<rt::ProgramImage> find_other_code(const Compilation& compilation,
                                                const codegen::Target& target) {
  if (!needs_nvrtc(target) || codegen::nvrtc_report().is_found) return std::nullopt;
  for (const std::string& arch : codegen::archs_that_serve(target.arch)) {
    for (const std::uint32_t warps : {8u, 4u, 16u, 2u}) {  // all values that CudaOptions accepts
      auto kept = find_kept(compilation, {target.kind, arch}, warps);
      if (!kept) continue;
      kept->image.target = "cuda:" + target.arch;
      return std::move(kept->image);
    }
  }
  return std::nullopt;
}

// The architecture, if `target` is PTX.
codegen::Target target_of_code(const codegen::Target& target) {
  return {target.kind, target.arch == codegen::kPtx ? codegen::kPtxArch : target.arch};
}

rt::ProgramImage compile_and_keep(FrontEnd& front_end, Compilation& compilation,
                                  const CompileCache& cache, const codegen::Target& target,
                                  const codegen::ImageOptions& options) {
  if (!compilation.checked) compilation.checked = check_program(front_end, compilation.text, {});
  rt::StepLimit steps = step_limit(compilation.request);
  ir::Program program = lower_program(front_end, *compilation.checked);
  run_passes(program, steps);
  rt::ProgramImage image = value_or_throw(
      codegen::make_image(make_kernels(program, {compilation.request.states, &steps}),
                          target_of_code(target), options));
  if (compilation.request.pass_limit) return image;
  // Warnings are shown whenever the program is used.
  if (front_end.sink.all().empty()) {
    cache.put(with_declared_defaults(image, *compilation.checked), front_end.sources);
  }
  return image;
}

// Quickly made code is used this time; better code is made in the background.
void improve_if_asked(const ProgramRequest& request, const codegen::Target& target,
                      std::uint32_t block_warps) {
  if (!request.is_improved_later || request.pass_limit) return;
  const rt::CacheSettings settings = cache_settings();
  if (settings.is_on && settings.improves) improve_later({request, target, block_warps});
}

rt::ProgramImage find_or_compile(FrontEnd& front_end, Compilation& compilation,
                                 const codegen::Target& target,
                                 std::optional<std::uint32_t> block_warps) {
  codegen::ImageOptions options;
  options.block_warps =
      block_warps.value_or(tuned_cuda_options(target_of_code(target).arch).block_warps);
  options.is_ptx = target.arch == codegen::kPtx;
  const codegen::CudaEffort effort = effort_of(compilation.request, target);
  if (effort == codegen::CudaEffort::Quick) options.compile_cuda = codegen::quick_nvrtc_binary;
  const bool is_limited = compilation.request.pass_limit.has_value();
  if (auto kept = is_limited ? std::nullopt : find_kept(compilation, target, options.block_warps)) {
    if (kept->effort == codegen::CudaEffort::Quick)
      improve_if_asked(compilation.request, target, options.block_warps);
    return std::move(kept->image);
  }
  if (!block_warps && !is_limited) {
    if (auto kept = find_other_code(compilation, target)) return std::move(*kept);
  }
  const CompileCache cache = cache_of(compilation, target, {options.block_warps, effort});
  rt::ProgramImage image = compile_and_keep(front_end, compilation, cache, target, options);
  if (effort == codegen::CudaEffort::Quick)
    improve_if_asked(compilation.request, target, options.block_warps);
  return image;
}

}  // namespace

rt::StepLimit step_limit(const ProgramRequest& request) {
  return request.pass_limit ? rt::StepLimit(*request.pass_limit) : rt::StepLimit();
}

ir::Program make_ir(FrontEnd& front_end, const ProgramRequest& request, bool with_passes,
                    rt::StepLimit* steps) {
  ir::Program program =
      lower_program(front_end, check_program(front_end, find_program(request), request.bindings));
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
  rt::ProgramImage image = find_or_compile(front_end, compilation, target, block_warps);
  if (compilation.checked) image.info.params = compilation.checked->info.params;
  return image;
}

std::vector<std::uint8_t> make_image_bytes(FrontEnd& front_end, const ProgramRequest& request,
                                           const codegen::Target& target) {
  if (request.bindings.empty() && !request.pass_limit) {
    const Compilation compilation = begin(front_end, request);
    const std::uint32_t block_warps = tuned_cuda_options(target_of_code(target).arch).block_warps;
    for (const codegen::CudaEffort effort : efforts_that_serve(request, target)) {
      auto kept = cache_of(compilation, target, {block_warps, effort}).find_bytes();
      if (!kept) continue;
      if (needs_nvrtc(target) && effort == codegen::CudaEffort::Quick)
        improve_if_asked(request, target, block_warps);
      return std::move(*kept);
    }
  }
  return rt::write_image(make_program_image(front_end, request, target));
}

bool is_kept(FrontEnd& front_end, const ProgramRequest& request, const codegen::Target& target) {
  const Compilation compilation = begin(front_end, request);
  const std::uint32_t block_warps = tuned_cuda_options(target_of_code(target).arch).block_warps;
  return find_kept(compilation, target, block_warps) || find_other_code(compilation, target);
}

}  // namespace cinch::service
