// The compiler library behind its C entry; see program.h.
#include "runtime/c_api/program.h"

#include <dlfcn.h>

#include "runtime/c_api/compiler_abi.h"
#include "runtime/module/shared_object.h"

namespace cinch::c_api {
namespace {

std::vector<std::string> candidates(const char* given) {
  if (given != nullptr) return {given};
  return rt::library_paths(CINCH_COMPILER_LIBRARY, "CINCH_COMPILER");
}

CallResult<cinch_compiler_compile_fn> open_compiler(const char* given) {
  std::string tried;
  for (const std::string& path : candidates(given)) {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const entry = library == nullptr ? nullptr : ::dlsym(library, CINCH_COMPILER_ENTRY);
    if (entry != nullptr) return reinterpret_cast<cinch_compiler_compile_fn>(entry);
    const char* const reason = ::dlerror();
    tried += (tried.empty() ? "" : "; ") + std::string(reason == nullptr ? path : reason);
  }
  return fail(CINCH_UNAVAILABLE, "no compiler library: " + tried);
}

struct Answer {
  CallResult<std::vector<std::uint8_t>> image =
      fail(CINCH_UNAVAILABLE, "the compiler library is of another version");
};

void take_image(void* context, const void* bytes, std::size_t size) {
  const auto* const from = static_cast<const std::uint8_t*>(bytes);
  static_cast<Answer*>(context)->image = std::vector<std::uint8_t>(from, from + size);
}

void take_error(void* context, std::int32_t status, const char* message, std::size_t size) {
  static_cast<Answer*>(context)->image =
      fail(static_cast<cinch_status>(status), std::string(message, size));
}

void ask(cinch_compiler_compile_fn entry, cinch_compiler_request& request, Answer& answer) {
  request.version = CINCH_COMPILER_ABI_VERSION;
  request.context = &answer;
  request.give_image = take_image;
  request.give_error = take_error;
  entry(&request);
}

}  // namespace

CallResult<std::vector<std::uint8_t>> compile(const cinch_compile_options& options,
                                              const CompileTarget& target) {
  const auto entry = open_compiler(options.compiler);
  CINCH_TRY(entry);
  Answer answer;
  cinch_compiler_request request{};
  request.program = options.program;
  request.text = options.text;
  request.text_size = options.text_size;
  request.bindings = options.bindings;
  request.num_bindings = options.num_bindings;
  (target.arch.empty() ? request.cpu : request.arch) =
      (target.arch.empty() ? target.cpu : target.arch).c_str();
  request.states = options.states;
  request.include_folders = options.include_folders;
  request.num_include_folders = options.num_include_folders;
  request.compile_commands = options.compile_commands;
  ask(*entry, request, answer);
  return std::move(answer.image);
}

CallResult<std::vector<std::uint8_t>> list_programs(const char* compiler) {
  const auto entry = open_compiler(compiler);
  CINCH_TRY(entry);
  Answer answer;
  cinch_compiler_request request{};
  request.lists_programs = 1;
  ask(*entry, request, answer);
  return std::move(answer.image);
}

}  // namespace cinch::c_api
