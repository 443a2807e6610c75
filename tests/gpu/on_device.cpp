// Bodies of on_device.h.
#include "tests/gpu/on_device.h"

#include <algorithm>
#include <utility>

#include "codegen/emulator/driver.h"
#include "runtime/image/image_file.h"

namespace cinch::testing {

void throw_error(const std::string& what, const rt::Error& error) {
  const std::string text = what + ": " + error.message;
  if (error.kind == rt::ErrorKind::OutOfMemory) throw OutOfMemory(text);
  throw std::runtime_error(text);
}

std::vector<std::string> comma_separated(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::shared_ptr<const rt::GpuDevice> open_device(std::string_view name,
                                                 std::size_t emulated_memory_bytes) {
  const rt::GpuDriver* driver =
      name == "emulated" ? &emulator::start_driver({.memory_bytes = emulated_memory_bytes})
                         : value_or_throw(rt::open_cuda_driver(), "the driver");
  return value_or_throw(rt::GpuDevice::open(*driver), "the device");
}

std::shared_ptr<const rt::GpuProgram> load_gpu_program(
    const std::filesystem::path& image, const std::shared_ptr<const rt::GpuDevice>& device) {
  const std::string name = image.string();
  return value_or_throw(rt::GpuProgram::load(device, value_or_throw(rt::load_image(image), name)),
                        name);
}

rt::GpuAddress Memory::hold(const void* bytes, std::size_t size_bytes) {
  auto made = value_or_throw(rt::GpuMemory::allocate(device_, std::max<std::size_t>(size_bytes, 1)),
                             "memory");
  const rt::GpuAddress at = held_.emplace_back(std::move(made)).address();
  if (bytes != nullptr) write(at, bytes, size_bytes);
  return at;
}

void Memory::write(rt::GpuAddress at, const void* bytes, std::size_t size_bytes) const {
  ok_or_throw(device_->write(at, {static_cast<const std::uint8_t*>(bytes), size_bytes}, nullptr),
              "a copy");
}

std::vector<std::uint8_t> Memory::read(rt::GpuAddress at, std::size_t size_bytes) const {
  std::vector<std::uint8_t> bytes(size_bytes);
  ok_or_throw(device_->read(bytes, at, nullptr), "a copy");
  return bytes;
}

Stream::Stream(std::shared_ptr<const rt::GpuDevice> device) : device_(std::move(device)) {
  constexpr unsigned kNonBlocking = 1;
  const rt::GpuDevice::Scope scope(*device_);
  ok_or_throw(device_->status(device_->driver().stream_create(&stream_, kNonBlocking), "creating"),
              "a stream");
}

Stream::~Stream() {
  const rt::GpuDevice::Scope scope(*device_);
  device_->driver().stream_destroy(stream_);
}

void Stream::wait() const {
  const rt::GpuDevice::Scope scope(*device_);
  ok_or_throw(device_->status(device_->driver().stream_synchronize(stream_), "waiting"),
              "the stream");
}

Graph::Graph(const Stream& stream, const std::function<void()>& enqueue) : stream_(&stream) {
  const rt::GpuDevice& device = *stream.device();
  const rt::GpuDriver& driver = device.driver();
  const rt::GpuDevice::Scope scope(device);
  ok_or_throw(device.status(driver.capture_begin(stream.get(), 0), "beginning"), "a capture");
  enqueue();
  ok_or_throw(device.status(driver.capture_end(stream.get(), &graph_), "ending"), "a capture");
  ok_or_throw(device.status(driver.graph_instantiate(&exec_, graph_, 0), "instantiating"),
              "a graph");
}

Graph::~Graph() {
  const rt::GpuDriver& driver = stream_->device()->driver();
  const rt::GpuDevice::Scope scope(*stream_->device());
  if (exec_ != nullptr) driver.graph_exec_destroy(exec_);
  if (graph_ != nullptr) driver.graph_destroy(graph_);
}

Graph::Graph(Graph&& other) noexcept
    : stream_(other.stream_),
      graph_(std::exchange(other.graph_, nullptr)),
      exec_(std::exchange(other.exec_, nullptr)) {}

void Graph::replay() const {
  const rt::GpuDevice& device = *stream_->device();
  const rt::GpuDevice::Scope scope(device);
  ok_or_throw(device.status(device.driver().graph_launch(exec_, stream_->get()), "a replay"),
              "a graph");
}

}  // namespace cinch::testing
