// The tasks of one rank that compute, on CPUs: encoding, decoding and adding pieces, by compiled
// programs or, of tensors without one, as plain f32.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/session/session_list.h"
#include "runtime/sync/protocol_parts.h"
#include "runtime/sync/rank_tasks.h"
#include "runtime/sync/sum_tasks.h"
#include "runtime/sync/task_facts.h"

namespace cinch::rt {

struct ComputeOptions {
  std::vector<std::shared_ptr<const LoadedProgram>> programs;  // by codec
  std::uint32_t threads = 0;
  std::uint32_t world = 1, rank = 0;
  std::uint64_t seed = 0;
  const std::atomic<bool>* cancelled = nullptr;
};

class ComputeTasks : public RankTasks {
 public:
  /// Opens a session for each piece and site where this rank encodes or decodes. `plan` outlives
  /// this. Errors: those of Session::open.
  static Result<std::unique_ptr<RankTasks>> open(const Plan& plan, const ComputeOptions& options);

  Status set_parameter(std::uint32_t codec, std::string_view name, double value) override;
  Status begin_step(std::uint64_t step) override;
  Status run(const Task& task, PieceMemory& memory) override;
  Status synchronise(const Task& task, PieceMemory& memory, RankExchange& ranks) override;
  const ProtocolParts& protocols() const override { return protocols_; }
  Status end_step() override { return Ok{}; }
  void take_back_step() override;
  void take_back(std::uint32_t piece) override;
  Status make_nan(std::uint32_t piece, PieceMemory& memory) override;
  void visit_states(const SiteVisitor& visit) override;

 private:
  // The sessions of one codec at one site: an entry for each piece that has one.
  struct List {
    std::uint32_t codec = 0;
    Site site = Site::Worker;
    PieceList pieces;
    std::vector<std::size_t> entry;  // by piece; kNoPlace: none
    std::unique_ptr<SessionList> sessions;
    std::vector<bool> has_changed;                       // by entry, in this step
    bool keeps_copies = false;                           // states that cannot be taken back
    std::vector<std::vector<std::uint8_t>> kept_states;  // by entry: all, at the step's begin
  };

  ComputeTasks(const Plan& plan, const ComputeOptions& options)
      : plan_(plan),
        options_(options),
        runner_(options.threads),
        sums_of_payloads_(plan, options.world),
        protocols_(plan) {}

  Status open_lists();
  Status open_list(List& list);
  static void take_back_entry(List& list, std::size_t entry);
  void need(std::uint32_t codec, Site site, std::uint32_t group);
  List& list_of(std::uint32_t codec, Site site);
  /// Its pieces, until the next task runs.
  const PieceList& listed(const Task& task);
  ListCall call_on(const List& list, const PieceList& pieces);
  Status named(const ListStatus& status, const PieceList& pieces) const;

  class Body;
  Status run_part(const Task& task, PieceMemory& memory);
  Status clear(const PieceList& pieces, PieceMemory& memory);
  Status encode(const Task& task, PieceMemory& memory);
  Status encode_dense(const Task& task, PieceMemory& memory);
  Status make_rooms(const Task& task, PieceMemory& memory);
  void close_messages(const Task& task, PieceMemory& memory);
  /// Makes the layout that of a piece that is encoded here, in this step.
  Status lay_out(std::uint32_t piece, PayloadLayout& layout);
  Status decode(const Task& task, PieceMemory& memory);
  Status decode_payloads(const Task& task, const PieceList& pieces, PieceMemory& memory);
  Status decode_dense(const Task& task, PieceMemory& memory);
  Status add_gradient(const PieceList& pieces, PieceMemory& memory);
  Status finish(const Task& task, PieceMemory& memory);
  Status finish_dense(const PieceList& pieces, Value to, PieceMemory& memory);
  Result<std::span<const float>> gradient_as_f32(std::uint32_t piece, const PieceMemory& memory);

  const Plan& plan_;
  ComputeOptions options_;
  TaskRunner runner_;  // of what no program does
  std::map<std::pair<std::uint32_t, Site>, List> lists_;
  SumTasks sums_of_payloads_;
  ProtocolParts protocols_;
  std::uint64_t step_ = 0;

  // Of the running task; they keep their memory.
  PieceList pieces_, synchronised_;
  std::vector<std::size_t> which_;
  std::vector<ConstTensorView> inputs_;
  std::vector<TensorView> outputs_;
  std::vector<std::span<float>> sums_;
  std::vector<PayloadSlot> payload_slots_;
  std::vector<PayloadBytes> payloads_;
  std::vector<std::span<std::uint8_t>> rooms_;
  std::vector<std::size_t> bounds_, offsets_, sizes_;
  std::vector<float> converted_;
};

}  // namespace cinch::rt
