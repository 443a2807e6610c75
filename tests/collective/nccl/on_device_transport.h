// A transport that moves exchanges of host memory to memory of a device.
#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/gpu/device.h"
#include "tests/collective/support/forwarding_transport.h"

namespace cinch::testing {

/// A stream writes the inputs of exchanges to the device, behind work that `delay` puts on it, so
/// perhaps some time after the exchange was started. Memory is kept to the end, since freeing it
/// waits for the device.
class OnDeviceTransport : public ForwardingTransport {
 public:
  OnDeviceTransport(rt::Transport& inner, std::shared_ptr<const rt::GpuDevice> device,
                    std::function<void(rt::GpuStream)> delay);
  ~OnDeviceTransport() override;
  rt::Result<rt::Ticket> start(const rt::Exchange& exchange) override;
  rt::Result<bool> test(rt::Ticket ticket) override;

 private:
  struct Moved {
    rt::Exchange exchange;  // with host memory
    rt::GpuMemory input, output;
    bool is_over = false;
  };
  rt::Result<rt::GpuMemory> moved(std::span<const std::uint8_t> bytes);

  std::shared_ptr<const rt::GpuDevice> device_;
  std::function<void(rt::GpuStream)> delay_;
  rt::GpuStream stream_ = nullptr;
  std::vector<std::pair<std::uint32_t, Moved>> under_way_;  // by ticket
  std::vector<rt::GpuMemory> kept_;
};

}  // namespace cinch::testing
