// cinch cache: shows compiled programs, and compiles ahead of time.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>

#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/text.h"
#include "compiler/driver/target.h"
#include "compiler/service/compile_cache.h"
#include "runtime/cache/image_cache.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

json report_of(const rt::ImageCache& cache) {
  const rt::CacheSettings& settings = cache.settings();
  json report = {{"on", settings.is_on},
                 {"folder", settings.folder.string()},
                 {"max_bytes", settings.max_bytes},
                 {"not_followed", settings.problem},
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
  print_text("cache of compiled programs: {}\n", !report["on"].get<bool>() ? "off (CINCH_CACHE)"
                                                 : folder.empty()
                                                     ? "no folder (set CINCH_CACHE_DIR or HOME)"
                                                     : folder);
  if (const auto problem = report["not_followed"].get<std::string>(); !problem.empty())
    print_text("not followed: {}\n", problem);
  for (const json& shared : report["shared"]) {
    print_text("shared, read only: {}\n", shared.get<std::string>());
  }
  for (const json& entry : report["entries"]) {
    const std::string problem = entry["problem"].get<std::string>();
    const std::string line =
        fmt::format("{:>9} bytes  used {:>7} s ago  {}", entry["bytes"].get<std::uint64_t>(),
                    entry["used_seconds_ago"].get<std::int64_t>(),
                    problem.empty() ? entry["title"].get<std::string>() : "not used: " + problem);
    print_text("{}\n", fit_to_width(line, output_width()));
  }
  print_text("{}, {} of at most {}\n", plainly_counted(report["entries"].size(), "entry"),
             plainly_counted(report["bytes"].get<std::uint64_t>(), "byte"),
             report["max_bytes"].get<std::uint64_t>());
}

// A background compilation that takes longer is given up, so that others have their turn.
constexpr unsigned kMostSeconds = 1800;

// Continues in a process that outlives this one, and keeps nothing of the process that started it.
bool goes_on_alone() {
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  if (::fork() != 0) return false;
  ::setsid();
  ::setpriority(PRIO_PROCESS, 0, 19);
  return true;
}

struct WarmProgram {
  service::ProgramRequest request;
  codegen::Target target;
};

std::vector<WarmProgram> programs_to_warm(const CacheOptions& options) {
  std::vector<WarmProgram> list;
  const std::vector<std::string> programs = programs_or_library(options.programs);
  for (const std::string& text : options.targets) {
    const codegen::Target target = parse_target(text);
    for (const std::string& program : programs) {
      list.push_back({{.program = program,
                       .bindings = options.bindings,
                       .states = options.states,
                       .headers = options.headers,
                       .is_ahead_of_time = true},
                      target});
    }
  }
  return list;
}

bool is_kept(const WarmProgram& program) {
  FrontEnd front_end;
  front_end.show = {};  // warnings were shown already
  return service::is_kept(front_end, program.request, program.target);
}

// `compiled`: the front end that compiled the program.
[[noreturn]] void refuse_not_kept(const WarmProgram& program, const FrontEnd& compiled,
                                  const rt::ImageCache& cache) {
  value_or_throw(cache.check_writable(), "nothing is kept");
  const std::string reason =
      !compiled.sink.all().empty()
          ? "programs with warnings are compiled each time, so that the warnings are shown"
          : fmt::format("{} cannot hold it, or it does not fit in {} bytes (CINCH_CACHE_MAX_BYTES)",
                        cache.settings().folder.string(), cache.settings().max_bytes);
  throw CommandError(ExitCode::AtFault, "{} for {} is not kept: {}", program.request.program,
                     program.target.arch, reason);
}

}  // namespace

ExitCode run_cache_show(const CacheOptions& options) {
  warn_of_settings();
  const json report = report_of(rt::ImageCache(service::cache_settings()));
  if (options.json) {
    print_result(report);
  } else {
    print_for_people(report);
  }
  return ExitCode::Done;
}

ExitCode run_cache_clear(const CacheOptions&) {
  warn_of_settings();
  const rt::ImageCache cache(service::cache_settings());
  print_text("{} removed\n", plainly_counted(cache.clear(), "entry"));
  return ExitCode::Done;
}

ExitCode run_cache_pack(const CacheOptions&) {
  warn_of_settings();
  const rt::ImageCache cache(service::cache_settings());
  print_text("{} packed\n", plainly_counted(value_or_throw(cache.pack()), "entry"));
  return ExitCode::Done;
}

ExitCode run_cache_warm(const CacheOptions& options) {
  warn_of_settings();
  const rt::ImageCache cache(service::cache_settings());
  if (!cache.settings().is_on || cache.settings().folder.empty()) {
    throw UsageError("the cache is off: there is nothing to warm");
  }
  value_or_throw(cache.check_writable(), "nothing can be kept");
  const std::vector<WarmProgram> programs = programs_to_warm(options);
  Progress progress("programs compiled");
  std::size_t done = 0;
  for (const WarmProgram& program : programs) {
    progress.update(done++, programs.size());
    FrontEnd front_end;
    compile_program(front_end, program.request, program.target);
    progress.clear();
    if (!is_kept(program)) refuse_not_kept(program, front_end, cache);
    print_text("{} for {}\n", program.request.program, program.target.arch);
  }
  // Entries that are written last may have pushed out the first ones.
  for (const WarmProgram& program : programs) {
    if (!is_kept(program)) refuse_not_kept(program, {}, cache);
  }
  return ExitCode::Done;
}

ExitCode run_cache_improve(const CacheOptions&) {
  const auto improvement =
      service::value_or_throw(service::read_improvement(read_text_or_input("-")));
  const rt::ImageCache cache(service::cache_settings());
  if (!cache.check_writable() || !goes_on_alone()) return ExitCode::Done;
  // Only one such process compiles at a time, since ranks on equal GPUs begin with the same
  // programs. If files cannot be locked, several do.
  const int lock = ::open((cache.settings().folder / "improving").c_str(),
                          O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (lock >= 0) ::flock(lock, LOCK_EX);  // held until this process ends
  ::alarm(kMostSeconds);
  FrontEnd front_end;
  service::make_program_image(front_end, improvement.request, improvement.target,
                              improvement.block_warps);
  return ExitCode::Done;
}

}  // namespace cinch::driver
