#include "compiler/driver/ranks/rank_transports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "compiler/driver/process/terminal.h"
#include "runtime/transports/ucx/keyed_hash.h"
#include "runtime/transports/ucx/ucx_transport.h"

namespace cinch::driver {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kSecret = "CINCH_SECRET";

std::string from_environment(const char* name) {
  return std::string(rt::environment_variable(name));
}

// Variables that torchrun sets.
std::optional<std::uint32_t> number_from_environment(const char* name) {
  const std::string text = from_environment(name);
  if (text.empty()) return std::nullopt;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  throw UsageError("{} is '{}', which is not a number", name, text);
}

// Once, by the process that the user starts. What is no regular file, such as a pipe, has no
// permissions that mean anything.
void warn_if_readable(const std::string& file) {
  struct stat found{};
  constexpr ::mode_t kOthersRead = S_IRGRP | S_IROTH;
  if (is_started_by_command() || output_settings().is_quiet) return;
  if (::stat(file.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return;
  if ((found.st_mode & kOthersRead) == 0) return;
  print_aside("warning: others may read the secret in '{}' (mode {:03o}); chmod 600 keeps it\n",
              file, found.st_mode & 0777u);
}

// Without the final line end, which editors add.
std::string read_secret(const std::string& file) {
  if (file.empty()) return from_environment(kSecret);
  warn_if_readable(file);
  std::ifstream stream(file, std::ios::binary);
  std::string secret{std::istreambuf_iterator<char>(stream), {}};
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (!stream || secret.empty()) {
    throw CommandError(ExitCode::AtFault, "no secret can be read from '{}'", file);
  }
  return secret;
}

// An address where nobody listens now.
std::string free_rendezvous() {
  const int file = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  const bool is_found =
      file >= 0 && ::bind(file, raw, size) == 0 && ::getsockname(file, raw, &size) == 0;
  if (file >= 0) ::close(file);
  if (!is_found) throw CommandError(ExitCode::Unavailable, "no port of 127.0.0.1 is free");
  return fmt::format("127.0.0.1:{}", ::ntohs(address.sin_port));
}

struct Child {
  pid_t process = -1;
  std::optional<int> status;
};

class LaunchedRanks {
 public:
  LaunchedRanks(const TransportOptions& options, std::uint32_t world) : options_(options) {
    std::vector<std::string> command = {std::filesystem::read_symlink("/proc/self/exe").string()};
    command.insert(command.end(), options.words.begin() + 1, options.words.end());
    if (options.rendezvous.empty()) {
      command.insert(command.end(), {"--rendezvous", free_rendezvous()});
    }
    if (read_secret(options.secret_file).empty()) {
      std::string secret;
      for (const std::uint8_t byte : rt::random_digest()) secret += fmt::format("{:02x}", byte);
      ::setenv(kSecret, secret.c_str(), 1);
    }
    ::setenv(kLaunched, "1", 1);
    ::setenv("WORLD_SIZE", std::to_string(world).c_str(), 1);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      ::setenv("RANK", std::to_string(rank).c_str(), 1);
      children_.push_back({start_child(command), std::nullopt});
      if (children_.back().process >= 0) continue;
      children_.pop_back();
      signal_all(SIGKILL);
      for (const Child& child : children_) ::waitpid(child.process, nullptr, 0);
      throw CommandError(ExitCode::Unavailable, "no process for rank {} can be made", rank);
    }
  }

  // Waits for all ranks. Returns the status of the first that failed, in waitpid's form, and its
  // number.
  std::pair<int, std::uint32_t> wait() {
    constexpr std::chrono::milliseconds kLook{10};
    constexpr int kLooksBetween = 25;
    const Cancellable scope;
    std::pair<int, std::uint32_t> first{0, 0};
    std::optional<Clock::time_point> end;
    for (int num_looks = 0; look(first); ++num_looks) {
      if (*Cancellable::flag() && num_looks % kLooksBetween == 0) signal_all(SIGUSR2);
      // The others learn of it, or wait in vain until their time-out.
      if (first.first != 0 && !end)
        end = Clock::now() +
              std::chrono::milliseconds(static_cast<std::int64_t>(2e3 * options_.timeout_seconds)) +
              std::chrono::seconds(10);
      if (end && Clock::now() >= *end) signal_all(SIGKILL);
      std::this_thread::sleep_for(kLook);
    }
    return first;
  }

 private:
  // Is some rank still running?
  bool look(std::pair<int, std::uint32_t>& first) {
    bool is_running = false;
    for (std::uint32_t rank = 0; rank < children_.size(); ++rank) {
      Child& child = children_[rank];
      int status = 0;
      if (child.status) continue;
      if (::waitpid(child.process, &status, WNOHANG) != child.process) {
        is_running = true;
        continue;
      }
      child.status = status;
      if (status != 0 && first.first == 0) first = {status, rank};
    }
    return is_running;
  }
  void signal_all(int number) const {
    for (const Child& child : children_) {
      if (!child.status) ::kill(child.process, number);
    }
  }

  const TransportOptions& options_;
  std::vector<Child> children_;  // by rank
};

}  // namespace

bool is_ucx_rank(const TransportOptions& options) {
  return options.rank.has_value() || number_from_environment("RANK").has_value();
}

std::unique_ptr<rt::Transport> open_ucx_rank(const TransportOptions& options) {
  rt::UcxOptions ucx;
  const auto launched = number_from_environment("WORLD_SIZE");
  const bool are_alone = options.ranks <= 1 && !is_ucx_rank(options);
  ucx.rank = options.rank ? *options.rank : number_from_environment("RANK").value_or(0);
  ucx.world = options.ranks > 0 ? options.ranks : are_alone ? 1 : launched.value_or(0);
  if (options.ranks > 0 && launched && is_ucx_rank(options) && *launched != options.ranks) {
    throw UsageError("{} ranks were launched, not {}", *launched, options.ranks);
  }
  if (ucx.world == 0) {
    throw UsageError("--ranks is required, or WORLD_SIZE: the number of ranks");
  }
  if (ucx.world > 1 && options.rendezvous.empty()) {
    throw UsageError("where do ranks meet? --rendezvous HOST:PORT, at which rank 0 listens");
  }
  ucx.rendezvous = options.rendezvous.empty() ? "127.0.0.1:1" : options.rendezvous;
  ucx.secret = read_secret(options.secret_file);
  ucx.interface = options.interface;
  ucx.timeout = options.timeout();
  return value_or_throw(rt::open_ucx_transport(ucx));
}

ExitCode launch_ucx_ranks(const TransportOptions& options, std::uint32_t world) {
  value_or_throw(rt::ucx_library());
  const auto [status, rank] = LaunchedRanks(options, world).wait();
  end_if_interrupted();
  keep_failure_message("a rank failed; its message is on standard error");
  if (WIFEXITED(status)) return static_cast<ExitCode>(WEXITSTATUS(status));
  throw CommandError(ExitCode::Unavailable, "rank {} was ended by signal {}", rank,
                     WTERMSIG(status));
}

}  // namespace cinch::driver
