// What programs for a machine with a GPU share: the device, memory on it, captured graphs, and
// images from a folder that prepare.py made. Failures throw std::runtime_error; too little memory
// on the device throws OutOfMemory.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/gpu/session/session.h"

namespace cinch::testing {

struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void throw_error(const std::string& what, const rt::Error& error);

template <typename T>
T value_or_throw(rt::Result<T> result, const std::string& what) {
  if (!result) throw_error(what, result.error());
  return std::move(*result);
}
inline void ok_or_throw(const rt::Status& status, const std::string& what) {
  if (!status) throw_error(what, status.error());
}

/// "a,b" as a and b; nothing for an empty text.
std::vector<std::string> comma_separated(std::string_view text);

/// `name`: cuda, or emulated with this much memory.
std::shared_ptr<const rt::GpuDevice> open_device(std::string_view name,
                                                 std::size_t emulated_memory_bytes);

std::shared_ptr<const rt::GpuProgram> load_gpu_program(
    const std::filesystem::path& image, const std::shared_ptr<const rt::GpuDevice>& device);

/// Memory that lives as long as this.
class Memory {
 public:
  explicit Memory(std::shared_ptr<const rt::GpuDevice> device) : device_(std::move(device)) {}
  /// Allocates memory; copies `bytes` to it unless null.
  rt::GpuAddress hold(const void* bytes, std::size_t size_bytes);
  void write(rt::GpuAddress at, const void* bytes, std::size_t size_bytes) const;
  std::vector<std::uint8_t> read(rt::GpuAddress at, std::size_t size_bytes) const;

 private:
  std::shared_ptr<const rt::GpuDevice> device_;
  std::vector<rt::GpuMemory> held_;
};

class Stream {
 public:
  explicit Stream(std::shared_ptr<const rt::GpuDevice> device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  rt::GpuStream get() const { return stream_; }
  const std::shared_ptr<const rt::GpuDevice>& device() const { return device_; }
  void wait() const;

 private:
  std::shared_ptr<const rt::GpuDevice> device_;
  rt::GpuStream stream_ = nullptr;
};

/// The captured work of a call, for replays on the same stream, which outlives this.
class Graph {
 public:
  Graph(const Stream& stream, const std::function<void()>& enqueue);
  ~Graph();
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&&) = delete;
  void replay() const;
  const Stream& stream() const { return *stream_; }

 private:
  const Stream* stream_;
  rt::GpuGraph graph_ = nullptr;
  rt::GpuGraphExec exec_ = nullptr;
};

}  // namespace cinch::testing
