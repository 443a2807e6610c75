// cinch tune: measures this machine's tuning numbers and keeps them in the user's table.
#include <fmt/chrono.h>

#include <fstream>

#include "compiler/driver/codecs/verify_subject.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/target.h"
#include "runtime/exec/task_runner.h"
#include "runtime/tuning/tuning.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

// The file for the table; empty: none. Throws CommandError if it is known now that it cannot be
// written.
std::string find_output(const TuneOptions& options) {
  std::string path = options.output;
  if (path.empty() && options.execution.device == "emulated") return {};
  if (path.empty()) path = rt::user_tuning_path();
  if (path.empty()) {
    throw UsageError(
        "there is no place for the table (CINCH_TUNING is off, or HOME is not "
        "set): give --output FILE");
  }
  // An unreadable table would be overwritten.
  const auto held = rt::load_tuning_if_there(path);
  if (!held) throw_error(held.error(), "mend or remove it, or give --output FILE");
  return path;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "an unnamed processor";
}

template <typename Tuning>
json search(const std::vector<bench::TuningWorkload<Tuning>>& workloads, const Tuning& before,
            const TuneOptions& options, rt::TuningEntry& entry) {
  Progress progress("comparisons made");
  bench::TuningSearchOptions search;
  search.seconds = options.budget;
  search.progress = [&](std::size_t done, std::size_t total) {
    progress.update(done, total);
    end_if_interrupted();
  };
  const bench::Tuned<Tuning> tuned = bench::search_tuning(before, workloads, search);
  json report = {{"ratio", tuned.ratio}, {"numbers", json::array()}};
  for (const bench::TunedNumber& number : tuned.by_number) {
    json tried = json::array();
    for (const bench::TriedValue& value : number.tried) {
      tried.push_back({{"value", value.value}, {"ratio", value.ratio}});
    }
    report["numbers"].push_back({{"name", number.name},
                                 {"before", number.before},
                                 {"after", number.after},
                                 {"tried", tried}});
  }
  report["is_changed"] = tuned.numbers != before;
  entry.numbers = tuned.numbers;
  return report;
}

json measure(const TuneOptions& options, rt::TuningEntry& entry) {
  rt::TuningMeasured measured;
  measured.date = fmt::format("{:%Y-%m-%d}", fmt::localtime(std::time(nullptr)));
  measured.benchmark =
      fmt::format("cinch tune --device {} --budget {}", options.execution.device, options.budget);
  if (options.execution.cpu != "native") measured.benchmark += " --cpu " + options.execution.cpu;
  if (options.execution.threads != 0)
    measured.benchmark += fmt::format(" --threads {}", options.execution.threads);
  json report;
  if (is_gpu(options.execution)) {
    const auto device = open_gpu(options.execution);
    entry.architecture = device->arch();
    measured.machine = device->name();
    report = search(gpu_workloads(device), rt::gpu_tuning(entry.architecture), options, entry);
  } else {
    entry.architecture = find_target(options.execution, true).arch;
    measured.machine = fmt::format("{}, {} threads", processor_name(),
                                   rt::TaskRunner(options.execution.threads).threads());
    report = search(cpu_workloads(options.execution), rt::cpu_tuning(entry.architecture), options,
                    entry);
  }
  report["architecture"] = entry.architecture;
  report["machine"] = measured.machine;
  report["date"] = measured.date;
  report["benchmark"] = measured.benchmark;
  entry.measured = std::move(measured);
  return report;
}

void print_tuning_report(const json& report) {
  print_text("{} ({}); times over those of the number in use, below 1 is faster\n",
             report["architecture"].get<std::string>(), report["machine"].get<std::string>());
  for (const json& number : report["numbers"]) {
    print_text("{}\n", number["name"].get<std::string>());
    for (const json& tried : number["tried"]) {
      const auto value = tried["value"].get<std::int64_t>();
      const bool is_before = value == number["before"].get<std::int64_t>();
      const bool is_after = value == number["after"].get<std::int64_t>();
      print_text("{:>12} {:>7.3f}{}{}\n", value, tried["ratio"].get<double>(),
                 is_before ? "  in use" : "", is_after && !is_before ? "  better" : "");
    }
  }
  const auto ratio = report["ratio"].get<double>();
  if (report["is_changed"].get<bool>()) {
    print_text("all of them together: {:.3f}\n", ratio);
  } else if (ratio != 1) {
    print_text("all of them together: {:.3f}, so the numbers in use stay\n", ratio);
  } else {
    print_text("nothing was faster by {:.0f} %: the numbers in use stay\n",
               100 * bench::kWorthwhileSaving);
  }
}

}  // namespace

ExitCode run_tune(const TuneOptions& options) {
  const std::string output = find_output(options);
  rt::TuningEntry entry;
  json report = measure(options, entry);
  report["file"] = output;
  if (!output.empty()) value_or_throw(rt::put_tuning(output, std::move(entry)));
  if (options.json) {
    print_result(report);
    return ExitCode::Done;
  }
  print_tuning_report(report);
  if (options.execution.device == "emulated") {
    print_text("the emulated GPU says nothing about time: these figures mean nothing{}\n",
               output.empty() ? ", and nothing was written" : "");
  }
  if (!output.empty()) {
    print_text("written to {}{}\n", output,
               output == rt::user_tuning_path() ? ": later runs on this architecture use it"
                                                : "; CINCH_TUNING=FILE makes later runs use it");
  }
  return ExitCode::Done;
}

}  // namespace cinch::driver
