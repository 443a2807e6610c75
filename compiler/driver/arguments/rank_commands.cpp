// Options of `cinch sync` and `cinch probe`; see rank_commands.h.
#include "compiler/driver/arguments/rank_commands.h"

#include <cstdlib>

#include "compiler/driver/commands/commands.h"

namespace cinch::driver {

namespace {

void add_ucx(CLI::App* command, TransportOptions& options) {
  command
      ->add_option("--rendezvous", options.rendezvous,
                   "of ucx: where ranks meet; rank 0 listens there until all have come")
      ->type_name("HOST:PORT");
  add_count(command, "--rank", options.rank, "of ucx: this process is that rank; else RANK says it",
            0, kMaxRanks - 1);
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
  add_count(command, "--ranks", options.ranks,
            "number of ranks; 0: as many as inputs, or as were launched", 0, kMaxRanks)
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
  add_count(command, "--machine-ranks", options.ranks_per_machine,
            "ranks of each machine, which follow one another; of plan hierarchical", 1)
      ->capture_default_str();
  add_count(command, "--servers", options.servers, "ranks that serve in plan ps")->delimiter(',');
  add_bytes(command, "--piece-bytes", options.piece_bytes,
            "of the gradient, encoded and sent at a time; else 4 MiB, or what plan auto finds",
            1024);
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

}  // namespace

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
  add_count(command, "--steps", options->num_steps, "how often, each time with the same gradient",
            1)
      ->capture_default_str();
  add_count(command, "--step", options->step, "number of the first step")->capture_default_str();
  add_count(command, "--seed", options->seed, "of random draws")->capture_default_str();
  add_bytes(command, "--repeat-to", options->repeat_to_bytes,
            "repeats the gradient up to this many bytes");
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
  add_bytes(command, "--largest", options->largest_bytes, "most bytes that a rank sends at a time",
            0, std::uint64_t{1} << 32)
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "about so long for all of it")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--output", options->output, "keeps what was measured")
      ->type_name("NET.json");
  add_json(command, options->json);
  command->footer("Example: mpirun -n 4 cinch probe --transport mpi --output net.json");
}

}  // namespace cinch::driver
