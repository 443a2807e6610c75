// cinch cache: what was compiled before, and compiling ahead of time.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "compiler/driver/commands/commands.h"
#include "compiler/driver/front_end.h"
#include "compiler/driver/process/json_output.h"
#include "compiler/driver/process/output_file.h"
#include "compiler/driver/process/progress.h"
#include "compiler/driver/target.h"
#include "compiler/service/compile.h"
#include "compiler/service/compile_cache.h"
#include "compiler/service/improve.h"
#include "runtime/cache/image_cache.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

json report_of(const rt::ImageCache& cache) {
  const rt::CacheSettings& settings = cache.settings();
  json report = {{"on", settings.is_on},
                 {"folder", settings.folder.string()},
                 {"max_bytes", settings.max_bytes},
                 {"shared", json::array()},
                 {"entries", json::array()}};
  for (const auto& folder : settings.shared) report["shared"].push_back(folder.string());
  std::uint64_t total = 0;
  const auto now = std::filesystem::file_time_type::clock::now();
  for (const rt::ListedEntry& entry : cache.list()) {
    total += entry.size_bytes;
    const auto age = std::chrono::duration_cast<std::chrono::seconds>(now - entry.last_used);
    report["entries"].push_back({{"title", entry.title},
                                 {"bytes", entry.size_bytes},
                                 {"used_seconds_ago", age.count()},
                                 {"problem", entry.problem ? entry.problem->message : ""},
                                 {"file", entry.path.string()}});
  }
  report["bytes"] = total;
  return report;
}

void print_for_people(const json& report) {
  const std::string folder = report["folder"].get<std::string>();
  fmt::print("cache of compiled programs: {}\n", !report["on"].get<bool>() ? "off (CINCH_CACHE)"
                                                 : folder.empty()
                                                     ? "no folder (set CINCH_CACHE_DIR or HOME)"
                                                     : folder);
  for (const json& shared : report["shared"]) {
    fmt::print("shared, read only: {}\n", shared.get<std::string>());
  }
  for (const json& entry : report["entries"]) {
    const std::string problem = entry["problem"].get<std::string>();
    fmt::print("{:>9} bytes  used {:>7} s ago  {}\n", entry["bytes"].get<std::uint64_t>(),
               entry["used_seconds_ago"].get<std::int64_t>(),
               problem.empty() ? entry["title"].get<std::string>() : "not used: " + problem);
  }
  fmt::print("{} entries, {} bytes of at most {}\n", report["entries"].size(),
             report["bytes"].get<std::uint64_t>(), report["max_bytes"].get<std::uint64_t>());
}

// In a process that outlives this one, and keeps nothing of who started it.
bool goes_on_alone() {
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  if (::fork() != 0) return false;
  ::setsid();
  ::setpriority(PRIO_PROCESS, 0, 19);
  return true;
}

// One such process compiles at a time, for the same GPUs' ranks begin with the same programs. Where
// files cannot be locked, several do.
void wait_for_turn(const std::filesystem::path& folder) {
  const int lock = ::open((folder / "improving").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                          S_IRUSR | S_IWUSR);
  if (lock >= 0) ::flock(lock, LOCK_EX);  // held until this process ends
}

}  // namespace

ExitCode run_cache_show(const CacheOptions& options) {
  const json report = report_of(rt::ImageCache(service::cache_settings()));
  if (options.json) {
    print_result(report);
  } else {
    print_for_people(report);
  }
  return ExitCode::Done;
}

ExitCode run_cache_clear(const CacheOptions&) {
  const rt::ImageCache cache(service::cache_settings());
  fmt::print("{} entries removed\n", cache.clear());
  return ExitCode::Done;
}

ExitCode run_cache_pack(const CacheOptions&) {
  const rt::ImageCache cache(service::cache_settings());
  fmt::print("{} entries packed\n", value_or_throw(cache.pack()));
  return ExitCode::Done;
}

ExitCode run_cache_warm(const CacheOptions& options) {
  const rt::CacheSettings settings = service::cache_settings();
  if (!settings.is_on || settings.folder.empty()) {
    throw CommandError(ExitCode::Usage, "the cache is off: there is nothing to warm");
  }
  const std::vector<std::string> programs = programs_or_library(options.programs);
  Progress progress("programs compiled");
  std::size_t done = 0;
  for (const std::string& text : options.targets) {
    const codegen::Target target = parse_target(text);
    for (const std::string& program : programs) {
      progress.update(done++, programs.size() * options.targets.size());
      FrontEnd front_end;
      service::ProgramRequest request{.program = program,
                                      .bindings = options.bindings,
                                      .states = options.states,
                                      .headers = options.headers,
                                      .is_ahead_of_time = true};
      compile_program(front_end, request, target);
      progress.clear();
      fmt::print("{} for {}\n", program, target.arch);
    }
  }
  return ExitCode::Done;
}

ExitCode run_cache_improve(const CacheOptions&) {
  const auto improvement =
      service::value_or_throw(service::read_improvement(read_text_or_input("-")));
  const rt::ImageCache cache(service::cache_settings());
  if (!cache.check_writable() || !goes_on_alone()) return ExitCode::Done;
  wait_for_turn(cache.settings().folder);
  FrontEnd front_end;
  service::make_program_image(front_end, improvement.request, improvement.target,
                              improvement.block_warps);
  return ExitCode::Done;
}

}  // namespace cinch::driver
