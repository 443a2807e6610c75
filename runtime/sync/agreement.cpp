// Bodies of agreement.h.
#include "runtime/sync/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "runtime/core/hash.h"

namespace cinch::rt {
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
  Exchange exchange{ExchangeKind::AllGather};
  exchange.input = own;
  exchange.output = all.bytes;
  exchange.received = parts;
  Status status = exchange_now(transport, exchange, timeout, "agreement");
  // Other ranks exchange something else here, since their programs call something else.
  if (!status && status.error().kind == ErrorKind::Internal) {
    status.error().kind = ErrorKind::InvalidArgument;
    status.error().message += ": ranks make different calls";
  }
  CINCH_TRY(status);
  return all;
}

std::uint64_t digest(const CommonFact& fact) {
  return hash64(fact.name + '\0' + fact.value);
}

// The number of facts, a digest of all, and a digest of each of the first ones: the same number of
// words on every rank.
constexpr std::size_t kWords = 64;
using Words = std::array<std::uint64_t, kWords>;

Words words_of(const std::vector<CommonFact>& facts) {
  Words words{};
  std::string all;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const std::uint64_t word = digest(facts[i]);
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

std::string shown(const std::vector<CommonFact>& facts, std::size_t index) {
  if (index >= facts.size()) return "nothing";
  std::string text = facts[index].name + " " + facts[index].value;
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes - 3) + "...";
  return text;
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
  const auto all = gather(bytes, transport, timeout);
  CINCH_TRY(all);
  const auto is_same = [&](std::size_t rank) {
    return std::ranges::equal(all->of(rank), all->of(0));
  };
  std::size_t rank = 1;
  while (rank < transport.world() && is_same(rank)) ++rank;
  if (rank >= transport.world()) return Ok{};
  const std::string text = shown(facts, first_difference(*all, transport.world()));
  std::vector<std::uint8_t> padded(kShownBytes);
  std::ranges::copy(text, padded.begin());
  const auto values = gather(padded, transport, timeout);
  CINCH_TRY(values);
  std::map<std::string, std::vector<std::size_t>> ranks_by_value;
  for (std::size_t r = 0; r < transport.world(); ++r) {
    const auto value = values->of(r);
    const auto end = std::ranges::find(value, std::uint8_t{0});
    ranks_by_value[std::string(value.begin(), end)].push_back(r);
  }
  return fail(ErrorKind::InvalidArgument, describe(ranks_by_value));
}

}  // namespace cinch::rt
