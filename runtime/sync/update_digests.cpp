#include <fmt/format.h>

#include <array>
#include <cstring>

#include "runtime/core/hash.h"
#include "runtime/sync/step_tensors.h"
#include "runtime/sync/task_facts.h"

namespace cinch::rt {
namespace {

// Words of ranks: a digest with a number in its last byte. Ranks whose numbers differ have updates
// of different types, whose bits say nothing.
constexpr std::uint64_t kNumber = 0xff;
constexpr std::uint64_t kNothing = 0;
constexpr std::size_t kNamed = 8;  // tensors and ranks of an error

// Ranks of different devices may have different NaNs.
template <typename Word>
bool has_nan(const TensorView& view, Word largest) {
  const auto* const data = static_cast<const std::uint8_t*>(view.data);
  for (std::int64_t i = 0; i < view.num_elems; ++i) {
    Word word = 0;
    std::memcpy(&word, data + static_cast<std::size_t>(i) * sizeof word, sizeof word);
    if (static_cast<Word>(word & static_cast<Word>(~Word{0} >> 1U)) > largest) return true;
  }
  return false;
}

bool has_nan(const TensorView& view) {
  if (view.dtype == kF32) return has_nan<std::uint32_t>(view, 0x7f800000U);
  return has_nan<std::uint16_t>(view, view.dtype == kF16 ? 0x7c00 : 0x7f80);
}

using RanksByWord = std::map<std::uint64_t, std::vector<std::uint32_t>>;

// Keeps one entry for each digest that differs from another of the same type.
RanksByWord differing(const RanksByWord& all) {
  RanksByWord found;
  for (const auto& [word, ranks] : all) {
    const bool differs = std::ranges::any_of(all, [&](const auto& other) {
      return other.first != word && (other.first & kNumber) == (word & kNumber);
    });
    if (differs) found[word] = ranks;
  }
  return found;
}

// "fc1 on rank 2 and on ranks 0, 1, 3": the fewest ranks first.
std::string describe(const std::string& tensor, const RanksByWord& found) {
  std::vector<std::vector<std::uint32_t>> sets;
  for (const auto& [word, ranks] : found) sets.push_back(ranks);
  std::ranges::sort(sets, {}, [](const auto& ranks) { return std::pair(ranks.size(), ranks[0]); });
  std::string text = tensor;
  for (std::size_t i = 0; i < std::min(sets.size(), kNamed); ++i) {
    const std::span<const std::uint32_t> named(sets[i].data(), std::min(sets[i].size(), kNamed));
    text += fmt::format("{}{} {}", i == 0 ? " on " : " and on ",
                        sets[i].size() == 1 ? "rank" : "ranks", fmt::join(named, ", "));
    if (named.size() < sets[i].size()) text += fmt::format(" and {} more", sets[i].size() - kNamed);
  }
  return text;
}

}  // namespace

UpdateDigests::UpdateDigests(const Plan& plan, std::uint32_t rank,
                             const std::vector<bool>& is_local)
    : plan_(plan), is_compared_(plan.tensors.size()), digests_(plan.tensors.size()) {
  if (plan.world() == 1) return;
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    is_compared_[t] = plan.tensors[t].part_ends.empty();
  }
  for (const Task& task : plan.ranks[rank].tasks) {
    const std::uint32_t codec = plan.groups[task.groups[0]].codec;
    if (codec == kDense || !is_local[codec]) continue;
    for (const std::uint32_t piece : pieces_of(plan, task)) {
      is_compared_[plan.pieces[piece].tensor] = false;
    }
  }
}

void UpdateDigests::note(std::uint32_t tensor, const TensorView& update) {
  if (!is_compared_[tensor]) return;
  const std::uint64_t number = update.dtype == kF32 ? 1 : update.dtype == kF16 ? 2 : 3;
  const std::size_t bytes = static_cast<std::size_t>(update.num_elems) * update.dtype.bits / 8;
  digests_[tensor] = (hash64(update.data, bytes) & ~kNumber) | number;
}

std::uint64_t UpdateDigests::of_all() const {
  const bool has_any = std::ranges::any_of(digests_, [](std::uint64_t d) { return d != kNothing; });
  if (!has_any) return kNothing;
  return hash64(digests_.data(), digests_.size() * sizeof(std::uint64_t)) | 1U;
}

Status UpdateDigests::compare(std::span<const TensorView> updates, Transport& transport,
                              std::chrono::milliseconds timeout) const {
  std::vector<std::uint64_t> own = digests_;
  for (std::size_t t = 0; t < own.size(); ++t) {
    if (own[t] != kNothing && has_nan(updates[t])) own[t] = kNothing;
  }
  std::vector<std::uint64_t> all(own.size() * transport.world());
  const std::uint64_t bytes = own.size() * sizeof(std::uint64_t);
  std::vector<ByteRange> parts;
  parts.reserve(transport.world());
  for (std::uint64_t r = 0; r < transport.world(); ++r) parts.push_back({r * bytes, bytes});
  Exchange exchange{
      .kind = ExchangeKind::AllGather,
      .input = {reinterpret_cast<const std::uint8_t*>(own.data()), bytes},
      .output = {reinterpret_cast<std::uint8_t*>(all.data()), bytes * transport.world()},
      .received = parts};
  CINCH_TRY(exchange_now(transport, exchange, timeout, "comparing updates"));
  std::vector<std::string> texts;
  for (std::size_t t = 0; t < own.size(); ++t) {
    RanksByWord by_word;
    for (std::uint32_t r = 0; r < transport.world(); ++r) {
      const std::uint64_t word = all[r * own.size() + t];
      if (word != kNothing) by_word[word].push_back(r);
    }
    const RanksByWord found = differing(by_word);
    if (!found.empty()) texts.push_back(describe(plan_.tensors[t].name, found));
  }
  if (texts.empty()) return Ok{};
  std::string text =
      "ranks have different updates, so a message was altered on its way, a rank computed wrongly, "
      "or the program makes an update of what only some ranks have, such as a group's sum (`claims "
      "local` allows it): ";
  text +=
      fmt::format("{}", fmt::join(std::span(texts).first(std::min(texts.size(), kNamed)), "; "));
  if (texts.size() > kNamed) text += fmt::format("; and {} more tensors", texts.size() - kNamed);
  return fail(ErrorKind::CheckFailed, text);
}

namespace {

// At most this many bytes of a differing value are shown.
constexpr std::size_t kShownBytes = 200;

struct Gathered {
  std::vector<std::uint8_t> bytes;
  std::size_t part = 0;
  std::span<const std::uint8_t> of(std::size_t rank) const {
    return std::span(bytes).subspan(rank * part, part);
  }
};

// Gathers equally many bytes from each rank.
Result<Gathered> gather(std::span<const std::uint8_t> own, Transport& transport,
                        std::chrono::milliseconds timeout) {
  Gathered all{std::vector<std::uint8_t>(own.size() * transport.world()), own.size()};
  std::vector<ByteRange> parts;
  parts.reserve(transport.world());
  for (std::size_t rank = 0; rank < transport.world(); ++rank) {
    parts.push_back({rank * own.size(), own.size()});
  }
  Exchange exchange{
      .kind = ExchangeKind::AllGather, .input = own, .output = all.bytes, .received = parts};
  Status status = exchange_now(transport, exchange, timeout, "agreement");
  // Other ranks exchange something else here, since their programs call something else.
  if (!status && status.error().kind == ErrorKind::Internal) {
    status.error().kind = ErrorKind::InvalidArgument;
    status.error().message += ": ranks make different calls";
  }
  CINCH_TRY(status);
  return all;
}

// The number of facts, a digest of all, and a digest of each of the first ones: the same number of
// words on every rank.
constexpr std::size_t kWords = 64;
using Words = std::array<std::uint64_t, kWords>;

Words words_of(const std::vector<CommonFact>& facts) {
  Words words{};
  std::string all;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const std::uint64_t word = hash64(facts[i].name + '\0' + facts[i].value);
    all.append(reinterpret_cast<const char*>(&word), sizeof word);
    if (i + 2 < kWords) words[i + 2] = word;
  }
  words[0] = facts.size();
  words[1] = hash64(all);
  return words;
}

Words words_from(std::span<const std::uint8_t> bytes) {
  Words words;
  std::memcpy(words.data(), bytes.data(), sizeof words);
  return words;
}

// The first fact in which some rank differs from rank 0, at most the last one with a word of its
// own.
std::size_t first_difference(const Gathered& all, std::size_t world) {
  const Words first = words_from(all.of(0));
  for (std::size_t i = 2; i < kWords; ++i) {
    for (std::size_t rank = 1; rank < world; ++rank) {
      if (words_from(all.of(rank))[i] != first[i]) return i - 2;
    }
  }
  return kWords - 2;
}

std::string describe(const std::map<std::string, std::vector<std::size_t>>& ranks_by_value) {
  std::string text = "ranks differ:";
  for (const auto& [value, ranks] : ranks_by_value) {
    text += fmt::format(" {} {} {} {};", ranks.size() == 1 ? "rank" : "ranks",
                        fmt::join(ranks, ", "), ranks.size() == 1 ? "has" : "have", value);
  }
  text.pop_back();
  return text;
}

}  // namespace

Status agree_on(const std::vector<CommonFact>& facts, Transport& transport,
                std::chrono::milliseconds timeout) {
  const Words own = words_of(facts);
  const std::span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(own.data()),
                                            sizeof own);
  const auto all = TRY(gather(bytes, transport, timeout));
  const auto is_same = [&](std::size_t rank) {
    return std::ranges::equal(all.of(rank), all.of(0));
  };
  std::size_t rank = 1;
  while (rank < transport.world() && is_same(rank)) ++rank;
  if (rank >= transport.world()) return Ok{};
  const std::size_t index = first_difference(all, transport.world());
  std::string text = "nothing";
  if (index < facts.size()) text = facts[index].name + " " + facts[index].value;
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes - 3) + "...";
  std::vector<std::uint8_t> padded(kShownBytes);
  std::ranges::copy(text, padded.begin());
  const auto values = TRY(gather(padded, transport, timeout));
  std::map<std::string, std::vector<std::size_t>> ranks_by_value;
  for (std::size_t r = 0; r < transport.world(); ++r) {
    const auto value = values.of(r);
    const auto end = std::ranges::find(value, std::uint8_t{0});
    ranks_by_value[std::string(value.begin(), end)].push_back(r);
  }
  return invalid(describe(ranks_by_value));
}

}  // namespace cinch::rt
