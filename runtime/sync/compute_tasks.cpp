// Opening, and what is done with states; the tasks themselves are in run_tasks.cpp.
#include "runtime/sync/compute_tasks.h"

#include <fmt/format.h>

#include "runtime/call/entries.h"
#include "runtime/session/tensor_convert.h"

namespace cinch::rt {
namespace {

// The bytes of all states one behind the other, in memory that is kept.
Status keep_states(const Session& session, std::vector<std::uint8_t>& kept) {
  kept.clear();
  for (std::uint32_t i = 0; i < session.info().states.size(); ++i) {
    const auto state = session.state(i);
    if (!state) return tl::unexpected<Error>(state.error());
    kept.insert(kept.end(), state->begin(), state->end());
  }
  return Ok{};
}

// Nothing where nothing was kept: the step had not come so far.
void put_states_back(std::span<const std::uint8_t> kept, Session& session) {
  for (std::uint32_t i = 0; i < session.info().states.size(); ++i) {
    const auto state = session.state(i);
    if (!state || kept.size() < state->size()) return;
    // The bytes came from these very states and so have their size.
    (void)session.set_state(i, kept.first(state->size()));
    kept = kept.subspan(state->size());
  }
}

class SessionStates : public SiteStates {
 public:
  explicit SessionStates(Session& session) : session_(session) {}
  const ProgramInfo& info() const override { return session_.info(); }
  Result<std::vector<std::uint8_t>> as_bytes() const override { return session_.states_as_bytes(); }
  Status set(std::span<const std::uint8_t> bytes) override { return session_.set_states(bytes); }

 private:
  Session& session_;
};

}  // namespace

Result<std::unique_ptr<RankTasks>> ComputeTasks::open(const Plan& plan,
                                                      const ComputeOptions& options) {
  std::unique_ptr<ComputeTasks> tasks(new ComputeTasks(plan, options));
  if (Status status = tasks->open_lists(); !status) return tl::unexpected<Error>(status.error());
  return tasks;
}

void ComputeTasks::need(std::uint32_t codec, Site site, std::uint32_t group) {
  List& list = lists_[{codec, site}];
  list.codec = codec;
  list.site = site;
  list.entry.resize(plan_.pieces.size(), kNoPlace);
  for (const std::uint32_t piece : plan_.groups[group].pieces) {
    if (list.entry[piece] != kNoPlace) continue;
    list.entry[piece] = list.pieces.size();
    list.pieces.push_back(piece);
  }
}

Status ComputeTasks::open_lists() {
  for (const auto& program : options_.programs) {
    sums_of_payloads_.add_codec(program->info());
  }
  for (const Task& task : plan_.ranks[options_.rank].tasks) {
    for (const std::uint32_t group : task.groups) {
      const std::uint32_t codec = plan_.groups[group].codec;
      if (codec == kDense || task.is_dense) continue;
      for (const Site site : sites_of(task, options_.programs[codec]->info())) {
        need(codec, site, group);
      }
    }
  }
  for (auto& [key, list] : lists_) {
    if (Status status = open_list(list); !status) return status;
  }
  return Ok{};
}

Status ComputeTasks::open_list(List& list) {
  const auto& program = options_.programs[list.codec];
  SessionOptions common;
  common.threads = options_.threads;
  common.world = options_.world;
  common.worker = options_.rank;
  common.seed = site_seed(options_.seed, list.site);
  common.cancelled = options_.cancelled;
  std::vector<ListTensor> tensors;
  for (const std::uint32_t piece : list.pieces) {
    const Piece& of = plan_.pieces[piece];
    const PlanTensor& tensor = plan_.tensors[of.tensor];
    const bool is_matrix = program->info().is_matrix;
    tensors.push_back({is_matrix ? tensor.rows : of.num_elems, is_matrix ? tensor.cols : 1,
                       of.tensor, of.number});
  }
  auto sessions = SessionList::open(program, common, tensors);
  if (!sessions) return named(tl::unexpected<ListError>(sessions.error()), list.pieces);
  list.sessions = std::make_unique<SessionList>(std::move(*sessions));
  list.has_changed.assign(list.pieces.size(), false);
  list.keeps_copies = needs_copies_of_states(program->image());
  list.kept_states.resize(list.keeps_copies ? list.pieces.size() : 0);
  return Ok{};
}

Status ComputeTasks::named(const ListStatus& status, const PieceList& pieces) const {
  if (status) return Ok{};
  Error error = status.error().error;
  if (status.error().place < pieces.size()) {
    error.message = describe_piece(plan_, pieces[status.error().place]) + ": " + error.message;
  }
  return tl::unexpected<Error>(std::move(error));
}

ComputeTasks::List& ComputeTasks::list_of(std::uint32_t codec, Site site) {
  return lists_.at({codec, site});
}

Status ComputeTasks::set_parameter(std::uint32_t codec, std::string_view name, double value) {
  for (auto& [key, list] : lists_) {
    if (key.first != codec) continue;
    if (Status status = list.sessions->set_parameter(name, value); !status) return status;
  }
  return Ok{};
}

Status ComputeTasks::begin_step(std::uint64_t step) {
  step_ = step;
  protocols_.begin_step();
  for (auto& [key, list] : lists_) {
    list.has_changed.assign(list.pieces.size(), false);
    for (std::size_t i = 0; i < list.pieces.size(); ++i) {
      const Session& session = (*list.sessions)[i];
      if (list.keeps_copies) {
        if (Status status = keep_states(session, list.kept_states[i]); !status) return status;
      }
      if (session.info().has_sync) continue;
      const auto bound = session.payload_bound(step);
      if (!bound) return tl::unexpected<Error>(bound.error());
      if (Status status = check_room(plan_, list.pieces[i], *bound, step); !status) return status;
    }
  }
  return Ok{};
}

void ComputeTasks::take_back_entry(List& list, std::size_t entry) {
  Session& session = (*list.sessions)[entry];
  if (list.keeps_copies) {
    put_states_back(list.kept_states[entry], session);
  } else if (list.has_changed[entry]) {
    (void)session.take_back();  // no one else has the session
  }
  list.has_changed[entry] = false;
}

void ComputeTasks::take_back_step() {
  for (auto& [key, list] : lists_) {
    for (std::size_t i = 0; i < list.pieces.size(); ++i) take_back_entry(list, i);
  }
}

void ComputeTasks::take_back(std::uint32_t piece) {
  for (auto& [key, list] : lists_) {
    if (list.entry[piece] != kNoPlace) take_back_entry(list, list.entry[piece]);
  }
}

Status ComputeTasks::make_nan(std::uint32_t piece, PieceMemory& memory) {
  return fill_nan(memory.update(piece), runner_, nullptr);
}

void ComputeTasks::visit_states(const SiteVisitor& visit) {
  for (auto& [key, list] : lists_) {
    if (options_.programs[key.first]->info().states.empty()) continue;
    for (std::size_t i = 0; i < list.pieces.size(); ++i) {
      SessionStates states((*list.sessions)[i]);
      visit({list.pieces[i], key.second}, states);
    }
  }
}

}  // namespace cinch::rt
