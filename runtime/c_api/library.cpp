// Compressors that were compiled ahead of time: found in libraries, and made programs.
#include <dlfcn.h>

#include <filesystem>

#include "runtime/c_api/cinch_library.h"
#include "runtime/c_api/handles.h"
#include "runtime/image/image_file.h"
#include "runtime/module/cpu_module.h"
#include "runtime/module/shared_object.h"

namespace cinch::c_api {
namespace {

// A table of another version begins with the same version number.
CallStatus check_version(std::uint32_t version, std::uint32_t struct_size, std::size_t expected) {
  if (version != CINCH_LIBRARY_VERSION) {
    return fail(CINCH_VERSION_MISMATCH,
                "the library has version " + std::to_string(version) + ", this libcinch reads " +
                    std::to_string(CINCH_LIBRARY_VERSION) + ": build it again");
  }
  if (struct_size == expected) return rt::Ok{};
  return fail(CINCH_CORRUPT_FILE, "a table of " + std::to_string(struct_size) + " bytes, not " +
                                      std::to_string(expected));
}

std::string levels_of(const cinch_compressor& compressor) {
  std::string text;
  for (std::size_t i = 0; i < compressor.num_cpu; ++i)
    text += (i == 0 ? "" : ", ") + std::string(compressor.cpu[i].level);
  return text.empty() ? "no CPU" : text;
}

// The highest level that this machine runs, or the requested one.
CallResult<const cinch_cpu_code*> choose_cpu(const cinch_compressor& compressor,
                                             const char* asked) {
  for (std::size_t i = compressor.num_cpu; i-- > 0;) {
    const cinch_cpu_code& code = compressor.cpu[i];
    const bool is_wanted = asked == nullptr || std::strcmp(asked, code.level) == 0;
    if (is_wanted && rt::host_supports(code.level)) return &code;
  }
  const std::string wanted = asked == nullptr ? "this machine" : "'" + std::string(asked) + "'";
  return fail(CINCH_UNAVAILABLE, std::string(compressor.name) + " has no code for " + wanted +
                                     ": it has " + levels_of(compressor) + "; this machine runs " +
                                     std::string(rt::host_level()));
}

// "sm_90" is 90; 0 if it is not an architecture.
int number_of(std::string_view arch) {
  constexpr std::string_view kPrefix = "sm_";
  int number = 0;
  if (!arch.starts_with(kPrefix)) return 0;
  for (const char c : arch.substr(kPrefix.size())) {
    if (c < '0' || c > '9') return 0;
    number = number * 10 + (c - '0');
  }
  return number;
}

// Code for an architecture runs on later minors of its major; PTX runs on everything newer.
bool runs_on(const cinch_gpu_code& code, const std::string& arch) {
  if (arch == code.arch) return true;
  const int has = number_of(code.arch), wants = number_of(arch);
  if (has == 0 || wants < has) return false;
  return code.is_ptx != 0 || has / 10 == wants / 10;
}

// The newest code that the architecture runs, machine code before PTX; null if there is none.
const cinch_gpu_code* choose_gpu(const cinch_compressor& compressor, const std::string& arch) {
  const cinch_gpu_code* best = nullptr;
  const auto rank = [](const cinch_gpu_code& code) {
    return std::pair(code.is_ptx == 0, number_of(code.arch));
  };
  for (std::size_t i = 0; i < compressor.num_gpu; ++i) {
    const cinch_gpu_code& code = compressor.gpu[i];
    if (runs_on(code, arch) && (best == nullptr || rank(*best) < rank(code))) best = &code;
  }
  return best;
}

CallStatus open_on_cpu(const cinch_compressor& compressor, const char* level,
                       cinch_program** program) {
  const auto code = TRY(choose_cpu(compressor, level));
  auto image = TRY(rt::read_image({compressor.image, compressor.image_size}));
  image.target = "cpu:" + std::string(code->level);
  std::vector<rt::KernelFunction> kernels;
  kernels.reserve(code->num_kernels);
  for (std::size_t i = 0; i < code->num_kernels; ++i)
    kernels.push_back(reinterpret_cast<rt::KernelFunction>(code->kernels[i]));
  if (kernels.size() != image.kernels.size())
    return fail(CINCH_CORRUPT_FILE, std::string(compressor.name) + ": code and tables differ");
  return give_program(rt::LoadedProgram::from_functions(std::move(image), std::move(kernels)),
                      program);
}

CallStatus open_gpu_code(const cinch_compressor& compressor, const std::string& arch,
                         cinch_program** program) {
  const cinch_gpu_code* code = choose_gpu(compressor, arch);
  if (code == nullptr) {
    return fail(CINCH_UNAVAILABLE, std::string(compressor.name) + " has no code for " + arch);
  }
  auto image = TRY(rt::read_image({code->image, code->image_size}));
  image.target = "cuda:" + arch;
  return give_program(std::move(image), program);
}

CallResult<std::string> arch_of_device(const cinch_open_options& options) {
  if (options.arch != nullptr && options.arch[0] != '\0') return std::string(options.arch);
  const auto device = TRY(open_gpu(options.device_number));
  return device->arch();
}

CallStatus open(const cinch_compressor& compressor, const cinch_open_options& options,
                cinch_program** program) {
  CINCH_TRY(check_version(compressor.library_version, compressor.struct_size, sizeof compressor));
  switch (options.choice) {
    case CINCH_CPU_CODE:
      return open_on_cpu(compressor, options.cpu, program);
    case CINCH_GPU_CODE: {
      const auto arch = TRY(arch_of_device(options));
      return open_gpu_code(compressor, arch, program);
    }
    case CINCH_ANY_CODE: {
      const auto arch = arch_of_device(options);
      const bool has_code = arch && choose_gpu(compressor, *arch) != nullptr;
      return has_code ? open_gpu_code(compressor, *arch, program)
                      : open_on_cpu(compressor, options.cpu, program);
    }
  }
  return invalid("choice is " + std::to_string(static_cast<int>(options.choice)) +
                 ", which is not a value of cinch_choice");
}

CallResult<const cinch_library*> load_library(const std::filesystem::path& path) {
  // Checked first, since the loader trusts what a file says about its own length.
  CINCH_TRY(rt::check_elf_file(path));
  void* const handle = ::dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* message = ::dlerror();
    return fail(CINCH_CORRUPT_FILE, message != nullptr ? message : "cannot be opened");
  }
  using Find = const cinch_library* (*)();
  const auto find = reinterpret_cast<Find>(::dlsym(handle, "cinch_compiled_library"));
  if (find == nullptr) {
    ::dlclose(handle);
    return fail(CINCH_CORRUPT_FILE, path.string() + ": not a library of compressors");
  }
  const cinch_library* library = find();
  CINCH_TRY(check_version(library->library_version, library->struct_size, sizeof *library));
  return library;
}

CallResult<const cinch_compressor*> find_compressor(const cinch_library& library,
                                                    std::string_view name) {
  CINCH_TRY(check_version(library.library_version, library.struct_size, sizeof library));
  std::string names;
  for (std::size_t i = 0; i < library.num_compressors; ++i) {
    const cinch_compressor* compressor = library.compressors[i];
    if (name == compressor->name) return compressor;
    names += (i == 0 ? "" : ", ") + std::string(compressor->name);
  }
  return invalid(std::string(library.name) + " has no compressor '" + std::string(name) +
                 "': it has " + names);
}

}  // namespace

CallStatus load_from_library(const std::string& path, const std::string& name,
                             cinch_program** program) {
  const auto library = TRY(load_library(path));
  if (name.empty() && library->num_compressors != 1) {
    return invalid(path + " has " + std::to_string(library->num_compressors) +
                   " compressors: a name behind a colon says which");
  }
  const auto compressor = name.empty() ? library->compressors[0] : nullptr;
  const auto found = TRY(compressor != nullptr ? compressor : find_compressor(*library, name));
  return open(*found, {}, program);
}

}  // namespace cinch::c_api

using namespace cinch::c_api;

cinch_status cinch_program_open(const cinch_compressor* compressor,
                                const cinch_open_options* options, cinch_program** program,
                                cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (compressor == nullptr || program == nullptr)
      return invalid("compressor or program is null");
    if (options == nullptr) return open(*compressor, {}, program);
    const auto given = TRY(read_struct(options, sizeof(cinch_open_options), "options"));
    return open(*compressor, given, program);
  });
}

cinch_status cinch_library_load(const char* path, const cinch_library** library,
                                cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (path == nullptr || library == nullptr) return invalid("path or library is null");
    *library = TRY(load_library(path));
    return cinch::rt::Ok{};
  });
}

cinch_status cinch_library_find(const cinch_library* library, const char* name,
                                const cinch_compressor** compressor, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (library == nullptr || name == nullptr || compressor == nullptr)
      return invalid("library, name or compressor is null");
    *compressor = TRY(find_compressor(*library, name));
    return cinch::rt::Ok{};
  });
}
