// cinch report: compares programs on a folder of gradients, and predicts the time of a step.

#include <algorithm>
#include <cmath>
#include <thread>

#include "compiler/driver/commands/commands.h"
#include "compiler/driver/page/pages.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/ranks/sync_rank.h"
#include "compiler/driver/report/text.h"
#include "compiler/driver/target.h"
#include "runtime/core/check.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

constexpr const char* kPlainName = "none (f32)";

// A program to try: how to request it, and its name.
struct Candidate {
  std::string request, name, family;
};

}  // namespace

std::vector<SurveyTensor> read_survey(const SurveyOptions& options) {
  std::error_code error;
  if (!std::filesystem::exists(options.folder, error)) {
    throw CommandError(ExitCode::AtFault, options.folder + ": no such folder");
  }
  SyncCommandOptions files;
  files.inputs = {options.folder};
  files.dtype = options.dtype;
  RankTensors read = read_tensors(files, 0);
  std::vector<SurveyTensor> tensors;
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < read.arrays.size(); ++i) {
    std::vector<float> values = to_f32(view_of(read.arrays[i]));
    if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) {
      throw CommandError(ExitCode::AtFault,
                         "{}: NaN or infinity in {}; take the gradients of a step without",
                         options.folder, read.names[i]);
    }
    elements += read.arrays[i].num_elems();
    tensors.push_back({read.names[i], std::move(read.arrays[i]), std::move(values)});
  }
  if (elements == 0) throw CommandError(ExitCode::AtFault, options.folder + ": no elements in it");
  return tensors;
}

namespace {

// The requested programs, else all of the library that work alone.
std::vector<Candidate> candidates_of(const SurveyOptions& options) {
  const std::vector<StdlibFile> files = stdlib_files();
  std::vector<Candidate> candidates;
  for (const LibraryProgram& program : library_programs()) {
    const auto file = std::ranges::find(files, program.path, &StdlibFile::path);
    candidates.push_back({program.path + ":" + program.name, program.name,
                          file == files.end() ? "library" : file->family});
  }
  if (options.programs.empty()) return candidates;
  std::vector<Candidate> chosen;
  for (const std::string& name : split_programs(options.programs, "--programs")) {
    const auto known = std::ranges::find(candidates, name, &Candidate::name);
    chosen.push_back(known == candidates.end() ? Candidate{name, name, "own"} : *known);
  }
  return chosen;
}

json or_nothing(double number) {
  return std::isfinite(number) ? json(number) : json();
}

class Survey {
 public:
  Survey(const SurveyOptions& options, const std::vector<SurveyTensor>& tensors)
      : options_(options), tensors_(tensors), predictor_(tensors, options) {
    for (const SurveyTensor& tensor : tensors) elements_ += tensor.array.num_elems();
  }

  json whole() {
    const std::vector<Candidate> candidates = candidates_of(options_);
    Progress progress("programs tried");
    json tried = json::array(), not_tried = json::array();
    for (const Candidate& candidate : candidates) {
      try {
        tried.push_back(row_of(candidate));
      } catch (const CommandError& error) {
        not_tried.push_back({{"program", candidate.name}, {"reason", error.what()}});
      } catch (const InternalError& error) {
        if (error.kind() != InternalErrorKind::Limitation) throw;
        not_tried.push_back({{"program", candidate.name}, {"reason", error.message()}});
      }
      progress.update(tried.size() + not_tried.size(), candidates.size());
      end_if_interrupted();
    }
    std::stable_sort(tried.begin(), tried.end(), [](const json& a, const json& b) {
      if (a["step_ms"].is_null() || b["step_ms"].is_null()) return !a["step_ms"].is_null();
      return a["step_ms"] < b["step_ms"];
    });
    return described(std::move(tried), std::move(not_tried));
  }

 private:
  json described(json tried, json not_tried) const {
    json tensors = json::array();
    for (const SurveyTensor& tensor : tensors_) {
      tensors.push_back({{"name", tensor.name},
                         {"shape", tensor.array.shape},
                         {"elements", tensor.array.num_elems()}});
    }
    const std::uint32_t threads = options_.execution.threads;
    return {{"folder", options_.folder},
            {"tensors", std::move(tensors)},
            {"elements", elements_},
            {"gradient_bytes", 4 * elements_},
            {"ranks", options_.ranks},
            {"link", options_.link},
            {"link_bytes_per_second", parse_link(options_.link)},
            {"latency_us", options_.latency_us},
            {"threads", threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency())},
            {"uncompressed", plain_row()},
            {"programs", std::move(tried)},
            {"not_tried", std::move(not_tried)}};
  }

  static void add_step(const StepPrediction& step, json& row) {
    row["step_ms"] = step.seconds * 1e3;
    row["network_ms"] = step.network_seconds * 1e3;
    row["plan"] = step.plan;
  }

  json plain_row() const {
    json row = {{"program", kPlainName}, {"family", "none"},
                {"ratio", 1.0},          {"payload_bytes", 4 * elements_},
                {"relative_error", 0.0}, {"exact_tensors", tensors_.size()},
                {"encode_ms", nullptr},  {"decode_ms", nullptr},
                {"note", nullptr}};
    add_step(predictor_.without_program(), row);
    return row;
  }

  json by_tensor(const SurveyFigures& figures) const {
    json list = json::array();
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      const SurveyFigures::OfTensor& of = figures.by_tensor[t];
      const double error = std::sqrt(of.squared_error) / std::sqrt(of.squared_norm);
      list.push_back({{"name", tensors_[t].name},
                      {"elements", tensors_[t].array.num_elems()},
                      {"payload_bytes", of.payload_bytes},
                      {"relative_error", or_nothing(error)}});
    }
    return list;
  }

  json row_of(const Candidate& candidate) const {
    const SurveyFigures figures = try_program(candidate.request, options_, tensors_);
    const bool has_sync = figures.program->info().has_sync;
    const auto bytes = static_cast<double>(figures.payload_bytes);
    json row = {{"program", candidate.name},
                {"family", candidate.family},
                {"ratio", or_nothing(4 * static_cast<double>(elements_) / bytes)},
                {"payload_bytes", figures.payload_bytes},
                {"relative_error", or_nothing(figures.relative_error)},
                {"exact_tensors", figures.num_exact},
                {"encode_ms", figures.encode_seconds * 1e3},
                {"decode_ms", has_sync ? json() : json(figures.decode_seconds * 1e3)},
                {"step_ms", nullptr},
                {"network_ms", nullptr},
                {"plan", "-"},
                {"note", nullptr}};
    if (options_.is_by_tensor) row["by_tensor"] = by_tensor(figures);
    try {
      add_step(predictor_.with_program(figures.program, figures.carrier), row);
    } catch (const CommandError& error) {
      row["note"] = error.what();
    }
    return row;
  }

  const SurveyOptions& options_;
  const std::vector<SurveyTensor>& tensors_;
  StepPredictor predictor_;
  std::int64_t elements_ = 0;
};

}  // namespace

ExitCode run_report(const SurveyOptions& options) {
  constexpr std::size_t kLeastTableWidth = 75;
  parse_link(options.link);
  require_place_for(options.html);
  const std::vector<SurveyTensor> tensors = read_survey(options);
  const json report = Survey(options, tensors).whole();
  if (!options.html.empty()) write_file(options.html, survey_page(report));
  if (options.json) {
    print_result(report);
  } else {
    print_text("{}", survey_text(report, std::max(text_width(), kLeastTableWidth)));
  }
  return report["programs"].empty() ? ExitCode::AtFault : ExitCode::Done;
}

}  // namespace cinch::driver
