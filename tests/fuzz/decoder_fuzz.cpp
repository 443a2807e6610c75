// libFuzzer target: the decoder of one compressor, named by CINCH_FUZZ_PROGRAM: of the standard
// library, or one of library_compositions(). Inputs are those of decoder_payload.h.
//
// Whatever the payload is, nothing outside the output is accessed. If the reader rejects it, the
// output is unchanged. A decoded output has every element written, equals what the interpreter
// decodes, and is what decode_add adds. States stay, and the session decodes a good payload as
// before.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>

#include "runtime/core/numbers/floats.h"
#include "runtime/core/sanitizer.h"
#include "tests/fuzz/decoder_payload.h"
#include "tests/fuzz/target.h"
#include "tests/programs/harness/compile.h"
#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/inputs.h"
#include "tests/programs/harness/oracle.h"

namespace {

using namespace cinch;
using namespace cinch::testing;
using Bytes = std::vector<std::uint8_t>;

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "decoder_fuzz: {}\n", what);
  std::abort();
}

/// An output with guard memory on both sides. It is aligned only to its element. If nothing follows
/// it, a sanitizer also sees reads beyond it.
class GuardedOutput {
 public:
  GuardedOutput(std::int64_t num_elems, float fill)
      : memory_(kBefore + static_cast<std::size_t>(num_elems) + kBehind, fill), fill_(fill) {}
  std::span<float> values() {
    return std::span(memory_).subspan(kBefore, memory_.size() - kBefore - kBehind);
  }
  bool guards_hold() const {
    const std::span<const float> all(memory_);
    return is_filled(all.first(kBefore)) && is_filled(all.last(kBehind));
  }
  bool is_untouched() const { return is_filled(memory_); }

 private:
  static constexpr std::size_t kBefore = 3, kBehind = kAddressSanitizer ? 0 : 64;

  bool is_filled(std::span<const float> part) const {
    return std::all_of(part.begin(), part.end(), [this](float x) { return x == fill_; });
  }
  std::vector<float> memory_;
  float fill_;
};

/// One tensor's session, under attack.
class Victim {
 public:
  Victim(const ir::Program& program, std::shared_ptr<const rt::LoadedProgram> loaded,
         const rt::SessionOptions& options);
  void attack(const DecoderInput& input);

 private:
  void attack_decode(const BuiltPayload& payload);
  void attack_decode_add(const Bytes& payload, const std::optional<std::vector<float>>& decoded);
  void compare_with_interpreter(const Bytes& payload, const rt::Status& status,
                                std::span<const float> decoded);
  void check_usable();
  /// Decodes the good payload.
  std::vector<float> decode_good();
  std::vector<Bytes> states() const;
  [[noreturn]] void fail(const std::string& what) const {
    give_up(fmt::format("{}, {} elements: {}", session_.info().name, session_.num_elems(), what));
  }

  const ir::Program& program_;
  rt::Session session_;
  rt::ParameterValues parameters_;
  rt::PayloadExpectation expected_;
  Bytes good_;
  std::vector<float> good_values_;
  std::vector<Bytes> good_states_;
};

constexpr std::uint64_t kStep = 0;
constexpr float kFill = -1234.5f, kOtherFill = 77.25f;
// Larger tensors are not interpreted: that takes some hundred times as long as the kernels.
constexpr std::int64_t kMaxInterpretedElems = 100;

rt::Session open(std::shared_ptr<const rt::LoadedProgram> loaded,
                 const rt::SessionOptions& options) {
  auto session = rt::Session::open(std::move(loaded), options);
  if (!session) give_up("open: " + session.error().message);
  return std::move(*session);
}

Victim::Victim(const ir::Program& program, std::shared_ptr<const rt::LoadedProgram> loaded,
               const rt::SessionOptions& options)
    : program_(program),
      session_(open(std::move(loaded), options)),
      parameters_(session_.info()),
      expected_(expected_payload(session_.image(), options, parameters_, kStep)) {
  const auto gradient = make_gradient(DataKind::Normal, session_.num_elems(), 5);
  if (!give_inputs(session_)) fail("no inputs");
  const auto payload = session_.encode(gradient, kStep);
  if (!payload) fail("encode: " + payload.error().message);
  good_.assign(payload->begin(), payload->end());
  good_values_ = decode_good();
  good_states_ = states();
}

std::vector<float> Victim::decode_good() {
  std::vector<float> values(static_cast<std::size_t>(session_.num_elems()), kFill);
  const auto status = session_.decode(good_, values, kStep);
  if (!status) fail("a good payload is refused: " + status.error().message);
  return values;
}

std::vector<Bytes> Victim::states() const {
  std::vector<Bytes> all;
  for (std::uint32_t i = 0; i < session_.info().states.size(); ++i) {
    const auto state = session_.state(i).value();
    all.emplace_back(state.begin(), state.end());
  }
  return all;
}

bool is_of_reader(const rt::Error& error) {
  return error.kind == rt::ErrorKind::CorruptPayload ||
         error.kind == rt::ErrorKind::VersionMismatch;
}

void Victim::attack(const DecoderInput& input) {
  attack_decode(build_payload(expected_, input));
  check_usable();
}

void Victim::attack_decode(const BuiltPayload& payload) {
  GuardedOutput out(session_.num_elems(), kFill), again(session_.num_elems(), kOtherFill);
  const auto status = session_.decode(payload.bytes, out.values(), kStep);
  if (!out.guards_hold()) fail("decode wrote beside its output");
  const bool is_refused = !status && is_of_reader(status.error());
  if (is_refused && !out.is_untouched()) fail("a payload was refused, but after it wrote");
  if (is_refused && payload.is_valid) fail("refused: " + status.error().message);
  if (!status && !is_refused && status.error().kind != rt::ErrorKind::CheckFailed) {
    fail("decode: " + status.error().message);
  }
  if (!status && status.error().message.empty()) fail("refused without a message");
  if (!is_refused) compare_with_interpreter(payload.bytes, status, out.values());
  if (!status) return attack_decode_add(payload.bytes, std::nullopt);
  if (!session_.decode(payload.bytes, again.values(), kStep)) fail("decoded once, refused then");
  if (!same_bits(out.values(), again.values())) fail("decode left elements as they were");
  attack_decode_add(payload.bytes, std::vector(out.values().begin(), out.values().end()));
}

void Victim::attack_decode_add(const Bytes& payload,
                               const std::optional<std::vector<float>>& decoded) {
  GuardedOutput sum(session_.num_elems(), kFill);
  const auto status = session_.decode_add(payload, sum.values(), kStep);
  if (!sum.guards_hold()) fail("decode_add wrote beside its output");
  if (status.has_value() != decoded.has_value()) fail("decode and decode_add do not agree");
  if (!status) {
    if (is_of_reader(status.error()) && !sum.is_untouched()) fail("refused, but after it added");
    return;
  }
  for (std::size_t i = 0; i < decoded->size(); ++i) {
    const float want = kFill + (*decoded)[i], got = sum.values()[i];
    const bool is_same = std::bit_cast<std::uint32_t>(want) == std::bit_cast<std::uint32_t>(got);
    // The language does not define which NaN a sum gives.
    if (!is_same && (want == want || got == got)) {
      fail(fmt::format("element {}: decode gives {}, decode_add makes {} of {}", i, (*decoded)[i],
                       got, kFill));
    }
  }
}

void Victim::compare_with_interpreter(const Bytes& payload, const rt::Status& status,
                                      std::span<const float> decoded) {
  if (session_.num_elems() > kMaxInterpretedElems || session_.num_elems() == 0) return;
  const auto view = rt::read_payload(payload, expected_);
  if (!view) fail("decode accepted what a reader refuses: " + view.error().message);
  const auto wanted = interpret_decode(program_, expected_, *view, session_.options(), kStep);
  if (!wanted && status) fail("decoded; interpreter: " + wanted.error().message);
  if (wanted && !status) fail("interpreter decodes; kernels: " + status.error().message);
  if (!wanted) return;
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    const auto want = std::bit_cast<std::uint32_t>((*wanted)[i]);
    const auto got = std::bit_cast<std::uint32_t>(decoded[i]);
    if (want != got) {
      fail(fmt::format("element {}: interpreter {:08x}, kernels {:08x}", i, want, got));
    }
  }
}

void Victim::check_usable() {
  if (states() != good_states_) fail("decode changed a state");
  if (!same_bits(decode_good(), good_values_)) fail("a good payload decodes to something else now");
}

ProgramFile find_program() {
  const char* name = std::getenv("CINCH_FUZZ_PROGRAM");
  if (name == nullptr) give_up("CINCH_FUZZ_PROGRAM names no program");
  for (const auto& programs : {compressors_of(CINCH_STDLIB_DIR), library_compositions()}) {
    for (const ProgramFile& program : programs) {
      if (program.name == name) return program;
    }
  }
  give_up(fmt::format("no program {}", name));
}

/// The program with sessions of several sizes: none, one, odd ones, and one above a tile of 1024,
/// as one task and as several.
struct Target {
  ir::Program program;
  std::vector<Victim> victims;
};

std::unique_ptr<Target> make_target() {
  auto compiled = compile(find_program());
  if (!compiled) give_up(compiled.error());
  const auto loaded = load_for(compiled->kernels, architectures().present.back());
  if (!loaded) give_up(loaded.error());
  auto target = std::make_unique<Target>(Target{std::move(compiled->oracle), {}});
  const std::pair<std::int64_t, std::uint64_t> sizes[] = {{0, 0},  {1, 0},    {5, 0},
                                                          {67, 1}, {1027, 0}, {1027, 1}};
  for (const auto& [num_elems, groups_per_task] : sizes) {
    rt::SessionOptions options;
    options.rows = num_elems;
    if ((*loaded)->info().is_matrix) options.cols = 3;
    options.threads = 1;
    options.groups_per_task = groups_per_task;
    options.poison_memory = true;
    target->victims.emplace_back(target->program, *loaded, options);
  }
  return target;
}

Target& target() {
  static const std::unique_ptr<Target> kTarget = make_target();
  return *kTarget;
}

}  // namespace

// Runs before the first input, so that compiling does not count in its time. LLVM installs signal
// handlers; libFuzzer, which saves failing inputs, handles only signals without one.
extern "C" int LLVMFuzzerInitialize(int* /*num_args*/, char*** /*args*/) {
  constexpr int kSignals[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGINT, SIGSEGV, SIGTERM};
  struct sigaction before[std::size(kSignals)];
  for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], nullptr, &before[i]);
  (void)target();
  for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before[i], nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kDecoderHeadBytes) return 0;
  const DecoderInput input = read_decoder_input({data, size});
  std::vector<Victim>& victims = target().victims;
  victims[input.session % victims.size()].attack(input);
  return 0;
}
