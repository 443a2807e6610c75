// Ranks of the C API that compute on the emulated GPU, whose driver stands here in place of
// NVIDIA's: tensors are device memory, and the updates those of ranks on CPUs.
#include <cinch_sync.h>
#include <gmock/gmock.h>

#include <array>
#include <thread>

#include "codegen/emulator/driver.h"
#include "runtime/c_api/gpu_driver.h"
#include "runtime/gpu/device.h"
#include "support.h"

namespace cinch::c_api {

rt::Result<const rt::GpuDriver*> gpu_driver() {
  static const rt::GpuDriver& driver = emulator::start_driver();
  return &driver;
}

}  // namespace cinch::c_api

namespace cinch::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kWorld = 2;
constexpr std::size_t kSizes[] = {1501, 17};
using Values = std::array<std::vector<float>, 2>;  // by tensor

Program compile_for(cinch_device device) {
  auto options = sized<cinch_compile_options>();
  options.program = "ef_sign";
  options.device = device;
  cinch_program* program = nullptr;
  auto error = sized<cinch_error>();
  EXPECT_EQ(CINCH_OK, cinch_program_compile(&options, &program, &error)) << error.message;
  return Program(program);
}

std::array<cinch_sync_tensor, 2> described(std::int32_t program) {
  std::array<cinch_sync_tensor, 2> tensors = {sized<cinch_sync_tensor>(),
                                              sized<cinch_sync_tensor>()};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].name = i == 0 ? "large" : "small";
    tensors[i].rows = static_cast<std::int64_t>(kSizes[i]);
    tensors[i].columns = 1;
    tensors[i].program = i == 0 ? program : CINCH_EXACT;
  }
  return tensors;
}

// A rank's tensors, which are updated where they are, and what becomes of two steps.
class Rank {
 public:
  Rank(std::uint32_t rank, cinch_device device) : device_(device) {
    for (std::size_t i = 0; i < 2; ++i) {
      Tensor& tensor =
          *tensors_.emplace_back(std::make_unique<Tensor>(kSizes[i], 1 + static_cast<float>(rank)));
      views_[i] = tensor.view();
      if (device == CINCH_CUDA) move_to_gpu(tensor, views_[i]);
    }
  }

  void run(cinch_loopback* loopback, std::uint32_t rank, cinch_sync_options options,
           const std::vector<const cinch_program*>& programs) {
    cinch_transport* transport = nullptr;
    ASSERT_EQ(CINCH_OK, cinch_transport_of_loopback(loopback, rank, &transport, nullptr));
    const auto tensors = described(programs.empty() ? CINCH_EXACT : 0);
    cinch_sync* sync = nullptr;
    auto error = sized<cinch_error>();
    cinch_status status = cinch_sync_open(transport, programs.data(), programs.size(),
                                          tensors.data(), tensors.size(), &options, &sync, &error);
    for (std::uint64_t step = 0; step < 2 && status == CINCH_OK; ++step) {
      status = cinch_sync_step(sync, step, views_.data(), views_.data(), views_.size(), &error);
    }
    if (status != CINCH_OK) this->error = error.message;
    cinch_sync_release(sync);
    cinch_transport_release(transport);
  }

  Values updates() {
    Values values;
    for (std::size_t i = 0; i < 2; ++i) {
      values[i] = tensors_[i]->values();
      if (device_ != CINCH_CUDA) continue;
      const std::span to(reinterpret_cast<std::uint8_t*>(values[i].data()), 4 * values[i].size());
      EXPECT_TRUE(gpu_->read(to, memory_[i].address(), nullptr));
    }
    return values;
  }

  std::string error;

 private:
  void move_to_gpu(Tensor& tensor, cinch_tensor& view) {
    if (gpu_ == nullptr) gpu_ = *rt::GpuDevice::open(**c_api::gpu_driver());
    const std::size_t bytes = 4 * tensor.values().size();
    memory_.push_back(*rt::GpuMemory::allocate(gpu_, bytes));
    const std::span from(reinterpret_cast<const std::uint8_t*>(tensor.values().data()), bytes);
    EXPECT_TRUE(gpu_->write(memory_.back().address(), from, nullptr));
    // Callers have pointers of the device. NOLINTNEXTLINE(performance-no-int-to-ptr)
    view.data = reinterpret_cast<void*>(memory_.back().address());
    view.device = CINCH_CUDA;
  }

  cinch_device device_;
  std::shared_ptr<rt::GpuDevice> gpu_;
  std::vector<std::unique_ptr<Tensor>> tensors_;
  std::array<cinch_tensor, 2> views_{};
  std::vector<rt::GpuMemory> memory_;
};

struct RanksRun {
  std::vector<Values> updates;
  std::vector<std::string> errors;
};

// `programs`: by rank.
RanksRun run_ranks(const std::array<cinch_device, kWorld>& devices,
                   const std::array<const cinch_program*, kWorld>& programs, const char* plan,
                   const cinch_program* plain = nullptr) {
  cinch_loopback* loopback = nullptr;
  EXPECT_EQ(CINCH_OK, cinch_loopback_open(kWorld, &loopback, nullptr));
  std::vector<std::unique_ptr<Rank>> ranks;
  for (std::uint32_t r = 0; r < kWorld; ++r) ranks.push_back(std::make_unique<Rank>(r, devices[r]));
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < kWorld; ++r) {
    threads.emplace_back([&, r] {
      auto options = sized<cinch_sync_options>();
      options.plan = plan;
      options.threads = 1;
      options.device = devices[r];
      options.plain = plain;
      std::vector<const cinch_program*> own;
      if (programs[r] != nullptr) own.push_back(programs[r]);
      ranks[r]->run(loopback, r, options, own);
    });
  }
  for (std::thread& thread : threads) thread.join();
  cinch_loopback_release(loopback);
  RanksRun run;
  for (const auto& rank : ranks) {
    run.updates.push_back(rank->updates());
    run.errors.push_back(rank->error);
  }
  return run;
}

TEST(CApiSyncGpu, RanksGiveWhatThoseOnCpusGive) {
  const Program cpu = compile_for(CINCH_CPU), gpu = compile_for(CINCH_CUDA);
  for (const char* plan : {"two_shot", "ring"}) {
    const RanksRun wanted = run_ranks({CINCH_CPU, CINCH_CPU}, {cpu.get(), cpu.get()}, plan);
    EXPECT_THAT(wanted.errors, ::testing::Each(""));
    const RanksRun both = run_ranks({CINCH_CUDA, CINCH_CUDA}, {gpu.get(), gpu.get()}, plan);
    const RanksRun one = run_ranks({CINCH_CPU, CINCH_CUDA}, {cpu.get(), gpu.get()}, plan);
    for (const RanksRun* run : {&both, &one}) {
      EXPECT_THAT(run->errors, ::testing::Each("")) << plan;
      EXPECT_EQ(run->updates, wanted.updates) << plan;
    }
  }
}

TEST(CApiSyncGpu, WithoutAProgramAnyServes) {
  const Program gpu = compile_for(CINCH_CUDA);
  const RanksRun wanted = run_ranks({CINCH_CPU, CINCH_CPU}, {}, "two_shot");
  const RanksRun run = run_ranks({CINCH_CUDA, CINCH_CUDA}, {}, "two_shot", gpu.get());
  EXPECT_THAT(run.errors, ::testing::Each(""));
  EXPECT_EQ(run.updates, wanted.updates);
  const RanksRun none = run_ranks({CINCH_CUDA, CINCH_CUDA}, {}, "two_shot");
  EXPECT_THAT(none.errors, ::testing::Each(HasSubstr("needs some program")));
}

TEST(CApiSyncGpu, ProgramsAreForTheDevice) {
  const Program cpu = compile_for(CINCH_CPU), gpu = compile_for(CINCH_CUDA);
  const RanksRun run = run_ranks({CINCH_CPU, CINCH_CUDA}, {gpu.get(), cpu.get()}, "two_shot");
  EXPECT_THAT(run.errors[0],
              ::testing::AnyOf(HasSubstr("a program for a GPU"), HasSubstr("a program for CPUs")));
  EXPECT_THAT(run.errors[1],
              ::testing::AnyOf(HasSubstr("a program for a GPU"), HasSubstr("a program for CPUs")));
}

}  // namespace
}  // namespace cinch::testing
