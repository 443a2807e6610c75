// cinch verify: prints the laws of a program, one line each, with figure and bound.

#include <algorithm>
#include <cmath>

#include "compiler/driver/codecs/verify_subject.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/text.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

std::vector<verify::Input> read_inputs(const VerifyOptions& options, bool is_matrix) {
  std::vector<verify::Input> inputs;
  for (const std::string& path : options.inputs) {
    const rt::NpyArray array = read_gradient(path, options.dtype);
    const Shape shape = shape_of(array, is_matrix);
    verify::Input input{path, {shape.rows, shape.cols}, to_f32(view_of(array)), true};
    if (!std::ranges::all_of(input.values, [](float x) { return std::isfinite(x); })) {
      throw CommandError(ExitCode::AtFault,
                         path +
                             ": holds a value that is not finite; such gradients are tried "
                             "without being given");
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// Other files are written next to it, which a device does not allow.
void check_counterexample(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::status(path, error).type();
  const bool is_fine = path.empty() || type == std::filesystem::file_type::regular ||
                       type == std::filesystem::file_type::not_found;
  if (is_fine) return;
  throw UsageError("--counterexample {}: not a file that others can be written beside", path);
}

// Files that failing laws have written, in the order of the findings.
std::vector<std::optional<CounterexampleFiles>> write_counterexamples(
    const VerifyOptions& options, const rt::ProgramInfo& info, const verify::Report& report) {
  std::vector<std::optional<CounterexampleFiles>> files;
  bool is_first = true;
  for (const verify::Finding& finding : report.findings) {
    files.emplace_back();
    if (!finding.counterexample) continue;
    std::string path = fmt::format("{}-{}.npy", info.name, finding.law);
    if (is_first && !options.counterexample.empty()) path = options.counterexample;
    is_first = false;
    files.back() = write_counterexample(path, options, info, finding, *finding.counterexample);
  }
  return files;
}

json as_json(const verify::Finding& finding, const std::optional<CounterexampleFiles>& files) {
  json law = {{"law", finding.law},     {"holds", finding.holds},   {"figure", finding.figure},
              {"bound", finding.bound}, {"detail", finding.detail}, {"cut", finding.cut}};
  if (files) {
    law["counterexample"] = {{"inputs", files->inputs},
                             {"description", files->description},
                             {"commands", files->commands}};
  }
  return law;
}

void print_report(const verify::Report& report,
                  const std::vector<std::optional<CounterexampleFiles>>& files,
                  const rt::ProgramInfo& info, const VerifyOptions& options) {
  print_text("{} on {}: {} of {} laws hold\n", info.name, options.execution.device,
             std::ranges::count_if(report.findings, &verify::Finding::holds),
             report.findings.size());
  TextTable table({{"", "law", true},
                   {"", "holds", true},
                   {"", "figure"},
                   {"", "bound"},
                   {"", "unit, and what was tried", true}});
  for (const verify::Finding& finding : report.findings) {
    const std::string cut =
        finding.cut.empty() ? "" : fmt::format(" (only {} in the time)", finding.cut);
    table.add({finding.law, finding.holds ? "yes" : "NO", fmt::format("{:.5g}", finding.figure),
               fmt::format("{:.5g}", finding.bound), finding.detail + cut});
  }
  print_text("{}", table.text(text_width()));
  if (!report.not_claimed.empty()) {
    const std::string names = fmt::format("not claimed: {}", fmt::join(report.not_claimed, ", "));
    print_text("{}\n", wrapped(names, 0, sentence_width()));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::optional<CounterexampleFiles>& written = files[i];
    const std::optional<verify::Counterexample>& found = report.findings[i].counterexample;
    if (!written || !found) continue;
    print_text("\n{} does not hold: {}\n  {} ({})\n", report.findings[i].law, found->shows,
               fmt::join(written->inputs, ", "), written->description);
    for (const std::string& command : written->commands) print_text("  {}\n", command);
  }
}

}  // namespace

ExitCode run_verify(const VerifyOptions& options) {
  check_counterexample(options.counterexample);
  const VerifiedProgram program(options);
  const rt::ProgramInfo& info = program.subject.info();
  const verify::Options wanted{options.budget, options.seed, read_inputs(options, info.is_matrix)};
  Progress progress("laws tried");
  const verify::Report report = verify::verify(
      program.subject, wanted, [&](const std::string&, std::size_t done, std::size_t of) {
        end_if_interrupted();
        progress.update(done, of);
        return true;
      });
  end_if_interrupted();
  progress.clear();
  const auto files = write_counterexamples(options, info, report);
  if (options.json) {
    json laws = json::array();
    for (std::size_t i = 0; i < files.size(); ++i) {
      laws.push_back(as_json(report.findings[i], files[i]));
    }
    print_result(laws);
  } else {
    print_report(report, files, info, options);
  }
  return report.all_hold() ? ExitCode::Done : ExitCode::AtFault;
}

}  // namespace cinch::driver
