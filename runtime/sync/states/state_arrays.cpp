// States as arrays of their own; see restore_states.h.
#include "runtime/sync/states/restore_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "runtime/call/state_file.h"

namespace cinch::rt {
namespace {

// The place of an array: its site, and its index among the site's arrays.
struct Place {
  SiteKey key;
  std::size_t number = 0;
};

struct Found {
  std::vector<StateArray> arrays;
  std::vector<Place> places;
};

Status add_site(const Plan& plan, const SiteKey& key, const SiteStates& states, Found& to) {
  const auto file = states.as_bytes();
  CINCH_TRY(file);
  const auto parsed = parse_states(*file);
  CINCH_TRY(parsed);
  const Piece& piece = plan.pieces[key.piece];
  for (std::size_t i = 0; i < parsed->states.size(); ++i) {
    const StateView& view = parsed->states[i];
    to.arrays.push_back({piece.tensor,
                         key.site,
                         piece.first,
                         piece.num_elems,
                         view.name,
                         view.dtype,
                         {view.bytes.begin(), view.bytes.end()}});
    to.places.push_back({key, i});
  }
  return Ok{};
}

Result<Found> find_all(const Plan& plan, const EverySite& every_site) {
  Found found;
  Status status = Ok{};
  every_site([&](const SiteKey& key, SiteStates& states) {
    if (status) status = add_site(plan, key, states, found);
  });
  CINCH_TRY(status);
  std::vector<std::size_t> order(found.arrays.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    const StateArray& array = found.arrays[i];
    return std::tuple(array.tensor, array.first, array.site, found.places[i].number);
  });
  Found sorted;
  for (const std::size_t i : order) {
    sorted.arrays.push_back(std::move(found.arrays[i]));
    sorted.places.push_back(found.places[i]);
  }
  return sorted;
}

Status replace(SiteStates& states, std::size_t number, std::span<const std::uint8_t> bytes) {
  const auto file = states.as_bytes();
  CINCH_TRY(file);
  auto parsed = parse_states(*file);
  CINCH_TRY(parsed);
  parsed->states[number].bytes = bytes;
  return states.set(write_states(parsed->key, parsed->states));
}

}  // namespace

Result<std::vector<StateArray>> list_state_arrays(const Plan& plan, const EverySite& every_site) {
  auto found = find_all(plan, every_site);
  CINCH_TRY(found);
  return std::move(found->arrays);
}

Status set_state_array(const Plan& plan, const EverySite& every_site, std::size_t place,
                       std::span<const std::uint8_t> bytes) {
  const auto found = find_all(plan, every_site);
  CINCH_TRY(found);
  if (place >= found->arrays.size()) {
    return fail(ErrorKind::OutOfRange, fmt::format("state {} of {}", place, found->arrays.size()));
  }
  const std::size_t wanted = found->arrays[place].bytes.size();
  if (bytes.size() != wanted) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("{} of {}: {} bytes, not {}", found->arrays[place].name,
                            plan.tensors[found->arrays[place].tensor].name, bytes.size(), wanted));
  }
  const Place& at = found->places[place];
  Status status = Ok{};
  every_site([&](const SiteKey& key, SiteStates& states) {
    if (key.piece == at.key.piece && key.site == at.key.site) {
      status = replace(states, at.number, bytes);
    }
  });
  return status;
}

}  // namespace cinch::rt
