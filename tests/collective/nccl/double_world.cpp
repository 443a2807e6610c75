// Bodies of double_world.h.
#include "tests/collective/nccl/double_world.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <thread>

namespace cinch::testing {
namespace {

template <typename F>
void find_in(void* library, F*& function, const char* name) {
  function = reinterpret_cast<F*>(::dlsym(library, name));
  ASSERT_NE(function, nullptr) << name;
}

std::span<std::uint8_t> span_at(const rt::GpuMemory& memory) {
  auto* const at = reinterpret_cast<std::uint8_t*>(memory.address());  // NOLINT
  return {at, memory.size_bytes()};
}

}  // namespace

const NcclDouble& NcclDouble::open(const std::string& name) {
  static std::map<std::string, NcclDouble> opened;
  NcclDouble& made = opened[name];
  if (made.driver != nullptr) return made;
  made.file = std::string(NCCL_DOUBLE_FOLDER) + "/lib" + name + ".so";
  void* const library = ::dlopen(made.file.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << ::dlerror();
  NcclDoubleDriverFn* driver = nullptr;
  find_in(library, driver, "nccl_double_driver");
  find_in(library, made.plant, "nccl_double_plant");
  find_in(library, made.sleep, "nccl_double_sleep");
  find_in(library, made.num_registrations, "nccl_double_registrations");
  find_in(library, made.wrong_uses_, "nccl_double_wrong_uses");
  made.driver = driver();
  return made;
}

std::string NcclDouble::wrong_uses() const {
  std::array<char, 1000> text{};
  wrong_uses_(text.data(), text.size());
  return text.data();
}

std::shared_ptr<const rt::GpuDevice> NcclDouble::device(std::uint32_t rank) const {
  auto device = rt::GpuDevice::open(*driver, static_cast<int>(rank));
  EXPECT_TRUE(device) << device.error().message;
  return *device;
}

void run_nccl_ranks(const NcclDouble& library, std::uint32_t world,
                    const std::function<void(rt::Transport&)>& body, rt::NcclOptions options) {
  options.library = library.file;
  const auto id = rt::make_nccl_id(library.file);
  ASSERT_TRUE(id) << id.error().message;
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank, options]() mutable {
      options.device = library.device(rank);
      const auto transport = rt::open_nccl_transport(*id, rank, world, options);
      ASSERT_TRUE(transport) << transport.error().message;
      body(**transport);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(library.wrong_uses(), "");
}

OnDeviceTransport::OnDeviceTransport(rt::Transport& inner, const NcclDouble& library)
    : ForwardingTransport(inner), library_(library), device_(library.device(inner.rank())) {
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
  // Freeing and writing would wait for streams that wait for other ranks: all before the start.
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
    library_.sleep(stream_, 1);
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
