// Ranks of the C API that are threads, each with tensors on a CPU or on a GPU of the driver with
// which the test replaces NVIDIA's.
#pragma once
#include <cinch_sync.h>

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/c_api/handles.h"
#include "runtime/gpu/device.h"
#include "support.h"

namespace cinch::testing {

inline constexpr std::uint32_t kWorld = 2;
using Values = std::array<std::vector<float>, 2>;  // by tensor
using Sizes = std::array<std::size_t, 2>;

inline Program compile_for(cinch_device device, const char* name = "ef_sign") {
  auto options = sized<cinch_compile_options>();
  options.program = name;
  options.device = device;
  cinch_program* program = nullptr;
  auto error = sized<cinch_error>();
  EXPECT_EQ(CINCH_OK, cinch_program_compile(&options, &program, &error)) << error.message;
  return Program(program);
}

/// Describes two tensors; the program, if there is one, compresses the first.
inline std::array<cinch_sync_tensor, 2> described(const Sizes& sizes, std::int32_t program) {
  std::array<cinch_sync_tensor, 2> tensors = {sized<cinch_sync_tensor>(),
                                              sized<cinch_sync_tensor>()};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].name = i == 0 ? "large" : "small";
    tensors[i].rows = static_cast<std::int64_t>(sizes[i]);
    tensors[i].columns = 1;
    tensors[i].program = i == 0 ? program : CINCH_EXACT;
  }
  return tensors;
}

/// Opens a rank's transport, which is released after its steps; a failure is the rank's error.
using OpenTransport =
    std::function<cinch_status(std::uint32_t rank, cinch_transport** transport, cinch_error*)>;

/// A rank's tensors, which are updated in place, and the results of its steps.
class Rank {
 public:
  Rank(std::uint32_t rank, const Sizes& sizes, cinch_device device, std::int32_t device_number)
      : rank_(rank), sizes_(sizes), device_(device), device_number_(device_number) {
    for (std::size_t i = 0; i < 2; ++i) {
      Tensor& tensor =
          *tensors_.emplace_back(std::make_unique<Tensor>(sizes[i], 1 + static_cast<float>(rank)));
      views_[i] = tensor.view();
      if (device == CINCH_CUDA) move_to_gpu(tensor, views_[i]);
    }
  }

  void run(const OpenTransport& open, cinch_sync_options options,
           const std::vector<const cinch_program*>& programs, std::uint64_t num_steps,
           const cinch_step_options* how) {
    auto error = sized<cinch_error>();
    cinch_transport* transport = nullptr;
    cinch_sync* sync = nullptr;
    cinch_status status = open(rank_, &transport, &error);
    const auto tensors = described(sizes_, programs.empty() ? CINCH_EXACT : 0);
    if (status == CINCH_OK) {
      status = cinch_sync_open(transport, programs.data(), programs.size(), tensors.data(),
                               tensors.size(), &options, &sync, &error);
    }
    for (std::uint64_t step = 0; step < num_steps && status == CINCH_OK; ++step) {
      status = how == nullptr ? cinch_sync_step(sync, step, views_.data(), views_.data(),
                                                views_.size(), &error)
                              : step_with(sync, step, *how, error);
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
  cinch_status step_with(cinch_sync* sync, std::uint64_t step, const cinch_step_options& how,
                         cinch_error& error) {
    cinch_status status = cinch_sync_begin(sync, step, &how, &error);
    for (std::size_t i = 0; i < views_.size() && status == CINCH_OK; ++i) {
      status = cinch_sync_ready(sync, i, &views_[i], &views_[i], 1, &error);
    }
    auto outcome = sized<cinch_step_outcome>();
    if (status == CINCH_OK) status = cinch_sync_finish(sync, &outcome, &error);
    EXPECT_EQ(0, outcome.is_skipped);
    return status;
  }
  void move_to_gpu(Tensor& tensor, cinch_tensor& view) {
    if (gpu_ == nullptr) gpu_ = *rt::GpuDevice::open(**c_api::gpu_driver(), device_number_);
    const std::size_t bytes = 4 * tensor.values().size();
    memory_.push_back(*rt::GpuMemory::allocate(gpu_, bytes));
    const std::span from(reinterpret_cast<const std::uint8_t*>(tensor.values().data()), bytes);
    EXPECT_TRUE(gpu_->write(memory_.back().address(), from, nullptr));
    // Callers have pointers of the device. NOLINTNEXTLINE(performance-no-int-to-ptr)
    view.data = reinterpret_cast<void*>(memory_.back().address());
    view.device = CINCH_CUDA;
    view.device_number = device_number_;
  }

  std::uint32_t rank_;
  Sizes sizes_;
  cinch_device device_;
  std::int32_t device_number_;
  std::shared_ptr<rt::GpuDevice> gpu_;
  std::vector<std::unique_ptr<Tensor>> tensors_;
  std::array<cinch_tensor, 2> views_{};
  std::vector<rt::GpuMemory> memory_;
};

struct RanksRun {
  std::vector<Values> updates;
  std::vector<std::string> errors;
};

/// Vectors are by rank; every rank's GPU is number 0 unless `has_own_gpus`.
struct RanksCase {
  std::array<cinch_device, kWorld> devices = {CINCH_CPU, CINCH_CPU};
  std::array<const cinch_program*, kWorld> programs = {nullptr, nullptr};
  const char* plan = "two_shot";
  const cinch_program* plain = nullptr;
  bool has_own_gpus = false;
  Sizes sizes = {1501, 17};
  std::uint64_t num_steps = 2;
  const cinch_step_options* how = nullptr;  // for steps in parts
};

inline RanksRun run_ranks(const RanksCase& wanted, const OpenTransport& open) {
  std::vector<std::unique_ptr<Rank>> ranks;
  const auto gpu_of = [&wanted](std::uint32_t rank) {
    return wanted.has_own_gpus ? static_cast<std::int32_t>(rank) : 0;
  };
  for (std::uint32_t r = 0; r < kWorld; ++r) {
    ranks.push_back(std::make_unique<Rank>(r, wanted.sizes, wanted.devices[r], gpu_of(r)));
  }
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < kWorld; ++r) {
    threads.emplace_back([&, r] {
      auto options = sized<cinch_sync_options>();
      options.plan = wanted.plan;
      options.threads = 1;
      options.device = wanted.devices[r];
      options.device_number = gpu_of(r);
      options.plain = wanted.plain;
      std::vector<const cinch_program*> own;
      if (wanted.programs[r] != nullptr) own.push_back(wanted.programs[r]);
      ranks[r]->run(open, options, own, wanted.num_steps, wanted.how);
    });
  }
  for (std::thread& thread : threads) thread.join();
  RanksRun run;
  for (const auto& rank : ranks) {
    run.updates.push_back(rank->updates());
    run.errors.push_back(rank->error);
  }
  return run;
}

inline RanksRun run_on_loopback(const RanksCase& wanted) {
  cinch_loopback* loopback = nullptr;
  EXPECT_EQ(CINCH_OK, cinch_loopback_open(kWorld, &loopback, nullptr));
  RanksRun run =
      run_ranks(wanted, [&](std::uint32_t rank, cinch_transport** transport, cinch_error* error) {
        return cinch_transport_of_loopback(loopback, rank, transport, error);
      });
  cinch_loopback_release(loopback);
  return run;
}

}  // namespace cinch::testing
