// Bodies of device_lists.h.
#include "runtime/sync/device/device_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace cinch::rt {

void DeviceList::add(std::uint32_t piece) {
  entries.resize(std::max<std::size_t>(entries.size(), piece + 1), kNoEntry);
  entries[piece] = static_cast<std::uint32_t>(pieces.size());
  pieces.push_back(piece);
}

void DeviceLists::need(const Task& task) {
  for (const std::uint32_t group : task.groups) {
    const std::uint32_t codec = plan_.groups[group].codec;
    const PieceList& pieces = plan_.groups[group].pieces;
    if (codec == kDense || task.is_dense) continue;
    for (const Site site : sites_of(task, device_.info(codec))) {
      for (const std::uint32_t piece : pieces) {
        DeviceList& list =
            lists_[key_of(codec, site, device_.info(codec).has_sync ? piece : pieces[0])];
        if (!list.has(piece)) list.add(piece);
      }
    }
  }
}

// Sites draw differently, unless a program's carrier shall draw what ranks drew for their
// gradients: then the program draws it for sums of machines, too.
std::uint64_t DeviceLists::seed_at(std::uint32_t codec, Site site) const {
  const bool shares = device_.info(carried_[codec].value_or(codec)).carrier.shares_draws;
  return shares ? rank_.seed : site_seed(rank_.seed, site);
}

Status DeviceLists::open() {
  for (auto& [key, list] : lists_) {
    const auto& [codec, site, first] = key;
    CINCH_TRY(open(codec, site, list));
  }
  return Ok{};
}

Status DeviceLists::open(std::uint32_t codec, Site site, DeviceList& list) {
  std::vector<ListTensor> tensors;
  const bool is_matrix = device_.info(codec).is_matrix;
  for (const std::uint32_t piece : list.pieces) {
    const Piece& of = plan_.pieces[piece];
    const PlanTensor& tensor = plan_.tensors[of.tensor];
    tensors.push_back({is_matrix ? tensor.rows : of.num_elems, is_matrix ? tensor.cols : 1,
                       of.tensor, of.number});
  }
  // A carrier encodes no rank's gradient: at that site it only decodes.
  list.only_decodes = carried_[codec].has_value() && site == Site::Worker;
  ListOptions options{rank_.world, rank_.rank, seed_at(codec, site)};
  options.only_decodes = list.only_decodes;
  options.keeps_states = !list.only_decodes;
  auto sessions = device_.open(codec, options, tensors);
  if (!sessions) return named(tl::unexpected<ListError>(sessions.error()), list.pieces);
  list.sessions = std::move(*sessions);
  list.bounds.resize(list.pieces.size());
  return device_.is_host() ? Status(Ok{}) : collect(list);
}

ListCall DeviceLists::call_on(const DeviceList& list, const PieceList& pieces, std::uint64_t step) {
  which_.clear();
  for (const std::uint32_t piece : pieces) which_.push_back(list.entry_of(piece));
  return {step, which_};
}

Status DeviceLists::named(const ListStatus& status, const PieceList& pieces) const {
  if (status) return Ok{};
  Error error = status.error().error;
  if (status.error().place < pieces.size()) {
    error.message = describe_piece(plan_, pieces[status.error().place]) + ": " + error.message;
  }
  return tl::unexpected<Error>(std::move(error));
}

Status DeviceLists::collect(DeviceList& list) {
  list.begun.clear();
  auto outcomes = list.sessions->collect();
  CINCH_TRY(outcomes);
  outcomes_ = std::move(*outcomes);
  for (std::size_t i = 0; i < outcomes_.size(); ++i) {
    if (outcomes_[i].status) continue;
    return named(tl::unexpected<ListError>(ListError{outcomes_[i].status.error(), i}), list.pieces);
  }
  return Ok{};
}

Status DeviceLists::check(DeviceList& list, const Task& task, bool is_deferred) {
  if (device_.is_host()) return Ok{};
  if (!is_deferred) return collect(list);
  if (std::ranges::find(list.begun, &task) == list.begun.end()) list.begun.push_back(&task);
  return Ok{};
}

Status DeviceLists::check(const Task& task, Site site, bool is_deferred) {
  return for_each(task, site, [&](DeviceList& list, const PieceList& /*pieces*/, std::size_t) {
    return check(list, task, is_deferred);
  });
}

Status DeviceLists::collect_begun() {
  Status status = Ok{};
  for (auto& [key, list] : lists_) {
    if (list.begun.empty()) continue;
    if (Status own = collect_begun(list); status && !own) status = own;
  }
  return status;
}

// The device does not tell which of several tasks failed.
Status DeviceLists::collect_begun(DeviceList& list) {
  std::vector<std::string> names;
  for (const Task* task : list.begun) {
    std::string name = describe_task(plan_, *task);
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  Status status = collect(list);
  if (!status) {
    Error& error = status.error();
    error.message = fmt::format("{}: {}", fmt::join(names, " or "), error.message);
  }
  return status;
}

}  // namespace cinch::rt
