// gpu_ranks: ranks of loopback that compute on a GPU against ranks on the CPU, bit for bit, from
// images alone (NAME.gpu.image beside NAME.cpu.image, as prepare.py makes them): 1 to 4 ranks,
// several plans, two steps. Ranks share the device, each with a stream of its own; in a second run
// every other rank is on the CPU.
//
//   gpu_ranks FOLDER [--device cuda|emulated] [--only NAME,…]
#include <fmt/format.h>

#include <filesystem>
#include <mutex>
#include <thread>

#include "runtime/collective/loopback.h"
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
  std::string device = "cuda";
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

class RanksCheck {
 public:
  explicit RanksCheck(const Options& options)
      : options_(options),
        device_(open_device(options.device, std::size_t{1} << 28)),
        num_elems_(options.device == "emulated" ? 1501 : 1000003) {}

  void check(const std::string& name) {
    const fs::path images = options_.folder / name;
    gpu_ = load_gpu_program(images.string() + ".gpu.image", device_);
    cpu_ = value_or_throw(rt::LoadedProgram::load(
                              value_or_throw(rt::load_image(images.string() + ".cpu.image"), name)),
                          name);
    for (const char* plan : {"allgather", "two_shot", "ring", "tree"}) {
      for (std::uint32_t world = 1; world <= 4; ++world) check_plan(name, plan, world);
    }
  }
  int num_failures() const { return num_failures_; }

 private:
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
    rt::LoopbackWorld loopback(world);
    std::vector<std::thread> ranks;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      ranks.emplace_back([&, rank] {
        const auto transport = loopback.transport(rank);
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
      options.device = rt::SyncDevice{.programs = {gpu_}, .plain = gpu_};
      if (device_->driver().allocates_apart) options.device->turns = &turns_;
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
  std::shared_ptr<const rt::GpuDevice> device_;
  std::int64_t num_elems_;
  std::mutex turns_;
  std::shared_ptr<const rt::GpuProgram> gpu_;
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
    } else if (word == "--only" && has_value) {
      options.only = comma_separated(argv[++i]);
    } else if (options.folder.empty() && !word.starts_with("--")) {
      options.folder = word;
    } else {
      return false;
    }
  }
  return !options.folder.empty();
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
    fmt::print(stderr, "gpu_ranks FOLDER [--device cuda|emulated] [--only NAME,...]\n");
    return 2;
  }
  try {
    return cinch::testing::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_ranks: {}\n", error.what());
    return 3;
  }
}
