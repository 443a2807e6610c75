// Requests and replies of NVRTC's processes are a header and bytes over a socket.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <filesystem>
#include <string>
#include <thread>

#include "codegen/aot/schedule.h"
#include "codegen/jit/compile_program.h"

namespace cinch::codegen {
namespace {

Schedule::Task take_longest(std::vector<Schedule::Task>& parts) {
  const auto longest = std::ranges::max_element(parts, {}, &Schedule::Task::cost);
  const Schedule::Task part = *longest;
  parts.erase(longest);
  return part;
}

}  // namespace

void Schedule::add_part(const Task& part) {
  const std::lock_guard lock(mutex_);
  if (is_stopped_) return;
  (part.takes_turns ? in_turn_ : others_).push_back(part);
  changed_.notify_all();
}

std::optional<Schedule::Task> Schedule::take_now() {
  const bool has_program = next_program_ < num_programs_;
  if (!in_turn_.empty() && num_turns_taken_ < (has_program ? 1 : num_turns_)) {
    ++num_turns_taken_;
    return take_longest(in_turn_);
  }
  if (has_program) {
    ++num_running_programs_;
    return Task{.is_program = true, .index = next_program_++};
  }
  if (!others_.empty()) return take_longest(others_);
  return std::nullopt;
}

std::optional<Schedule::Task> Schedule::next() {
  std::unique_lock lock(mutex_);
  std::optional<Task> task = take_now();
  // Only front ends add tasks. Parts that wait for their turn go to the workers that compile such
  // parts now.
  while (!task && num_running_programs_ > 0) {
    changed_.wait(lock);
    task = take_now();
  }
  return task;
}

void Schedule::end(const Task& task) {
  const std::lock_guard lock(mutex_);
  if (task.is_program) --num_running_programs_;
  if (task.takes_turns) --num_turns_taken_;
  changed_.notify_all();
}

void Schedule::stop_parts() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  in_turn_.clear();
  others_.clear();
}

void Schedule::stop() {
  stop_parts();
  const std::lock_guard lock(mutex_);
  next_program_ = num_programs_;
}

namespace {

using Bytes = std::vector<std::uint8_t>;

struct RequestHeader {
  std::uint64_t arch_size = 0, text_size = 0;
  std::uint64_t is_ptx = 0;
};
struct ReplyHeader {
  std::uint64_t size = 0;  // of the binary, or of the message of an error
  std::int64_t native_code = 0;
  rt::ErrorKind kind = rt::ErrorKind::Internal;
  bool is_error = false;
};

// False if the other side has gone.
bool send_all(int socket, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  while (size > 0) {
    const ssize_t sent = ::send(socket, bytes, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}
bool receive_all(int socket, void* data, std::size_t size) {
  auto* bytes = static_cast<std::uint8_t*>(data);
  while (size > 0) {
    const ssize_t got = ::recv(socket, bytes, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

template <typename Text>
bool receive_text(int socket, std::size_t size, Text& text) {
  text.resize(size);
  return receive_all(socket, text.data(), size);
}

rt::Result<Bytes> compile_here(const KernelSource& source, bool is_ptx) {
  try {
    return nvrtc_binary(source, is_ptx);
  } catch (const std::exception& error) {
    return rt::fail(rt::ErrorKind::Internal, std::string("NVRTC's process: ") + error.what());
  }
}

bool send_reply(int socket, const rt::Result<Bytes>& result) {
  if (result) {
    const ReplyHeader header{.size = result->size()};
    return send_all(socket, &header, sizeof header) &&
           send_all(socket, result->data(), result->size());
  }
  const rt::Error& error = result.error();
  const ReplyHeader header{error.message.size(), error.native_code, error.kind, true};
  return send_all(socket, &header, sizeof header) &&
         send_all(socket, error.message.data(), error.message.size());
}

// Runs in the child, until the parent closes the socket.
void serve(int socket) {
  RequestHeader header;
  while (receive_all(socket, &header, sizeof header)) {
    KernelSource source;
    source.target.kind = TargetKind::Cuda;
    if (!receive_text(socket, header.arch_size, source.target.arch)) return;
    if (!receive_text(socket, header.text_size, source.text)) return;
    if (!send_reply(socket, compile_here(source, header.is_ptx != 0))) return;
  }
}

tl::unexpected<rt::Error> has_ended() {
  return rt::fail(rt::ErrorKind::Internal, "a process that ran NVRTC has ended");
}

rt::Result<Bytes> ask(int socket, const KernelSource& source, bool is_ptx) {
  const std::string& arch = source.target.arch;
  const RequestHeader header{arch.size(), source.text.size(), is_ptx};
  const bool is_sent = send_all(socket, &header, sizeof header) &&
                       send_all(socket, arch.data(), arch.size()) &&
                       send_all(socket, source.text.data(), source.text.size());
  ReplyHeader reply;
  if (!is_sent || !receive_all(socket, &reply, sizeof reply)) return has_ended();
  if (!reply.is_error) {
    Bytes bytes;
    if (!receive_text(socket, reply.size, bytes)) return has_ended();
    return bytes;
  }
  rt::Error error{reply.kind, {}, reply.native_code};
  if (!receive_text(socket, reply.size, error.message)) return has_ended();
  return tl::unexpected(std::move(error));
}

std::ptrdiff_t num_threads() {
  std::error_code code;
  const std::filesystem::directory_iterator threads("/proc/self/task", code);
  return code ? 0 : std::distance(begin(threads), end(threads));
}

// The system may still list a thread for a moment after it was joined.
bool has_one_thread() {
  constexpr int kLooks = 20;
  constexpr std::chrono::milliseconds kBetween{1};
  for (int i = 0; num_threads() != 1; ++i) {
    if (i == kLooks) return false;
    std::this_thread::sleep_for(kBetween);
  }
  return true;
}

}  // namespace

NvrtcProcesses::NvrtcProcesses(std::size_t count) {
  if (count == 0 || !has_one_thread()) return;
  children_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) start_child();
  for (std::size_t i = 0; i < children_.size(); ++i) free_.push_back(i);
}

void NvrtcProcesses::start_child() {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const Child& other : children_) ::close(other.socket);
    ::close(sockets[0]);
    if (::getppid() == parent) serve(sockets[1]);
    ::_exit(0);
  }
  ::close(sockets[1]);
  if (child < 0) {
    ::close(sockets[0]);
    return;
  }
  children_.push_back({child, sockets[0]});
}

NvrtcProcesses::~NvrtcProcesses() {
  for (const Child& child : children_) {
    ::close(child.socket);
    ::kill(child.process, SIGKILL);
    while (::waitpid(child.process, nullptr, 0) < 0 && errno == EINTR) continue;
  }
}

rt::Result<Bytes> NvrtcProcesses::compile(const KernelSource& source, bool is_ptx) {
  std::unique_lock lock(mutex_);
  is_free_.wait(lock, [&] { return !free_.empty(); });
  const std::size_t index = free_.back();
  free_.pop_back();
  lock.unlock();
  rt::Result<Bytes> result = ask(children_[index].socket, source, is_ptx);
  lock.lock();
  free_.push_back(index);
  is_free_.notify_one();
  return result;
}

}  // namespace cinch::codegen
