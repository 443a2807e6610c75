// The compiler library behind its C entry.
#include "runtime/c_api/compiler_door.h"

#include <dlfcn.h>

#include "runtime/c_api/compiler_abi.h"
#include "runtime/core/own_stack.h"
#include "runtime/image/image_file.h"
#include "runtime/module/cpu_module.h"
#include "runtime/module/shared_object.h"

namespace cinch::c_api {
namespace {

CallResult<cinch_compiler_compile_fn> open_compiler(const char* given) {
  const auto opened = rt::open_first_library(
      given != nullptr ? std::vector<std::string>{given}
                       : rt::library_paths(CINCH_COMPILER_LIBRARY, "CINCH_COMPILER"),
      RTLD_NOW | RTLD_LOCAL, CINCH_COMPILER_ENTRY, "compiler library",
      [](void* entry) { return entry; });
  CINCH_TRY(opened);
  return reinterpret_cast<cinch_compiler_compile_fn>(const_cast<void*>(opened->table));
}

struct Answer {
  CallResult<std::vector<std::uint8_t>> image =
      fail(CINCH_UNAVAILABLE, "the compiler library is of another version");
  std::vector<std::uint8_t> better;
  std::string warnings;
};

std::vector<std::uint8_t> copy_of(const void* bytes, std::size_t size) {
  const auto* const from = static_cast<const std::uint8_t*>(bytes);
  return {from, from + size};
}

// A long program takes megabytes.
constexpr std::size_t kStackBytes = std::size_t{64} << 20;

void ask(cinch_compiler_compile_fn entry, cinch_compiler_request& request, Answer& answer) {
  request.version = CINCH_COMPILER_ABI_VERSION;
  request.context = &answer;
  request.give_image = [](void* to, const void* bytes, std::size_t size) {
    static_cast<Answer*>(to)->image = copy_of(bytes, size);
  };
  request.give_error = [](void* to, std::int32_t status, const char* message, std::size_t size) {
    static_cast<Answer*>(to)->image =
        fail(static_cast<cinch_status>(status), std::string(message, size));
  };
  request.give_warnings = [](void* to, const char* text, std::size_t size) {
    static_cast<Answer*>(to)->warnings.assign(text, size);
  };
  rt::run_on_own_stack(kStackBytes, [&] { entry(&request); });
}

std::optional<std::string> copy_of(const char* text) {
  return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

const char* pointer_to(const std::optional<std::string>& text) {
  return text ? text->c_str() : nullptr;
}

std::vector<const char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  pointers.reserve(texts.size());
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

}  // namespace

CompileJob::CompileJob(const cinch_compile_options& options, CompileTarget target)
    : program_(copy_of(options.program)),
      compiler_(copy_of(options.compiler)),
      compile_commands_(copy_of(options.compile_commands)),
      confine_(copy_of(options.confine)),
      bindings_(options.bindings, options.bindings + options.num_bindings),
      include_folders_(options.include_folders,
                       options.include_folders + options.num_include_folders),
      states_(options.states),
      target_(std::move(target)) {
  if (options.text != nullptr) text_.emplace(options.text, options.text_size);
}

CallResult<CompileJob::Image> CompileJob::run(How how) const {
  const auto entry = TRY(open_compiler(pointer_to(compiler_)));
  const std::vector<const char*> bindings = pointers_to(bindings_);
  const std::vector<const char*> include_folders = pointers_to(include_folders_);
  const bool is_gpu = !target_.arch.empty() && !how.for_cpus;
  const std::string cpu = how.for_cpus ? std::string(rt::host_cpu_arch()) : target_.cpu;
  Answer answer;
  cinch_compiler_request request{};
  request.program = pointer_to(program_);
  request.text = text_ ? text_->data() : nullptr;
  request.text_size = text_ ? text_->size() : 0;
  request.bindings = bindings.data();
  request.num_bindings = bindings.size();
  (is_gpu ? request.arch : request.cpu) = (is_gpu ? target_.arch : cpu).c_str();
  request.states = states_;
  request.include_folders = include_folders.data();
  request.num_include_folders = include_folders.size();
  request.compile_commands = pointer_to(compile_commands_);
  request.confine = pointer_to(confine_);
  request.is_ahead_of_time = how.is_ahead_of_time ? 1 : 0;
  request.is_carrier = how.is_carrier ? 1 : 0;
  if (!how.is_ahead_of_time) {
    request.give_better = [](void* to, const void* name, std::size_t size) {
      static_cast<Answer*>(to)->better = copy_of(name, size);
    };
  }
  ask(entry, request, answer);
  CINCH_TRY(answer.image);
  return Image{std::move(*answer.image), std::move(answer.better), std::move(answer.warnings)};
}

rt::FindBetterCode CompileJob::finder(std::vector<std::uint8_t> better) const {
  const auto entry = open_compiler(pointer_to(compiler_));
  if (!entry || better.empty()) return {};
  return [entry = *entry, better = std::move(better)]() -> std::optional<rt::ProgramImage> {
    Answer answer;
    cinch_compiler_request request{};
    request.better = better.data();
    request.better_size = better.size();
    ask(entry, request, answer);
    if (!answer.image) return std::nullopt;
    auto image = rt::read_image(*answer.image);
    if (!image) return std::nullopt;
    return std::move(*image);
  };
}

CallResult<std::vector<std::uint8_t>> list_programs(const char* compiler) {
  const auto entry = TRY(open_compiler(compiler));
  Answer answer;
  cinch_compiler_request request{};
  request.lists_programs = 1;
  ask(entry, request, answer);
  return std::move(answer.image);
}

}  // namespace cinch::c_api
