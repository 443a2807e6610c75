// A payload is untrusted: whatever its bytes are, it is rejected or decodes, and nothing else
// changes.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compiler/verify/laws.h"
#include "runtime/core/numbers/floats.h"
#include "runtime/payload/payload.h"

namespace cinch::verify {
namespace {

constexpr std::size_t kPayloads = 10000;
constexpr float kSentinel = 12345.5f;

// xorshift64*: the same payloads on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint64_t word() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1dULL;
  }
  std::size_t below(std::size_t n) { return n == 0 ? 0 : (word() >> 11) % n; }

 private:
  std::uint64_t state_;
};

// Corrects length and check word, so that the reader gets to the changed part.
void reseal(Bytes& bytes, std::size_t num_counts) {
  constexpr std::size_t kLengthOffset = 56;
  if (bytes.size() < static_cast<std::size_t>(rt::kPayloadHeaderBytes) + 4 * num_counts) return;
  const std::uint64_t length = bytes.size();
  std::memcpy(bytes.data() + kLengthOffset, &length, sizeof length);
  const std::uint32_t word = rt::payload_check_word(bytes, num_counts);
  std::memcpy(bytes.data() + rt::kPayloadCheckOffset, &word, sizeof word);
}

void flip_bits(Bytes& bytes, Dice& dice, std::size_t from, std::size_t to) {
  const std::size_t flips = 1 + dice.below(8);
  for (std::size_t i = 0; i < flips && from < to; ++i) {
    bytes[from + dice.below(to - from)] ^= static_cast<std::uint8_t>(1u << dice.below(8));
  }
}

void fill_random(Bytes& bytes, Dice& dice, std::size_t from) {
  for (std::size_t i = from; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(dice.word() >> 56);
  }
}

Bytes mutated(const Bytes& real, std::size_t num_counts, Dice& dice) {
  Bytes bytes = real;
  const auto head = static_cast<std::size_t>(rt::kPayloadHeaderBytes);
  const std::size_t body = std::min(bytes.size(), head);
  const std::size_t counts_end = std::min(bytes.size(), head + 4 * num_counts);
  switch (dice.below(8)) {
    case 0:
      flip_bits(bytes, dice, 0, body);
      break;
    case 1:
      flip_bits(bytes, dice, body, bytes.size());
      break;
    case 2:
      bytes.resize(dice.below(bytes.size() + 1));
      break;
    case 3:
      bytes.resize(bytes.size() + 1 + dice.below(64));
      break;
    case 4:  // small and huge counts
      flip_bits(bytes, dice, body, counts_end);
      break;
    case 5:
      fill_random(bytes, dice, body);
      break;
    case 6:
      fill_random(bytes, dice, 0);
      break;
    default:  // bytes of a field, all the same
      std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(counts_end), bytes.end(),
                static_cast<std::uint8_t>(dice.below(2) * 0xff));
      break;
  }
  if (dice.below(3) != 0) reseal(bytes, num_counts);
  return bytes;
}

struct Hostile {
  std::unique_ptr<Tensor> tensor;
  Input input;
  Bytes real;
  std::vector<float> decoded;
  std::vector<Bytes> states;
  std::size_t num_counts = 0;
};

rt::Result<Hostile> prepare(const Trial& trial, Input input) {
  auto tensor = TRY(trial.subject.main->open(trial.request(input.shape)));
  Bytes payload = TRY(tensor->encode(input.values, 0));
  std::vector<float> decoded(input.values.size());
  CINCH_TRY(tensor->decode(payload, decoded, 0));
  std::vector<Bytes> states = tensor->states();
  const std::size_t counts = trial.subject.info().wire.counts.size();
  return Hostile{std::move(tensor),  std::move(input),  std::move(payload),
                 std::move(decoded), std::move(states), counts};
}

// The fault after one malformed payload, or "".
std::string wrong_with(Hostile& hostile, const Bytes& payload, std::size_t& refused) {
  std::vector<float> out(hostile.decoded.size(), kSentinel);
  const rt::Status status = hostile.tensor->decode(payload, out, 0);
  if (!status) {
    ++refused;
    if (status.error().kind == rt::ErrorKind::Internal)
      return "a fault of Cinch: " + status.error().message;
    const bool is_untouched = std::ranges::all_of(out, [](float x) { return x == kSentinel; });
    if (!is_untouched) return "it was rejected, but the output was written";
  }
  if (hostile.tensor->states() != hostile.states) return "a state has changed";
  return "";
}

}  // namespace

Finding hostile_payloads(const Trial& trial) {
  Finding& finding = trial.begin("hostile_payloads");
  const bool is_matrix = trial.subject.info().is_matrix;
  const std::vector<Shape> shapes =
      is_matrix ? std::vector<Shape>{{40, 25}, {7, 3}} : std::vector<Shape>{{1000}, {33}};
  std::vector<Hostile> subjects;
  for (const Shape& shape : shapes) {
    const Input input = make_input(Family::HeavyTailed, shape);
    subjects.push_back(TRY_ON(trial, input, prepare(trial, input)));
  }
  Dice dice(trial.seed + 1);
  Sweep sweep(trial, kPayloads);
  std::size_t refused = 0;
  const auto note = [&](const Hostile& hostile, const std::string& wrong) {
    if (!finding.is_first_failure()) return;
    finding.detail =
        fmt::format("payload {} of {}: {}", sweep.done(), describe(hostile.input), wrong);
    finding.counterexample = shown_by(trial, {hostile.input}, finding.detail);
  };
  while (sweep.goes_on()) {
    Hostile& hostile = subjects[sweep.done() % subjects.size()];
    const std::string wrong =
        wrong_with(hostile, mutated(hostile.real, hostile.num_counts, dice), refused);
    if (!wrong.empty()) note(hostile, wrong);
    if (sweep.done() % 100 != 0) continue;
    std::vector<float> out(hostile.decoded.size());
    const bool is_as_before =
        hostile.tensor->decode(hostile.real, out, 0) && same_bits(out, hostile.decoded);
    if (!is_as_before) note(hostile, "a true payload decodes to something else afterwards");
  }
  if (finding.holds) {
    finding.detail =
        fmt::format("payloads, of {} ({} rejected), that write or change what they must not",
                    sweep.done(), refused);
  }
  finding.cut = sweep.cut("payloads");
  return finding;
}

}  // namespace cinch::verify
