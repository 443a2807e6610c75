// cinch doctor: lists what this machine has, and where.
#include <dlfcn.h>

#include <algorithm>
#include <sstream>
#include <thread>

#include "codegen/jit/clang_jit.h"
#include "codegen/jit/nvrtc.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/text.h"
#include "compiler/driver/target.h"
#include "compiler/service/compile_cache.h"
#include "runtime/cache/image_cache.h"
#include "runtime/module/cpu_module.h"
#include "runtime/transports/nccl/nccl_abi.h"
#include "runtime/tuning/tuning.h"

namespace cinch::driver {
namespace {

using nlohmann::json;

json item(const std::string& name, bool is_found, const std::string& where,
          const std::string& needed_for) {
  return {{"name", name}, {"found", is_found}, {"where", where}, {"needed_for", needed_for}};
}

// A library that is opened on demand: opens it here, and closes it again.
json library(const std::string& name, const char* file, const std::string& needed_for) {
  void* handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    return item(name, false, std::string(file) + " is not on the loader's path", needed_for);
  }
  dlclose(handle);
  return item(name, true, file, needed_for);
}

json clang_item() {
  const auto clang = codegen::find_clang();
  if (!clang) return item("Clang", false, clang.error().message, "compiling for the CPU");
  return item("Clang", true, clang->version + ", " + clang->path, "compiling for the CPU");
}

// The driver, and each device with its properties and whether it can be opened.
json driver_item() {
  constexpr const char* kNeededFor = "running on a GPU";
  const auto driver = rt::open_cuda_driver();
  if (!driver) return item("CUDA driver", false, driver.error().message, kNeededFor);
  int version = 0, count = 0;
  rt::GpuCode code = (*driver)->init(0);
  if (code == rt::kGpuSuccess) code = (*driver)->driver_version(&version);
  if (code == rt::kGpuSuccess) code = (*driver)->device_count(&count);
  if (const rt::Status status = rt::gpu_status(**driver, code, "asking the driver"); !status) {
    return item("CUDA driver", false, status.error().message, kNeededFor);
  }
  std::string where =
      fmt::format("for CUDA {}.{}, {} devices", version / 1000, version % 1000 / 10, count);
  for (int i = 0; i < count; ++i) {
    const auto device = rt::GpuDevice::open(**driver, i);
    where += device ? fmt::format("\n  {}: {}, {}, {} multiprocessors", i, (*device)->name(),
                                  (*device)->arch(), (*device)->multiprocessors())
                    : fmt::format("\n  {}: {}", i, device.error().message);
  }
  return item("CUDA driver", true, where, kNeededFor);
}

// Tells whose numbers are in use.
std::string numbers_origin(const rt::TuningTable& table) {
  std::string text;
  for (const rt::TuningEntry& entry : table.entries) {
    if (!entry.measured) continue;
    text += fmt::format("\n  {}: {}, {}", entry.architecture, entry.measured->date,
                        entry.measured->machine);
  }
  return text;
}

json tuning_item() {
  const rt::UserTuning& user = rt::user_tuning();
  constexpr const char* kNeededFor = "how work is cut up";
  const std::string builtin =
      "the built-in numbers are used; measured are:" + numbers_origin(rt::builtin_tuning());
  if (user.problem)
    return item("tuning table", false, user.problem->message + "; " + builtin, kNeededFor);
  if (!user.is_there) {
    const std::string missing = user.path.empty()
                                    ? "CINCH_TUNING is off, or there is no HOME"
                                    : user.path + " is not there (cinch tune writes it)";
    return item("tuning table", false, missing + "; " + builtin, kNeededFor);
  }
  return item("tuning table", true, user.path + numbers_origin(user.table), kNeededFor);
}

// Parts of the cache that are not used, for example because somebody else may have written them;
// limited to as many lines as help.
std::string cache_problems(const rt::CacheSettings& settings) {
  constexpr std::size_t kMostLines = 8;
  const std::vector<std::string> problems = rt::ImageCache(settings).problems();
  std::string text;
  for (std::size_t i = 0; i < std::min(problems.size(), kMostLines); ++i) {
    text += "\n  not used: " + problems[i];
  }
  if (problems.size() > kMostLines) {
    text += fmt::format("\n  not used: {} more", problems.size() - kMostLines);
  }
  return text;
}

json cache_item() {
  const rt::CacheSettings settings = service::cache_settings();
  const bool is_used = settings.is_on && !settings.folder.empty();
  std::string where = !settings.is_on           ? "off (CINCH_CACHE)"
                      : settings.folder.empty() ? "no folder (set CINCH_CACHE_DIR or HOME)"
                                                : settings.folder.string();
  for (const auto& folder : settings.shared) where += "\n  read only: " + folder.string();
  if (settings.is_on) where += cache_problems(settings);
  if (!settings.problem.empty()) where += "\n  not followed: " + settings.problem;
  const rt::Status kept = is_used ? rt::ImageCache(settings).check_writable() : rt::Ok{};
  if (!kept) where += "\n  nothing new is kept: " + kept.error().message;
  return item("cache", is_used, where, "programs compiled before");
}

}  // namespace

ExitCode run_doctor(const DoctorOptions& options) {
  json report = {{"version", kVersion},
                 {"cpu", std::string(rt::host_cpu_arch())},
                 {"threads", std::thread::hardware_concurrency()}};
  const std::string stdlib = stdlib_folder();
  const codegen::NvrtcReport& nvrtc = codegen::nvrtc_report();
  const auto nccl = rt::open_nccl_library();
  report["items"] = json::array(
      {item("standard library", !stdlib.empty(),
            stdlib.empty() ? "set CINCH_STDLIB to its folder" : stdlib, "programs by name"),
       clang_item(), item("NVRTC", nvrtc.is_found, codegen::describe(nvrtc), "compiling for CUDA"),
       driver_item(), tuning_item(), cache_item(),
       item("NCCL", nccl.has_value(),
            nccl ? rt::nccl_version_text((*nccl)->version) : nccl.error().message, "ranks on GPUs"),
       library("MPI", "libmpi.so", "ranks on several machines")});
  if (options.json) {
    print_result(report);
    return ExitCode::Done;
  }
  // Lines of `where` may be indented more.
  const auto print_where = [](const std::string& where) {
    std::istringstream lines(where);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t indent = 2 + std::min(line.find_first_not_of(' '), line.size());
      print_text("{}{}\n", std::string(indent, ' '), wrapped(line, indent, sentence_width()));
    }
  };
  print_text("cinch {}\nprocessor: {}, {} threads\n", kVersion, report["cpu"].get<std::string>(),
             report["threads"].get<unsigned>());
  for (const json& found : report["items"]) {
    print_text("{}: {} ({})\n", found["name"].get<std::string>(),
               found["found"].get<bool>() ? "found" : "not found",
               found["needed_for"].get<std::string>());
    print_where(found["where"].get<std::string>());
  }
  return ExitCode::Done;
}

}  // namespace cinch::driver
