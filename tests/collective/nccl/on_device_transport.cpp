// Bodies of on_device_transport.h.
#include "tests/collective/nccl/on_device_transport.h"

#include <gtest/gtest.h>

namespace cinch::testing {
namespace {

std::span<std::uint8_t> span_at(const rt::GpuMemory& memory) {
  auto* const at = reinterpret_cast<std::uint8_t*>(memory.address());  // NOLINT
  return {at, memory.size_bytes()};
}

}  // namespace

OnDeviceTransport::OnDeviceTransport(rt::Transport& inner,
                                     std::shared_ptr<const rt::GpuDevice> device,
                                     std::function<void(rt::GpuStream)> delay)
    : ForwardingTransport(inner), device_(std::move(device)), delay_(std::move(delay)) {
  const rt::GpuDevice::Scope scope(*device_);
  EXPECT_EQ(device_->driver().stream_create(&stream_, rt::kGpuStreamNonBlocking), 0);
}

OnDeviceTransport::~OnDeviceTransport() {
  device_->driver().stream_destroy(stream_);
}

rt::Result<rt::GpuMemory> OnDeviceTransport::moved(std::span<const std::uint8_t> bytes) {
  auto memory = rt::GpuMemory::allocate(device_, bytes.size());
  if (!memory || bytes.empty()) return memory;
  const rt::Status status = device_->write(memory->address(), bytes, stream_);
  if (!status) return tl::unexpected<rt::Error>(status.error());
  return memory;
}

rt::Result<rt::Ticket> OnDeviceTransport::start(const rt::Exchange& exchange) {
  // Freeing and writing would wait for streams that wait for other ranks, so all of it comes before
  // the start.
  auto staged = rt::GpuMemory::allocate(device_, exchange.input.size());
  auto written = moved(exchange.input);
  auto output = moved(exchange.output);
  if (!staged || !written || !output) return tl::unexpected<rt::Error>(output.error());
  rt::Exchange on_device = exchange;
  on_device.place = rt::MemoryPlace::Device;
  on_device.after = stream_;
  on_device.input = span_at(*staged);
  on_device.output = span_at(*output);
  {
    const rt::GpuDevice::Scope scope(*device_);
    delay_(stream_);
    device_->driver().copy_on_device(staged->address(), written->address(), exchange.input.size(),
                                     stream_);
  }
  const auto ticket = ForwardingTransport::start(on_device);
  if (!ticket) return ticket;
  kept_.push_back(std::move(*written));
  under_way_.emplace_back(ticket->index, Moved{exchange, std::move(*staged), std::move(*output)});
  return ticket;
}

rt::Result<bool> OnDeviceTransport::test(rt::Ticket ticket) {
  auto is_over = ForwardingTransport::test(ticket);
  if (!is_over || !*is_over) return is_over;
  for (auto& [index, moved] : under_way_) {
    if (index != ticket.index || moved.is_over) continue;
    moved.is_over = true;
    const rt::Status status = device_->read(moved.exchange.output, moved.output.address(), stream_);
    if (!status) return tl::unexpected<rt::Error>(status.error());
  }
  return is_over;
}

}  // namespace cinch::testing
