// Ranks as threads over the double of NCCL, each with a device of its own, and their memory on it.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/collective/nccl_transport.h"
#include "tests/collective/forwarding_transport.h"
#include "tests/collective/nccl/double/control.h"

namespace cinch::testing {

/// One of the double's libraries, opened, and what it is asked for.
class NcclDouble {
 public:
  /// "nccl_double" or "nccl_double_old".
  static const NcclDouble& open(const std::string& name);

  std::string file;
  const rt::GpuDriver* driver = nullptr;
  NcclDoublePlantFn* plant = nullptr;
  NcclDoubleSleepFn* sleep = nullptr;
  NcclDoubleCountFn* num_registrations = nullptr;

  /// What was used wrongly since the last time.
  std::string wrong_uses() const;
  std::shared_ptr<const rt::GpuDevice> device(std::uint32_t rank) const;

 private:
  NcclDoubleWrongUsesFn* wrong_uses_ = nullptr;
};

/// Runs `body` on a thread for each rank with a transport that is opened and closed there. Fails
/// the test where one does not open, and where the library was used wrongly.
void run_nccl_ranks(const NcclDouble& library, std::uint32_t world,
                    const std::function<void(rt::Transport&)>& body, rt::NcclOptions options = {});

/// Moves exchanges of the host's memory to memory of the device: what they take is written there by
/// a stream, a while after the exchange was started. Its
/// memory is kept to the end, since giving it back waits for the device.
class OnDeviceTransport : public ForwardingTransport {
 public:
  OnDeviceTransport(rt::Transport& inner, const NcclDouble& library);
  ~OnDeviceTransport() override;
  rt::Result<rt::Ticket> start(const rt::Exchange& exchange) override;
  rt::Result<bool> test(rt::Ticket ticket) override;

 private:
  struct Moved {
    rt::Exchange exchange;  // of the host
    rt::GpuMemory input, output;
    bool is_over = false;
  };
  rt::Result<rt::GpuMemory> moved(std::span<const std::uint8_t> bytes);

  const NcclDouble& library_;
  std::shared_ptr<const rt::GpuDevice> device_;
  rt::GpuStream stream_ = nullptr;
  std::vector<std::pair<std::uint32_t, Moved>> under_way_;  // by ticket
  std::vector<rt::GpuMemory> kept_;
};

}  // namespace cinch::testing
