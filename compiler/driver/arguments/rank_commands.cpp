// Options of `cinch sync` and `cinch probe`.

#include "compiler/driver/arguments/shared_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/ranks/rank_transports.h"
#include "runtime/exec/task_runner.h"

namespace cinch::driver {
namespace {

void add_ucx(CLI::App* command, TransportOptions& options) {
  add_value(command, "--rendezvous", options.rendezvous, "HOST:PORT",
            "ucx: the address at which ranks meet; rank 0 listens there until all have arrived");
  add_count(command, "--rank", options.rank,
            "ucx: the number of this rank; without it, the environment variable RANK", 0,
            kMaxRanks - 1);
  add_value(command, "--secret-file", options.secret_file, "FILE",
            "ucx: a file with the secret that only the ranks know; without it, CINCH_SECRET");
  add_value(command, "--interface", options.interface, "NAME", "ucx: the network interface to use");
}

// `by_default`: what sets the number of ranks without --ranks.
void add_transport(const Registry& registry, CLI::App* command, TransportOptions& options,
                   const std::string& by_default) {
  options.words = registry.words;
  // A process that mpirun starts is a rank of its world.
  if (is_started_by_mpirun()) options.transport = "mpi";
  add_word(command, "--transport", options.transport, {"loopback", "mpi", "nccl", "ucx"},
           "how ranks reach each other; loopback: as threads of this process");
  add_count(command, "--ranks", options.ranks, "number of ranks; 0: " + by_default, 0, kMaxRanks)
      ->capture_default_str();
  add_value(command, "--latency", options.latency_us, "MICROSECONDS",
            "loopback: the latency of every link")
      ->check(between(0, 1e12));
  add_value(command, "--bandwidth", options.megabits_per_second, "MBIT/S",
            "loopback: the bandwidth of every link; 0: that of memory")
      ->check(between(0, 1e12));
  command->add_flag(
      "--exact", options.is_exact,
      "adds floats in rank order on every transport, so that MPI and NCCL give the same bits");
  add_value(command, "--timeout", options.timeout_seconds, "SECONDS",
            "a step fails if no rank makes progress for this long")
      ->check(between(0.001, 1e6))
      ->capture_default_str();
  add_ucx(command, options);
}

void add_sync_plan(CLI::App* command, SyncCommandOptions& options) {
  add_value(command, "--plan", options.plan, "PLAN",
            "how ranks exchange: auto, allreduce, allgather, two_shot, ring, ps, tree or "
            "hierarchical; auto measures and chooses; or a file that `cinch plan` wrote")
      ->capture_default_str();
  add_count(command, "--machine-ranks", options.ranks_per_machine,
            "the number of ranks on each machine, which have successive numbers: for plan "
            "hierarchical, and machine_ranks of programs; default: all ranks are on one machine",
            1);
  add_count(command, "--servers", options.servers,
            "plan ps: the ranks that add, separated by commas")
      ->delimiter(',');
  add_bytes(command, "--piece-bytes", options.piece_bytes,
            "the size of a piece of the gradient, which is encoded and sent at a time; without it, "
            "4 MiB, or what plan auto finds",
            1024);
  add_word(command, "--lengths", options.lengths, {"auto", "padded", "exchanged"},
           "payloads whose length depends on the data: padded to the longest, or their "
           "lengths exchanged first");
  add_value(command, "--probe", options.probe, "NET.json",
            "plan auto: uses what `cinch probe` has measured and written");
  command->add_flag("--explain", options.explain,
                    "prints the plan of rank 0 and why it was chosen, and runs nothing");
  add_value(command, "--save-plan", options.save_plan, "FILE", "writes the plan as JSON");
}

void add_sync_files(CLI::App* command, SyncCommandOptions& options) {
  add_value(command, "--state-in", options.state_in, "FILE",
            "reads the states to start from; %r in the name stands for the rank");
  add_value(command, "--state-out", options.state_out, "FILE",
            "writes the states of each rank; %r in the name stands for the rank");
  add_value(command, "--output", options.output, "X.npy", "writes the update of the last step");
  add_value(command, "--trace", options.trace, "FILE",
            "writes a timeline of the last step, for Perfetto");
}

}  // namespace

void add_sync(Registry& registry) {
  auto options = std::make_shared<SyncCommandOptions>();
  CLI::App* command =
      registry.add("sync", "averages gradients over ranks, compressed", run_sync_command, options);
  add_value(command, "program", options->program.program, "PROGRAM",
            "a file, file:name, a name of the standard library, or none to compress nothing; "
            "required unless --plan is a file");
  add_bindings(command, options->program.bindings);
  add_headers(command, options->program.headers);
  add_states(command, options->program.states);
  add_execution(command, options->execution);
  add_value(command, "--input", options->inputs, "G.npy",
            "a gradient file for each rank, or a folder with one file for each tensor; or one name "
            "in which %r stands for the rank. Without it, --profile gives made-up numbers");
  add_value(command, "--profile", options->profile, "MODEL.csv",
            "says when a backward pass has each tensor ready; exchanges begin then");
  command->add_flag("--at-once", options->is_at_once,
                    "with --profile: all tensors are ready when a step begins, for comparison");
  add_word(command, "--dtype", options->dtype, {"bf16"},
           "bf16: elements of uint16 files are bfloat16");
  add_transport(registry, command, *options,
                "as many as there are inputs, or as a launcher has started");
  add_word(command, "--cuda-aware", options->cuda_aware, {"auto", "yes", "no"},
           "MPI reads and writes the memory of GPUs itself: yes, no, or as MPI says (auto)");
  add_sync_plan(command, *options);
  add_count(command, "--steps", options->num_steps, "number of steps, all with the same gradient",
            1)
      ->capture_default_str();
  add_count(command, "--step", options->step, "number of the first step")->capture_default_str();
  add_count(command, "--seed", options->seed, "seed of random draws")->capture_default_str();
  add_bytes(command, "--repeat-to", options->repeat_to_bytes,
            "repeats the gradient up to this size");
  add_value(command, "--policy", options->policy, "POLICY.json",
            "rules that say which program compresses which tensor");
  add_sync_files(command, *options);
  add_json(command, options->json);
  command->footer(
      "Example: cinch sync dgc --input a.npy b.npy c.npy d.npy --plan two_shot --trace sync.json");
}

void add_probe(Registry& registry) {
  auto options = std::make_shared<ProbeCommandOptions>();
  CLI::App* command = registry.add(
      "probe", "measures how long exchanges between ranks take, for `cinch sync --plan auto`",
      run_probe, options);
  add_transport(registry, command, *options,
                "as many as a launcher has started; loopback needs a number");
  add_count(command, "--machine-ranks", options->ranks_per_machine,
            "the number of ranks on each machine, which have successive numbers: messages within "
            "machines and between them are measured apart",
            1)
      ->capture_default_str();
  add_bytes(command, "--largest", options->largest_bytes, "the most that a rank sends at a time", 0,
            std::uint64_t{1} << 32)
      ->capture_default_str();
  add_seconds(command, "--seconds", options->seconds, "time to spend on all of it, about");
  add_value(command, "--output", options->output, "NET.json", "writes what was measured");
  add_json(command, options->json);
  command->footer("Example: mpirun -n 4 cinch probe --transport mpi --output net.json");
}

void add_plan(Registry& registry) {
  auto options = std::make_shared<PlanCommandOptions>();
  CLI::App* command = registry.add(
      "plan",
      "chooses for each tensor whether it is compressed, with what, and how ranks exchange it",
      run_plan, options);
  add_value(command, "profile", options->profile, "MODEL.csv",
            "when a backward pass has each tensor ready");
  add_value(command, "--programs", options->programs, "PROGRAM",
            "what tensors may be compressed with, as words or separated by commas; none is f32, "
            "which is always among them");
  add_value(command, "--network", options->network, "NET.json",
            "what `cinch probe` has measured and written; without it, loopback with --ranks");
  add_count(command, "--ranks", options->ranks, "number of ranks; 0: as --network says", 0,
            kMaxSurveyRanks)
      ->capture_default_str();
  add_value(command, "--latency", options->latency_us, "MICROSECONDS",
            "without --network: the latency of every link")
      ->check(between(0, 1e12));
  add_value(command, "--bandwidth", options->megabits_per_second, "MBIT/S",
            "without --network: the bandwidth of every link; 0: that of memory")
      ->check(between(0, 1e12));
  add_count(command, "--machine-ranks", options->ranks_per_machine,
            "the number of ranks on each machine, which have successive numbers; 0: as --network "
            "says, else 1")
      ->capture_default_str();
  add_value(
      command, "--speeds", options->speeds, "SPEEDS.json",
      "what --measure has written, perhaps elsewhere; without it, programs are measured here");
  add_value(
      command, "--measure", options->measured, "PROGRAM",
      "measures these programs for --speeds, with --ranks on this machine, and plans nothing");
  add_execution(command, options->execution);
  add_seconds(command, "--seconds", options->seconds, "time to measure each program, about");
  add_count(command, "--elements", options->elements,
            "--measure: elements of the largest gradient, which should not fit into caches", 1)
      ->capture_default_str();
  command->add_flag("--explain", options->explain, "prints a row for each group of tensors");
  add_value(command, "--output", options->output, "PLAN.json",
            "writes the plan, for `cinch sync --plan`; with --measure, the speeds");
  add_value(command, "--trace", options->trace, "FILE",
            "writes the predicted timeline of a step, for Perfetto");
  add_value(
      command, "--vary", options->vary, "NAME=VALUES",
      "a value of this parameter for each tensor of --gradients, of one program: bits=2..8, or "
      "ratio=0.001,0.01,0.1; --output is a policy");
  add_value(command, "--budget", options->budget, "NAME=VALUE",
            "--vary: the errors of all tensors add up to at most those of this value for all");
  command->add_flag(
      "--budget-each", options->is_each_held,
      "--vary: no tensor's relative error is above that of all tensors with --budget");
  add_value(command, "--gradients", options->gradients, "DIR",
            "--vary: a folder with an .npy file for each tensor");
  add_word(command, "--dtype", options->dtype, {"bf16"},
           "bf16: elements of uint16 files are bfloat16");
  add_count(command, "--seed", options->seed, "--vary: seed of random draws")
      ->capture_default_str();
  add_json(command, options->json);
  command->footer(
      "Example: cinch plan gpt2.csv --network net.json --programs onebit,fp16 --output plan.json");
}

void add_simulate(Registry& registry) {
  auto options = std::make_shared<SimulateCommandOptions>();
  CLI::App* command =
      registry.add("simulate", "predicts a step on a fabric that is described, not at hand",
                   run_simulate, options);
  add_value(command, "plan_file", options->file, "PLAN.json", "what `cinch plan` has written");
  add_value(command, "--topology", options->topology, "FABRIC.json",
            "machines, leaves, spines and sites, and their links");
  add_count(command, "--ranks", options->step.ranks,
            "number of ranks, the first of the fabric; 0: all of it")
      ->capture_default_str();
  add_value(command, "--plan", options->plan, "NAME",
            "without a plan file: one plan for all tensors of --profile");
  add_value(command, "--program", options->program, "PROGRAM",
            "with --plan: what tensors are compressed with; none: f32")
      ->capture_default_str();
  add_value(command, "--profile", options->step.profile, "MODEL.csv",
            "when a backward pass has each tensor ready; without it, all are ready at once");
  add_value(command, "--speeds", options->step.speeds, "SPEEDS.json",
            "what `cinch plan --measure` has written; without it, programs are measured here");
  add_execution(command, options->step.execution);
  add_seconds(command, "--seconds", options->step.seconds, "time to measure each program, about");
  add_value(command, "--slow", options->slow, "RANKS:FACTORx",
            "so many ranks, or a share of them (0.1%), take FACTOR times as long to compute");
  add_value(command, "--down", options->down, "LINK",
            "links of the fabric that carry nothing, as leaf3-spine7");
  add_bytes(
      command, "--piece-bytes", options->piece_bytes,
      "with --plan: bytes of gradient that are encoded and sent at a time; without it, 4 MiB. "
      "All ranks share them, so more ranks need more",
      1024);
  command->add_flag("--classes", options->has_classes,
                    "simulates ranks that are alike as one, as is done beyond 512 ranks: faster");
  add_count(command, "--every", options->period.every,
            "steps from one exchange to the next: a whole period is simulated, with a step's time "
            "from --profile",
            1)
      ->capture_default_str();
  add_count(command, "--fragments", options->period.fragments,
            "parts of the tensors that are exchanged in turns within --every steps", 1)
      ->capture_default_str();
  add_count(command, "--delay", options->period.delay,
            "steps between an exchange's begin and the use of what it brings")
      ->capture_default_str();
  add_count(command, "--correct", options->period.correct,
            "each so many exchanges, one in f32; 0: none")
      ->capture_default_str();
  add_word(command, "--routing", options->routing,
           {"sprayed", "hashed", "host", "leaf-pair", "coloured", "coloured-nic", "coloured-whole"},
           "how flows between leaves take spines");
  add_count(command, "--seed", options->seed, "of --routing hashed")->capture_default_str();
  command->add_flag("--explain", options->step.explain, "prints the exposed time of each tensor");
  add_value(command, "--trace", options->step.trace, "FILE",
            "writes the timeline of the step, for Perfetto");
  add_word(command, "--export", options->format, {"goal", "goal-one", "chakra"},
           "writes the plan to the folder of --output for LogGOPSim (goal-one: each rank does one "
           "thing at a time), ATLAHS (goal) or ASTRA-sim (chakra)");
  add_value(command, "--output", options->output, "DIR", "the folder of --export");
  add_json(command, options->step.json);
  command->footer("Example: cinch simulate plan.json --topology cluster.json --ranks 64 --explain");
}

// Commands that test programs and measure them.

void add_verify(Registry& registry) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = registry.add(
      "verify",
      "tests properties of a program (its laws): those of every program, and those that it claims",
      run_verify, options);
  add_program(command, options->program);
  add_execution(command, options->execution);
  add_value(command, "--input", options->inputs, "G.npy",
            "your gradients, tested beside the generated ones");
  add_word(command, "--dtype", options->dtype, {"bf16"},
           "bf16: elements of uint16 files are bfloat16");
  add_count(command, "--seed", options->seed, "seed of random draws")->capture_default_str();
  add_seconds(command, "--budget", options->budget, "time to spend on all laws, about");
  add_value(command, "--counterexample", options->counterexample, "X.npy",
            "the file for the input that breaks the first broken law; those of further "
            "laws, and of all without this option, are COMPRESSOR-LAW.npy in this folder");
  add_json(command, options->json);
  command->footer("Example: cinch verify topk --set ratio=0.05 --budget 10");
}

void add_bench(Registry& registry) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = registry.add(
      "bench",
      "measures encoding and decoding beside the least time that memory allows, and compiling",
      run_bench, options);
  add_library_programs(command, *options);
  add_execution(command, options->execution);
  add_count(command, "--elements", options->elements, "elements of the gradient", 1)
      ->capture_default_str();
  add_columns(command, options->columns);
  add_value(command, "--input", options->input, "G.npy",
            "a gradient that is repeated up to --elements; without it, made-up numbers");
  add_word(command, "--sort", options->sort,
           {"none", "name", "payload", "encode", "decode", "sync", "compile"},
           "sorts by name, by payload size, by the time of a call or by the time to "
           "compile; none: the order in which programs are given");
  add_seconds(command, "--seconds", options->seconds,
              "time to measure each call of each program, about");
  add_json(command, options->json);
  command->footer("Example: cinch bench onebit topk --elements 67108864");
}

void add_report(Registry& registry) {
  auto options = std::make_shared<SurveyOptions>();
  CLI::App* command = registry.add(
      "report", "compares programs on a folder of gradients, and predicts the time of a step",
      run_report, options);
  add_value(command, "folder", options->folder, "DIR", "a folder with an .npy file for each tensor")
      ->required();
  add_value(command, "--programs", options->programs, "PROGRAM",
            "programs to try, as words or separated by commas; without it, all of the library");
  add_value(command, "--link", options->link, "BANDWIDTH",
            "the bandwidth of each rank's link, such as 10Gbit/s")
      ->capture_default_str();
  add_value(command, "--latency", options->latency_us, "MICROSECONDS", "the latency of each link")
      ->check(between(0, 1e12))
      ->capture_default_str();
  add_count(command, "--ranks", options->ranks, "number of machines", 2, kMaxReportRanks)
      ->capture_default_str();
  add_count(command, "--threads", options->execution.threads,
            "threads of each rank; 0: as many as this machine has", 0, rt::kMaxThreads)
      ->capture_default_str();
  add_count(command, "--seed", options->seed, "seed of random draws")->capture_default_str();
  command->add_option("--seconds", options->seconds, "time to spend on each program, about")
      ->check(seconds())
      ->capture_default_str();
  add_word(command, "--dtype", options->dtype, {"bf16"},
           "bf16: elements of uint16 files are bfloat16");
  add_value(command, "--html", options->html, "FILE",
            "writes a page with pictures, for a browser; it needs no other file");
  command->add_flag("--by-tensor", options->is_by_tensor,
                    "also prints each program's bytes and error by tensor");
  add_json(command, options->json);
  command->footer("Example: cinch report gradients/ --link 10Gbit/s --ranks 8 --html report.html");
}

void add_tune(Registry& registry) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command = registry.add(
      "tune", "finds the block and task sizes that are fastest on this machine, for later runs",
      run_tune, options);
  add_execution(command, options->execution);
  add_seconds(command, "--budget", options->budget, "time to spend on all of it, about");
  add_value(command, "--output", options->output, "FILE",
            "the table to write; without it, the table that later runs use");
  add_json(command, options->json);
  command->footer("Example: cinch tune --device cuda --budget 120");
}

}  // namespace cinch::driver
