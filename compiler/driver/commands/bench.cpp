// cinch bench: measures calls of programs, this machine's floor for them, and the cost of
// compiling.

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "compiler/bench/program_bench.h"
#include "compiler/bench/tuning_search.h"
#include "compiler/driver/codecs/codec.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/text.h"
#include "compiler/driver/target.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

struct CompileTimes {
  double cold_ms = 0, cached_ms = 0;
};

// Compiles from source to a callable program, without and with an entry in the cache.
std::shared_ptr<const rt::LoadedProgram> timed_compile(const ProgramOptions& program,
                                                       const codegen::Target& target,
                                                       CompileTimes& times) {
  std::shared_ptr<const rt::LoadedProgram> loaded;
  const auto make = [&] {
    FrontEnd front_end;
    loaded = value_or_throw(rt::LoadedProgram::load(compile_program(front_end, program, target)));
  };
  times.cold_ms = bench::timed_ms(make);
  times.cached_ms = bench::timed_ms(make);
  return loaded;
}

json call_report(const bench::CallFigures& call, std::size_t elements) {
  return {{"ms", call.ms},
          {"floor_ms", call.floor_ms},
          {"floor_share", call.floor_share()},
          {"gb_per_s", 4.0 * static_cast<double>(elements) / call.ms / 1e6},
          {"floor_sweeps", call.floor_sweeps},
          {"floor_bytes_read", call.floor_bytes.read},
          {"floor_bytes_written", call.floor_bytes.written},
          {"random_words", call.random_words},
          {"rounds", call.rounds}};
}

// Bandwidth of reading an array as long as the gradient.
double read_bandwidth(std::size_t elements, const BenchOptions& options) {
  rt::TaskRunner runner(options.execution.threads);
  analysis::ForcedSweeps reading;
  const auto bytes = static_cast<std::int64_t>(4 * elements);
  reading.sweeps = {{{"gradient", analysis::Stream::Use::Read, bytes}}};
  bench::FloorTimer timer = value_or_throw(bench::FloorTimer::make(reading, runner));
  const bench::Rounds rounds =
      bench::take_turns({[&] { return timer.run(); }}, {.seconds = options.seconds / 4});
  return static_cast<double>(bytes) / rounds.medians[0] / 1e6;
}

json bench_one(const ProgramOptions& program, std::span<const float> gradient,
               const BenchOptions& options) {
  CompileTimes compile;
  const codegen::Target target = find_target(options.execution, true);
  auto loaded = timed_compile(program, target, compile);
  service::FrontEnd silent;
  const ir::Program lowered = service::make_ir(silent, program, /*with_passes=*/false);
  bench::BenchOptions bench_options;
  bench_options.threads = options.execution.threads;
  bench_options.limits.seconds = options.seconds;
  if (loaded->info().is_matrix)
    bench_options.columns =
        matrix_columns(static_cast<std::int64_t>(gradient.size()), options.columns);
  const bench::ProgramFigures figures =
      value_or_throw(bench::bench_program(loaded, lowered, gradient, bench_options));
  json report = {
      {"compressor", loaded->info().name},      {"device", options.execution.device},
      {"target", loaded->image().target},       {"elements", gradient.size()},
      {"payload_bytes", figures.payload_bytes}, {"workspace_bytes", figures.workspace_bytes},
      {"state_bytes", figures.state_bytes},     {"compile_cold_ms", compile.cold_ms},
      {"compile_cached_ms", compile.cached_ms}};
  if (loaded->info().is_matrix) report["columns"] = bench_options.columns;
  for (const bench::CallFigures& call : figures.calls) {
    if (call.first_step != 1) {
      report["phases"].push_back(
          {{"first_step", call.first_step}, {call.name, call_report(call, gradient.size())}});
      continue;
    }
    report[call.name] = call_report(call, gradient.size());
    report[call.name + "_ms"] = call.ms;
    report[call.name + "_floor_share"] = call.floor_share();
  }
  return report;
}

// A call in a later phase of a program, on a line of its own.
void add_phase(TextTable& table, const json& phase, const std::vector<std::string>& calls) {
  std::vector<std::string> row = {
      fmt::format("  step {}", grouped(phase["first_step"].get<std::int64_t>())), ""};
  for (const std::string& call : calls) {
    const bool is_there = phase.contains(call);
    row.push_back(is_there ? cell_in_milliseconds(phase[call]["ms"].get<double>()) : "");
    row.push_back(is_there ? short_number(phase[call]["gb_per_s"].get<double>()) : "");
    row.push_back(is_there ? fmt::format("{:.2f}", phase[call]["floor_share"].get<double>()) : "");
  }
  row.insert(row.end(), {"", ""});
  table.add(std::move(row));
}

// Prints programs with the same calls: `encode` and `decode`, or `sync`.
void print_table(const json& list, const std::vector<std::string>& calls) {
  std::vector<TableColumn> columns = {{"", "compressor", true}, {"payload", "bytes"}};
  for (const std::string& call : calls) {
    columns.push_back({call, "ms"});
    columns.push_back({"", "GB/s"});
    columns.push_back({"of", "floor"});
  }
  columns.push_back({"compile", "ms"});
  columns.push_back({"cached", "ms"});
  TextTable table(std::move(columns));
  for (const json& r : list) {
    std::vector<std::string> row = {r["compressor"].get<std::string>(),
                                    std::to_string(r["payload_bytes"].get<std::int64_t>())};
    for (const std::string& call : calls) {
      row.push_back(cell_in_milliseconds(r[call]["ms"].get<double>()));
      row.push_back(short_number(r[call]["gb_per_s"].get<double>()));
      row.push_back(fmt::format("{:.2f}", r[call]["floor_share"].get<double>()));
    }
    row.push_back(cell_in_milliseconds(r["compile_cold_ms"].get<double>()));
    row.push_back(cell_in_milliseconds(r["compile_cached_ms"].get<double>()));
    table.add(std::move(row));
    for (const json& phase : r.value("phases", json::array())) add_phase(table, phase, calls);
  }
  print_text("{}", table.text(text_width()));
}

// The number of a report by which --sort orders; smaller ones come first.
double sort_key(const json& report, const std::string& by) {
  if (by == "payload") return report["payload_bytes"].get<double>();
  if (by == "compile") return report["compile_cold_ms"].get<double>();
  // A program without such a call comes last.
  return report.contains(by) ? report[by]["ms"].get<double>() : std::numeric_limits<double>::max();
}

}  // namespace

ExitCode run_bench(const BenchOptions& options) {
  if (is_gpu(options.execution)) {
    throw CommandError(
        ExitCode::Unavailable,
        "device '" + options.execution.device +
            "': calls and their floors are measured on CPUs only; leave --device out");
  }
  // Uses a cache of its own, so that the first compilation is cold and the user's cache is not
  // touched.
  const TemporaryFolder cache("cinch-bench");
  setenv("CINCH_CACHE_DIR", cache.path().c_str(), 1);
  setenv("CINCH_CACHE", "on", 1);
  unsetenv("CINCH_CACHE_SHARED");
  const std::vector<float> elements =
      options.input.empty()
          ? bench::made_up_gradient(options.elements)
          : to_f32(view_of(repeat_to(read_gradient(options.input, ""), 4 * options.elements)));
  const std::vector<std::string> programs = programs_or_library(options.programs);
  Progress progress("programs measured");
  const double bandwidth = read_bandwidth(elements.size(), options);
  json list = json::array();
  for (const std::string& program : programs) {
    json report = bench_one({program, options.bindings, {}, options.states, {}, options.headers},
                            elements, options);
    report["bandwidth_gb_per_s"] = bandwidth;
    list.push_back(std::move(report));
    progress.update(list.size(), programs.size());
    end_if_interrupted();
  }
  if (options.sort != "none") {
    std::stable_sort(list.begin(), list.end(), [&](const json& a, const json& b) {
      if (options.sort == "name") return a["compressor"] < b["compressor"];
      return sort_key(a, options.sort) < sort_key(b, options.sort);
    });
  }
  if (options.json) {
    print_result(list);
    return ExitCode::Done;
  }
  progress.clear();
  const std::uint32_t threads = rt::TaskRunner(options.execution.threads).threads();
  print_text("{}\n", wrapped(fmt::format("bench: {}, {}; plain reading {:.1f} GB/s",
                                         plainly_counted(elements.size(), "element"),
                                         plainly_counted(threads, "thread"), bandwidth),
                             0, sentence_width()));
  json codecs = json::array(), protocols = json::array();
  for (const json& report : list) (report.contains("sync") ? protocols : codecs).push_back(report);
  if (!codecs.empty()) print_table(codecs, {"encode", "decode"});
  if (!protocols.empty()) print_table(protocols, {"sync"});
  return ExitCode::Done;
}

}  // namespace cinch::driver
