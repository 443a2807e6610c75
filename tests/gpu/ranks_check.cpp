// gpu_ranks: ranks that compute on GPUs against ranks on the CPU, bit for bit, from images alone
// (NAME.gpu.image beside NAME.cpu.image, as prepare.py makes them): several plans, two steps; in a
// second run every other rank is on the CPU. Over loopback 1 to 4 ranks share the device, each with
// a stream of its own. Over NCCL there is a rank for each GPU, at most 4, and messages stay on the
// GPUs; or, with --share, two ranks on one.
//
//   gpu_ranks FOLDER [--device cuda|emulated] [--transport loopback|nccl] [--share] [--only NAME,…]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "runtime/collective/loopback.h"
#include "runtime/collective/nccl_transport.h"
#include "runtime/core/same_bits.h"
#include "runtime/image/image_file.h"
#include "runtime/planner/codec_facts.h"
#include "runtime/sync/sync_session.h"
#include "tests/gpu/on_device.h"
#include "tests/programs/harness/gradients.h"

namespace cinch::testing {
namespace {

namespace fs = std::filesystem;
using Tensors = std::vector<std::vector<float>>;

struct Options {
  fs::path folder;
  std::string device = "cuda", transport = "loopback";
  bool shares = false;
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

class RanksCheck {
 public:
  explicit RanksCheck(const Options& options)
      : options_(options), num_elems_(options.device == "emulated" ? 1501 : 1000003) {
    devices_.push_back(open_device(options.device, std::size_t{1} << 28));
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
    const bool is_nccl = options_.transport == "nccl";
    for (const char* plan : {"allgather", "two_shot", "ring", "tree"}) {
      for (std::uint32_t world = is_nccl ? most_ranks_ : 1; world <= most_ranks_; ++world) {
        check_plan(name, plan, world);
      }
    }
  }
  int num_failures() const { return num_failures_; }

 private:
  // Of NCCL, which may have others than the ranks compute on.
  void find_gpus() {
    driver_ = value_or_throw(rt::open_cuda_driver(), "NCCL");
    ok_or_throw(rt::gpu_status(*driver_, driver_->init(0), "opening the driver"), "NCCL");
    int count = 0;
    ok_or_throw(rt::gpu_status(*driver_, driver_->device_count(&count), "counting"), "NCCL");
    if (options_.shares) ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    num_gpus_ = options_.shares ? 1 : std::min(count, 4);
    most_ranks_ = options_.shares ? 2 : static_cast<std::uint32_t>(num_gpus_);
    if (options_.device == "emulated") return;
    for (int i = 1; i < num_gpus_; ++i) {
      devices_.push_back(value_or_throw(rt::GpuDevice::open(*driver_, i), "a GPU"));
    }
  }

  std::unique_ptr<Meeting> meeting_of(std::uint32_t world) const {
    if (driver_ == nullptr) return std::make_unique<LoopbackMeeting>(world);
    return std::make_unique<NcclMeeting>(*driver_, num_gpus_, world);
  }

  void check_plan(const std::string& name, const char* plan, std::uint32_t world) {
    rt::PlanRequest request;
    request.plan = plan;
    request.world = world;
    request.codecs = {rt::codec_facts(cpu_, world)};
    request.tensors = {
        {"large", num_elems_, 1, 0}, {"bias", 7, 1, rt::kDense}, {"small", 40, 1, 0}};
    request.piece_bytes = static_cast<std::uint64_t>(2 * num_elems_);
    plan_ = std::make_shared<rt::Plan>(value_or_throw(rt::build_plan(request), plan));
    const std::vector<Tensors> wanted = run(world, 1, false);
    for (const std::uint32_t each : {1U, 2U}) {
      const bool are_same = have_same_bits(run(world, each, true), wanted);
      fmt::print("{} {} by {}, {} ranks, {} on the device\n", are_same ? "ok  " : "FAIL", name,
                 plan, world, each == 1 ? "all" : "every other");
      num_failures_ += are_same ? 0 : 1;
    }
  }

  // The updates of two steps by rank.
  std::vector<Tensors> run(std::uint32_t world, std::uint32_t each, bool on_device) {
    std::vector<Tensors> updates(world);
    std::vector<std::string> errors(world);
    const auto meeting = meeting_of(world);
    std::vector<std::thread> ranks;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
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
      options.device = rt::SyncDevice{.programs = {program}, .plain = program};
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
  const rt::GpuDriver* driver_ = nullptr;  // of NCCL; null: loopback
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
    } else if (word == "--only" && has_value) {
      options.only = comma_separated(argv[++i]);
    } else if (options.folder.empty() && !word.starts_with("--")) {
      options.folder = word;
    } else {
      return false;
    }
  }
  return !options.folder.empty() &&
         (options.transport == "loopback" || options.transport == "nccl");
}

int run(const Options& options) {
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
  cinch::testing::Options options;
  if (!cinch::testing::parse(argc, argv, options)) {
    fmt::print(stderr,
               "gpu_ranks FOLDER [--device cuda|emulated] [--transport loopback|nccl] [--share] "
               "[--only NAME,...]\n");
    return 2;
  }
  try {
    return cinch::testing::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_ranks: {}\n", error.what());
    return 3;
  }
}
