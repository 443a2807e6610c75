// Plain loops over a device's memory (plain_loops.cu): what it gives at best.
#pragma once
#include <filesystem>
#include <vector>

#include "tests/gpu/on_device.h"

namespace cinch::testing {

/// Bytes that a call has to move, and in how many sweeps.
struct Traffic {
  std::int64_t sweeps = 1, read = 0, written = 0;
};

class PlainLoops {
 public:
  /// `binary`: as compile_plain makes it.
  PlainLoops(const std::filesystem::path& binary, const Stream& stream);
  ~PlainLoops();
  PlainLoops(const PlainLoops&) = delete;
  PlainLoops& operator=(const PlainLoops&) = delete;

  /// The traffic as one graph, in equal sweeps, by each way of spreading the loop over the device:
  /// the fastest is the floor. Memory is of `memory`.
  std::vector<Graph> capture(const Traffic& traffic, Memory& memory) const;

 private:
  struct Way {
    rt::GpuFunction function;
    std::int64_t vectors_per_thread, most_blocks;
  };
  /// Throws where a loop writes less or more than asked for.
  void check() const;
  void enqueue(const Way& way, const Traffic& sweep, rt::GpuAddress from, rt::GpuAddress to) const;

  const Stream& stream_;
  rt::GpuModuleHandle module_ = nullptr;
  std::vector<Way> ways_;
};

}  // namespace cinch::testing
