#include "runtime/sync/states/restore_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/call/joins.h"
#include "runtime/call/state_file.h"
#include "runtime/planner/planner.h"
#include "runtime/sync/task_facts.h"

namespace cinch::rt {
namespace {

Status check_saved(std::span<const RankCheckpoint> saved) {
  std::set<std::uint32_t> ranks;
  for (const RankCheckpoint& one : saved) {
    const RankCheckpoint& first = saved.front();
    if (one.next_step != first.next_step || one.world != first.world || one.plan != first.plan) {
      return invalid(fmt::format(
          "rank {} saved before step {} of {} on {} ranks, rank {} before step {} of {} on {}",
          first.rank, first.next_step, first.plan, first.world, one.rank, one.next_step, one.plan,
          one.world));
    }
    if (ranks.insert(one.rank).second) continue;
    return invalid(fmt::format("saved twice by rank {}", one.rank));
  }
  return Ok{};
}

// Do the states at this site belong to the rank whose gradients they come from?
bool is_of_rank(Site site) {
  return site == Site::Worker || site == Site::Hop;
}

// Has each rank of a world of the same size saved?
bool have_all_saved(const Plan& plan, std::span<const RankCheckpoint> saved) {
  return saved.size() == plan.world() && saved.front().world == plan.world();
}

std::set<std::int64_t> places(const std::vector<SavedPiece>& pieces, const PlanTensor& tensor) {
  std::set<std::int64_t> found;
  for (const SavedPiece& piece : pieces) {
    if (piece.tensor == tensor.name) found.insert(piece.first);
  }
  return found;
}

class Restorer {
 public:
  using Found = Result<std::optional<std::vector<std::uint8_t>>>;

  Restorer(const Plan& plan, std::uint32_t rank, std::span<const RankCheckpoint> saved,
           std::span<const std::uint32_t> apart)
      : plan_(plan), rank_(rank), saved_(saved), apart_(apart) {
    for (const Task& task : plan.ranks[rank].tasks) note_use(task);
  }

  // Finds new states for a site, which now has `own`; nothing: it begins anew.
  Found find(const SiteKey& key, const ProgramInfo& info, std::span<const std::uint8_t> own) {
    const Piece& piece = plan_.pieces[key.piece];
    // Its `finish` may use what encoding does not.
    if (info.has_finish && key.site == Site::Worker) used_.insert({key.piece, key.site});
    collect(plan_.tensors[piece.tensor], key.site);
    if (!reason_.empty()) return reset(key, reason_);
    const auto present = TRY(parse_states(own));
    for (const SavedSite* found : found_) {
      const auto of = TRY(parse_states(found->states));
      if (of.key.fingerprint != present.key.fingerprint)
        return reset(key, "saved by another program, or with other constants");
    }
    const auto whole = std::ranges::find_if(found_, [&](const SavedSite* site) {
      return site->first == piece.first && site->num_elems == piece.num_elems;
    });
    if (whole == found_.end()) return join(key, info, own);
    ++report.num_kept;
    return std::optional((*whole)->states);
  }

  void write_notes() {
    for (const auto& [what, pieces] : resets_) {
      report.notes.push_back(pieces == 1 ? what : fmt::format("{} ({} pieces)", what, pieces));
    }
    for (const RankCheckpoint& one : saved_) {
      const bool has_own = std::ranges::any_of(
          one.sites, [](const SavedSite& site) { return site.site == Site::Worker; });
      if (one.rank < plan_.world() || !has_own) continue;
      const std::string world =
          plan_.world() == 1 ? "is 1 rank" : fmt::format("are {} ranks", plan_.world());
      report.notes.push_back(
          fmt::format("rank {}: its states are left out: there {}", one.rank, world));
    }
    for (const auto& [what, why] : left_over()) {
      report.notes.push_back(fmt::format("{} is left over: {}", what, why));
    }
  }

  RestoreReport report;

 private:
  Found reset(const SiteKey& key, const std::string& why) {
    ++report.num_reset;
    const PlanTensor& tensor = plan_.tensors[plan_.pieces[key.piece].tensor];
    ++resets_[fmt::format("{}@{} begins anew: {}", tensor.name, site_name(key.site), why)];
    return std::nullopt;
  }

  // The states that a task changes. Those of a site where the rank only decodes, as an inner rank
  // of a tree does with gradients, are kept and never used.
  void note_use(const Task& task) {
    const bool has_program = task.kind == TaskKind::Part || task.kind == TaskKind::Synchronise;
    if (!has_program && (task.kind != TaskKind::Encode || is_dense(plan_, task))) return;
    const Site site = has_program ? Site::Worker : task.site;
    for (const std::uint32_t piece : pieces_of(plan_, task)) used_.insert({piece, site});
  }

  // Saved states that nothing uses, and why. For sites that move between ranks with the plan, only
  // those of tensors that no longer exist, or whose plan has no such site: another rank may have
  // used the others.
  std::map<std::string, std::string> left_over() {
    std::map<std::string, std::string> found;
    for (const RankCheckpoint& one : saved_) {
      for (const SavedSite& of : one.sites) {
        const std::string why = why_left(one, of);
        if (why.empty() || !holds_anything(of)) continue;
        found[fmt::format("{}@{}", of.tensor, site_name(of.site))] = why;
        if (one.rank == rank_) ++report.num_left;
      }
    }
    return found;
  }

  // Zeros are no loss: they are what most states begin with.
  static bool holds_anything(const SavedSite& of) {
    const auto file = parse_states(of.states);
    if (!file) return true;
    return std::ranges::any_of(file->states, [](const StateView& state) {
      return std::ranges::any_of(state.bytes, [](std::uint8_t byte) { return byte != 0; });
    });
  }

  std::string why_left(const RankCheckpoint& one, const SavedSite& of) const {
    const auto tensor = std::ranges::find(plan_.tensors, of.tensor, &PlanTensor::name);
    if (tensor == plan_.tensors.end()) return "there is no such tensor";
    const std::string& plan = tensor->plan.empty() ? plan_.name : tensor->plan;
    const bool is_of_sum = of.site == Site::Owner || of.site == Site::Return;
    if (is_of_sum && (tensor->codec == kDense || !encodes_sums(plan))) {
      return "sums are not encoded any more";
    }
    if (one.rank != rank_ || !is_of_rank(of.site)) return "";
    if (!asked_.contains(fmt::format("{}@{}", of.tensor, site_name(of.site)))) {
      return "the tensor keeps no states there";
    }
    if (one.plan == plan_of_sums(plan_) && one.world == plan_.world()) return "";
    std::int64_t taken = 0;
    for (const auto& [piece, site] : used_) {
      const Piece& present = plan_.pieces[piece];
      if (site != of.site || &plan_.tensors[present.tensor] != &*tensor) continue;
      const std::int64_t begin = std::max(present.first, of.first),
                         end = std::min(present.first + present.num_elems, of.first + of.num_elems);
      taken += std::max<std::int64_t>(0, end - begin);
    }
    if (taken >= of.num_elems) return "";
    return fmt::format("the rank encodes {} of {} elements there", taken, of.num_elems);
  }

  // Collects all states of the tensor that may go to the site on this rank, or the reason why there
  // are none.
  void collect(const PlanTensor& tensor, Site site) {
    asked_.insert(fmt::format("{}@{}", tensor.name, site_name(site)));
    found_.clear();
    reason_ = "nothing was saved";
    if (saved_.empty()) return;
    const auto place = static_cast<std::size_t>(&tensor - plan_.tensors.data());
    if (!apart_.empty() && apart_[place] != 0) {  // the tensor's states go together no more
      reason_ =
          have_all_saved(plan_, saved_)
              ? "ranks had divided its finish in another way"
              : fmt::format("its states go with those of all {} ranks that saved", saved_[0].world);
      return;
    }
    if (site == Site::Hop &&
        (saved_[0].plan != plan_of_sums(plan_) || saved_[0].world != plan_.world())) {
      reason_ = fmt::format("partial sums of {} on {} ranks were others", saved_[0].plan,
                            saved_[0].world);
      return;
    }
    bool has_other_shape = false;
    for (const RankCheckpoint& one : saved_) {
      if (is_of_rank(site) && one.rank != rank_) continue;
      for (const SavedSite& of : one.sites) {
        if (of.tensor != tensor.name || of.site != site) continue;
        const bool is_same = of.rows == tensor.rows && of.cols == tensor.cols;
        if (is_same) found_.push_back(&of);
        has_other_shape |= !is_same;
      }
    }
    if (!found_.empty()) reason_.clear();
    if (found_.empty() && has_other_shape) reason_ = "the tensor had another shape";
  }

  Found join(const SiteKey& key, const ProgramInfo& info, std::span<const std::uint8_t> own) {
    if (!has_elementwise_states(info)) return reset(key, "it was cut in another way");
    const Piece& piece = plan_.pieces[key.piece];
    std::vector<StateSlice> parts;
    parts.reserve(found_.size());
    for (const SavedSite* site : found_) {
      parts.push_back({site->first, site->num_elems, site->states});
    }
    auto joined = join_slices({piece.first, piece.num_elems, own}, parts);
    if (!joined && joined.error().kind == ErrorKind::InvalidArgument) {
      return reset(key, joined.error().message);
    }
    CINCH_TRY(joined);
    ++report.num_joined;
    return std::optional(std::move(*joined));
  }

  const Plan& plan_;
  std::uint32_t rank_;
  std::span<const RankCheckpoint> saved_;
  std::span<const std::uint32_t> apart_;  // by tensor
  std::vector<const SavedSite*> found_;   // for the current site
  std::string reason_;                    // why there are none
  std::map<std::string, int> resets_;     // pieces, by the note about them
  std::set<std::string> asked_;           // tensors and sites for which states were searched
  std::set<std::pair<std::uint32_t, Site>> used_;  // pieces, and sites whose states tasks change
};

// `after`, apart from pieces that the step has left as they were in `sites`.
std::vector<SavedSite> states_after(std::vector<SavedSite> after, std::span<const SavedSite> sites,
                                    const std::vector<SavedPiece>& left) {
  for (SavedSite& site : after) {
    if (std::ranges::find(left, SavedPiece{site.tensor, site.first}) == left.end()) continue;
    const auto before = std::ranges::find_if(sites, [&](const SavedSite& each) {
      return each.tensor == site.tensor && each.site == site.site && each.first == site.first;
    });
    if (before != sites.end()) site = *before;
  }
  return after;
}

}  // namespace

std::vector<std::string> take_newest_step(std::span<RankCheckpoint> saved) {
  if (saved.empty()) return {};
  const auto newest = std::ranges::max_element(saved, {}, [](const RankCheckpoint& one) {
    return std::pair(one.next_step, one.left.has_value());
  });
  const std::optional<std::vector<SavedPiece>> left = newest->left;
  std::vector<std::string> notes;
  for (RankCheckpoint& one : saved) {
    if (one.next_step + 1 != newest->next_step || !one.later || !left) continue;
    notes.push_back(
        fmt::format("rank {} did not learn how step {} ended: its states are those "
                    "after it, since rank {} completed it",
                    one.rank, one.next_step, newest->rank));
    one.sites = states_after(*one.later, one.sites, *left);
    ++one.next_step;
    one.left = left;
    one.later.reset();
  }
  return notes;
}

StatesFollow what_states_follow(const ProgramImage& image) {
  if (image.info.has_sync) return StatesFollow::Ranks;
  const Entry& finish = image.entries[static_cast<std::size_t>(EntryKind::Finish)];
  const bool changes_states =
      finish.commit_step != kNoIndex || std::ranges::any_of(finish.buffers, [&](BufferIndex b) {
        return image.buffers[b].role == BufferRole::StateNext;
      });
  return finish.present && changes_states ? StatesFollow::Sums : StatesFollow::Gradient;
}

std::vector<SavedPiece> finished_pieces(const Plan& plan, std::uint32_t rank,
                                        const std::vector<StatesFollow>& follow) {
  std::vector<SavedPiece> found;
  for (const Task& task : plan.ranks[rank].tasks) {
    if (task.kind != TaskKind::Finish) continue;
    for (const std::uint32_t piece : pieces_of(plan, task)) {
      const PlanTensor& tensor = plan.tensors[plan.pieces[piece].tensor];
      if (tensor.codec == kDense || follow[tensor.codec] != StatesFollow::Sums) continue;
      found.push_back({tensor.name, plan.pieces[piece].first});
    }
  }
  return found;
}

std::vector<std::uint32_t> tensors_apart(const Plan& plan, std::uint32_t rank,
                                         std::span<const RankCheckpoint> saved,
                                         const std::vector<StatesFollow>& follow) {
  std::vector<std::uint32_t> apart(plan.tensors.size());
  if (saved.empty()) return apart;
  const std::vector<SavedPiece> finished = finished_pieces(plan, rank, follow);
  const auto own = std::ranges::find(saved, rank, &RankCheckpoint::rank);
  for (std::size_t t = 0; t < apart.size(); ++t) {
    const PlanTensor& tensor = plan.tensors[t];
    if (tensor.codec == kDense || follow[tensor.codec] == StatesFollow::Gradient) continue;
    apart[t] = have_all_saved(plan, saved) && own != saved.end() ? 0 : 1;
    if (apart[t] != 0 || follow[tensor.codec] == StatesFollow::Ranks) continue;
    const std::set<std::int64_t> before = places(own->finished, tensor),
                                 now = places(finished, tensor);
    // All ranks finished all pieces, and do so again: then pieces may be others.
    const auto num_pieces =
        std::ranges::count_if(plan.pieces, [&](const Piece& piece) { return piece.tensor == t; });
    const bool finish_all = std::cmp_equal(now.size(), num_pieces) && !before.empty() &&
                            std::ranges::all_of(saved, [&](const RankCheckpoint& one) {
                              return places(one.finished, tensor) == before;
                            });
    apart[t] = before == now || finish_all ? 0 : 1;
  }
  return apart;
}

Status collect_states(const Plan& plan, const EverySite& every_site,
                      std::vector<SavedSite>& sites) {
  Status status = Ok{};
  every_site([&](const SiteKey& key, const SiteStates& states) {
    if (!status) return;
    auto bytes = states.as_bytes();
    if (!bytes) {
      status = tl::unexpected<Error>(bytes.error());
      return;
    }
    const Piece& piece = plan.pieces[key.piece];
    const PlanTensor& tensor = plan.tensors[piece.tensor];
    sites.push_back({tensor.name, tensor.rows, tensor.cols, key.site, piece.first, piece.num_elems,
                     std::move(*bytes)});
  });
  return status;
}

Result<RestoreReport> restore_states(const Plan& plan, std::uint32_t rank,
                                     const EverySite& every_site,
                                     std::span<const RankCheckpoint> saved,
                                     std::span<const std::uint32_t> apart,
                                     const std::function<Status()>& begin_anew) {
  Status status = check_saved(saved);
  Restorer restorer(plan, rank, saved, apart);
  std::vector<std::optional<std::vector<std::uint8_t>>> found, before;
  every_site([&](const SiteKey& key, const SiteStates& states) {
    if (!status) return;
    auto old = states.as_bytes();
    auto bytes = old ? restorer.find(key, states.info(), *old)
                     : Restorer::Found(tl::unexpected<Error>(old.error()));
    if (!bytes) {
      status = tl::unexpected<Error>(bytes.error());
      return;
    }
    found.push_back(std::move(*bytes));
    before.emplace_back(std::move(*old));
  });
  const auto set_all = [&](const auto& all) {
    std::size_t next = 0;
    every_site([&](const SiteKey& key, SiteStates& states) {
      const auto& bytes = all[next++];
      if (!bytes || !status) return;
      status = states.set(*bytes);
      if (status) return;
      status.error().message = fmt::format("{}@{}: {}", describe_piece(plan, key.piece),
                                           site_name(key.site), status.error().message);
    });
  };
  CINCH_TRY(status);
  if (restorer.report.num_reset > 0) status = begin_anew();
  set_all(found);
  if (!status) {
    const Error why = status.error();
    status = Ok{};
    set_all(before);
    return tl::unexpected<Error>(why);
  }
  restorer.write_notes();
  if (!saved.empty()) restorer.report.next_step = saved[0].next_step;
  return std::move(restorer.report);
}

}  // namespace cinch::rt
