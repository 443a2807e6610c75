// The options of each sub-command as plain structs, so that only command_line.cpp sees the parser.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/service/front_end.h"
#include "runtime/simulator/period.h"

namespace cinch::driver {

enum class DiagnosticsFormat { Text, Json, Sarif };

struct CheckOptions {
  std::vector<std::string> files;
  DiagnosticsFormat diagnostics = DiagnosticsFormat::Text;
  bool json = false;
  rt::HeaderSearch headers;
};

struct FormatOptions {
  std::vector<std::string> files;
  bool check_only = false;
};

using ProgramOptions = service::ProgramRequest;

// Where code runs.
struct ExecutionOptions {
  std::string device = "cpu";
  std::string cpu = "native";
  std::uint64_t schedule_seed = 0;  // of the emulated GPU
  std::uint32_t threads = 0;        // 0: all
};

struct ExplainOptions {
  ProgramOptions program;
  ExecutionOptions execution;
  std::int64_t elements = 1 << 20;
  std::string target;                   // for device "cuda"; empty: this machine's GPU, or sm_90
  std::optional<std::int64_t> columns;  // matrix programs; elements must be a multiple
  bool fusion = false;    // print where sweeps part in the text, and the number of fusion steps
  std::string html;       // file for an HTML page; empty: none
  bool formulas = false;  // print sizes and bytes as formulas of n
  bool json = false;
};

// run, encode and decode.
struct RunOptions {
  ProgramOptions program;
  ExecutionOptions execution;
  std::vector<std::string> inputs;
  std::string payload, output;
  std::string dtype;  // of inputs whose file does not tell: "bf16" for uint16
  std::uint64_t seed = 0, step = 0;
  std::uint32_t worker = 0, world = 1;
  std::uint32_t machine_ranks = 0;  // on each machine; 0: all ranks are on one
  std::string state_in, state_out;
  bool ranks = false;  // the inputs are the ranks of one step
  // For ranks: payloads are added field by field and decoded once
  bool sum_payloads = false;
  std::int64_t repeat_to_bytes = 0;  // repeats the gradient up to this size, for timing
  bool interpret = false;            // runs the IR's interpreter, for tests
  std::vector<std::string> show;     // names whose values are printed
  std::vector<std::string> given;    // inputs besides the gradient: "lr=0.1", "weights=w.npy"
  bool makes_up_inputs = false;      // those that are not given (verify)
  bool json = false;
};

struct EvalOptions {
  std::vector<std::string> expressions;  // and statements
  std::string input, dtype;              // the gradient `g`; empty: none
  std::uint64_t seed = 0, step = 0;
  bool json = false;
};

struct BuildOptions {
  ProgramOptions program;
  ExecutionOptions execution;
  std::vector<std::string> more_files;
  std::string emit;  // "" for a library
  std::vector<std::string> targets;
  std::string name, output;
  bool no_passes = false;  // ir: as lowering left it
};

struct OptOptions {
  std::string file;
  std::vector<std::string> passes;  // empty: the whole pipeline
  std::vector<std::string> print_after;
  std::int64_t pass_limit = -1;
  bool remarks = false, times = false, list_passes = false;
};

struct ListOptions {
  std::vector<std::string> names;  // empty: all of the standard library
  std::string sort = "family";
  std::vector<std::string> words;  // of the command line, for messages
  bool json = false;
};

// The most ranks whose plans are examined in one process; more take too much memory and time.
constexpr std::uint32_t kMaxSurveyRanks = 128;
constexpr std::uint32_t kMaxReportRanks = 1 << 17;

// cinch report: runs programs on a folder of gradients.
struct SurveyOptions {
  std::string folder;
  std::vector<std::string> programs;  // empty: the standard library
  ExecutionOptions execution;         // its device is the CPU
  std::string dtype;                  // of files that do not tell: "bf16" for uint16
  std::string link = "1Gbit/s";
  double latency_us = 50;
  std::uint32_t ranks = 4;
  std::uint64_t seed = 0;
  double seconds = 0.2;  // time to measure each program, about
  std::string html;      // file for an HTML page; empty: none
  bool is_by_tensor = false;
  bool json = false;
};

struct DoctorOptions {
  bool json = false;
};

struct LspOptions {
  bool is_stdio = true;
  rt::HeaderSearch headers;
};

struct CompletionOptions {
  std::string shell;
};

struct BenchOptions {
  std::vector<std::string> programs;  // empty: the standard library
  std::vector<std::string> bindings;  // for all of them
  codegen::StateUpdate states = codegen::StateUpdate::SecondBuffer;
  rt::HeaderSearch headers;
  ExecutionOptions execution;
  std::int64_t elements = 1 << 24;
  // For matrix programs; none: as close to a square as possible
  std::optional<std::int64_t> columns;
  std::string input;   // a gradient, repeated up to that length; empty: a synthetic one
  double seconds = 1;  // time to measure each call of each program, about
  std::string sort = "none";
  bool json = false;
};

struct TuneOptions {
  ExecutionOptions execution;
  double budget = 60;  // seconds, about
  std::string output;  // empty: the user's table
  bool json = false;
};

struct VerifyOptions {
  ProgramOptions program;
  ExecutionOptions execution;
  std::vector<std::string> inputs;  // in addition to the synthetic ones
  std::string dtype;
  std::uint64_t seed = 0;
  double budget = 30;          // seconds, about
  std::string counterexample;  // file for the first law that fails; empty: named after the law
  bool json = false;
};

constexpr std::uint32_t kMaxRanks = 1024;

// How the ranks of sync and probe connect.
struct TransportOptions {
  std::string transport = "loopback";
  std::uint32_t ranks = 0;                         // 0: the number of inputs, or of the transport
  double latency_us = 0, megabits_per_second = 0;  // of loopback's links; 0: unshaped
  double timeout_seconds = 30;
  // For ucx: this process's rank, where ranks meet, and their secret.
  std::optional<std::uint32_t> rank;
  std::string rendezvous, interface, secret_file;
  bool is_exact = false;           // adds floats in rank order on every transport
  std::vector<std::string> words;  // of the command line, for ranks that the command starts

  std::chrono::milliseconds timeout() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * timeout_seconds));
  }
};

struct ProbeCommandOptions : TransportOptions {
  std::uint32_t ranks_per_machine = 1;
  std::uint64_t largest_bytes = 16 << 20;
  double seconds = 5;
  std::string output;
  bool json = false;
};

struct SyncCommandOptions : TransportOptions {
  ProgramOptions program;
  ExecutionOptions execution;
  std::vector<std::string> inputs;  // by rank; "%r" in a name is replaced by the rank
  std::string dtype;
  std::string plan = "auto";
  std::vector<std::uint32_t> servers = {0};
  std::uint32_t ranks_per_machine = 0;       // 0: all ranks are on one machine
  std::optional<std::uint64_t> piece_bytes;  // none: 4 MiB, or the best size
  std::string lengths = "auto", cuda_aware = "auto";
  std::uint64_t seed = 0, step = 0, num_steps = 5;
  std::int64_t repeat_to_bytes = 0;
  std::string output, trace, save_plan, probe, policy, profile;
  std::string state_in, state_out;  // "%r" is replaced by the rank
  bool is_at_once = false;
  bool explain = false, json = false;
};

// cache show, clear, pack and warm.
struct PlanCommandOptions {
  std::string profile;                // empty: measures only
  std::vector<std::string> programs;  // to choose from; "none" is f32
  std::vector<std::string> measured;  // measures these, and plans nothing
  ExecutionOptions execution;
  std::string network, speeds;  // files; empty: shaped links, and programs are measured
  std::uint32_t ranks = 0, ranks_per_machine = 0;  // 0: as the network has
  double latency_us = 0, megabits_per_second = 0;
  double seconds = 0.4;              // to measure each program, about
  std::int64_t elements = 16 << 20;  // of the largest gradient that --measure takes
  std::string output, trace;
  bool explain = false, json = false;
  // A value of one parameter for each tensor: "bits=2..8", the value of all that it is compared
  // with, and a folder of gradients.
  std::string vary, budget, gradients;
  std::string dtype;          // of files that do not tell
  bool is_each_held = false;  // no tensor's relative error is above that of all
  std::uint64_t seed = 0;
};

struct SimulateCommandOptions {
  // The execution, speeds, seconds, ranks, trace and outputs of a plan.
  PlanCommandOptions step;
  std::string file;                    // of `cinch plan`; empty: `plan` with `program`
  std::string plan, program = "none";  // for all tensors of the profile
  std::string topology;
  std::string slow;               // "0.1%:2x", "3:2x"
  std::vector<std::string> down;  // links
  std::string format, output;     // of files for other simulators; empty: none
  bool has_classes = false;
  std::string routing = "sprayed";
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> piece_bytes;
  rt::PeriodRules period;
};

struct CacheOptions {
  std::vector<std::string> programs;  // for warm; empty: the standard library
  std::vector<std::string> bindings;
  std::vector<std::string> targets = {"native"};
  codegen::StateUpdate states = codegen::StateUpdate::SecondBuffer;
  rt::HeaderSearch headers;
  bool json = false;
};

}  // namespace cinch::driver
