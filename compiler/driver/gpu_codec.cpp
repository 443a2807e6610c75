// Gradients go to the device and payloads come back; only what happens between is timed.
#include "compiler/driver/gpu_codec.h"

#include <chrono>
#include <cstring>
#include <mutex>

#include "codegen/emulator/driver.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/output_file.h"
#include "runtime/call/state_file.h"
#include "runtime/collective/rank_threads.h"
#include "runtime/gpu/session.h"

namespace cinch::driver {

namespace {

// Device memory that grows when more is asked for.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::shared_ptr<const rt::GpuDevice> device) : device_(std::move(device)) {}

  rt::GpuAddress reserve(std::size_t size_bytes) {
    // Of no bytes there still is an address.
    size_bytes = std::max<std::size_t>(size_bytes, 16);
    if (memory_.size_bytes() < size_bytes) {
      memory_ = {};
      memory_ = value_or_throw(rt::GpuMemory::allocate(device_, size_bytes));
    }
    return memory_.address();
  }

 private:
  std::shared_ptr<const rt::GpuDevice> device_;
  rt::GpuMemory memory_;
};

// Ranks of one process share the device, one at a time: an emulated one runs on one thread.
std::mutex& device_turns() {
  static std::mutex one;
  return one;
}

class GpuCodec : public Codec {
 public:
  GpuCodec(const std::shared_ptr<const rt::GpuProgram>& program,
           const rt::GpuSessionOptions& options)
      : device_(program->device()),
        session_(value_or_throw(rt::GpuSession::open(program, options))),
        tensor_(device_),
        other_(device_),
        payload_(device_) {
    collect();
  }

  std::vector<std::uint8_t> encode(rt::ConstTensorView gradient, std::uint64_t step) override {
    const std::vector<float> values = to_f32(gradient);
    const rt::GpuAddress from = upload(tensor_, values);
    const std::int64_t bound = payload_bound(step);
    const rt::GpuPayload to{payload_.reserve(static_cast<std::size_t>(bound)), bound};
    timed([&] { return session_.encode({&from, 1}, {&to, 1}, step, nullptr); });
    const std::int64_t size_bytes = collect().payload_bytes;
    std::vector<std::uint8_t> payload(static_cast<std::size_t>(size_bytes));
    value_or_throw(device_->read(payload, to.address, nullptr));
    return payload;
  }

  void decode(std::span<const std::uint8_t> payload, std::span<float> out,
              std::uint64_t step) override {
    const rt::GpuPayload from{payload_.reserve(payload.size()),
                              static_cast<std::int64_t>(payload.size())};
    value_or_throw(device_->write(from.address, payload, nullptr));
    const rt::GpuAddress to = other_.reserve(out.size_bytes());
    timed([&] { return session_.decode({&from, 1}, {&to, 1}, step, nullptr); });
    collect();
    download(to, out);
  }

  void finish(std::span<float> sum, std::uint64_t step) override {
    const rt::GpuAddress from = upload(tensor_, sum);
    const rt::GpuAddress to = other_.reserve(sum.size_bytes());
    timed([&] { return session_.finish({&from, 1}, {&to, 1}, step, nullptr); });
    collect();
    download(to, sum);
  }

  void sync(rt::ConstTensorView gradient, std::span<float> update, std::uint64_t step,
            rt::RankExchange& ranks) override {
    rt::RankTurn turn(ranks, device_turns());
    const std::vector<float> values = to_f32(gradient);
    const rt::GpuAddress from = upload(tensor_, values);
    const rt::GpuAddress to = other_.reserve(update.size_bytes());
    timed([&] { return session_.sync({&from, 1}, {&to, 1}, step, nullptr, turn); });
    collect();
    download(to, update);
  }

  std::int64_t payload_bound(std::uint64_t step) override {
    return value_or_throw(session_.payload_bound(0, step));
  }
  void load_states(const std::string& path) override {
    const std::vector<std::uint8_t> file = value_or_throw(rt::read_state_file(path));
    value_or_throw(session_.set_states(0, file, nullptr), path);
  }
  void save_states(const std::string& path) override {
    write_file(path, value_or_throw(session_.states_as_bytes(0, nullptr), path));
  }
  std::vector<std::uint8_t> states_as_bytes() override {
    return value_or_throw(session_.states_as_bytes(0, nullptr));
  }
  std::optional<double> device_ms() const override { return device_ms_; }

 private:
  template <typename Call>
  void timed(const Call& call) {
    const auto start = std::chrono::steady_clock::now();
    value_or_throw(call());
    const rt::GpuDevice::Scope scope(*device_);
    value_or_throw(
        device_->status(device_->driver().stream_synchronize(nullptr), "waiting for the device"));
    const auto end = std::chrono::steady_clock::now();
    device_ms_ = std::chrono::duration<double, std::milli>(end - start).count();
  }

  rt::GpuTensorOutcome collect() {
    rt::GpuTensorOutcome outcome = value_or_throw(session_.collect(nullptr)).at(0);
    value_or_throw(outcome.status);
    return outcome;
  }

  rt::GpuAddress upload(DeviceBuffer& to, std::span<const float> values) {
    const rt::GpuAddress address = to.reserve(values.size_bytes());
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
    value_or_throw(device_->write(address, {bytes, values.size_bytes()}, nullptr));
    return address;
  }
  void download(rt::GpuAddress from, std::span<float> values) const {
    auto* bytes = reinterpret_cast<std::uint8_t*>(values.data());
    value_or_throw(device_->read({bytes, values.size_bytes()}, from, nullptr));
  }

  std::shared_ptr<const rt::GpuDevice> device_;
  rt::GpuSession session_;
  DeviceBuffer tensor_, other_, payload_;
  double device_ms_ = 0;
};

}  // namespace

std::shared_ptr<rt::GpuDevice> open_gpu(const ExecutionOptions& options, int ordinal) {
  const std::string place = "device '" + options.device + "'";
  if (options.device != "emulated") {
    const rt::GpuDriver* driver = value_or_throw(rt::open_cuda_driver(), place);
    return value_or_throw(rt::GpuDevice::open(*driver, ordinal), place);
  }
  emulator::GpuOptions gpu;
  gpu.schedule_seed = options.schedule_seed;
  return value_or_throw(rt::GpuDevice::open(emulator::start_driver(gpu)), place);
}

std::unique_ptr<Codec> open_gpu_codec(const std::shared_ptr<const rt::GpuProgram>& program,
                                      const std::vector<sema::Binding>& bindings,
                                      const RunOptions& options, Shape shape, std::uint32_t worker,
                                      std::uint32_t world) {
  rt::GpuSessionOptions session;
  session.tensors = {{.rows = shape.rows, .cols = shape.cols}};
  session.world = world;
  session.worker = worker;
  session.seed = options.seed;
  for (const sema::Binding& binding : bindings) {
    session.parameters.emplace_back(binding.name, binding.value);
  }
  return std::make_unique<GpuCodec>(program, session);
}

}  // namespace cinch::driver
