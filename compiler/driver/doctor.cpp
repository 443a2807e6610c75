// cinch doctor: what this machine has, and where it was found.
#include <dlfcn.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "codegen/jit/clang_jit.h"
#include "codegen/jit/nvrtc.h"
#include "compiler/driver/commands.h"
#include "compiler/driver/front_end.h"
#include "compiler/driver/version.h"
#include "runtime/module/cpu_module.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

json item(const std::string& name, bool is_found, const std::string& where,
          const std::string& needed_for) {
  return {{"name", name}, {"found", is_found}, {"where", where}, {"needed_for", needed_for}};
}

// A library that is opened when it is needed: tried here, and closed again.
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

json nvrtc_item() {
  const codegen::NvrtcReport& report = codegen::nvrtc_report();
  return item("NVRTC", report.is_found, codegen::describe(report), "compiling for CUDA");
}

json stdlib_item() {
  const std::string folder = stdlib_folder();
  return item("standard library", !folder.empty(),
              folder.empty() ? "set CINCH_STDLIB to its folder" : folder, "programs by name");
}

}  // namespace

ExitCode run_doctor(const DoctorOptions& options) {
  json report = {{"version", kVersion},
                 {"cpu", std::string(rt::host_cpu_arch())},
                 {"threads", std::thread::hardware_concurrency()}};
  report["items"] = json::array({stdlib_item(), clang_item(), nvrtc_item(),
                                 library("CUDA driver", "libcuda.so.1", "running on a GPU"),
                                 library("NCCL", "libnccl.so.2", "ranks on GPUs"),
                                 library("MPI", "libmpi.so", "ranks on several machines")});
  if (options.json) {
    fmt::print("{}\n", report.dump());
    return ExitCode::Done;
  }
  fmt::print("cinch {}\nprocessor: {}, {} threads\n", kVersion, report["cpu"].get<std::string>(),
             report["threads"].get<unsigned>());
  for (const json& found : report["items"]) {
    fmt::print("{}: {} ({})\n  {}\n", found["name"].get<std::string>(),
               found["found"].get<bool>() ? "found" : "not found",
               found["needed_for"].get<std::string>(), found["where"].get<std::string>());
  }
  return ExitCode::Done;
}

}  // namespace cinch::driver
