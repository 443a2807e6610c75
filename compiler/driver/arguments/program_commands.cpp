// Commands that work on a program.
#include <fmt/format.h>

#include <map>

#include "compiler/driver/arguments/shared_options.h"
#include "compiler/driver/command_tree.h"
#include "compiler/driver/commands/commands.h"

namespace cinch::driver {
void add_check(Registry& registry) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = registry.add("check", "checks programs and prints their errors and warnings",
                                   run_check, options);
  add_value(command, "files", options->files, "FILE",
            "files to check, file:name, or names of the standard library")
      ->required();
  const std::map<std::string, DiagnosticsFormat> formats{{"text", DiagnosticsFormat::Text},
                                                         {"json", DiagnosticsFormat::Json},
                                                         {"sarif", DiagnosticsFormat::Sarif}};
  command
      ->add_option_function<std::string>(
          "--diagnostics",
          [options, formats](const std::string& name) { options->diagnostics = formats.at(name); },
          "the form of errors and warnings")
      ->transform(CLI::IsMember({"text", "json", "sarif"}, CLI::ignore_case));
  add_headers(command, options->headers);
  add_json(command, options->json);
  command->footer("Example: cinch check mine.cinch --diagnostics=sarif");
}

void add_format(Registry& registry) {
  auto options = std::make_shared<FormatOptions>();
  CLI::App* command = registry.add("fmt", "formats programs", run_format, options);
  add_value(command, "files", options->files, "FILE",
            "files to format in place; - formats standard input to standard output")
      ->required();
  command->add_flag("--check", options->check_only,
                    "changes no file; ends with status 1 if a file would change");
  command->footer("Example: cinch fmt --check stdlib/sign/onebit.cinch");
}

void add_explain(Registry& registry) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = registry.add("explain", "shows payload, kernels, bytes moved and workspace",
                                   run_explain, options);
  add_program(command, options->program);
  add_count(command, "--elements", options->elements, "elements of the gradient")
      ->capture_default_str();
  add_columns(command, options->columns);
  add_word(command, "--device", options->execution.device, {"cpu", "cuda"},
           "cuda: also registers, shared memory and occupancy of each kernel");
  add_value(command, "--target", options->target, "TARGET",
            "with --device cuda: cuda:sm_90 and such");
  add_value(command, "--html", options->html, "FILE",
            "writes a page with pictures, for a browser; it needs no other file");
  command->add_flag("--formulas", options->formulas,
                    "prints sizes and bytes as formulas of n and the parameters");
  command->add_flag("--fusion", options->fusion,
                    "also says where in the program neighbouring sweeps part, and how many steps "
                    "fusion took");
  add_json(command, options->json);
  command->footer("Example: cinch explain dgc --elements 25557032");
}

namespace {

void add_run_options(CLI::App* command, RunOptions& options) {
  add_word(command, "--dtype", options.dtype, {"bf16"},
           "bf16: elements of uint16 files are bfloat16");
  add_count(command, "--seed", options.seed, "seed of random draws")->capture_default_str();
  add_count(command, "--step", options.step, "number of the first step")->capture_default_str();
  add_count(command, "--worker", options.worker, "number of this rank")->capture_default_str();
  add_count(command, "--world", options.world, "number of ranks", 1)->capture_default_str();
  add_count(command, "--machine-ranks", options.machine_ranks,
            "number of ranks on each machine, which programs know as machine_ranks; default: all",
            1);
  command->add_flag(
      "--interpret", options.interpret,
      "runs the program in the compiler's interpreter instead of compiling it; slow, for tests");
  add_json(command, options.json);
}

void add_inputs(CLI::App* command, std::vector<std::string>& given) {
  add_value(command, "--with", given, "NAME=VALUE",
            "values of the program's inputs: a number, or a .npy file of the gradient's shape; "
            "several, separated by commas, are for successive steps")
      ->allow_extra_args(false);
}

void add_state_files(CLI::App* command, RunOptions& options) {
  add_value(command, "--state-in", options.state_in, "FILE", "reads the states to start from");
  add_value(command, "--state-out", options.state_out, "FILE",
            "writes the states after the last step");
}

}  // namespace

void add_run(Registry& registry) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = registry.add(
      "run", "encodes and decodes a gradient, and says how small, how exact and how fast", run_run,
      options);
  add_program(command, options->program);
  add_execution(command, options->execution);
  add_value(command, "--input", options->inputs, "G.npy",
            "gradients of one tensor in successive steps")
      ->required();
  add_value(command, "--payload", options->payload, "FILE", "writes the last payload");
  add_value(command, "--output", options->output, "X.npy", "writes the last decoded gradient");
  add_state_files(command, *options);
  add_inputs(command, options->given);
  add_value(command, "--show", options->show, "NAME",
            "also prints the values of these names of the program in the last step, separated by "
            "commas; the interpreter computes them")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag("--ranks", options->ranks, "the inputs are the ranks of one step, in order");
  command->add_flag("--sum-payloads", options->sum_payloads,
                    "with --ranks: adds the payloads field by field and decodes the sum");
  add_bytes(command, "--repeat-to", options->repeat_to_bytes,
            "repeats the gradient up to this size");
  add_run_options(command, *options);
  command->footer("Example: cinch run topk --set ratio=0.01 --input g.npy --output x.npy");
}

void add_eval(Registry& registry) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command = registry.add("eval", "computes expressions and prints their values and types",
                                   run_eval, options);
  add_value(command, "expressions", options->expressions, "EXPRESSION",
            "expressions in Cinch, with statements such as `let x = [1.0, 2.0]` before them; `;` "
            "separates those of one word")
      ->required();
  add_value(command, "--input", options->input, "G.npy",
            "a gradient, which is `g`, with `n` elements");
  add_word(command, "--dtype", options->dtype, {"bf16"},
           "bf16: elements of uint16 files are bfloat16");
  add_count(command, "--seed", options->seed, "seed of random draws")->capture_default_str();
  add_count(command, "--step", options->step, "number of the step")->capture_default_str();
  add_json(command, options->json);
  command->footer("Example: cinch eval 'sum([1e8, 1.0, -1e8, 1.0])'");
}

void add_encode(Registry& registry) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      registry.add("encode", "encodes a gradient to a payload", run_encode, options);
  add_program(command, options->program);
  add_execution(command, options->execution);
  add_value(command, "--input", options->inputs, "G.npy", "the gradient to encode")
      ->required()
      ->expected(1);
  add_value(command, "--payload", options->payload, "FILE", "the file to write the payload to")
      ->required();
  add_state_files(command, *options);
  add_inputs(command, options->given);
  add_run_options(command, *options);
  command->footer("Example: cinch encode onebit --input g.npy --payload g.bin");
}

void add_decode(Registry& registry) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      registry.add("decode", "decodes a payload to a gradient", run_decode, options);
  add_program(command, options->program);
  add_execution(command, options->execution);
  add_value(command, "--payload", options->payload, "FILE", "the payload to decode")->required();
  add_value(command, "--output", options->output, "X.npy", "the file to write the gradient to")
      ->required();
  add_run_options(command, *options);
  command->footer("Example: cinch decode onebit --payload g.bin --output x.npy");
}

void add_build(Registry& registry) {
  auto options = std::make_shared<BuildOptions>();
  CLI::App* command =
      registry.add("build", "compiles programs into a library that links without a compiler",
                   run_build, options);
  add_program(command, options->program);
  add_execution(command, options->execution);
  add_value(command, "files", options->more_files, "FILE", "more programs for the library");
  add_word(
      command, "--emit", options->emit,
      {"ast", "checked", "ir", "kir", "source", "cu", "asm", "object", "ptx", "cubin", "image"},
      "prints a stage of the compiler instead of building a library");
  add_value(command, "--target", options->targets, "TARGET",
            "what to compile for: cpu (x86-64-v2, -v3 and -v4), x86-64, aarch64, "
            "cuda:sm_90, cuda:ptx and others, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_value(command, "--name", options->name, "LIB", "name of the library");
  add_value(command, "--output", options->output, "DIR",
            "the folder for the library, or the file for --emit");
  command->add_flag("--no-passes", options->no_passes,
                    "with --emit=ir: prints the IR before any pass");
  command->footer(
      "Example: cinch build dgc onebit --target cpu,cuda:sm_90 --name compressors --output out/");
}

void add_opt(Registry& registry) {
  auto options = std::make_shared<OptOptions>();
  CLI::App* command = registry.add(
      "opt", "runs passes of the compiler over IR text and prints the result, for tests", run_opt,
      options);
  add_value(command, "file", options->file, "FILE", "a file with IR text; - is standard input");
  add_value(command, "--pass", options->passes, "PASS",
            "passes to run, in order; without it, all passes")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_value(command, "--print-after", options->print_after, "PASS",
            "prints the IR after these passes")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_count(command, "--pass-limit", options->pass_limit, "stops after this many rewrites");
  command->add_flag("--remarks", options->remarks, "says what was not rewritten, and why");
  command->add_flag("--times", options->times, "prints the time of each pass");
  command->add_flag("--list", options->list_passes, "lists the passes");
  command->footer("Example: cinch opt --pass=simplify before.ir");
}

// Commands about what is installed, and for shells and editors.

void add_list(Registry& registry) {
  auto list = std::make_shared<ListOptions>();
  list->words = registry.words;
  CLI::App* command =
      registry.add("list", "lists the standard library, or shows all about some of its compressors",
                   run_list, list);
  add_value(command, "names", list->names, "COMPRESSOR",
            "compressors to show; without names, one line for each compressor");
  add_word(command, "--sort", list->sort, {"family", "name", "bits"},
           "sorts by family, by name, or by the bits of a payload");
  add_json(command, list->json);
  command->footer("Example: cinch list topk error_feedback");
}

void add_doctor(Registry& registry) {
  auto doctor = std::make_shared<DoctorOptions>();
  CLI::App* command = registry.add(
      "doctor", "shows which compilers, GPUs and libraries this machine has, and where", run_doctor,
      doctor);
  add_json(command, doctor->json);
  command->footer("Example: cinch doctor");
}

void add_cache(Registry& registry) {
  CLI::App* cache = registry.app.add_subcommand(
      "cache", "shows, clears and fills the cache of compiled programs");
  cache->require_subcommand(1);
  Registry inner{*cache, registry.action, registry.words};
  auto options = std::make_shared<CacheOptions>();
  CLI::App* command =
      inner.add("show", "shows where the cache is and what it holds", run_cache_show, options);
  add_json(command, options->json);
  inner.add("clear", "removes all entries", run_cache_clear, options);
  inner.add("pack",
            "compresses the entries to a fifth, for a folder that others read (CINCH_CACHE_SHARED)",
            run_cache_pack, options);
  command = inner.add("warm", "compiles programs before they are needed", run_cache_warm, options);
  add_library_programs(command, *options);
  add_value(command, "--cpu,--target", options->targets, "TARGET",
            "what to compile for: native, x86-64-v3, cpu:x86-64, cuda:sm_90, cuda:ptx and "
            "others, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  inner
      .add("improve", "compiles again what was compiled quickly; Cinch starts it",
           run_cache_improve, options)
      ->group("");
  cache->footer(
      "Example: CINCH_CACHE_DIR=kernels cinch cache warm --cpu x86-64-v3 --target cuda:sm_90");
}

void add_lsp(Registry& registry) {
  auto options = std::make_shared<LspOptions>();
  CLI::App* command = registry.add(
      "lsp", "serves editors over standard input and output (Language Server Protocol)", run_lsp,
      options);
  add_headers(command, options->headers);
  // Some editors pass the transport, even if the server has only one.
  command->add_flag("--stdio", options->is_stdio,
                    "over standard input and output, as without this flag");
  command->footer("Example: cinch lsp -I include");
}

void add_completion(Registry& registry) {
  auto options = std::make_shared<CompletionOptions>();
  CLI::App* command =
      registry.app.add_subcommand("completion", "prints the completion script for a shell");
  add_word(command, "shell", options->shell, {"bash", "zsh", "fish"},
           "the shell that reads the script")
      ->required();
  command->callback([root = &registry.app, action = &registry.action, options] {
    *action = [root, options] {
      fmt::print("{}", completion_script(shape_of(*root), options->shell));
      return ExitCode::Done;
    };
  });
  command->footer("Example: source <(cinch completion bash)");
}

}  // namespace cinch::driver
