// The transport over UCX, and how ranks meet to open it.
#include <dlfcn.h>
#include <fmt/format.h>

#include <csignal>
#include <map>
#include <thread>

#include "runtime/collective/message_transport.h"
#include "runtime/core/log.h"
#include "runtime/module/shared_object.h"
#include "runtime/transports/ucx/ucx_links.h"

namespace cinch::rt {
namespace {

class UcxTransport : public MessageTransport {
 public:
  /// `links` is null if the rank is alone.
  UcxTransport(std::uint32_t rank, std::uint32_t world, std::unique_ptr<UcxLinks> links)
      : MessageTransport(rank, world), links_(std::move(links)) {}
  ~UcxTransport() override {
    constexpr std::chrono::milliseconds kPatience{20};
    if (fault_) {
      abandon(*fault_);
    } else if (is_any_under_way()) {
      abandon({ErrorKind::Cancelled, "it has left"});
    } else if (links_ != nullptr) {
      links_->tell_all(MessageKind::Left, {}, kPatience);
    }
  }

  std::string_view name() const override { return "ucx"; }
  Result<Ticket> start(const Exchange& exchange) override {
    if (fault_) return tl::unexpected<Error>(*fault_);
    num_idle_ = 0;
    return begin_exchange(exchange);
  }

  Result<bool> test(Ticket ticket) override {
    if (!is_under_way(ticket)) return take_end(ticket, Ok{});
    if (fault_) return tl::unexpected<Error>(*fault_);
    if (links_ != nullptr && links_->progress()) num_idle_ = 0;
    const std::uint64_t before = num_moves();
    const Status status = advance_all();
    if (num_moves() != before) num_idle_ = 0;
    // An exchange that has ended stays ended, whatever happens to others.
    Result<bool> has_ended = take_end(ticket, status);
    if (!has_ended) return failed(has_ended.error());
    return has_ended;
  }

  // Ranks may share cores: an idle rank first lets the others run, then sleeps.
  void pause(std::chrono::microseconds most) override {
    constexpr std::uint32_t kYields = 20;
    if (links_ == nullptr || ++num_idle_ <= kYields) return std::this_thread::yield();
    links_->wait(most);
  }

  bool wake() override {
    if (links_ != nullptr) links_->wake();
    return links_ != nullptr;
  }

  void abandon(const Error& why) override {
    constexpr std::chrono::milliseconds kPatience{2000};
    if (!fault_) fault_ = Error{why.kind, gave_up(rank(), why.message)};
    if (links_ == nullptr || std::exchange(is_known_, true)) return;
    links_->tell_all(MessageKind::GaveUp, why.message, kPatience);
    links_->disconnect();
  }

  std::optional<Error> last_words(std::uint32_t of) const override {
    return links_ == nullptr ? std::nullopt : links_->gone(of);
  }

 private:
  std::uint64_t begin_send(std::uint32_t to, std::uint64_t tag, Bytes bytes) override {
    return links_->send(to, tag, bytes);
  }
  std::uint64_t begin_receive(std::uint32_t from, std::uint64_t tag, Room room) override {
    return links_->receive(from, tag, room);
  }
  Result<bool> is_over(const Leg& leg) override { return links_->is_over(leg.handle); }
  /// Keeps the first error, which ends the transport.
  tl::unexpected<Error> failed(const Error& error) {
    if (!fault_) fault_ = error;
    return tl::unexpected<Error>(*fault_);
  }

  std::unique_ptr<UcxLinks> links_;
  std::uint32_t num_idle_ = 0;
  bool is_known_ = false;  // the others have been told that this rank gives up
  std::optional<Error> fault_;
};
Status check_options(const UcxOptions& options) {
  if (options.world == 0 || options.rank >= options.world) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("there is no rank {} of {}", options.rank, options.world));
  }
  if (options.world > kMostUcxRanks) {
    return fail(
        ErrorKind::InvalidArgument,
        fmt::format("{} ranks: the transport ucx takes at most {}", options.world, kMostUcxRanks));
  }
  if (options.rendezvous.empty() && options.store == nullptr) {
    return fail(ErrorKind::InvalidArgument, "ranks have no rendezvous: neither address nor store");
  }
  return Ok{};
}

// How ranks reach each other.
struct Paths {
  std::string transports, devices;  // as UCX_TLS and UCX_NET_DEVICES
  bool share_memory = false;
};

// Ranks of one machine listen on no network, unless they have too little shared memory, as in a
// container: rank 0 then says so. Copies that one process makes from another one's memory (cma)
// could go on after that process gave up.
Paths paths_for(const UcxOptions& options, const Job& job) {
  if (!options.transports.empty()) return {options.transports, options.interface};
  if (!job.is_one_machine) return {"^cma", options.interface};
  const std::string lack = lack_of_shared_memory(options.world, job.shared_bytes);
  if (lack.empty() || !environment_variable("UCX_TLS").empty()) {
    return {"self,posix", options.interface, true};
  }
  if (options.rank == 0) tell_log(fmt::format("{}: ranks send over TCP, which is slower", lack));
  return {"self,tcp", options.interface.empty() ? "lo" : options.interface};
}

tl::unexpected<Error> not_opened(Error error, const UcxOptions& options, const Job& job) {
  const std::string lack = lack_of_shared_memory(options.world, job.shared_bytes);
  if (!lack.empty()) error.message += fmt::format("; {}, or set UCX_TLS=tcp,self", lack);
  return tl::unexpected<Error>(std::move(error));
}

// Checks that every connection works in both directions, and that this rank begins no more of them.
Status wait_for_hellos(UcxLinks& links, std::chrono::milliseconds timeout) {
  constexpr std::chrono::microseconds kLook{1000};
  const SocketClock::time_point end = SocketClock::now() + timeout;
  for (;;) {
    if (!links.progress()) links.wait(kLook);
    const auto silent = links.silent_ranks();
    const auto are_settled = TRY(silent.empty() ? links.are_settled() : false);
    if (are_settled) return Ok{};
    if (SocketClock::now() < end) continue;
    if (silent.empty()) {
      return fail(ErrorKind::TimedOut,
                  fmt::format("UCX has not connected all interfaces within {} ms; interface, or "
                              "UCX_NET_DEVICES, names one",
                              timeout.count()));
    }
    return fail(ErrorKind::TimedOut,
                fmt::format("{} by UCX within {} ms", not_come(silent), timeout.count()));
  }
}

Result<std::unique_ptr<UcxLinks>> connect_all(const UcxOptions& options, Rendezvous& rendezvous,
                                              const Status& sound) {
  const auto cards =
      TRY(share(rendezvous, sound ? Result<std::vector<std::uint8_t>>(bytes_of(own_card()))
                                  : tl::unexpected<Error>(sound.error())));
  const auto job = TRY(job_of(cards, options.secret));
  const Paths paths = paths_for(options, job);
  auto links = UcxLinks::open(**ucx_library(), {options.rank, options.world, paths.transports,
                                                paths.devices, paths.share_memory});
  const auto addresses =
      TRY(share(rendezvous, links                ? (*links)->address()
                            : paths.share_memory ? not_opened(links.error(), options, job)
                                                 : tl::unexpected<Error>(links.error())));
  Status status = (*links)->connect(addresses, job.key);
  // Rank 0 waits this long for all ranks.
  if (status) status = wait_for_hellos(**links, options.timeout / 2);
  if (status) (*links)->watch();
  CINCH_TRY(share(rendezvous, status.map([](Ok) { return std::vector<std::uint8_t>(); })));
  (*links)->stop_listening();
  return links;
}

}  // namespace

std::string lack_of_shared_memory(std::uint32_t world, std::uint64_t folder_bytes) {
  constexpr std::uint64_t kMiB = 1 << 20, kBytesOfRank = 4 * kMiB;
  const std::uint64_t needed = (world + 1) * kBytesOfRank;
  if (folder_bytes >= needed) return {};
  return fmt::format(
      "/dev/shm has {} MiB free, and {} ranks of one machine need {}; make it larger (docker run "
      "--shm-size={}m)",
      folder_bytes / kMiB, world, needed / kMiB, needed / kMiB);
}

Result<std::unique_ptr<Transport>> open_ucx_transport(const UcxOptions& options) {
  CINCH_TRY(check_options(options));
  if (options.world == 1) return std::make_unique<UcxTransport>(0, 1, nullptr);
  const Status interface =
      options.interface.empty() ? Status(Ok{}) : check_interface(options.interface);
  // A rank that cannot use the interface still meets the others, to tell them.
  const JobRank own{options.rank, options.world, options.secret, options.timeout};
  const auto rendezvous =
      TRY(options.rendezvous.empty()
              ? meet_over_store(own, options.store)
              : meet_over_socket(own, options.rendezvous, interface ? options.interface : ""));
  Status sound = interface;
  if (sound && !ucx_library()) sound = tl::unexpected<Error>(ucx_library().error());
  return std::make_unique<UcxTransport>(options.rank, options.world,
                                        TRY(connect_all(options, *rendezvous, sound)));
}

// Opens the module that calls UCX.

namespace {

// Keeps the process's signal handlers. UCX installs its own when it is opened, to print where a
// process ended; the destructor restores the process's.
class KeptSignals {
 public:
  KeptSignals() {
    for (int number = 1; number < SIGRTMIN; ++number) {
      struct sigaction action = {};
      if (::sigaction(number, nullptr, &action) == 0) actions_[number] = action;
    }
  }
  ~KeptSignals() {
    for (const auto& [number, action] : actions_) ::sigaction(number, &action, nullptr);
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  std::map<int, struct sigaction> actions_;
};

constexpr const char* kWhereItIs =
    " (Debian's package libucx0 has UCX; of a wheel, such as libucx-cu12, CINCH_UCX_LIBRARY names "
    "the file libucp.so.0)";

// The module then finds the library, which is open already.
std::string open_named_library() {
  const std::string file(environment_variable("CINCH_UCX_LIBRARY"));
  if (file.empty()) return {};
  if (::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
  return ::dlerror();
}

Result<const cinch_ucx_calls*> open_ucx_module() {
  const KeptSignals kept;
  const std::string problem = open_named_library();
  if (!problem.empty()) return fail(ErrorKind::Unavailable, "no UCX: " + problem + kWhereItIs);
  auto opened = open_first_library(
      library_paths(CINCH_UCX_MODULE, "CINCH_UCX"), RTLD_NOW | RTLD_LOCAL, CINCH_UCX_ENTRY, "UCX",
      [](void* entry) {
        return reinterpret_cast<cinch_ucx_calls_of_fn>(entry)(CINCH_UCX_ABI_VERSION);
      });
  if (!opened) opened.error().message += kWhereItIs;
  CINCH_TRY(opened);
  return static_cast<const cinch_ucx_calls*>(opened->table);
}

}  // namespace

const Result<const cinch_ucx_calls*>& ucx_library() {
  static const Result<const cinch_ucx_calls*> kCalls = open_ucx_module();
  return kCalls;
}

}  // namespace cinch::rt
