// gpu_ranks: ranks that compute on GPUs against ranks on the CPU, bit for bit, from images alone
// (NAME.gpu.image beside NAME.cpu.image, as prepare.py makes them): several plans, two steps; in a
// second run every other rank is on the CPU. Over loopback 1 to 4 ranks share the device, each with
// a stream of its own. Over NCCL there is a rank for each GPU, at most 4, and messages stay on the
// GPUs; or, with --share, two ranks on one. Over MPI a rank is a process that mpirun has started,
// ranks take the GPUs in turn, and messages stay there; with --ask nothing is run: says whether MPI
// is here and takes their memory.
//
//   gpu_ranks FOLDER [--device cuda|emulated] [--transport loopback|nccl|mpi] [--share] [--ask]
//             [--only NAME,…]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/collective/loopback.h"
#include "runtime/core/numbers/floats.h"
#include "runtime/image/image_file.h"
#include "runtime/planner/planner.h"
#include "runtime/sync/sync_session.h"
#include "runtime/transports/mpi/mpi_transport.h"
#include "runtime/transports/nccl/nccl_transport.h"
#include "tests/gpu/on_device.h"
#include "tests/programs/harness/gradients.h"

namespace cinch::testing {
namespace {

namespace fs = std::filesystem;
using Tensors = std::vector<std::vector<float>>;

struct Options {
  fs::path folder;
  std::string device = "cuda", transport = "loopback";
  bool shares = false, asks = false;
  std::vector<std::string> only;  // none: all
};

bool have_same_bits(const std::vector<Tensors>& a, const std::vector<Tensors>& b) {
  for (std::size_t rank = 0; rank < a.size(); ++rank) {
    for (std::size_t i = 0; i < a[rank].size(); ++i) {
      if (!same_bits(a[rank][i], b[rank][i])) return false;
    }
  }
  return true;
}

// The ranks of one run.
class Meeting {
 public:
  Meeting() = default;
  virtual ~Meeting() = default;
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  // On the rank's thread.
  virtual std::unique_ptr<rt::Transport> open(std::uint32_t rank) = 0;
};

class LoopbackMeeting : public Meeting {
 public:
  explicit LoopbackMeeting(std::uint32_t world) : world_(world) {}
  std::unique_ptr<rt::Transport> open(std::uint32_t rank) override {
    return world_.transport(rank);
  }

 private:
  rt::LoopbackWorld world_;
};

class NcclMeeting : public Meeting {
 public:
  NcclMeeting(const rt::GpuDriver& driver, int num_gpus, std::uint32_t world)
      : driver_(driver),
        num_gpus_(num_gpus),
        world_(world),
        id_(value_or_throw(rt::make_nccl_id(), "NCCL")) {}
  std::unique_ptr<rt::Transport> open(std::uint32_t rank) override {
    rt::NcclOptions options;
    options.is_exact = true;
    options.device =
        value_or_throw(rt::GpuDevice::open(driver_, static_cast<int>(rank) % num_gpus_), "NCCL");
    return value_or_throw(rt::open_nccl_transport(id_, rank, world_, options), "NCCL");
  }

 private:
  const rt::GpuDriver& driver_;
  int num_gpus_;
  std::uint32_t world_;
  rt::NcclId id_;
};

// The emulated GPU's memory is the host's, which every MPI takes.
std::unique_ptr<rt::Transport> open_mpi(const Options& options) {
  const bool is_emulated = options.device == "emulated";
  return value_or_throw(
      rt::open_mpi_transport(
          {.is_exact = true, .cuda_aware = is_emulated ? rt::CudaAware::Yes : rt::CudaAware::Auto}),
      "MPI");
}

class MpiMeeting : public Meeting {
 public:
  explicit MpiMeeting(const Options& options) : options_(options) {}
  std::unique_ptr<rt::Transport> open(std::uint32_t /*rank*/) override {
    return open_mpi(options_);
  }

 private:
  const Options& options_;
};

class RanksCheck {
 public:
  explicit RanksCheck(const Options& options)
      : options_(options), num_elems_(options.device == "emulated" ? 1501 : 1000003) {
    if (options.transport == "mpi") {
      const auto transport = open_mpi(options);
      own_rank_ = transport->rank();
      most_ranks_ = transport->world();
    }
    if (own_rank_ && options.device == "cuda") {
      devices_.push_back(gpu_of(*own_rank_));
    } else {
      devices_.push_back(open_device(options.device, std::size_t{1} << 28));
    }
    if (options.transport == "nccl") find_gpus();
  }

  void check(const std::string& name) {
    const fs::path images = options_.folder / name;
    gpu_.clear();
    for (const auto& device : devices_) {
      gpu_.push_back(load_gpu_program(images.string() + ".gpu.image", device));
    }
    cpu_ = value_or_throw(rt::LoadedProgram::load(
                              value_or_throw(rt::load_image(images.string() + ".cpu.image"), name)),
                          name);
    const bool has_any_world = options_.transport == "loopback";
    for (const char* plan : {"allgather", "two_shot", "ring", "tree"}) {
      for (std::uint32_t world = has_any_world ? 1 : most_ranks_; world <= most_ranks_; ++world) {
        check_plan(name, plan, world);
      }
    }
  }
  int num_failures() const { return num_failures_; }

 private:
  static int count_gpus(const rt::GpuDriver& driver) {
    ok_or_throw(rt::gpu_status(driver, driver.init(0), "opening the driver"), "GPUs");
    int count = 0;
    ok_or_throw(rt::gpu_status(driver, driver.device_count(&count), "counting"), "GPUs");
    return count;
  }

  static std::shared_ptr<const rt::GpuDevice> gpu_of(std::uint32_t rank) {
    const rt::GpuDriver& driver = *value_or_throw(rt::open_cuda_driver(), "a GPU");
    const int count = std::max(1, count_gpus(driver));
    return value_or_throw(rt::GpuDevice::open(driver, static_cast<int>(rank) % count), "a GPU");
  }

  // NCCL's GPUs, which may differ from those on which ranks compute.
  void find_gpus() {
    driver_ = value_or_throw(rt::open_cuda_driver(), "NCCL");
    const int count = count_gpus(*driver_);
    if (options_.shares) ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    num_gpus_ = options_.shares ? 1 : std::min(count, 4);
    most_ranks_ = options_.shares ? 2 : static_cast<std::uint32_t>(num_gpus_);
    if (options_.device == "emulated") return;
    for (int i = 1; i < num_gpus_; ++i) {
      devices_.push_back(value_or_throw(rt::GpuDevice::open(*driver_, i), "a GPU"));
    }
  }

  std::unique_ptr<Meeting> meeting_of(std::uint32_t world) const {
    if (own_rank_) return std::make_unique<MpiMeeting>(options_);
    if (driver_ == nullptr) return std::make_unique<LoopbackMeeting>(world);
    return std::make_unique<NcclMeeting>(*driver_, num_gpus_, world);
  }

  void check_plan(const std::string& name, const char* plan, std::uint32_t world) {
    rt::PlanRequest request;
    request.plan = plan;
    request.world = world;
    request.codecs = {rt::codec_facts(rt::image_of(cpu_), world)};
    // What carries sums of other programs is compared on emulated GPUs (tests/collective).
    if (request.codecs[0].carrier.kind == rt::CarrierKind::Program && rt::encodes_sums(plan))
      return;
    request.tensors = {
        {"large", num_elems_, 1, 0}, {"bias", 7, 1, rt::kDense}, {"small", 40, 1, 0}};
    request.piece_bytes = static_cast<std::uint64_t>(2 * num_elems_);
    auto built = value_or_throw(rt::build_plan_if_taken(request), plan);
    if (!built) return;
    plan_ = std::make_shared<rt::Plan>(std::move(*built));
    const std::vector<Tensors> wanted = run(world, 1, false);
    for (const std::uint32_t each : {1U, 2U}) {
      const bool are_same = have_same_bits(run(world, each, true), wanted);
      num_failures_ += are_same ? 0 : 1;
      if (are_same && own_rank_.value_or(0) != 0) continue;
      fmt::print("{} {} by {}, {} ranks, {} on the device\n", are_same ? "ok  " : "FAIL", name,
                 plan, world, each == 1 ? "all" : "every other");
    }
  }

  // The updates of two steps by rank, of those that this process has.
  std::vector<Tensors> run(std::uint32_t world, std::uint32_t each, bool on_device) {
    std::vector<Tensors> updates(world);
    std::vector<std::string> errors(world);
    const auto meeting = meeting_of(world);
    std::vector<std::thread> ranks;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      if (own_rank_ && rank != *own_rank_) continue;
      ranks.emplace_back([&, rank] {
        const auto transport = meeting->open(rank);
        const rt::Status status =
            run_rank(*transport, on_device && rank % each == 0, updates[rank]);
        if (!status) errors[rank] = status.error().message;
      });
    }
    for (std::thread& rank : ranks) rank.join();
    for (const std::string& error : errors) {
      if (!error.empty()) throw std::runtime_error(plan_->name + ": " + error);
    }
    return updates;
  }

  rt::Status run_rank(rt::Transport& transport, bool on_device, Tensors& updates) {
    rt::SyncOptions options{.plan = plan_, .programs = {cpu_}, .threads = 1, .seed = 7};
    if (on_device) {
      const auto& program = gpu_[transport.rank() % gpu_.size()];
      options.device = rt::SyncDevice{{.programs = {program}, .plain = program}};
      if (devices_[0]->driver().allocates_apart) options.device->turns = &turns_;
    }
    auto session = rt::SyncSession::open(options, transport);
    if (!session) return tl::unexpected<rt::Error>(session.error());
    for (std::uint64_t step = 0; step < 2; ++step) {
      Tensors gradients;
      std::vector<rt::ConstTensorView> from;
      std::vector<rt::TensorView> to;
      const std::size_t first = updates.size();
      for (const rt::PlanTensor& tensor : plan_->tensors) {
        const std::uint64_t seed =
            100 * step + 10 * std::uint64_t{transport.rank()} + gradients.size();
        gradients.push_back(make_gradient(DataKind::Normal, tensor.num_elems(), seed));
        updates.emplace_back(gradients.back().size());
      }
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        from.emplace_back(gradients[i]);
        to.emplace_back(updates[first + i]);
      }
      if (rt::Status status = (*session)->step(from, to, step); !status) return status;
    }
    return rt::Ok{};
  }

  const Options& options_;
  std::vector<std::shared_ptr<const rt::GpuDevice>> devices_;  // that ranks take in turn
  std::int64_t num_elems_;
  std::mutex turns_;
  std::optional<std::uint32_t> own_rank_;  // of MPI
  const rt::GpuDriver* driver_ = nullptr;  // of NCCL; null: another transport
  int num_gpus_ = 1;
  std::uint32_t most_ranks_ = 4;
  std::vector<std::shared_ptr<const rt::GpuProgram>> gpu_;  // by device
  std::shared_ptr<const rt::LoadedProgram> cpu_;
  std::shared_ptr<const rt::Plan> plan_;
  int num_failures_ = 0;
};

std::vector<std::string> programs_of(const Options& options) {
  // One of each kind: states, draws, payloads of a fixed and of any length, sums by the transport.
  std::vector<std::string> found;
  for (const char* name : {"onebit", "ef_sign", "qsgd", "topk", "threshold", "dgc", "fp16"}) {
    const bool is_there = fs::exists(options.folder / (std::string(name) + ".gpu.image"));
    if (is_there) found.emplace_back(name);
  }
  return options.only.empty() ? found : options.only;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--device" && has_value) {
      options.device = argv[++i];
    } else if (word == "--transport" && has_value) {
      options.transport = argv[++i];
    } else if (word == "--share") {
      options.shares = true;
    } else if (word == "--ask") {
      options.asks = true;
    } else if (word == "--only" && has_value) {
      options.only = comma_separated(argv[++i]);
    } else if (options.folder.empty() && !word.starts_with("--")) {
      options.folder = word;
    } else {
      return false;
    }
  }
  const bool is_mpi = options.transport == "mpi";
  return !options.folder.empty() && (is_mpi || !options.asks) &&
         (is_mpi || options.transport == "loopback" || options.transport == "nccl");
}

int ask(const Options& options) {
  if (open_mpi(options)->takes_device_memory(rt::ExchangeKind::Send)) return 0;
  fmt::print("MPI is here, and does not say that it takes the memory of GPUs\n");
  return 1;
}

int run(const Options& options) {
  if (options.asks) return ask(options);
  RanksCheck check(options);
  const std::vector<std::string> names = programs_of(options);
  if (names.empty()) throw std::runtime_error("no programs in " + options.folder.string());
  for (const std::string& name : names) check.check(name);
  fmt::print("{} failures\n", check.num_failures());
  return check.num_failures() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace cinch::testing

int main(int argc, char** argv) {
  // Prints what was checked, even if time runs out before the end.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  cinch::testing::Options options;
  if (!cinch::testing::parse(argc, argv, options)) {
    fmt::print(stderr,
               "gpu_ranks FOLDER [--device cuda|emulated] [--transport loopback|nccl|mpi] "
               "[--share] [--ask] [--only NAME,...]\n");
    return 2;
  }
  try {
    return cinch::testing::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_ranks: {}\n", error.what());
    return 3;
  }
}
