#include <dlfcn.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "compiler/driver/process/terminal.h"
#include "compiler/driver/ranks/rank_transports.h"
#include "runtime/collective/rank_meeting.h"
#include "runtime/transports/mpi/mpi_transport.h"

namespace cinch::driver {
namespace {

// How close the error is to the cause: errors of ranks that were told of it, or waited in vain,
// come later.
int nearness(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CommandError& e) {
    return e.kind() == rt::ErrorKind::Cancelled ? 1 : e.kind() == rt::ErrorKind::TimedOut ? 2 : 3;
  } catch (...) {
    return 3;
  }
}

void rethrow_nearest(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr found;
  int nearest = 0;
  for (const std::exception_ptr& error : errors) {
    const int near = error ? nearness(error) : 0;
    if (near > nearest) found = error;
    nearest = std::max(nearest, near);
  }
  if (found) std::rethrow_exception(found);
}

class CountingExchange : public rt::RankExchange {
 public:
  explicit CountingExchange(rt::RankExchange& ranks) : ranks_(ranks) {}
  rt::Result<rt::RankStatus> exchange(const rt::CollectiveCall& call) override {
    sent_bytes_ += call.input.size();
    return note(ranks_.exchange(call));
  }
  rt::Result<rt::RankStatus> agree(rt::RankStatus own) override {
    is_own_fault_ = own == rt::RankStatus::Failed;
    return note(ranks_.agree(own));
  }
  std::uint64_t sent_bytes() const { return sent_bytes_; }
  // Did the call fail only because of others?
  bool others_failed() const { return others_failed_ && !is_own_fault_; }

 private:
  rt::Result<rt::RankStatus> note(rt::Result<rt::RankStatus> all) {
    others_failed_ = !all || *all == rt::RankStatus::Failed;
    return all;
  }

  rt::RankExchange& ranks_;
  std::uint64_t sent_bytes_ = 0;
  bool others_failed_ = false, is_own_fault_ = false;
};

struct RankOutcome {
  std::exception_ptr error;
  bool is_own_fault = true;
  std::uint64_t sent_bytes = 0;
};

constexpr const char* kPlace = "transport 'nccl'";
// From 2.30 on NCCL can run several ranks on one GPU, if it is told to.
constexpr int kFirstWithSharedGpus = 23000;
constexpr const char* kSharedGpus = "NCCL_MULTI_RANK_GPU_ENABLE";

}  // namespace

void run_on_rank_threads(std::uint32_t world, const std::function<void(std::uint32_t)>& body) {
  std::vector<std::exception_ptr> errors(world);
  std::vector<std::thread> threads;
  threads.reserve(world);
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  rethrow_nearest(errors);
}

rt::NetworkModel measure_on_threads(
    std::uint32_t world, const rt::ProbeOptions& probe,
    const std::function<std::unique_ptr<rt::Transport>(std::uint32_t)>& open) {
  std::vector<rt::NetworkModel> models(world);
  run_on_rank_threads(world, [&](std::uint32_t rank) {
    const auto transport = open(rank);
    models[rank] = value_or_throw(rt::measure_network(*transport, probe));
  });
  return std::move(models[0]);
}

RankGroup::RankGroup(const CodecFactory& factory, Shape shape, std::uint32_t world) {
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    codecs_.push_back(factory.open(shape, rank, world));
  }
}

std::vector<std::vector<float>> RankGroup::sync(std::span<const rt::ConstTensorView> gradients,
                                                std::uint64_t step) {
  const Cancellable scope;
  std::vector<std::vector<float>> updates(codecs_.size());
  std::vector<RankOutcome> outcomes(codecs_.size());
  const auto run = [&](std::uint32_t rank, rt::RankExchange& door) {
    CountingExchange ranks(door);
    try {
      updates[rank].resize(static_cast<std::size_t>(gradients[rank].num_elems));
      codecs_[rank]->sync(gradients[rank], updates[rank], step, ranks);
    } catch (...) {
      outcomes[rank].error = std::current_exception();
      outcomes[rank].is_own_fault = !ranks.others_failed();
    }
    outcomes[rank].sent_bytes = ranks.sent_bytes();
  };
  rt::run_rank_threads(world(), Cancellable::flag(), run);
  sent_bytes_ = 0;
  for (const RankOutcome& outcome : outcomes) {
    sent_bytes_ = std::max(sent_bytes_, outcome.sent_bytes);
  }
  // Names a rank that failed because of others only if no rank failed by itself.
  const auto has_failed = [](const RankOutcome& o) { return o.error != nullptr; };
  const auto is_to_blame = [](const RankOutcome& o) { return o.error && o.is_own_fault; };
  auto failed = std::ranges::find_if(outcomes, is_to_blame);
  if (failed == outcomes.end()) failed = std::ranges::find_if(outcomes, has_failed);
  if (failed != outcomes.end()) std::rethrow_exception(failed->error);
  return updates;
}

bool is_started_by_command() {
  return std::getenv(kLaunched) != nullptr;
}

bool is_started_by_mpirun() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
}

bool is_first_rank() {
  const auto is_other = [](const char* name) {
    const char* const rank = std::getenv(name);
    return rank != nullptr && std::string_view(rank) != "0";
  };
  if (is_other("OMPI_COMM_WORLD_RANK") || is_other("PMIX_RANK") || is_other("PMI_RANK"))
    return false;
  // Launchers of other programs set RANK, too.
  return !is_started_by_command() || !is_other("RANK");
}

pid_t start_child(std::vector<std::string> command) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t own = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  if (::getppid() == own) ::execv(words[0], words.data());
  ::_exit(static_cast<int>(ExitCode::Unavailable));
}

NcclRanks::NcclRanks(const TransportOptions& options, std::uint32_t ranks) {
  value_or_throw(rt::nccl_library_version(), kPlace);
  driver_ = value_or_throw(rt::open_cuda_driver(), kPlace);
  rt::GpuCode code = driver_->init(0);
  if (code == rt::kGpuSuccess) code = driver_->device_count(&num_devices_);
  value_or_throw(rt::gpu_status(*driver_, code, "counting devices"), kPlace);
  if (num_devices_ <= 0) {
    throw CommandError(ExitCode::Unavailable, "{}: the CUDA driver lists no device", kPlace);
  }
  world_ = ranks > 0 ? ranks : static_cast<std::uint32_t>(num_devices_);
  const char* const setting = std::getenv(kSharedGpus);
  const bool wants_shared = setting != nullptr && *setting == '1';
  if (world_ > static_cast<std::uint32_t>(num_devices_) &&
      (!wants_shared || value_or_throw(rt::nccl_library_version()) < kFirstWithSharedGpus)) {
    throw CommandError(
        ExitCode::Unavailable,
        "{}: {} ranks want a GPU each, and there {} {}; NCCL 2.30 and newer lets them "
        "share with {}=1",
        kPlace, world_, num_devices_ == 1 ? "is" : "are", num_devices_, kSharedGpus);
  }
  id_ = value_or_throw(rt::make_nccl_id(), kPlace);
  options_.is_exact = options.is_exact;
  options_.timeout = options.timeout();
  options_.neighbours = std::make_shared<rt::NcclNeighbours>();
}

std::unique_ptr<rt::Transport> NcclRanks::open(std::uint32_t rank) const {
  rt::NcclOptions options = options_;
  const int ordinal = static_cast<int>(rank) % num_devices_;
  options.device = value_or_throw(rt::GpuDevice::open(*driver_, ordinal), kPlace);
  return value_or_throw(rt::open_nccl_transport(id_, rank, world_, options), kPlace);
}

namespace {

bool can_be_run(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0;
}

std::filesystem::path find_mpirun() {
  if (const auto named = rt::environment_variable("CINCH_MPIRUN"); !named.empty()) {
    if (can_be_run(named)) return named;
    throw CommandError(ExitCode::Unavailable, "no mpirun: CINCH_MPIRUN is {}, which cannot be run",
                       named);
  }
  std::vector<std::filesystem::path> folders;
  // The library that the transport has opened.
  void* const entry = ::dlsym(RTLD_DEFAULT, "MPI_Init_thread");
  Dl_info info{};
  const bool is_known =
      entry != nullptr && ::dladdr(entry, &info) != 0 && info.dli_fname != nullptr;
  const std::filesystem::path library = is_known ? info.dli_fname : "";
  std::error_code error;
  for (const auto& file : {library, std::filesystem::canonical(library, error)}) {
    if (!file.empty()) folders.push_back(file.parent_path().parent_path() / "bin");
  }
  std::istringstream searched(std::string(rt::environment_variable("PATH")));
  for (std::string folder; std::getline(searched, folder, ':');) folders.emplace_back(folder);
  for (const auto& folder : folders) {
    if (can_be_run(folder / "mpirun")) return folder / "mpirun";
  }
  throw CommandError(ExitCode::Unavailable,
                     "no mpirun beside {} or in PATH; CINCH_MPIRUN may name it",
                     library.empty() ? "the MPI library" : library.string());
}

// Keeps what the user has set. There may be more ranks than cores, as with loopback, and each uses
// its share of all cores for its threads. The user of this command, even root, may also run it as
// ranks. Ranks report their own errors.
void set_environment() {
  constexpr std::array<std::pair<const char*, const char*>, 8> kVariables = {
      {{kLaunched, "1"},
       {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
       {"OMPI_MCA_hwloc_base_binding_policy", "none"},
       {"OMPI_MCA_orte_execute_quiet", "1"},
       {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},
       {"PRTE_MCA_hwloc_default_binding_policy", "none"},
       {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
       {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}}};
  for (const auto& [name, value] : kVariables) ::setenv(name, value, 0);
}

// mpirun would kill the ranks a second after SIGTERM, but passes on SIGUSR2 once they have started.
// So SIGUSR2 is sent repeatedly until they have ended.
int wait_for(pid_t child) {
  constexpr std::chrono::milliseconds kLook{10};
  constexpr int kLooksBetween = 25;
  const Cancellable scope;
  int status = 0;
  for (int num_looks = 0; ::waitpid(child, &status, WNOHANG) != child;) {
    if (*Cancellable::flag() && num_looks++ % kLooksBetween == 0) ::kill(child, SIGUSR2);
    std::this_thread::sleep_for(kLook);
  }
  return status;
}

}  // namespace

bool is_launched_rank() {
  // Set by Open MPI, by PMIx (srun, prun), by MPICH and by srun's PMI.
  return std::ranges::any_of(std::array{kLaunched, "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"},
                             [](const char* name) { return std::getenv(name) != nullptr; });
}

ExitCode launch_mpi_ranks(const std::vector<std::string>& words, std::uint32_t world) {
  value_or_throw(rt::mpi_library());
  std::vector<std::string> command = {find_mpirun().string(), "-n", std::to_string(world),
                                      std::filesystem::read_symlink("/proc/self/exe").string()};
  command.insert(command.end(), words.begin() + 1, words.end());
  set_environment();
  const pid_t child = start_child(command);
  if (child < 0) throw CommandError(ExitCode::Unavailable, "no process for mpirun can be made");
  const int status = wait_for(child);
  end_if_interrupted();
  keep_failure_message("a rank failed; its message is on standard error");
  if (WIFEXITED(status)) return static_cast<ExitCode>(WEXITSTATUS(status));
  throw CommandError(ExitCode::Unavailable, "mpirun was ended by signal {}", WTERMSIG(status));
}

}  // namespace cinch::driver
