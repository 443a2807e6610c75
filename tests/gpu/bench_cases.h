// The measurements of gpu_bench: calls of programs, replayed from CUDA graphs, in turns with plain
// loops over as many bytes; and a list of tensors compared with one tensor of the same size.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bench/tuning_search.h"
#include "tests/gpu/on_device.h"
#include "tests/gpu/plain_loops.h"

namespace cinch::testing {

/// Placement of gradients and outputs in memory.
struct Lying {
  DType dtype = kF32;
  std::int64_t shift = 0;  // number of elements by which they begin after an aligned place
};

/// A normal gradient in device memory, of deviation 0.01.
struct GradientOnDevice {
  rt::GpuAddress address = 0;
  std::int64_t num_elems = 0;
  Lying lying;
};
/// A gradient of the largest of `sizes` that fits the device's memory; `sizes` ascend.
GradientOnDevice make_gradient_on_device(std::span<const std::int64_t> sizes, const Lying& lying,
                                         Memory& memory);

struct CallCost {
  Traffic floor, moved;  // of a payload at its bound
};

struct Case {
  std::string program;
  std::vector<std::pair<std::string, double>> settings;
  std::int64_t num_elems = 0;
  std::map<std::string, CallCost> calls;  // "encode", "decode"
};

struct CallTimes {
  std::string call;
  double ms = 0, floor_ms = 0;  // medians
  Traffic floor, moved;         // for the actual payload
  std::int64_t payload_bytes = 0;
  std::size_t num_launches = 0;
  int rounds = 0;
};

struct ListTimes {
  std::string call;
  double ms = 0, one_ms = 0;  // medians: of the list, of one tensor
};

class Bench {
 public:
  /// All arguments outlive the bench.
  Bench(const Stream& stream, const PlainLoops& loops, GradientOnDevice gradient,
        const bench::RoundLimits& limits);

  /// Keeps the device busy for this long, so that its clocks reach their normal rate.
  void warm_up(double seconds) const;
  /// Milliseconds that plain loops need for the traffic.
  double plain_ms(const Traffic& traffic) const;
  std::vector<CallTimes> measure(const std::shared_ptr<const rt::GpuProgram>& program,
                                 const Case& wanted) const;
  std::vector<ListTimes> measure_list(const std::shared_ptr<const rt::GpuProgram>& program,
                                      const std::vector<std::int64_t>& sizes) const;

 private:
  bench::Rounds take_turns(const std::vector<const Graph*>& graphs) const;
  void require(std::int64_t num_elems) const;
  rt::GpuSessionOptions session_options(const std::vector<std::int64_t>& sizes) const;

  const Stream& stream_;
  const PlainLoops& loops_;
  GradientOnDevice gradient_;
  bench::RoundLimits limits_;
};

}  // namespace cinch::testing
