// Options of `cinch sync` and `cinch probe`.

#include "compiler/driver/arguments/shared_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/ranks/rank_transports.h"
#include "runtime/exec/task_runner.h"

namespace cinch::driver {
namespace {

void add_ucx(CLI::App* command, TransportOptions& options) {
  command
      ->add_option(
          "--rendezvous", options.rendezvous,
          "ucx: the address at which ranks meet; rank 0 listens there until all have arrived")
      ->type_name("HOST:PORT");
  add_count(command, "--rank", options.rank,
            "ucx: the number of this rank; without it, the environment variable RANK", 0,
            kMaxRanks - 1);
  command
      ->add_option("--secret-file", options.secret_file,
                   "ucx: a file with the secret that only the ranks know; without it, CINCH_SECRET")
      ->type_name("FILE");
  command->add_option("--interface", options.interface, "ucx: the network interface to use")
      ->type_name("NAME");
}

// `by_default`: what sets the number of ranks without --ranks.
void add_transport(const Registry& registry, CLI::App* command, TransportOptions& options,
                   const std::string& by_default) {
  options.words = registry.words;
  // A process that mpirun starts is a rank of its world.
  if (is_started_by_mpirun()) options.transport = "mpi";
  command
      ->add_option("--transport", options.transport,
                   "how ranks reach each other; loopback: as threads of this process")
      ->check(one_of({"loopback", "mpi", "nccl", "ucx"}))
      ->capture_default_str();
  add_count(command, "--ranks", options.ranks, "number of ranks; 0: " + by_default, 0, kMaxRanks)
      ->capture_default_str();
  command->add_option("--latency", options.latency_us, "loopback: the latency of every link")
      ->check(between(0, 1e12))
      ->type_name("MICROSECONDS");
  command
      ->add_option("--bandwidth", options.megabits_per_second,
                   "loopback: the bandwidth of every link; 0: that of memory")
      ->check(between(0, 1e12))
      ->type_name("MBIT/S");
  command->add_flag(
      "--exact", options.is_exact,
      "adds floats in rank order on every transport, so that MPI and NCCL give the same bits");
  command
      ->add_option("--timeout", options.timeout_seconds,
                   "a step fails if no rank makes progress for this long")
      ->check(between(0.001, 1e6))
      ->type_name("SECONDS")
      ->capture_default_str();
  add_ucx(command, options);
}

void add_sync_plan(CLI::App* command, SyncCommandOptions& options) {
  command
      ->add_option("--plan", options.plan,
                   "how ranks exchange: auto, allreduce, allgather, two_shot, ring, ps, tree or "
                   "hierarchical; auto measures and chooses")
      ->type_name("PLAN")
      ->capture_default_str();
  add_count(command, "--machine-ranks", options.ranks_per_machine,
            "plan hierarchical: the number of ranks on each machine; they have successive numbers",
            1)
      ->capture_default_str();
  add_count(command, "--servers", options.servers,
            "plan ps: the ranks that add, separated by commas")
      ->delimiter(',');
  add_bytes(command, "--piece-bytes", options.piece_bytes,
            "the size of a piece of the gradient, which is encoded and sent at a time; without it, "
            "4 MiB, or what plan auto finds",
            1024);
  command
      ->add_option("--lengths", options.lengths,
                   "payloads whose length depends on the data: padded to the longest, or their "
                   "lengths exchanged first")
      ->check(one_of({"auto", "padded", "exchanged"}))
      ->capture_default_str();
  command
      ->add_option("--probe", options.probe,
                   "plan auto: uses what `cinch probe` has measured and written")
      ->type_name("NET.json");
  command->add_flag("--explain", options.explain,
                    "prints the plan of rank 0 and why it was chosen, and runs nothing");
  command->add_option("--save-plan", options.save_plan, "writes the plan as JSON")
      ->type_name("FILE");
}

void add_sync_files(CLI::App* command, SyncCommandOptions& options) {
  command
      ->add_option("--state-in", options.state_in,
                   "reads the states to start from; %r in the name stands for the rank")
      ->type_name("FILE");
  command
      ->add_option("--state-out", options.state_out,
                   "writes the states of each rank; %r in the name stands for the rank")
      ->type_name("FILE");
  command->add_option("--output", options.output, "writes the update of the last step")
      ->type_name("X.npy");
  command->add_option("--trace", options.trace, "writes a timeline of the last step, for Perfetto")
      ->type_name("FILE");
}

}  // namespace

void add_sync(Registry& registry) {
  auto options = std::make_shared<SyncCommandOptions>();
  CLI::App* command =
      registry.add("sync", "averages gradients over ranks, compressed", run_sync_command, options);
  command
      ->add_option("program", options->program.program,
                   "a file, file:name, a name of the standard library, or none to compress nothing")
      ->required()
      ->type_name("PROGRAM");
  add_bindings(command, options->program.bindings);
  add_headers(command, options->program.headers);
  add_states(command, options->program.states);
  add_execution(command, options->execution);
  command
      ->add_option(
          "--input", options->inputs,
          "a gradient file for each rank, or a folder with one file for each tensor; or one name "
          "in which %r stands for the rank. Without it, --profile gives made-up numbers")
      ->type_name("G.npy");
  command
      ->add_option("--profile", options->profile,
                   "says when a backward pass has each tensor ready; exchanges begin then")
      ->type_name("MODEL.csv");
  command->add_flag("--at-once", options->is_at_once,
                    "with --profile: all tensors are ready when a step begins, for comparison");
  command->add_option("--dtype", options->dtype, "bf16: elements of uint16 files are bfloat16")
      ->check(one_of({"bf16"}));
  add_transport(registry, command, *options,
                "as many as there are inputs, or as a launcher has started");
  command
      ->add_option("--cuda-aware", options->cuda_aware,
                   "MPI reads and writes the memory of GPUs itself: yes, no, or as MPI says (auto)")
      ->check(one_of({"auto", "yes", "no"}))
      ->capture_default_str();
  add_sync_plan(command, *options);
  add_count(command, "--steps", options->num_steps, "number of steps, all with the same gradient",
            1)
      ->capture_default_str();
  add_count(command, "--step", options->step, "number of the first step")->capture_default_str();
  add_count(command, "--seed", options->seed, "seed of random draws")->capture_default_str();
  add_bytes(command, "--repeat-to", options->repeat_to_bytes,
            "repeats the gradient up to this size");
  command
      ->add_option("--policy", options->policy,
                   "rules that say which program compresses which tensor")
      ->type_name("POLICY.json");
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
  add_bytes(command, "--largest", options->largest_bytes, "the most that a rank sends at a time", 0,
            std::uint64_t{1} << 32)
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "time to spend on all of it, about")
      ->check(seconds())
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_option("--output", options->output, "writes what was measured")
      ->type_name("NET.json");
  add_json(command, options->json);
  command->footer("Example: mpirun -n 4 cinch probe --transport mpi --output net.json");
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
  command
      ->add_option("--input", options->inputs, "your gradients, tested beside the generated ones")
      ->type_name("G.npy");
  command->add_option("--dtype", options->dtype, "bf16: elements of uint16 files are bfloat16")
      ->check(one_of({"bf16"}));
  add_count(command, "--seed", options->seed, "seed of random draws")->capture_default_str();
  command->add_option("--budget", options->budget, "time to spend on all laws, about")
      ->check(seconds())
      ->type_name("SECONDS")
      ->capture_default_str();
  command
      ->add_option("--counterexample", options->counterexample,
                   "the file for the input that breaks the first broken law; those of further "
                   "laws, and of all without this option, are COMPRESSOR-LAW.npy in this folder")
      ->type_name("X.npy");
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
  command
      ->add_option("--input", options->input,
                   "a gradient that is repeated up to --elements; without it, made-up numbers")
      ->type_name("G.npy");
  command
      ->add_option("--sort", options->sort,
                   "sorts by name, by payload size, by the time of a call or by the time to "
                   "compile; none: the order in which programs are given")
      ->check(one_of({"none", "name", "payload", "encode", "decode", "sync", "compile"}))
      ->capture_default_str();
  command
      ->add_option("--seconds", options->seconds,
                   "time to measure each call of each program, about")
      ->check(seconds())
      ->type_name("SECONDS")
      ->capture_default_str();
  add_json(command, options->json);
  command->footer("Example: cinch bench onebit topk --elements 67108864");
}

void add_report(Registry& registry) {
  auto options = std::make_shared<SurveyOptions>();
  CLI::App* command = registry.add(
      "report", "compares programs on a folder of gradients, and predicts the time of a step",
      run_report, options);
  command->add_option("folder", options->folder, "a folder with an .npy file for each tensor")
      ->required()
      ->type_name("DIR");
  command
      ->add_option(
          "--programs", options->programs,
          "programs to try, as words or separated by commas; without it, all of the library")
      ->type_name("PROGRAM");
  command
      ->add_option("--link", options->link, "the bandwidth of each rank's link, such as 10Gbit/s")
      ->type_name("BANDWIDTH")
      ->capture_default_str();
  command->add_option("--latency", options->latency_us, "the latency of each link")
      ->check(between(0, 1e12))
      ->type_name("MICROSECONDS")
      ->capture_default_str();
  add_count(command, "--ranks", options->ranks, "number of machines", 2, kMaxSurveyRanks)
      ->capture_default_str();
  add_count(command, "--threads", options->execution.threads,
            "threads of each rank; 0: as many as this machine has", 0, rt::kMaxThreads)
      ->capture_default_str();
  add_count(command, "--seed", options->seed, "seed of random draws")->capture_default_str();
  command->add_option("--seconds", options->seconds, "time to spend on each program, about")
      ->check(seconds())
      ->capture_default_str();
  command->add_option("--dtype", options->dtype, "bf16: elements of uint16 files are bfloat16")
      ->check(one_of({"bf16"}));
  command
      ->add_option("--html", options->html,
                   "writes a page with pictures, for a browser; it needs no other file")
      ->type_name("FILE");
  add_json(command, options->json);
  command->footer("Example: cinch report gradients/ --link 10Gbit/s --ranks 8 --html report.html");
}

void add_tune(Registry& registry) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command = registry.add(
      "tune", "finds the block and task sizes that are fastest on this machine, for later runs",
      run_tune, options);
  add_execution(command, options->execution);
  command->add_option("--budget", options->budget, "time to spend on all of it, about")
      ->check(seconds())
      ->type_name("SECONDS")
      ->capture_default_str();
  command
      ->add_option("--output", options->output,
                   "the table to write; without it, the table that later runs use")
      ->type_name("FILE");
  add_json(command, options->json);
  command->footer("Example: cinch tune --device cuda --budget 120");
}

}  // namespace cinch::driver
