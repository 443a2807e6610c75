// States as arrays of their own; see restore_states.h.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <tuple>

#include "runtime/call/state_file.h"
#include "runtime/core/files/file_bytes.h"
#include "runtime/core/hash.h"
#include "runtime/core/json.h"
#include "runtime/sync/states/restore_states.h"

namespace cinch::rt {
namespace {

using nlohmann::json;

constexpr char kMagic[8] = {'C', 'I', 'N', 'C', 'H', 'S', 'Y', 'N'};

struct Preamble {
  char magic[8];
  std::uint32_t version, zero;
  std::uint64_t size_bytes, hash, description_bytes;
};
static_assert(sizeof(Preamble) == 40);
// The hash covers everything from the length of the description on.
constexpr std::size_t kHashedFrom = 32;

tl::unexpected<Error> corrupt(const std::string& what) {
  return fail(ErrorKind::CorruptFile, "checkpoint: " + what);
}

json describe(const std::vector<SavedSite>& sites) {
  json described = json::array();
  for (const SavedSite& site : sites) {
    described.push_back({{"tensor", site.tensor},
                         {"rows", site.rows},
                         {"cols", site.cols},
                         {"site", site_name(site.site)},
                         {"first", site.first},
                         {"num_elems", site.num_elems},
                         {"bytes", site.states.size()}});
  }
  return described;
}

json describe(const std::vector<SavedPiece>& pieces) {
  json described = json::array();
  for (const SavedPiece& piece : pieces) {
    described.push_back({{"tensor", piece.tensor}, {"first", piece.first}});
  }
  return described;
}

json describe(const RankCheckpoint& checkpoint) {
  json described = {{"plan", checkpoint.plan},
                    {"world", checkpoint.world},
                    {"rank", checkpoint.rank},
                    {"next_step", checkpoint.next_step},
                    {"sites", describe(checkpoint.sites)}};
  if (!checkpoint.finished.empty()) described["finished"] = describe(checkpoint.finished);
  if (checkpoint.left) described["left"] = describe(*checkpoint.left);
  if (checkpoint.later) described["later"] = describe(*checkpoint.later);
  return described;
}

Site site_named(const json& name) {
  for (const Site site : {Site::Worker, Site::Hop, Site::Owner, Site::Return}) {
    if (name == site_name(site)) return site;
  }
  throw std::invalid_argument("no such site: " + name.dump());
}

// Tensors have fewer elements than this, so that adding two such numbers never overflows.
bool is_count(std::int64_t number) {
  return number >= 0 && number <= INT64_C(1) << 32;
}

SavedSite read_site(const json& from, std::span<const std::uint8_t>& states) {
  SavedSite site;
  from.at("tensor").get_to(site.tensor);
  site.rows = whole_number<std::int64_t>(from, "rows");
  site.cols = whole_number<std::int64_t>(from, "cols");
  site.site = site_named(from.at("site"));
  site.first = whole_number<std::int64_t>(from, "first");
  site.num_elems = whole_number<std::int64_t>(from, "num_elems");
  const auto bytes = whole_number<std::uint64_t>(from, "bytes");
  const bool is_within = is_count(site.rows) && is_count(site.cols) && is_count(site.first) &&
                         is_count(site.num_elems) && bytes <= states.size();
  if (!is_within) throw std::invalid_argument("numbers out of range at " + site.tensor);
  const auto own = states.first(static_cast<std::size_t>(bytes));
  site.states.assign(own.begin(), own.end());
  states = states.subspan(own.size());
  return site;
}

std::vector<SavedSite> read_sites(const json& from, const char* name,
                                  std::span<const std::uint8_t>& states) {
  std::vector<SavedSite> sites;
  for (const json& site : from.at(name).get_ref<const json::array_t&>()) {
    sites.push_back(read_site(site, states));
  }
  return sites;
}

std::vector<SavedPiece> read_pieces(const json& from, const char* name) {
  std::vector<SavedPiece> pieces;
  for (const json& piece : from.at(name).get_ref<const json::array_t&>()) {
    pieces.push_back(
        {piece.at("tensor").get<std::string>(), whole_number<std::int64_t>(piece, "first")});
  }
  return pieces;
}

Result<Preamble> checked_preamble(std::span<const std::uint8_t> bytes) {
  // Version 1, or the newest.
  std::uint32_t version = 0;
  constexpr std::size_t kAt = offsetof(Preamble, version);
  if (bytes.size() >= kAt + sizeof version) {
    std::memcpy(&version, bytes.data() + kAt, sizeof version);
  }
  auto preamble =
      TRY(read_preamble(bytes, kMagic, version == 1 ? version : kCheckpointFormatVersion,
                        &Preamble::size_bytes, "checkpoint"));
  if (preamble.hash != hash64(bytes.data() + kHashedFrom, bytes.size() - kHashedFrom)) {
    return corrupt("checksum differs");
  }
  if (preamble.description_bytes > bytes.size() - sizeof(Preamble)) {
    return corrupt("cut within its description");
  }
  return preamble;
}

}  // namespace

std::vector<std::uint8_t> write_checkpoint(const RankCheckpoint& checkpoint) {
  // States under names that are not UTF-8 cannot be found again; nothing else is lost.
  const std::string description =
      describe(checkpoint).dump(-1, ' ', false, json::error_handler_t::replace);
  std::vector<std::uint8_t> out(sizeof(Preamble));
  out.insert(out.end(), description.begin(), description.end());
  const auto append = [&out](const std::vector<SavedSite>& sites) {
    for (const SavedSite& site : sites) {
      out.insert(out.end(), site.states.begin(), site.states.end());
    }
  };
  append(checkpoint.sites);
  if (checkpoint.later) append(*checkpoint.later);
  Preamble preamble{};
  std::memcpy(preamble.magic, kMagic, sizeof kMagic);
  preamble.version = checkpoint.later ? kCheckpointFormatVersion : 1;
  preamble.size_bytes = out.size();
  preamble.description_bytes = description.size();
  std::memcpy(out.data(), &preamble, sizeof preamble);
  preamble.hash = hash64(out.data() + kHashedFrom, out.size() - kHashedFrom);
  std::memcpy(out.data(), &preamble, sizeof preamble);
  return out;
}

Result<std::vector<std::uint8_t>> read_checkpoint_file(const std::filesystem::path& path) {
  return read_file_bytes(
      path, {.magic = {kMagic, sizeof kMagic}, .size_at = offsetof(Preamble, size_bytes)});
}

Result<RankCheckpoint> read_checkpoint(std::span<const std::uint8_t> bytes) {
  const auto preamble = TRY(checked_preamble(bytes));
  const auto text = bytes.subspan(sizeof(Preamble), preamble.description_bytes);
  std::span<const std::uint8_t> states = bytes.subspan(sizeof(Preamble) + text.size());
  try {
    const json from = json::parse(text.begin(), text.end());
    RankCheckpoint checkpoint;
    from.at("plan").get_to(checkpoint.plan);
    checkpoint.world = whole_number<std::uint32_t>(from, "world");
    checkpoint.rank = whole_number<std::uint32_t>(from, "rank");
    checkpoint.next_step = whole_number<std::uint64_t>(from, "next_step");
    checkpoint.sites = read_sites(from, "sites", states);
    if (from.contains("finished")) checkpoint.finished = read_pieces(from, "finished");
    if (from.contains("left")) checkpoint.left = read_pieces(from, "left");
    if (from.contains("later")) checkpoint.later = read_sites(from, "later", states);
    if (checkpoint.rank >= checkpoint.world) return corrupt("a rank that is not in its world");
    if (!states.empty()) return corrupt("bytes after its last states");
    return checkpoint;
  } catch (const std::exception& error) {
    return corrupt(error.what());
  }
}

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
  const auto file = TRY(states.as_bytes());
  const auto parsed = TRY(parse_states(file));
  const Piece& piece = plan.pieces[key.piece];
  for (std::size_t i = 0; i < parsed.states.size(); ++i) {
    const StateView& view = parsed.states[i];
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
  const auto file = TRY(states.as_bytes());
  auto parsed = TRY(parse_states(file));
  parsed.states[number].bytes = bytes;
  return states.set(write_states(parsed.key, parsed.states));
}

}  // namespace

Result<std::vector<StateArray>> list_state_arrays(const Plan& plan, const EverySite& every_site) {
  auto found = TRY(find_all(plan, every_site));
  return std::move(found.arrays);
}

Status set_state_array(const Plan& plan, const EverySite& every_site, std::size_t place,
                       std::span<const std::uint8_t> bytes) {
  const auto found = TRY(find_all(plan, every_site));
  if (place >= found.arrays.size()) {
    return fail(ErrorKind::OutOfRange, fmt::format("state {} of {}", place, found.arrays.size()));
  }
  const std::size_t wanted = found.arrays[place].bytes.size();
  if (bytes.size() != wanted) {
    return invalid(fmt::format("{} of {}: {} bytes, not {}", found.arrays[place].name,
                               plan.tensors[found.arrays[place].tensor].name, bytes.size(),
                               wanted));
  }
  const Place& at = found.places[place];
  Status status = Ok{};
  every_site([&](const SiteKey& key, SiteStates& states) {
    if (key.piece == at.key.piece && key.site == at.key.site) {
      status = replace(states, at.number, bytes);
    }
  });
  return status;
}

}  // namespace cinch::rt
