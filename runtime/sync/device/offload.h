// The tasks of a rank that computes on a GPU and encodes some tensors on its CPUs
// (PlanTensor::on_cpus). Their states, sums and messages lie in host memory. Gradients are copied
// there and updates back on two streams of their own, so that copies of both directions run beside
// each other and beside the GPU's work.
#pragma once

#include "runtime/sync/device/device_tasks.h"

namespace cinch::rt {

/// Copies in host memory of the tensors that CPUs encode, for a rank whose tensors lie on its GPU.
class HostCopies {
 public:
  /// `plan` and `gpu` outlive this. Errors: OutOfMemory, Device.
  static Result<std::unique_ptr<HostCopies>> open(const Plan& plan, std::uint32_t rank,
                                                  ComputeDevice& gpu, const PieceMemory& memory);
  ~HostCopies();
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  /// The wire, and the copies instead of the user's tensors.
  PieceMemory& memory() { return memory_; }
  std::size_t size_bytes() const;

  void begin_step() { is_bound_.assign(is_bound_.size(), false); }
  /// fetch and deliver only put copies on their streams; deliver lets later work of the GPU's
  /// stream come behind. `user`: the user's tensors. Errors: OutOfMemory, Device.
  Status fetch(const Task& task, const PieceMemory& user);
  Status deliver(const Task& task, const PieceMemory& user);
  /// Waits for what the task reads. Errors: Device.
  Status wait_before(const Task& task) const;
  /// Waits for all copies. Errors: Device.
  Status wait();

 private:
  HostCopies(const Plan& plan, std::uint32_t rank, ComputeDevice& gpu, const PieceMemory& memory);
  Status start();
  /// Decides where the tensor's copies of this step lie.
  Status bind(std::uint32_t tensor, const ConstTensorView& gradient, const TensorView& update);
  const GpuDevice& device() const { return *gpu_.gpu()->device; }
  const GpuDriver& driver() const { return device().driver(); }
  std::size_t index_of(const Task& task) const {
    return static_cast<std::size_t>(&task - own_.tasks.data());
  }

  const Plan& plan_;
  const RankPlan& own_;
  ComputeDevice& gpu_;
  PieceMemory memory_;
  // By tensor; empty for those that the GPU encodes. Updates lie over gradients, whose place they
  // take, unless their elements have other sizes.
  std::vector<AlignedBuffer> copies_, apart_;
  std::vector<PinnedMemory> pinned_;
  std::vector<ConstTensorView> gradients_;
  std::vector<TensorView> updates_;
  std::vector<bool> is_bound_;  // by tensor: in this step
  GpuStream out_ = nullptr, in_ = nullptr;
  GpuEvent given_ = nullptr, delivered_ = nullptr;
  std::vector<GpuEvent> fetched_;  // by task; null: it is no Fetch
};

class OffloadTasks : public RankTasks {
 public:
  /// `host`: the rank's CPUs, with the same programs. `memory` outlives this. Errors: those of
  /// DeviceTasks::open.
  static Result<std::unique_ptr<RankTasks>> open(const Plan& plan,
                                                 std::unique_ptr<ComputeDevice> gpu,
                                                 std::unique_ptr<ComputeDevice> host,
                                                 DeviceTaskOptions options,
                                                 const PieceMemory& memory);
  ~OffloadTasks() override;

  Status set_parameter(std::uint32_t codec, std::string_view name, double value) override;
  Status begin_step(std::uint64_t step) override;
  Status run(const Task& task, PieceMemory& memory) override;
  Result<WirePlace> wire_of(const Task& exchange, PieceMemory& memory) override {
    return gpu_->wire_of(exchange, memory);
  }
  const ProtocolParts& protocols() const override { return gpu_->protocols(); }
  Status synchronise(const Task& task, PieceMemory& memory, RankExchange& ranks) override {
    return gpu_->synchronise(task, memory, ranks);
  }
  Status end_step() override;
  void take_back_step() override;
  void take_back(std::uint32_t piece) override;
  Status fill_update(std::uint32_t piece, Fill with, PieceMemory& memory) override {
    return gpu_->fill_update(piece, with, memory);
  }
  Status reset_states(std::uint32_t piece) override;
  SyncMemory memory_use() const override;
  void visit_states(const SiteVisitor& visit) override;

 private:
  OffloadTasks() = default;

  std::unique_ptr<RankTasks> gpu_, host_;
  std::unique_ptr<HostCopies> copies_;  // null: the tensors lie in host memory
};

}  // namespace cinch::rt
