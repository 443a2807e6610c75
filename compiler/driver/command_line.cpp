// The command line's grammar: sub-commands and options (CLI11 stands only here and in
// command_tree.cpp). The longest
// functions list options one per statement; nothing else happens in them.
#include "compiler/driver/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>

#include "compiler/driver/command_tree.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/completion.h"
#include "compiler/driver/target.h"
#include "compiler/driver/version.h"
#include "runtime/core/nearest_name.h"
#include "runtime/exec/task_runner.h"

namespace cinch::driver {

namespace {

using Action = std::function<ExitCode()>;

// A sub-command: its options live as long as the parser; `action` is what the chosen one does.
struct Registry {
  CLI::App& app;
  Action& action;
  std::vector<std::string> words;  // of the command line

  template <typename Options>
  CLI::App* add(const std::string& name, const std::string& description,
                ExitCode (*run)(const Options&), const std::shared_ptr<Options>& options) {
    CLI::App* command = app.add_subcommand(name, description);
    // The callback outlives a registry of a command's own sub-commands.
    command->callback(
        [chosen = &action, run, options] { *chosen = [run, options] { return run(*options); }; });
    return command;
  }
};

// What CLI11 reads into an unsigned number lets -1 pass, and its ranges are shown in full.
CLI::Validator at_least(std::int64_t least,
                        std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        const std::int64_t value = std::strtoll(text.c_str(), nullptr, 0);
        const bool is_below = (least >= 0 && text.starts_with('-')) || value < least;
        if (is_below) return fmt::format("at least {}, found {}", least, text);
        return value > most ? fmt::format("at most {}, found {}", most, text) : std::string();
      },
      "");
}

// Of numbers that may be fractions; what is no number at all is not between.
CLI::Validator between(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        const double value = std::strtod(text.c_str(), nullptr);
        const bool is_fine = value >= least && value <= most;
        return is_fine ? std::string() : fmt::format("from {} to {}, found {}", least, most, text);
      },
      "");
}

void add_states(CLI::App* command, codegen::StateUpdate& states) {
  const std::map<std::string, codegen::StateUpdate> names{
      {"second-buffer", codegen::StateUpdate::SecondBuffer},
      {"in-place", codegen::StateUpdate::InPlace}};
  command
      ->add_option_function<std::string>(
          "--states", [&states, names](const std::string& name) { states = names.at(name); },
          "where new states are written: beside the present ones, or over them where that is safe")
      ->check(CLI::IsMember({"second-buffer", "in-place"}))
      ->default_str("second-buffer");
}

void add_headers(CLI::App* command, rt::HeaderSearch& headers) {
  command
      ->add_option("-I,--include", headers.include_folders,
                   "where headers of `extern fn` are looked for, behind the program's own folder")
      ->type_name("DIR")
      ->allow_extra_args(false);
  command
      ->add_option("--compile-commands", headers.compile_commands,
                   "a compile_commands.json, for their include paths and macros")
      ->type_name("FILE");
}

void add_bindings(CLI::App* command, std::vector<std::string>& bindings) {
  command
      ->add_option("--set", bindings,
                   "binds a parameter; a constant one is fixed for the compilation")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

void add_program(CLI::App* command, ProgramOptions& options) {
  command
      ->add_option("program", options.program,
                   "a path, path:name, or a name of the standard library")
      ->required()
      ->type_name("PROGRAM");
  add_bindings(command, options.bindings);
  add_states(command, options.states);
  add_headers(command, options.headers);
  command
      ->add_option("--pass-limit", options.pass_limit,
                   "stops after that many rewrites and fusion steps, for bisection")
      ->check(at_least(0));
}

void add_execution(CLI::App* command, ExecutionOptions& options) {
  command->add_option("--device", options.device, "cpu, cuda or emulated")
      ->check(CLI::IsMember({"cpu", "cuda", "emulated"}))
      ->capture_default_str();
  command
      ->add_option("--cpu", options.cpu,
                   "native, x86-64, x86-64-v3 (AVX2), x86-64-v4 (AVX-512), x86-64-v2 and aarch64 "
                   "(build only)")
      ->check(CLI::IsMember(known_cpus()))
      ->capture_default_str();
  command
      ->add_option("--seed-schedule", options.schedule_seed,
                   "the order in which an emulated GPU's blocks and warps run; never changes a "
                   "result")
      ->capture_default_str();
  command->add_option("--threads", options.threads, "threads; 0 takes all of the machine")
      ->check(at_least(0, rt::kMaxThreads))
      ->capture_default_str();
}

void add_json(CLI::App* command, bool& json) {
  command->add_flag("--json", json, "prints one JSON object on standard output");
}

void add_check(Registry& registry) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command =
      registry.add("check", "checks programs and prints diagnostics", run_check, options);
  command->add_option("files", options->files, "programs to check")->required()->type_name("FILE");
  const std::map<std::string, DiagnosticsFormat> formats{{"text", DiagnosticsFormat::Text},
                                                         {"json", DiagnosticsFormat::Json},
                                                         {"sarif", DiagnosticsFormat::Sarif}};
  command
      ->add_option_function<std::string>(
          "--diagnostics",
          [options, formats](const std::string& name) { options->diagnostics = formats.at(name); },
          "how they are printed")
      ->transform(CLI::IsMember({"text", "json", "sarif"}, CLI::ignore_case));
  add_headers(command, options->headers);
  add_json(command, options->json);
  command->footer("Example: cinch check mine.cinch --diagnostics=sarif");
}

void add_format(Registry& registry) {
  auto options = std::make_shared<FormatOptions>();
  CLI::App* command =
      registry.add("fmt", "lays files out in the canonical way", run_format, options);
  command->add_option("files", options->files, "'-' reads standard input and writes to output")
      ->required()
      ->type_name("FILE");
  command->add_flag("--check", options->check_only,
                    "changes nothing; exit 1 if a file would change");
  command->footer("Example: cinch fmt --check stdlib/sign/onebit.cinch");
}

void add_explain(Registry& registry) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command =
      registry.add("explain", "payload, kernels, bytes moved and workspace", run_explain, options);
  add_program(command, options->program);
  command->add_option("--elements", options->elements, "elements of the gradient")
      ->check(at_least(0))
      ->capture_default_str();
  command
      ->add_option("--columns", options->columns,
                   "columns of a matrix gradient; none: the divisor of --elements nearest its "
                   "square root")
      ->check(at_least(1));
  command
      ->add_option("--device", options->execution.device,
                   "cuda: also registers, shared memory and occupancy of each kernel")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command->add_option("--target", options->target, "with --device cuda: cuda:sm_90 and such")
      ->type_name("TARGET");
  command
      ->add_option("--html", options->html, "writes a page with pictures, which needs nothing else")
      ->type_name("FILE");
  command->add_flag("--formulas", options->formulas,
                    "sizes and bytes as formulas of n, the numbers behind them");
  command->add_flag("--fusion", options->fusion,
                    "also says where in the text neighbouring sweeps part, and how many steps "
                    "fusion took");
  add_json(command, options->json);
  command->footer("Example: cinch explain dgc --elements 25557032");
}

void add_run_options(CLI::App* command, RunOptions& options) {
  command->add_option("--dtype", options.dtype, "bf16: what uint16 files hold")
      ->check(CLI::IsMember({"bf16"}));
  command->add_option("--seed", options.seed, "of random draws")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--step", options.step, "number of the (first) step")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--worker", options.worker, "this rank's number")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--world", options.world, "number of ranks")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_flag("--interpret", options.interpret,
                    "through the IR's sequential interpreter instead of compiled code (for tests)");
  add_json(command, options.json);
}

void add_states(CLI::App* command, RunOptions& options) {
  command->add_option("--state-in", options.state_in, "states to start from")->type_name("FILE");
  command->add_option("--state-out", options.state_out, "where to leave them")->type_name("FILE");
}

void add_run(Registry& registry) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = registry.add("run", "encodes and decodes gradients", run_run, options);
  add_program(command, options->program);
  add_execution(command, options->execution);
  command->add_option("--input", options->inputs, "gradients: successive steps of one tensor")
      ->required()
      ->type_name("G.npy");
  command->add_option("--payload", options->payload, "keeps the last payload")->type_name("FILE");
  command->add_option("--output", options->output, "keeps the last decoded gradient")
      ->type_name("X.npy");
  add_states(command, *options);
  command->add_flag("--ranks", options->ranks, "the inputs are the ranks of one step, in order");
  command->add_flag("--sum-payloads", options->sum_payloads,
                    "with --ranks: payloads are added field by field and decoded once");
  command
      ->add_option("--repeat-to", options->repeat_to_bytes,
                   "repeats the gradient up to this many bytes")
      ->check(at_least(0))
      ->type_name("BYTES");
  add_run_options(command, *options);
  command->footer("Example: cinch run topk --set ratio=0.01 --input g.npy --output x.npy");
}

void add_encode(Registry& registry) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = registry.add("encode", "gradient to payload", run_encode, options);
  add_program(command, options->program);
  add_execution(command, options->execution);
  command->add_option("--input", options->inputs, "the gradient")
      ->required()
      ->expected(1)
      ->type_name("G.npy");
  command->add_option("--payload", options->payload, "where the payload goes")
      ->required()
      ->type_name("FILE");
  add_states(command, *options);
  add_run_options(command, *options);
  command->footer("Example: cinch encode onebit --input g.npy --payload g.bin");
}

void add_decode(Registry& registry) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = registry.add("decode", "payload to gradient", run_decode, options);
  add_program(command, options->program);
  add_execution(command, options->execution);
  command->add_option("--payload", options->payload, "what to decode")
      ->required()
      ->type_name("FILE");
  command->add_option("--output", options->output, "where the gradient goes")
      ->required()
      ->type_name("X.npy");
  add_run_options(command, *options);
  command->footer("Example: cinch decode onebit --payload g.bin --output x.npy");
}

void add_build(Registry& registry) {
  auto options = std::make_shared<BuildOptions>();
  CLI::App* command = registry.add(
      "build", "compiles programs into a library; --emit prints a stage", run_build, options);
  add_program(command, options->program);
  add_execution(command, options->execution);
  command->add_option("files", options->more_files, "more files of the library")->type_name("FILE");
  command->add_option("--emit", options->emit, "prints a stage instead of building a library")
      ->check(CLI::IsMember({"ast", "checked", "ir", "kir", "source", "cu", "asm", "object", "ptx",
                             "cubin", "image"}));
  command
      ->add_option("--target", options->targets,
                   "cpu (x86-64-v2, -v3 and -v4), x86-64, aarch64, cuda:sm_90, cuda:ptx …")
      ->type_name("TARGET")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--name", options->name, "of the library")->type_name("LIB");
  command->add_option("--output", options->output, "folder, or file of --emit")->type_name("DIR");
  command->add_flag("--no-passes", options->no_passes, "--emit=ir: as lowering left it");
  command->footer(
      "Example: cinch build dgc onebit --target cpu,cuda:sm_90 --name compressors --output out/");
}

void add_opt(Registry& registry) {
  auto options = std::make_shared<OptOptions>();
  CLI::App* command =
      registry.add("opt", "reads IR text, runs passes, prints it (for tests)", run_opt, options);
  command->add_option("file", options->file, "'-' for standard input")->type_name("FILE");
  command->add_option("--pass", options->passes, "passes to run, in order; none: all")
      ->type_name("PASS")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--print-after", options->print_after, "passes to print the IR after")
      ->type_name("PASS")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--pass-limit", options->pass_limit, "stops after that many rewrites")
      ->check(at_least(0));
  command->add_flag("--remarks", options->remarks, "prints what was not rewritten, and why");
  command->add_flag("--times", options->times, "prints the time of each pass");
  command->add_flag("--list", options->list_passes, "lists the passes");
  command->footer("Example: cinch opt --pass=simplify before.ir");
}

void add_list_and_doctor(Registry& registry) {
  auto list = std::make_shared<ListOptions>();
  list->words = registry.words;
  CLI::App* command = registry.add(
      "list", "the standard library, or all about some of its compressors", run_list, list);
  command->add_option("names", list->names, "compressors; none: a line for each there is")
      ->type_name("COMPRESSOR");
  add_json(command, list->json);
  command->footer("Example: cinch list topk error_feedback");
  auto doctor = std::make_shared<DoctorOptions>();
  command =
      registry.add("doctor", "what this machine has and where it was found", run_doctor, doctor);
  add_json(command, doctor->json);
  command->footer("Example: cinch doctor");
}

void add_verify(Registry& registry) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command =
      registry.add("verify", "tries the laws that a program must keep and those that it claims",
                   run_verify, options);
  add_program(command, options->program);
  add_execution(command, options->execution);
  command->add_option("--input", options->inputs, "gradients to try beside those made up")
      ->type_name("G.npy");
  command->add_option("--dtype", options->dtype, "bf16: what uint16 files hold")
      ->check(CLI::IsMember({"bf16"}));
  command->add_option("--seed", options->seed, "of random draws")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--budget", options->budget, "about so many seconds for all laws")
      ->check(CLI::NonNegativeNumber)
      ->type_name("SECONDS")
      ->capture_default_str();
  command
      ->add_option("--counterexample", options->counterexample,
                   "where the input goes that breaks a law; else COMPRESSOR-LAW.npy")
      ->type_name("X.npy");
  add_json(command, options->json);
  command->footer("Example: cinch verify topk --set ratio=0.05 --budget 10");
}

void add_bench(Registry& registry) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = registry.add(
      "bench", "times beside the floor that memory sets, and of compiling", run_bench, options);
  command->add_option("programs", options->programs, "none: all of the standard library")
      ->type_name("PROGRAM");
  add_bindings(command, options->bindings);
  add_headers(command, options->headers);
  add_states(command, options->states);
  add_execution(command, options->execution);
  command->add_option("--elements", options->elements, "elements of the gradient")
      ->check(at_least(1))
      ->capture_default_str();
  command
      ->add_option("--columns", options->columns,
                   "columns of a matrix gradient; none: the divisor of --elements nearest its "
                   "square root")
      ->check(at_least(1));
  command->add_option("--input", options->input, "a gradient, repeated up to that length")
      ->type_name("G.npy");
  command->add_option("--seconds", options->seconds, "about so long for each call of each program")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add_json(command, options->json);
  command->footer("Example: cinch bench onebit topk --elements 67108864");
}

void add_report(Registry& registry) {
  auto options = std::make_shared<SurveyOptions>();
  CLI::App* command = registry.add(
      "report", "programs beside each other on a folder of gradients, and what a step would take",
      run_report, options);
  command->add_option("folder", options->folder, "a folder with an .npy file for each tensor")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--programs", options->programs,
                   "what is tried; none: all of the standard library")
      ->type_name("PROGRAM");
  command->add_option("--link", options->link, "the bandwidth of each rank's link, as 10Gbit/s")
      ->type_name("BANDWIDTH")
      ->capture_default_str();
  command->add_option("--latency", options->latency_us, "of each link")
      ->check(between(0, 1e12))
      ->type_name("MICROSECONDS")
      ->capture_default_str();
  command->add_option("--ranks", options->ranks, "how many machines there are")
      ->check(at_least(2, kMaxRanks))
      ->capture_default_str();
  command
      ->add_option("--threads", options->execution.threads,
                   "threads of each rank; 0: as many as this machine has")
      ->check(at_least(0, rt::kMaxThreads))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "of random draws")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "about so long for each program")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--dtype", options->dtype, "bf16: what uint16 files hold")
      ->check(CLI::IsMember({"bf16"}));
  command
      ->add_option("--html", options->html, "writes a page with pictures, which needs nothing else")
      ->type_name("FILE");
  add_json(command, options->json);
  command->footer("Example: cinch report gradients/ --link 10Gbit/s --ranks 8 --html report.html");
}

void add_tune(Registry& registry) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command =
      registry.add("tune", "measures how work is best cut up on this machine, for later runs",
                   run_tune, options);
  add_execution(command, options->execution);
  command->add_option("--budget", options->budget, "about so many seconds for all of it")
      ->check(CLI::NonNegativeNumber)
      ->type_name("SECONDS")
      ->capture_default_str();
  command
      ->add_option("--output", options->output,
                   "the table to write; else the one that later runs use")
      ->type_name("FILE");
  add_json(command, options->json);
  command->footer("Example: cinch tune --device cuda --budget 120");
}

void add_cache(Registry& registry) {
  CLI::App* cache = registry.app.add_subcommand("cache", "programs that were compiled before");
  cache->require_subcommand(1);
  Registry inner{*cache, registry.action, registry.words};
  auto options = std::make_shared<CacheOptions>();
  CLI::App* command =
      inner.add("show", "where the cache is and what it holds", run_cache_show, options);
  add_json(command, options->json);
  inner.add("clear", "removes all entries", run_cache_clear, options);
  inner.add("pack", "makes entries a fifth as large, for a layer that others read", run_cache_pack,
            options);
  command = inner.add("warm", "compiles ahead of time", run_cache_warm, options);
  command->add_option("programs", options->programs, "none: all of the standard library")
      ->type_name("PROGRAM");
  add_bindings(command, options->bindings);
  add_headers(command, options->headers);
  add_states(command, options->states);
  command
      ->add_option("--cpu,--target", options->targets,
                   "native, x86-64-v3, cpu:x86-64, cuda:sm_90, cuda:ptx …")
      ->type_name("TARGET")
      ->delimiter(',')
      ->allow_extra_args(false);
  cache->footer(
      "Example: CINCH_CACHE_DIR=kernels cinch cache warm --cpu x86-64-v3 --target cuda:sm_90");
}

void add_completion(Registry& registry) {
  auto options = std::make_shared<CompletionOptions>();
  CLI::App* command = registry.app.add_subcommand("completion", "completion for a shell");
  command->add_option("shell", options->shell, "the shell that reads the script")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([root = &registry.app, action = &registry.action, options] {
    *action = [root, options] {
      fmt::print("{}", completion_script(shape_of(*root), options->shell));
      return ExitCode::Done;
    };
  });
  command->footer("Example: source <(cinch completion bash)");
}

void add_ucx(CLI::App* command, TransportOptions& options) {
  command
      ->add_option("--rendezvous", options.rendezvous,
                   "of ucx: where ranks meet; rank 0 listens there until all have come")
      ->type_name("HOST:PORT");
  command
      ->add_option("--rank", options.rank, "of ucx: this process is that rank; else RANK says it")
      ->check(at_least(0, kMaxRanks - 1));
  command
      ->add_option("--secret-file", options.secret_file,
                   "of ucx: ranks know each other by what is in it, else by CINCH_SECRET")
      ->type_name("FILE");
  command
      ->add_option("--interface", options.interface, "of ucx: the network interface that is used")
      ->type_name("NAME");
}

void add_transport(const Registry& registry, CLI::App* command, TransportOptions& options) {
  options.words = registry.words;
  // What mpirun starts is a rank of its world.
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) options.transport = "mpi";
  command->add_option("--transport", options.transport, "how ranks reach each other")
      ->check(CLI::IsMember({"loopback", "mpi", "nccl", "ucx"}))
      ->capture_default_str();
  command
      ->add_option("--ranks", options.ranks,
                   "number of ranks; 0: as many as inputs, or as were launched")
      ->check(at_least(0, kMaxRanks))
      ->capture_default_str();
  command->add_option("--latency", options.latency_us, "of loopback's links; 0: none")
      ->check(between(0, 1e12))
      ->type_name("MICROSECONDS");
  command
      ->add_option("--bandwidth", options.megabits_per_second,
                   "of loopback's links; 0: that of memory")
      ->check(between(0, 1e12))
      ->type_name("MBIT/S");
  command->add_flag("--exact", options.is_exact,
                    "floats are added in rank order, also where MPI or NCCL would choose its own");
  command->add_option("--timeout", options.timeout_seconds, "so long nothing may move")
      ->check(between(0.001, 1e6))
      ->type_name("SECONDS")
      ->capture_default_str();
  add_ucx(command, options);
}

void add_sync_plan(CLI::App* command, SyncCommandOptions& options) {
  command
      ->add_option("--plan", options.plan,
                   "auto, allreduce, allgather, two_shot, ring, ps, tree or hierarchical")
      ->capture_default_str();
  command
      ->add_option("--machine-ranks", options.ranks_per_machine,
                   "ranks of each machine, which follow one another; of plan hierarchical")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_option("--servers", options.servers, "ranks that serve in plan ps")->delimiter(',');
  command
      ->add_option(
          "--piece-bytes", options.piece_bytes,
          "of the gradient, encoded and sent at a time; else 4 MiB, or what plan auto finds")
      ->check(at_least(1024));
  command
      ->add_option("--lengths", options.lengths,
                   "of payloads whose length is known late: padded, exchanged or auto")
      ->check(CLI::IsMember({"auto", "padded", "exchanged"}))
      ->capture_default_str();
  command
      ->add_option("--probe", options.probe,
                   "what `cinch probe` has kept of this transport; of plan auto")
      ->type_name("NET.json");
  command->add_flag("--explain", options.explain,
                    "prints the plan of rank 0, and why it was chosen, and runs nothing");
  command->add_option("--save-plan", options.save_plan, "writes the plan as JSON")
      ->type_name("FILE");
}

void add_sync_files(CLI::App* command, SyncCommandOptions& options) {
  command
      ->add_option("--state-in", options.state_in,
                   "states to start from, of all ranks: %r in the name is the rank")
      ->type_name("FILE");
  command->add_option("--state-out", options.state_out, "where each rank leaves its states")
      ->type_name("FILE");
  command->add_option("--output", options.output, "keeps the update of the last step")
      ->type_name("X.npy");
  command->add_option("--trace", options.trace, "writes a timeline of the last step for Perfetto")
      ->type_name("FILE");
}

void add_sync(Registry& registry) {
  auto options = std::make_shared<SyncCommandOptions>();
  CLI::App* command =
      registry.add("sync", "averages gradients over ranks by a plan", run_sync_command, options);
  command
      ->add_option("program", options->program.program,
                   "a path, path:name, a name of the standard library, or none")
      ->required()
      ->type_name("PROGRAM");
  add_bindings(command, options->program.bindings);
  add_headers(command, options->program.headers);
  add_states(command, options->program.states);
  add_execution(command, options->execution);
  command
      ->add_option("--input", options->inputs,
                   "a gradient, or a folder of them, for each rank, or one name in which %r is the "
                   "rank; a profile alone has numbers made up")
      ->type_name("G.npy");
  command
      ->add_option("--profile", options->profile,
                   "when each tensor becomes ready in a backward pass, which exchanges hide behind")
      ->type_name("MODEL.csv");
  command->add_flag("--at-once", options->is_at_once,
                    "with --profile: its tensors are all ready when a step begins, to compare");
  command->add_option("--dtype", options->dtype, "bf16: what uint16 files hold")
      ->check(CLI::IsMember({"bf16"}));
  add_transport(registry, command, *options);
  command
      ->add_option("--cuda-aware", options->cuda_aware,
                   "MPI takes messages of ranks on GPUs from their memory: yes, no, or as it says")
      ->check(CLI::IsMember({"auto", "yes", "no"}))
      ->capture_default_str();
  add_sync_plan(command, *options);
  command->add_option("--steps", options->num_steps, "how often, each time with the same gradient")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_option("--step", options->step, "number of the first step")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "of random draws")
      ->check(at_least(0))
      ->capture_default_str();
  command
      ->add_option("--repeat-to", options->repeat_to_bytes,
                   "repeats the gradient up to this many bytes")
      ->check(at_least(0))
      ->type_name("BYTES");
  command
      ->add_option("--policy", options->policy,
                   "rules that say which tensor is compressed by which program")
      ->type_name("POLICY.json");
  add_sync_files(command, *options);
  add_json(command, options->json);
  command->footer(
      "Example: cinch sync dgc --input a.npy b.npy c.npy d.npy --plan two_shot --trace sync.json");
}

void add_probe(Registry& registry) {
  auto options = std::make_shared<ProbeCommandOptions>();
  CLI::App* command = registry.add(
      "probe", "measures how long exchanges between ranks take, for plans", run_probe, options);
  add_transport(registry, command, *options);
  command->add_option("--largest", options->largest_bytes, "most bytes that a rank sends at a time")
      ->check(at_least(0, std::int64_t{1} << 32))
      ->type_name("BYTES")
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "about so long for all of it")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--output", options->output, "keeps what was measured")
      ->type_name("NET.json");
  add_json(command, options->json);
  command->footer("Example: mpirun -n 4 cinch probe --transport mpi --output net.json");
}

// Where a sub-command must stand, a word that is none: CLI11 only says that one is missing.
// `path`: the words up to here.
void refuse_unknown_command(const CLI::App& app, const std::string& path,
                            std::span<char* const> words) {
  const std::vector<const CLI::App*> commands =
      app.get_subcommands([](const CLI::App*) { return true; });
  if (commands.empty() || words.empty() || words.front()[0] == '-') return;
  const std::string word = words.front();
  std::vector<std::string> names;
  for (const CLI::App* command : commands) {
    if (command->get_name() == word)
      return refuse_unknown_command(*command, fmt::format("{} {}", path, word), words.subspan(1));
    names.push_back(command->get_name());
  }
  const std::string_view near = nearest_name(word, {names.begin(), names.end()});
  throw CommandError(ExitCode::Usage,
                     "unknown command '" + word + "'" +
                         (near.empty() ? "" : "; did you mean '" + std::string(near) + "'?") +
                         "\nsee: " + path + " --help");
}

}  // namespace

ExitCode run_command_line(int argc, char** argv) {
  CLI::App app("Cinch compiles gradient compressors: check, explain, run.", "cinch");
  app.set_version_flag("--version", std::string("cinch ") + kVersion);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    return "error: " + std::string(error.what()) + "\nsee: " + failed->get_display_name() +
           " --help\n";
  });
  Action action;
  Registry registry{app, action, std::vector<std::string>(argv, argv + argc)};
  add_check(registry);
  add_format(registry);
  add_explain(registry);
  add_run(registry);
  add_encode(registry);
  add_decode(registry);
  add_build(registry);
  add_opt(registry);
  add_list_and_doctor(registry);
  add_verify(registry);
  add_bench(registry);
  add_report(registry);
  add_tune(registry);
  add_cache(registry);
  add_completion(registry);
  add_sync(registry);
  add_probe(registry);
  refuse_unknown_command(app, "cinch", std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ExitCode::Done : ExitCode::Usage;
  }
  return action();
}

}  // namespace cinch::driver
