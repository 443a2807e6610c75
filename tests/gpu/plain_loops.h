// Plain loops over a device's memory (plain_loops.cu): the best that it can do.
#pragma once
#include <filesystem>
#include <vector>

#include "tests/gpu/on_device.h"

namespace cinch::testing {

/// The bytes that a call must move, and the number of sweeps.
struct Traffic {
  std::int64_t sweeps = 1, read = 0, written = 0;
};

class PlainLoops {
 public:
  /// `binary`: from compile_plain.
  PlainLoops(const std::filesystem::path& binary, const Stream& stream);
  ~PlainLoops();
  PlainLoops(const PlainLoops&) = delete;
  PlainLoops& operator=(const PlainLoops&) = delete;

  /// The traffic as one graph, in equal sweeps, for each way to spread the loop over the device;
  /// the fastest is the floor. Memory comes from `memory`.
  std::vector<Graph> capture(const Traffic& traffic, Memory& memory) const;

 private:
  struct Way {
    rt::GpuFunction function;
    std::int64_t vectors_per_thread, most_blocks;
  };
  /// Throws if a loop writes more or less than requested.
  void check() const;
  void enqueue(const Way& way, const Traffic& sweep, rt::GpuAddress from, rt::GpuAddress to) const;

  const Stream& stream_;
  rt::GpuModuleHandle module_ = nullptr;
  std::vector<Way> ways_;
};

}  // namespace cinch::testing
