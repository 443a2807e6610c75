// A transport that moves exchanges of the host's memory to memory of a device.
#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/gpu/device.h"
#include "tests/collective/support/forwarding_transport.h"

namespace cinch::testing {

/// What exchanges take is written there by a stream, behind work that `delay` puts on it: maybe a
/// while after the exchange was started. Memory is kept to the end, since giving it back waits for
/// the device.
class OnDeviceTransport : public ForwardingTransport {
 public:
  OnDeviceTransport(rt::Transport& inner, std::shared_ptr<const rt::GpuDevice> device,
                    std::function<void(rt::GpuStream)> delay);
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

  std::shared_ptr<const rt::GpuDevice> device_;
  std::function<void(rt::GpuStream)> delay_;
  rt::GpuStream stream_ = nullptr;
  std::vector<std::pair<std::uint32_t, Moved>> under_way_;  // by ticket
  std::vector<rt::GpuMemory> kept_;
};

}  // namespace cinch::testing
