// Commands that test programs and measure them.
#include <memory>

#include "compiler/driver/arguments/add_commands.h"
#include "compiler/driver/commands/commands.h"
#include "runtime/exec/task_runner.h"

namespace cinch::driver {

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
