// What gpu_bench measures: calls of programs, replayed from CUDA graphs, in turns with plain loops
// over as many bytes; and a list of tensors beside one tensor of the same size.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bench/rounds.h"
#include "tests/gpu/on_device.h"
#include "tests/gpu/plain_loops.h"

namespace cinch::testing {

/// How gradients and outputs lie in memory.
struct Lying {
  DType dtype = kF32;
  std::int64_t shift = 0;  // they begin so many elements behind an aligned place
};

/// A normal gradient in device memory, of deviation 0.01.
struct GradientOnDevice {
  rt::GpuAddress address = 0;
  std::int64_t num_elems = 0;
  Lying lying;
};
/// Of the largest of `sizes` for which the device has memory; `sizes` ascend.
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
  Traffic floor, moved;         // of the payload that there was
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
  /// All outlive the bench.
  Bench(const Stream& stream, const PlainLoops& loops, GradientOnDevice gradient,
        const bench::RoundLimits& limits);

  /// Has the device at work for so long, so that its clocks are as they will be.
  void warm_up(double seconds) const;
  /// Milliseconds of the traffic by plain loops.
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
