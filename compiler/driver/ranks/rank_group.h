// Ranks that are threads of this process.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "compiler/driver/codecs/codec.h"

namespace cinch::driver {

// Calls body(rank) for all ranks at once and returns when all have ended. Throws what one of them
// has thrown. Errors of a rank itself take precedence over errors caused by another rank.
void run_on_rank_threads(std::uint32_t world, const std::function<void(std::uint32_t)>& body);

/// The ranks of one tensor in one process: one thread each, which meet in memory.
class RankGroup {
 public:
  RankGroup(const CodecFactory& factory, Shape shape, std::uint32_t world);

  /// Runs one step of a program with a `sync`; gradients and updates by rank. Throws the
  /// CommandError of the lowest rank that failed by itself.
  std::vector<std::vector<float>> sync(std::span<const rt::ConstTensorView> gradients,
                                       std::uint64_t step);
  /// Bytes that a rank gave to collectives in the last step: the maximum over ranks.
  std::uint64_t sent_bytes() const { return sent_bytes_; }
  Codec& codec(std::uint32_t rank) { return *codecs_.at(rank); }
  std::uint32_t world() const { return static_cast<std::uint32_t>(codecs_.size()); }

 private:
  std::vector<std::unique_ptr<Codec>> codecs_;
  std::uint64_t sent_bytes_ = 0;
};

}  // namespace cinch::driver
