// The correct results of plans, computed by sessions one after the other: no tasks, no messages, no
// threads.
#pragma once
#include <map>
#include <memory>
#include <tuple>

#include "runtime/session/session.h"
#include "tests/collective/support/sync_ranks.h"

namespace cinch::testing {

class SyncOracle {
 public:
  /// `ranks_per_machine`: for a hierarchical plan with the usual option, and `machine_ranks`.
  SyncOracle(const rt::Plan& plan, const Programs& programs, std::uint64_t seed,
             std::uint32_t ranks_per_machine = 1)
      : plan_(plan), programs_(programs), seed_(seed), on_each_(ranks_per_machine) {}

  /// Returns the updates by tensor; gradients are by rank, then by tensor.
  Tensors step(const std::vector<Tensors>& gradients, std::uint64_t step);

 private:
  using Values = std::vector<float>;
  using Bytes = std::vector<std::uint8_t>;

  Values piece_update(std::uint32_t piece, std::uint32_t owner);
  Values synchronised(std::uint32_t piece);
  Values gathered(std::uint32_t piece);
  Values summed(std::uint32_t piece);
  /// Are the payloads of an all-reduce added without being decoded?
  bool has_summed_payloads(std::uint32_t piece) const;
  Values along_the_ring(std::uint32_t piece, std::uint32_t owner);
  Values between_machines(std::uint32_t piece, std::uint32_t owner);
  Values partial_of_tree(std::uint32_t piece, std::uint32_t rank);
  Values again(std::uint32_t piece, std::uint32_t owner, const Values& result);

  /// Who encodes and decodes: a piece's own program, or what carries its sums.
  enum class Coder : std::uint8_t { Own, OfSums };
  const std::string& plan_of(std::uint32_t piece) const;
  bool is_dense(std::uint32_t piece) const;
  const rt::ProgramInfo& info_of(std::uint32_t piece) const;
  rt::CarrierKind carrier_of(std::uint32_t piece) const;
  /// Who encodes partial sums.
  Coder coder_of_sums(std::uint32_t piece) const;
  /// What a gradient is multiplied by before others add to it: see docs/sync_reference.md.
  float share(std::uint32_t piece) const;
  /// A rank's gradient as a part of a sum: as it is, or as it decodes.
  Values own_part(std::uint32_t piece, std::uint32_t rank);
  Values shared_gradient(std::uint32_t piece, std::uint32_t rank) const;
  rt::Session& session(std::uint32_t piece, std::uint32_t rank, rt::Site site,
                       Coder coder = Coder::Own);
  Values gradient(std::uint32_t piece, std::uint32_t rank) const;
  Bytes encode(std::uint32_t piece, std::uint32_t rank, rt::Site site, const Values& values,
               Coder coder = Coder::Own);
  /// sum += decoded.
  void decode_add(std::uint32_t piece, rt::Site site, const Bytes& payload, Values& sum,
                  Coder coder = Coder::Own);
  Values finish(std::uint32_t piece, std::uint32_t rank, Values sum);

  const rt::Plan& plan_;
  const Programs& programs_;
  std::uint64_t seed_;
  std::uint32_t on_each_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, rt::Site, Coder>, std::unique_ptr<rt::Session>>
      sessions_;
  const std::vector<Tensors>* gradients_ = nullptr;
  std::uint64_t step_ = 0;
};

}  // namespace cinch::testing
