// The tasks of one rank that compute: encoding, decoding and adding pieces, by compiled programs
// or, of tensors without one, as plain f32.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collective/rank_exchange.h"
#include "runtime/plan/plan.h"
#include "runtime/session/session_list.h"
#include "runtime/session/summed_arrays.h"
#include "runtime/sync/piece_memory.h"
#include "runtime/sync/site_states.h"

namespace cinch::rt {

struct ComputeOptions {
  std::vector<std::shared_ptr<const LoadedProgram>> programs;  // by codec
  std::uint32_t threads = 0;
  std::uint32_t world = 1, rank = 0;
  std::uint64_t seed = 0;
  const std::atomic<bool>* cancelled = nullptr;
};

class ComputeTasks {
 public:
  /// Opens a session for each piece and site where this rank encodes or decodes. `plan` outlives
  /// this. Errors: those of Session::open.
  static Result<std::unique_ptr<ComputeTasks>> open(const Plan& plan,
                                                    const ComputeOptions& options);

  /// Of one codec's programs. Errors: those of Session::set_parameter.
  Status set_parameter(std::uint32_t codec, std::string_view name, double value);

  /// What must be done before the first task of a step. Errors: InvalidArgument (a payload of this
  /// step may be longer than the plan has room for), those of Session::payload_bound.
  Status begin_step(std::uint64_t step);
  /// Runs a task that is no exchange. Errors: those of the sessions, CorruptPayload.
  Status run(const Task& task, PieceMemory& memory);
  /// The protocol of a program with a `sync`. Errors: those of Session::sync.
  Status synchronise(const Task& task, PieceMemory& memory, RankExchange& ranks);
  /// All states become what they were before the step.
  void take_back_step();

  /// All states that this rank keeps.
  void visit_states(const SiteVisitor& visit);

 private:
  // The sessions of one codec at one site: an entry for each piece that has one.
  struct List {
    std::uint32_t codec = 0;
    Site site = Site::Worker;
    std::vector<std::uint32_t> pieces;
    std::vector<std::size_t> entry;  // by piece; kNoPlace: none
    std::unique_ptr<SessionList> sessions;
    std::vector<bool> has_changed;                       // by entry, in this step
    bool keeps_copies = false;                           // states that cannot be taken back
    std::vector<std::vector<std::uint8_t>> kept_states;  // by entry: all, at the step's begin
  };
  using Pieces = std::vector<std::uint32_t>;

  ComputeTasks(const Plan& plan, const ComputeOptions& options)
      : plan_(plan), options_(options), runner_(options.threads) {}

  Status open_lists();
  Status open_list(List& list);
  void need(std::uint32_t codec, Site site, std::uint32_t group);
  Site decoding_site(std::uint32_t codec, Site encoded_at) const;
  List& list_of(std::uint32_t codec, Site site);
  ListCall call_on(const List& list, const Pieces& pieces);
  Status named(const ListStatus& status, const Pieces& pieces) const;

  Status clear(const Pieces& pieces, PieceMemory& memory);
  Status encode(const Task& task, PieceMemory& memory);
  Status encode_dense(const Task& task, PieceMemory& memory);
  Status make_rooms(const Task& task, PieceMemory& memory);
  void close_messages(const Task& task, PieceMemory& memory);
  Status spread(const Task& task, PieceMemory& memory);
  Status join(const Task& task, PieceMemory& memory);
  /// Sets layout_ and arrays_ to the piece's, which follow the ones before. Errors:
  /// InvalidArgument (the plan has other arrays).
  Status arrays_of(const SummedArrays& summed, std::uint32_t piece,
                   std::span<const std::uint32_t> slots, PieceMemory& memory);
  Result<const SummedArrays*> summed_of(const Task& task) const;
  Status decode(const Task& task, PieceMemory& memory);
  Status decode_payloads(const Task& task, const Pieces& pieces, PieceMemory& memory);
  Status decode_dense(const Task& task, PieceMemory& memory);
  Status add_gradient(const Pieces& pieces, PieceMemory& memory);
  Status finish(const Task& task, PieceMemory& memory);
  Status finish_dense(const Pieces& pieces, Value to, PieceMemory& memory);
  /// Adds the payloads of a message, which may be hostile, to `payloads_`.
  Status split_message(const Pieces& pieces, std::span<const std::uint8_t> message);
  Result<std::span<const float>> gradient_as_f32(std::uint32_t piece, const PieceMemory& memory);
  Pieces pieces_of(const Task& task) const;
  std::uint32_t codec_of(const Task& task) const { return plan_.groups[task.groups[0]].codec; }
  bool is_dense(const Task& task) const { return task.is_dense || codec_of(task) == kDense; }

  const Plan& plan_;
  ComputeOptions options_;
  TaskRunner runner_;  // of what no program does
  std::map<std::pair<std::uint32_t, Site>, List> lists_;
  std::uint64_t step_ = 0;

  // Of the running task; they keep their memory.
  std::vector<std::size_t> which_;
  std::vector<ConstTensorView> inputs_;
  std::vector<TensorView> outputs_;
  std::vector<std::span<float>> sums_;
  std::vector<PayloadSlot> payload_slots_;
  std::vector<PayloadBytes> payloads_;
  std::vector<std::span<std::uint8_t>> rooms_;
  std::vector<std::size_t> bounds_, offsets_, sizes_;
  std::vector<float> converted_;
  std::vector<std::optional<SummedArrays>> summed_;  // by codec
  PayloadLayout layout_;
  std::vector<std::span<std::uint8_t>> arrays_;
  std::vector<std::size_t> next_bytes_;  // by array
};

}  // namespace cinch::rt
