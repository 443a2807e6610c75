#include "runtime/transports/ucx/sockets.h"

#include <algorithm>

namespace cinch::rt {
namespace {

constexpr std::array<std::uint8_t, 4> kMagic = {'C', 'n', 'R', 'v'};
// The magic number, the kind, three zeros and the size of the body.
constexpr std::size_t kHeadBytes = 12;

void append(std::vector<std::uint8_t>& to, std::uint32_t number) {
  for (int i = 0; i < 4; ++i) to.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
}
void append(std::vector<std::uint8_t>& to, std::span<const std::uint8_t> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// Reads consecutive values; after a missing one it returns no more.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::span<const std::uint8_t> take(std::size_t size) {
    if (size > bytes_.size()) is_cut_ = true;
    if (is_cut_) return {};
    const auto taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }
  std::uint32_t number() {
    std::uint32_t value = 0;
    const auto taken = take(4);
    for (std::size_t i = 0; i < taken.size(); ++i) value |= std::uint32_t{taken[i]} << (8 * i);
    return value;
  }
  std::uint8_t byte() {
    const auto taken = take(1);
    return taken.empty() ? std::uint8_t{0} : taken[0];
  }
  Digest digest() {
    Digest value{};
    std::ranges::copy(take(value.size()), value.begin());
    return value;
  }
  bool is_cut() const { return is_cut_; }
  /// Was everything read, and nothing missing?
  bool is_whole() const { return !is_cut_ && bytes_.empty(); }

 private:
  std::span<const std::uint8_t> bytes_;
  bool is_cut_ = false;
};

constexpr std::uint8_t kRoundHasParts = 0;  // otherwise one more than the kind of its error
constexpr std::size_t kMostErrorBytes = 4096;

tl::unexpected<Error> corrupt_round() {
  return fail(ErrorKind::CorruptPayload, "what rank 0 tells of a round is corrupt");
}

HashedText sealed_text(std::string_view way, std::uint64_t round,
                       std::span<const std::uint8_t> body) {
  return HashedText(way).add(round).add(sha256(body));
}

}  // namespace

std::vector<std::uint8_t> frame_bytes(FrameKind kind, std::span<const std::uint8_t> body) {
  std::vector<std::uint8_t> bytes(kMagic.begin(), kMagic.end());
  bytes.insert(bytes.end(), {static_cast<std::uint8_t>(kind), 0, 0, 0});
  append(bytes, static_cast<std::uint32_t>(body.size()));
  append(bytes, body);
  return bytes;
}

void FrameReader::add(std::span<const std::uint8_t> bytes) {
  append(bytes_, bytes);
}

Result<std::optional<Frame>> FrameReader::next(std::size_t most_bytes) {
  // A stranger is recognised by the first bytes, however few.
  const std::size_t known = std::min(bytes_.size(), kMagic.size());
  const auto is_of = std::equal(kMagic.begin(), kMagic.begin() + static_cast<std::ptrdiff_t>(known),
                                bytes_.begin());
  if (!is_of)
    return fail(ErrorKind::CorruptPayload, "bytes that do not begin as messages of ranks do");
  if (bytes_.size() < kHeadBytes) return std::nullopt;
  const std::span<const std::uint8_t> all(bytes_);
  ByteReader head(all.subspan(kMagic.size(), kHeadBytes - kMagic.size()));
  const std::uint8_t kind = head.byte();
  const auto zeros = head.take(3);
  const std::size_t size = head.number();
  const bool has_zeros = std::ranges::all_of(zeros, [](std::uint8_t byte) { return byte == 0; });
  const bool is_kind = kind >= static_cast<std::uint8_t>(FrameKind::Hello) &&
                       kind <= static_cast<std::uint8_t>(FrameKind::AllParts);
  if (!is_kind || !has_zeros || size > most_bytes) {
    return fail(ErrorKind::CorruptPayload, "a message that no rank sends");
  }
  if (bytes_.size() - kHeadBytes < size) return std::nullopt;
  Frame frame{static_cast<FrameKind>(kind), {}};
  const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(kHeadBytes);
  frame.body.assign(begin, begin + static_cast<std::ptrdiff_t>(size));
  bytes_.erase(bytes_.begin(), begin + static_cast<std::ptrdiff_t>(size));
  return frame;
}

std::vector<std::uint8_t> body_of(const Hello& hello) {
  std::vector<std::uint8_t> body;
  append(body, hello.rank);
  append(body, hello.world);
  append(body, hello.nonce);
  append(body, hello.proof);
  return body;
}

std::vector<std::uint8_t> body_of(const Challenge& challenge) {
  return {challenge.nonce.begin(), challenge.nonce.end()};
}

std::vector<std::uint8_t> body_of(const Answer& answer) {
  return {answer.proof.begin(), answer.proof.end()};
}

std::vector<std::uint8_t> body_of(const Verdict& verdict) {
  std::vector<std::uint8_t> body{static_cast<std::uint8_t>(verdict.code)};
  append(body, verdict.world);
  append(body, verdict.proof);
  return body;
}

std::optional<Hello> read_hello(const Frame& frame) {
  ByteReader reader(frame.body);
  Hello hello{.rank = reader.number(),
              .world = reader.number(),
              .nonce = reader.digest(),
              .proof = reader.digest()};
  const bool is_right = frame.kind == FrameKind::Hello && reader.is_whole();
  return is_right ? std::optional(hello) : std::nullopt;
}

std::optional<Challenge> read_challenge(const Frame& frame) {
  ByteReader reader(frame.body);
  const Challenge challenge{reader.digest()};
  const bool is_right = frame.kind == FrameKind::Challenge && reader.is_whole();
  return is_right ? std::optional(challenge) : std::nullopt;
}

std::optional<Answer> read_answer(const Frame& frame) {
  ByteReader reader(frame.body);
  const Answer answer{reader.digest()};
  const bool is_right = frame.kind == FrameKind::Answer && reader.is_whole();
  return is_right ? std::optional(answer) : std::nullopt;
}

std::optional<Verdict> read_verdict(const Frame& frame) {
  ByteReader reader(frame.body);
  Verdict verdict;
  const std::uint8_t code = reader.byte();
  verdict.world = reader.number();
  verdict.proof = reader.digest();
  const bool is_right = frame.kind == FrameKind::Verdict && reader.is_whole() &&
                        code <= static_cast<std::uint8_t>(VerdictCode::RankTaken);
  verdict.code = static_cast<VerdictCode>(code);
  return is_right ? std::optional(verdict) : std::nullopt;
}

std::vector<std::uint8_t> body_of(const Result<std::vector<Part>>& round) {
  std::vector<std::uint8_t> body;
  if (!round) {
    const Error& error = round.error();
    body.push_back(static_cast<std::uint8_t>(1 + static_cast<int>(error.kind)));
    const std::string text = error.message.substr(0, kMostErrorBytes);
    body.insert(body.end(), text.begin(), text.end());
    return body;
  }
  body.push_back(kRoundHasParts);
  for (const Part& part : *round) {
    append(body, static_cast<std::uint32_t>(part.size()));
    append(body, part);
  }
  return body;
}

std::size_t most_round_bytes(std::uint32_t world) {
  return kMostErrorBytes + std::size_t{world} * (4 + kMostPartBytes) + sizeof(Digest);
}

Result<std::vector<Part>> read_round(std::span<const std::uint8_t> body, std::uint32_t world) {
  ByteReader reader(body);
  const std::uint8_t status = reader.byte();
  if (reader.is_cut() || status > 1 + static_cast<int>(ErrorKind::Internal)) return corrupt_round();
  if (status != kRoundHasParts) {
    const auto text = body.subspan(1, std::min(body.size() - 1, kMostErrorBytes));
    return fail(static_cast<ErrorKind>(status - 1), std::string(text.begin(), text.end()));
  }
  std::vector<Part> parts;
  for (std::uint32_t rank = 0; rank < world && !reader.is_cut(); ++rank) {
    const auto part = reader.take(reader.number());
    parts.emplace_back(part.begin(), part.end());
  }
  if (!reader.is_whole()) return corrupt_round();
  return parts;
}

std::vector<std::uint8_t> sealed(const Digest& key, std::string_view way, std::uint64_t round,
                                 std::span<const std::uint8_t> body) {
  std::vector<std::uint8_t> bytes(body.begin(), body.end());
  append(bytes, keyed_hash(key, sealed_text(way, round, body)));
  return bytes;
}

std::optional<std::span<const std::uint8_t>> unsealed(const Digest& key, std::string_view way,
                                                      std::uint64_t round,
                                                      std::span<const std::uint8_t> bytes) {
  if (bytes.size() < sizeof(Digest)) return std::nullopt;
  const auto body = bytes.first(bytes.size() - sizeof(Digest));
  const Digest wanted = keyed_hash(key, sealed_text(way, round, body));
  if (!are_equal(wanted, bytes.last(sizeof(Digest)))) return std::nullopt;
  return body;
}

}  // namespace cinch::rt
