#include "compiler/service/compile.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "runtime/core/mapped.h"
#include "runtime/module/shared_object.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX wants it declared

namespace cinch::service {
namespace {

using nlohmann::json;

// The installed command, that of a build tree, or this executable itself.
std::string find_command() {
  const std::filesystem::path own = rt::own_folder();
  for (const char* step : {"../../bin/cinch", "../bin/cinch", "cinch"}) {
    const std::filesystem::path path = (own / step).lexically_normal();
    std::error_code error;
    if (!own.empty() && std::filesystem::is_regular_file(path, error)) return path.string();
  }
  return {};
}

// For a GPU it tells the process where NVRTC is, since perhaps only this process's framework finds
// it.
std::vector<std::string> environment_for(const codegen::Target& target) {
  constexpr std::string_view kName = "CINCH_NVRTC=";
  const bool is_gpu = target.kind == codegen::TargetKind::Cuda;
  std::vector<std::string> words;
  for (char** word = environ; *word != nullptr; ++word)
    if (!is_gpu || !std::string_view(*word).starts_with(kName)) words.emplace_back(*word);
  if (is_gpu) words.push_back(std::string(kName) + codegen::nvrtc_report().path);
  return words;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  auto pointers = mapped<char*>(words, [&](std::string& word) { return word.data(); });
  pointers.push_back(nullptr);
  return pointers;
}

// A file without a name; it is read from its start.
class TextFile {
 public:
  explicit TextFile(const std::string& text)
      : descriptor_(::memfd_create("cinch_improvement", MFD_CLOEXEC)) {
    const auto size = static_cast<ssize_t>(text.size());
    is_whole_ = descriptor_ >= 0 && ::write(descriptor_, text.data(), text.size()) == size &&
                ::lseek(descriptor_, 0, SEEK_SET) == 0;
  }
  ~TextFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  bool is_whole() const { return is_whole_; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
  bool is_whole_ = false;
};

// Settings of the new process: the text as its input, no output, no blocked signals.
class SpawnSettings {
 public:
  explicit SpawnSettings(const TextFile& input) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, input.descriptor(), STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

bool start(const std::string& command, const std::string& text,
           std::vector<std::string> environment) {
  const TextFile input(text);
  if (!input.is_whole()) return false;
  const SpawnSettings settings(input);
  std::vector<std::string> words = {command, "cache", "improve"};
  pid_t process = 0;
  const int code = posix_spawn(&process, command.c_str(), settings.actions(), settings.attributes(),
                               pointers(words).data(), pointers(environment).data());
  // The process forks the one that compiles, and ends at once. A host program that waits for all of
  // its children may have been first.
  while (code == 0 && ::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
  return code == 0;
}

// A process may be killed, and an entry may be lost. So the same is started again when somebody
// asks for it much later.
constexpr std::chrono::seconds kStartsAgainAfter{30};

// Calls `start` unless it succeeded for this text lately. Returns false if it fails.
template <typename Start>
bool start_once(const std::string& text, const Start& start) {
  using Clock = std::chrono::steady_clock;
  static std::mutex mutex;
  static std::map<std::string, Clock::time_point> started;
  const std::lock_guard lock(mutex);
  const auto now = Clock::now();
  const auto found = started.find(text);
  if (found != started.end() && now - found->second < kStartsAgainAfter) return true;
  if (!start()) return false;
  started[text] = now;
  return true;
}

}  // namespace

std::string write_improvement(const Improvement& improvement) {
  const ProgramRequest& request = improvement.request;
  json value = {{"program", request.program},
                {"bindings", request.bindings},
                {"in_place", request.states == codegen::StateUpdate::InPlace},
                {"is_carrier", request.is_carrier},
                {"include_folders", request.headers.include_folders},
                {"compile_commands", request.headers.compile_commands},
                {"confine", request.headers.confine},
                {"is_gpu", improvement.target.kind == codegen::TargetKind::Cuda},
                {"arch", improvement.target.arch},
                {"block_warps", improvement.block_warps}};
  if (request.text) value["text"] = *request.text;
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

rt::Result<Improvement> read_improvement(std::string_view text) {
  Improvement improvement;
  ProgramRequest& request = improvement.request;
  try {
    const json value = json::parse(text);
    value.at("program").get_to(request.program);
    value.at("bindings").get_to(request.bindings);
    if (value.at("in_place").get<bool>()) request.states = codegen::StateUpdate::InPlace;
    request.is_carrier = value.value("is_carrier", false);
    value.at("include_folders").get_to(request.headers.include_folders);
    value.at("compile_commands").get_to(request.headers.compile_commands);
    request.headers.confine = value.value("confine", "");
    if (value.contains("text")) request.text = value["text"].get<std::string>();
    const bool is_gpu = value.at("is_gpu").get<bool>();
    improvement.target = {is_gpu ? codegen::TargetKind::Cuda : codegen::TargetKind::Cpu,
                          value.at("arch").get<std::string>()};
    value.at("block_warps").get_to(improvement.block_warps);
  } catch (const json::exception&) {
    return rt::fail(rt::ErrorKind::InvalidArgument,
                    "this is not a list of what to improve, as programs that use Cinch write it");
  }
  request.is_ahead_of_time = true;
  return improvement;
}

bool can_improve() {
  const rt::ImageCache cache(cache_settings());
  return cache.settings().is_on && cache.settings().improves && !find_command().empty() &&
         !cache.settings().folder.empty() && cache.check_writable();
}

bool improve_later(const Improvement& improvement) {
  const codegen::Target& target = improvement.target;
  if (target.kind == codegen::TargetKind::Cuda && !codegen::nvrtc_report().is_found) return false;
  const std::string command = find_command();
  if (command.empty()) return false;
  const std::string text = write_improvement(improvement);
  return start_once(text, [&] { return start(command, text, environment_for(target)); });
}

}  // namespace cinch::service
