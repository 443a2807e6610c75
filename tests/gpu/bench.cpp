// gpu_bench: how long encode and decode of programs take on a GPU when they are replayed from CUDA
// graphs, beside plain loops over the bytes that no program can save, in one run. From a folder
// that prepare.py made: images, plain.kernels, bench.tsv (what to measure) and a list of tensors.
//
//   gpu_bench FOLDER --json FILE [--device cuda|emulated] [--only NAME,…] [--elements N,…]
//             [--seconds S] [--type f32|bf16] [--shift N] [--tensors N] [--shrink N]
//             [--memory-mib N]
//
// --elements: these sizes alone, and no list. --type: of gradients and outputs; floors stay those
// of f32. --shift: they begin so many elements behind an aligned place. A line of JSON for each
// figure goes to FILE, a table to the screen. What the device has no memory for is left out, with a
// line that says so. For the emulated device, --tensors: of the list only the first; --shrink: each
// of them has 1/N of its elements; --memory-mib: of its memory.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>

#include "tests/gpu/bench_cases.h"

namespace cinch::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kListProgram = "onebit";
constexpr std::string_view kSkipped = "skipped", kFailed = "failed";

struct Options {
  fs::path folder, json_file;
  std::string device = "cuda";
  std::vector<std::string> only;
  std::vector<std::int64_t> elements;
  Lying lying;
  double seconds = 0.5;
  std::size_t tensors = SIZE_MAX;
  std::int64_t shrink = 1;
  std::size_t memory_mib = 1024;
};

// A line: program, settings ("a=1,b=2" or "-"), elements, call, sweeps of the floor, bytes it reads
// and writes, bytes that the program's kernels read and write.
std::vector<Case> read_cases(const fs::path& path) {
  std::ifstream file(path);
  std::vector<Case> cases;
  std::string program, settings, call;
  std::int64_t n = 0;
  CallCost cost;
  while (file >> program >> settings >> n >> call >> cost.floor.sweeps >> cost.floor.read >>
         cost.floor.written >> cost.moved.read >> cost.moved.written) {
    if (cases.empty() || cases.back().program != program || cases.back().num_elems != n) {
      cases.push_back({program, {}, n, {}});
      for (const std::string& setting : comma_separated(settings == "-" ? "" : settings)) {
        const std::size_t equals = setting.find('=');
        cases.back().settings.emplace_back(setting.substr(0, equals),
                                           std::stod(setting.substr(equals + 1)));
      }
    }
    cases.back().calls[call] = cost;
  }
  if (cases.empty() || !file.eof()) throw std::runtime_error(path.string() + " is not understood");
  return cases;
}

// The column `numel` of a table of tensors.
std::vector<std::int64_t> read_sizes(const Options& options) {
  const fs::path path = options.folder / "bert_large.csv";
  std::ifstream file(path);
  std::vector<std::int64_t> sizes;
  std::string line;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = comma_separated(line);
    if (line.starts_with("#") || cells.size() < 2 || cells[1] == "numel") continue;
    sizes.push_back(std::max<std::int64_t>(std::stoll(cells[1]) / options.shrink, 1));
  }
  if (sizes.empty()) throw std::runtime_error(path.string() + " lists no tensors");
  sizes.resize(std::min(sizes.size(), options.tensors));
  return sizes;
}

double gb_per_s(const Traffic& traffic, double ms) {
  return static_cast<double>(traffic.read + traffic.written) / ms / 1e6;
}

class Report {
 public:
  explicit Report(const fs::path& path) : file_(path) {
    if (!file_) throw std::runtime_error(path.string() + " cannot be written");
  }
  void machine(const rt::GpuDevice& device) {
    std::size_t free_bytes = 0, total_bytes = 0;
    int version = 0;
    const rt::GpuDevice::Scope scope(device);
    device.driver().memory_info(&free_bytes, &total_bytes);
    device.driver().driver_version(&version);
    add({{"what", "machine"},
         {"device", device.name()},
         {"arch", device.arch()},
         {"multiprocessors", device.multiprocessors()},
         {"memory_bytes", total_bytes},
         {"driver_version", version}});
    fmt::print("{} ({}), {} MiB\n", device.name(), device.arch(), total_bytes >> 20);
  }
  void plain(const char* loop, std::int64_t n, const Traffic& traffic, double ms) {
    const double bandwidth = gb_per_s(traffic, ms);
    add({{"what", "plain"}, {"loop", loop}, {"elements", n}, {"ms", ms}, {"gb_per_s", bandwidth}});
    fmt::print("{:>10}  {:<10} {:<6}  {:9.4f} ms  {:7.1f} GB/s\n", n, "plain", loop, ms, bandwidth);
  }
  void call(const Case& of, const CallTimes& times) {
    const double share = times.floor_ms / times.ms, moved = gb_per_s(times.moved, times.ms);
    add({{"what", "call"},
         {"program", of.program},
         {"settings", json(of.settings)},
         {"elements", of.num_elems},
         {"call", times.call},
         {"ms", times.ms},
         {"floor_ms", times.floor_ms},
         {"of_floor", share},
         {"floor_sweeps", times.floor.sweeps},
         {"floor_bytes", times.floor.read + times.floor.written},
         {"moved_bytes", times.moved.read + times.moved.written},
         {"moved_gb_per_s", moved},
         {"payload_bytes", times.payload_bytes},
         {"launches", times.num_launches},
         {"rounds", times.rounds}});
    fmt::print("{:>10}  {:<10} {:<6}  {:9.4f} ms  {:7.1f} GB/s  {:5.2f} of the floor\n",
               of.num_elems, of.program, times.call, times.ms, moved, share);
  }
  void list(std::size_t num_tensors, std::int64_t n, const ListTimes& times) {
    add({{"what", "list"},
         {"program", kListProgram},
         {"tensors", num_tensors},
         {"elements", n},
         {"call", times.call},
         {"ms", times.ms},
         {"one_ms", times.one_ms},
         {"of_one", times.ms / times.one_ms}});
    fmt::print("{:>10}  {:<10} {:<6}  {:9.4f} ms  {} tensors: {:.2f} of the time of one\n", n,
               kListProgram, times.call, times.ms, num_tensors, times.ms / times.one_ms);
  }
  /// `how`: "skipped" or "failed".
  void missing(std::string_view how, const std::string& what, std::int64_t n,
               const std::string& why) {
    add({{"what", how}, {"program", what}, {"elements", n}, {"why", why}});
    fmt::print("{:>10}  {:<10} {}: {}\n", n, what, how, why);
    num_failed_ += how == kFailed ? 1 : 0;
  }
  void lying(const Lying& how) {
    if (how.dtype == kF32 && how.shift == 0) return;
    add({{"what", "lying"}, {"type", dtype_name(how.dtype)}, {"shift", how.shift}});
  }
  int num_failed() const { return num_failed_; }

 private:
  void add(const json& line) {
    file_ << line.dump() << "\n" << std::flush;
    std::fflush(stdout);
  }
  std::ofstream file_;
  int num_failed_ = 0;
};

// Memory that is lacking, and a failure, leave one thing out, and nothing else.
template <typename F>
void measure_or_skip(Report& report, const std::string& what, std::int64_t n, F&& measure) {
  try {
    measure();
  } catch (const OutOfMemory& error) {
    report.missing(kSkipped, what, n, error.what());
  } catch (const std::exception& error) {
    report.missing(kFailed, what, n, error.what());
  }
}

void measure_plain(const Bench& bench, Report& report, std::span<const std::int64_t> sizes) {
  for (const std::int64_t n : sizes) {
    measure_or_skip(report, "plain", n, [&] {
      const Traffic copy{1, 4 * n, 4 * n}, read{1, 4 * n, 0}, write{1, 0, 4 * n};
      report.plain("copy", n, copy, bench.plain_ms(copy));
      report.plain("read", n, read, bench.plain_ms(read));
      report.plain("write", n, write, bench.plain_ms(write));
    });
  }
}

void measure_list(const Bench& bench, Report& report, const Options& options,
                  const std::vector<std::int64_t>& sizes,
                  const std::shared_ptr<const rt::GpuDevice>& device) {
  std::int64_t total = 0;
  for (const std::int64_t n : sizes) total += n;
  measure_or_skip(report, kListProgram, total, [&] {
    const auto program =
        load_gpu_program(options.folder / fmt::format("{}.gpu.image", kListProgram), device);
    for (const ListTimes& times : bench.measure_list(program, sizes)) {
      report.list(sizes.size(), total, times);
    }
  });
}

// How many measurements failed.
int run(const Options& options) {
  const auto device = open_device(options.device, options.memory_mib << 20);
  Report report(options.json_file);
  report.machine(*device);
  const Stream stream(device);
  const PlainLoops loops(options.folder / "plain.kernels", stream);
  std::vector<Case> cases = read_cases(options.folder / "bench.tsv");
  const auto is_in = [](const auto& wanted, const auto& value) {
    return wanted.empty() || std::ranges::find(wanted, value) != wanted.end();
  };
  std::erase_if(cases, [&](const Case& one) {
    return !is_in(options.only, one.program) || !is_in(options.elements, one.num_elems);
  });
  std::vector<std::int64_t> sizes;
  for (const Case& one : cases) sizes.push_back(one.num_elems);
  std::ranges::sort(sizes);
  sizes.erase(std::ranges::unique(sizes).begin(), sizes.end());
  const std::vector<std::int64_t> tensors = read_sizes(options);
  std::vector<std::int64_t> totals = sizes;
  if (options.elements.empty()) {
    totals.push_back(std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0}));
  }
  std::ranges::sort(totals);
  Memory memory(device);
  report.lying(options.lying);
  const Bench bench(stream, loops, make_gradient_on_device(totals, options.lying, memory),
                    {.seconds = options.seconds, .least = options.seconds > 0 ? 3 : 1});
  bench.warm_up(options.seconds);
  measure_plain(bench, report, sizes);
  for (const Case& one : cases) {
    measure_or_skip(report, one.program, one.num_elems, [&] {
      const auto program = load_gpu_program(options.folder / (one.program + ".gpu.image"), device);
      for (const CallTimes& times : bench.measure(program, one)) report.call(one, times);
    });
  }
  if (options.elements.empty()) measure_list(bench, report, options, tensors, device);
  return report.num_failed();
}

bool parse_value(Options& options, std::string_view name, const std::string& value) {
  if (name == "--json") {
    options.json_file = value;
  } else if (name == "--device") {
    options.device = value;
  } else if (name == "--only") {
    options.only = comma_separated(value);
  } else if (name == "--elements") {
    for (const std::string& n : comma_separated(value)) options.elements.push_back(std::stoll(n));
  } else if (name == "--type" && (value == "f32" || value == "bf16")) {
    options.lying.dtype = value == "f32" ? kF32 : kBF16;
  } else if (name == "--shift") {
    options.lying.shift = std::stoll(value);
  } else if (name == "--seconds") {
    options.seconds = std::stod(value);
  } else if (name == "--tensors") {
    options.tensors = std::stoull(value);
  } else if (name == "--shrink") {
    options.shrink = std::stoll(value);
  } else if (name == "--memory-mib") {
    options.memory_mib = std::stoull(value);
  } else {
    return false;
  }
  return true;
}

std::optional<Options> parse(std::span<char* const> args) {
  if (args.size() < 2 || args.size() % 2 != 0) return std::nullopt;
  Options options;
  options.folder = args[1];
  for (std::size_t i = 2; i < args.size(); i += 2) {
    if (!parse_value(options, args[i], args[i + 1])) return std::nullopt;
  }
  if (options.json_file.empty() || options.shrink < 1 || options.tensors < 1) return std::nullopt;
  return options;
}

}  // namespace
}  // namespace cinch::testing

int main(int argc, char** argv) {
  try {
    const auto options = cinch::testing::parse({argv, static_cast<std::size_t>(argc)});
    if (!options) {
      fmt::print(stderr,
                 "gpu_bench FOLDER --json FILE [--device cuda|emulated] [--only NAME,...] "
                 "[--elements N,...] [--seconds S] [--type f32|bf16] [--shift N] [--tensors N] "
                 "[--shrink N] [--memory-mib N]\n");
      return 2;
    }
    return cinch::testing::run(*options) > 0 ? 1 : 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_bench: {}\n", error.what());
    return 3;
  }
}
