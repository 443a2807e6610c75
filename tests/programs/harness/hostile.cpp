// Every attack starts from a good payload of the program.
#include "tests/programs/harness/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/core/check.h"
#include "runtime/payload/payload.h"
#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/inputs.h"

namespace cinch::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr float kUntouched = -1234.5f;

rt::Result<rt::Session> open(const ProgramFile& program,
                             const std::shared_ptr<const rt::LoadedProgram>& loaded,
                             std::int64_t wanted_elems) {
  rt::SessionOptions options;
  options.rows = wanted_elems;
  if (!program.shapes.empty()) {
    options.rows = program.shapes.back().first;
    options.cols = program.shapes.back().second;
  } else if (loaded->info().is_matrix) {
    options.rows = 31;
    options.cols = (wanted_elems + 30) / 31;
  }
  options.threads = 1;
  options.world = program.world;
  return rt::Session::open(loaded, options);
}

class Attack {
 public:
  Attack(rt::Session& session, Bytes good) : session_(session), good_(std::move(good)) {}

  // Must be rejected, with nothing written.
  void refused(const Bytes& payload, const std::string& what) {
    if (!found_.empty()) return;
    const auto status = decode(payload);
    if (status) {
      found_ = what + " was decoded";
    } else if (is_touched()) {
      found_ = what + ": refused, but after it wrote";
    } else if (status.error().message.empty()) {
      found_ = what + ": refused without a message";
    }
  }
  // May decode or not. It must not crash, and if the reader rejects it nothing is written.
  void harmless(const Bytes& payload, const std::string& what) {
    if (!found_.empty()) return;
    const auto status = decode(payload);
    const bool by_reader = !status && status.error().kind == rt::ErrorKind::CorruptPayload;
    if (by_reader && is_touched()) found_ = what + ": refused, but after it wrote";
  }

  const Bytes& good() const { return good_; }
  std::string& found() { return found_; }

 private:
  rt::Status decode(const Bytes& payload) {
    // A copy of exactly this size, so that a sanitizer sees reads beyond it.
    const Bytes exact(payload.begin(), payload.end());
    out_.assign(static_cast<std::size_t>(session_.num_elems()), kUntouched);
    return session_.decode(exact, out_, 0);
  }
  bool is_touched() const {
    return std::any_of(out_.begin(), out_.end(), [](float x) { return x != kUntouched; });
  }

  rt::Session& session_;
  Bytes good_;
  std::vector<float> out_;
  std::string found_;
};

// Cuts at all lengths near parts' ends, and some between.
void attack_length(Attack& attack) {
  const Bytes& good = attack.good();
  for (std::size_t size = 0; size < good.size(); size += size < 160 ? 1 : 1 + good.size() / 97) {
    attack.refused({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)},
                   fmt::format("a payload cut to {} bytes", size));
  }
  Bytes longer = good;
  longer.push_back(0);
  attack.refused(longer, "a payload with a byte more");
}

void attack_header(Attack& attack, std::size_t num_counts) {
  const std::size_t end = std::min(attack.good().size(), 64 + 4 * num_counts);
  for (std::size_t bit = 0; bit < 8 * end; ++bit) {
    Bytes changed = attack.good();
    changed[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    attack.refused(changed, fmt::format("bit {} of header and counts flipped", bit));
  }
}

// An attacker who knows the format: counts and lengths are changed, and the check word is
// corrected.
void attack_counts(Attack& attack, std::size_t num_counts) {
  for (std::size_t i = 0; i < num_counts; ++i) {
    for (std::uint32_t value : {0u, 1u, 0x7fffffffu, 0xffffffffu}) {
      Bytes changed = attack.good();
      std::uint32_t before = 0;
      std::memcpy(&before, changed.data() + 64 + 4 * i, 4);
      if (before == value) continue;
      std::memcpy(changed.data() + 64 + 4 * i, &value, 4);
      const std::uint32_t check = rt::payload_check_word(changed, num_counts);
      std::memcpy(changed.data() + rt::kPayloadCheckOffset, &check, 4);
      attack.harmless(changed, fmt::format("count {} set to {}", i, value));
    }
  }
}

void attack_fields(Attack& attack, std::size_t num_counts) {
  const std::size_t begin = 64 + 4 * num_counts;
  const std::size_t stride = 1 + attack.good().size() / 400;
  for (std::size_t at = begin; at < attack.good().size(); at += stride) {
    for (std::uint8_t mask : {0x01, 0x80, 0xff}) {
      Bytes changed = attack.good();
      changed[at] ^= mask;
      attack.harmless(changed, fmt::format("byte {} changed", at));
    }
  }
  Bytes all_ones = attack.good();
  std::fill(all_ones.begin() + static_cast<std::ptrdiff_t>(std::min(begin, all_ones.size())),
            all_ones.end(), 0xff);
  attack.harmless(all_ones, "fields of all ones");
}

void attack_fingerprint(Attack& attack, std::size_t num_counts) {
  Bytes other = attack.good();
  other[20] ^= 0x55;  // another compressor, or other constants: another fingerprint
  const std::uint32_t check = rt::payload_check_word(other, num_counts);
  std::memcpy(other.data() + rt::kPayloadCheckOffset, &check, 4);
  attack.refused(other, "a payload of another compressor");
}

}  // namespace

std::string attack_decoder(const ProgramFile& program,
                           const std::shared_ptr<const rt::LoadedProgram>& loaded) {
  auto session = open(program, loaded, 700);
  if (!session) return "open: " + session.error().message;
  const auto gradient = make_gradient(DataKind::Normal, session->num_elems(), 9);
  CINCH_CHECK(give_inputs(*session), "giving inputs");
  const auto payload = session->encode(gradient, 0);
  if (!payload) return "encode: " + payload.error().message;
  const std::size_t num_counts = loaded->info().wire.counts.size();
  Attack attack(*session, {payload->begin(), payload->end()});
  attack_length(attack);
  attack_header(attack, num_counts);
  attack_counts(attack, num_counts);
  attack_fields(attack, num_counts);
  attack_fingerprint(attack, num_counts);
  return attack.found();
}

std::string check_payload_bounds(const ProgramFile& program,
                                 const std::shared_ptr<const rt::LoadedProgram>& loaded) {
  for (std::int64_t n : {1, 33, 2000}) {
    for (DataKind kind : kAllDataKinds) {
      auto session = open(program, loaded, n);
      if (!session) return "open: " + session.error().message;
      const auto bound = session->payload_bound();
      if (!bound) return "bound: " + bound.error().message;
      CINCH_CHECK(give_inputs(*session), "giving inputs");
      const auto payload = session->encode(make_gradient(kind, session->num_elems(), 3), 0);
      if (!payload) continue;  // a check of the program's own
      const auto size_bytes = static_cast<std::int64_t>(payload->size());
      if (size_bytes > *bound) {
        return fmt::format("{} elements of {} data: {} bytes, bound {}", session->num_elems(),
                           data_kind_name(kind), size_bytes, *bound);
      }
    }
  }
  return {};
}

}  // namespace cinch::testing
