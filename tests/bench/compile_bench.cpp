// bench_compile: from a program's name to a session that runs, in one process that has the
// compiler's libraries open: cold, stage by stage, and from the cache. Medians over repetitions.
// For a GPU it ends with the image, as a session takes a device.
//
//   bench_compile [--json FILE] [--reps N] [--cpu LEVEL | --cuda sm_90] [--effort full|quick]
//                 [program …]
//
// Without programs: the library. Without an effort: as for a user who waits.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "codegen/jit/compile_program.h"
#include "compiler/service/compile.h"
#include "compiler/service/front_end.h"
#include "runtime/module/cpu_module.h"
#include "runtime/session/session.h"

namespace cinch {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

struct Options {
  std::string json_file, cpu = "native", cuda, effort;
  int reps = 5;
  std::vector<std::string> programs;
};

double wall_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

// Summed over all threads.
double cpu_ms() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// One value per repetition, by name.
class Samples {
 public:
  void add(const std::string& name, double value) {
    for (auto& [known, values] : columns_) {
      if (known == name) return values.push_back(value);
    }
    columns_.push_back({name, {value}});
  }
  json medians() const {
    json out = json::object();
    for (const auto& [name, values] : columns_) out[name] = median(values);
    return out;
  }

 private:
  std::vector<std::pair<std::string, std::vector<double>>> columns_;
};

void open_session(rt::ProgramImage image, const codegen::Target& target) {
  if (target.kind == codegen::TargetKind::Cuda) return;
  const rt::SessionOptions options{.rows = 4096, .cols = image.info.is_matrix ? 64 : 1};
  service::value_or_throw(rt::Session::open(std::move(image), options));
}

// Every stage from the program's text to a session, without the cache.
void measure_cold(const std::string& program, const codegen::Target& target,
                  const std::string& effort, Samples& samples) {
  const double cpu = cpu_ms(), start = wall_ms();
  service::FrontEnd front_end;
  const kir::KernelProgram kernels =
      service::make_kernels(service::make_ir(front_end, {program, {}, {}}), {});
  const double compile = wall_ms();
  codegen::CompileTimes times;
  codegen::ImageOptions image_options;
  image_options.times = &times;
  const bool is_quick =
      effort.empty() ? codegen::is_quick_worth_it(kernels, target) : effort == "quick";
  image_options.effort = is_quick ? codegen::Effort::Quick : codegen::Effort::Full;
  rt::ProgramImage image =
      service::value_or_throw(codegen::make_image(kernels, target, image_options));
  const double open = wall_ms();
  const auto code_bytes = static_cast<double>(image.binary.size());
  open_session(std::move(image), target);
  const double end = wall_ms();
  samples.add("cold_ms", end - start);
  samples.add("cold_cpu_ms", cpu_ms() - cpu);
  samples.add("kernels_ms", compile - start);
  samples.add("clang_ms", times.front_end_ms);
  samples.add("optimizer_ms", times.optimizer_ms);
  samples.add("machine_code_ms", times.machine_code_ms);
  samples.add("link_ms", times.link_ms);
  samples.add("open_ms", end - open);
  samples.add("code_bytes", code_bytes);
}

// As above, from the cache, which holds `program`.
void measure_hit(const std::string& program, const codegen::Target& target, Samples& samples) {
  const double start = wall_ms();
  service::FrontEnd front_end;
  rt::ProgramImage image = service::make_program_image(front_end, {program, {}, {}}, target);
  const double open = wall_ms();
  open_session(std::move(image), target);
  const double end = wall_ms();
  samples.add("hit_ms", end - start);
  samples.add("hit_open_ms", end - open);
}

json measure(const std::string& program, const Options& options, const codegen::Target& target) {
  Samples samples;
  for (int i = 0; i < options.reps; ++i) measure_cold(program, target, options.effort, samples);
  service::FrontEnd front_end;
  service::make_program_image(front_end, {program, {}, {}}, target);
  for (int i = 0; i < options.reps; ++i) measure_hit(program, target, samples);
  json row = samples.medians();
  row["program"] = fs::path(program).stem().string();
  return row;
}

constexpr const char* kColumns[] = {"cold_ms",      "cold_cpu_ms",     "kernels_ms", "clang_ms",
                                    "optimizer_ms", "machine_code_ms", "link_ms",    "open_ms",
                                    "code_bytes",   "hit_ms",          "hit_open_ms"};

void print_row(const json& row) {
  fmt::print("{:<12}", row["program"].get<std::string>());
  for (const char* column : kColumns) {
    fmt::print(" {:>15.{}f}", row[column].get<double>(),
               std::string(column) == "code_bytes" ? 0 : 2);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

json median_row(const json& rows) {
  json out = {{"program", "median"}};
  for (const char* column : kColumns) {
    std::vector<double> values;
    for (const json& row : rows) values.push_back(row[column].get<double>());
    out[column] = median(values);
  }
  return out;
}

// A private cache of this run, removed at its end.
class OwnCache {
 public:
  OwnCache() : folder_(fs::temp_directory_path() / fmt::format("bench-compile-{}", ::getpid())) {
    ::setenv("CINCH_CACHE_DIR", folder_.c_str(), 1);
    ::setenv("CINCH_CACHE", "on", 1);
  }
  ~OwnCache() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  OwnCache(const OwnCache&) = delete;
  OwnCache& operator=(const OwnCache&) = delete;

 private:
  fs::path folder_;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--json" && has_value) {
      options.json_file = argv[++i];
    } else if (word == "--reps" && has_value) {
      options.reps = std::max(1, std::atoi(argv[++i]));
    } else if (word == "--cpu" && has_value) {
      options.cpu = argv[++i];
    } else if (word == "--cuda" && has_value) {
      options.cuda = argv[++i];
    } else if (word == "--effort" && has_value) {
      options.effort = argv[++i];
    } else {
      options.programs.push_back(word);
    }
  }
  return options;
}

void run(Options options) {
  const OwnCache cache;
  if (options.programs.empty()) {
    for (const service::LibraryProgram& program : service::library_programs()) {
      options.programs.push_back(program.path + ":" + program.name);
    }
  }
  if (options.programs.empty()) throw std::runtime_error("the standard library was not found");
  const std::string cpu = options.cpu == "native" ? std::string(rt::host_cpu_arch()) : options.cpu;
  const codegen::Target target = options.cuda.empty()
                                     ? codegen::Target{codegen::TargetKind::Cpu, cpu}
                                     : codegen::Target{codegen::TargetKind::Cuda, options.cuda};
  Samples first;
  measure_cold(options.programs[0], target, options.effort, first);
  fmt::print("first compilation, with the compiler's libraries opened: {:.0f} ms\n",
             first.medians()["cold_ms"].get<double>());
  fmt::print("{:<12}", "program");
  for (const char* column : kColumns) fmt::print(" {:>15}", column);
  fmt::print("\n");
  json rows = json::array();
  for (const std::string& program : options.programs) {
    rows.push_back(measure(program, options, target));
    print_row(rows.back());
  }
  const json medians = median_row(rows);
  print_row(medians);
  if (options.json_file.empty()) return;
  std::ofstream(options.json_file) << json{{"target", target.arch},
                                           {"reps", options.reps},
                                           {"first", first.medians()},
                                           {"programs", rows},
                                           {"median", medians}}
                                          .dump(1)
                                   << "\n";
}

}  // namespace
}  // namespace cinch

int main(int argc, char** argv) {
  try {
    cinch::run(cinch::parse(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_compile: {}\n", error.what());
    return 1;
  }
}
