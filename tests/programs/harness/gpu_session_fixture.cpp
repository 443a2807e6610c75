// Bodies of gpu_session_fixture.h.
#include "tests/programs/harness/gpu_session_fixture.h"

#include <map>
#include <stdexcept>

#include "codegen/jit/compile_program.h"
#include "tests/programs/harness/compile.h"
#include "tests/programs/harness/gradients.h"

namespace cinch::testing {
namespace {

// A loop whose rounds a parameter decides.
constexpr const char* kRounds = R"(compressor rounds(times: u32 = 2 in [0, 9]) {
  wire { value: [f32; n] }
  encode(g: [f32; n]) {
    let mut x = g
    for i in 0..times { x = x * 1.5 + 1.0 }
    wire { value: x }
  }
  decode(w) { w.value }
}
)";

// A state that begins with another value than zero.
constexpr const char* kStarted = R"(compressor started {
  state s: [f32; n] = 2.0
  wire { value: [f32; n] }
  encode(g: [f32; n]) {
    s = s + g
    wire { value: s }
  }
  decode(w) { w.value }
}
)";

// Payloads of 36000 bytes for each element, by a sweep that reduces.
constexpr const char* kBulky = R"(compressor bulky {
  wire { value: [f32; 9000 * n], top: f32 }
  encode(g: [f32; n]) {
    let value = fill(sum(g), 9000 * n)
    wire { value, top: max(value) }
  }
  decode(w) { fill(w.top, n) }
}
)";

// A warm-up that ends: as many elements as the step has it, in more rounds, from a later element.
constexpr const char* kWarming = R"(compressor warming {
  size k = if step < 3 { 2 } else { clamp(ceil_div(n, 4), 1, n) }
  wire { value: [f32; k], least: [f32; 1] }
  encode(g: [f32; n]) {
    let mut x = g[0..k]
    for i in (9 - min(step, 9))..9 { x = x * 1.5 + 1.0 }
    wire { value: x, least: fill(min(top_k(abs(g), k)) as f32, 1) }
  }
  decode(w) { fill(sum(w.value), n) }
}
)";

// A size that no step ends.
constexpr const char* kGrowing = R"(compressor growing {
  wire { value: [f32; n] }
  encode(g: [f32; n]) { wire { value: g + (max(cumsum(iota(1 + step))) as f32) } }
  decode(w) { w.value }
}
)";

// A check that infinities fail, in the sweep that sees them.
constexpr const char* kBounded = R"(compressor bounded {
  wire { value: [f32; n] }
  encode(g: [f32; n]) { wire { value: g } }
  decode(w) { w.value }
  finish(sum) {
    let table = iota(100)
    sum + table[abs(sum) as u32] as f32
  }
}
)";

// Rounded at random: to integers of any float, of one that fits, and to floats.
constexpr const char* kTied = R"(compressor tied {
  wire { code: [u4; n] }
  encode(g: [f32; n]) { wire { code: stochastic_round(g) as u4 } }
  decode(w) { w.code as f32 }
}
)";
constexpr const char* kTiedWithin = R"(compressor tied_within {
  wire { code: [i2; n] }
  encode(g: [f32; n]) { wire { code: stochastic_round(clamp(g, -1.0, 1.0)) as i2 } }
  decode(w) { w.code as f32 }
}
)";
constexpr const char* kTiedFloat = R"(compressor tied_float {
  wire { value: [f32; n] }
  encode(g: [f32; n]) { wire { value: stochastic_round(g) } }
  decode(w) { w.value }
}
)";

ProgramFile program_file(const std::string& name) {
  if (name == "rounds") return *make_program(name, kRounds);
  if (name == "started") return *make_program(name, kStarted);
  if (name == "bulky") return *make_program(name, kBulky);
  if (name == "warming") return *make_program(name, kWarming);
  if (name == "growing") return *make_program(name, kGrowing);
  if (name == "bounded") return *make_program(name, kBounded);
  if (name == "tied") return *make_program(name, kTied);
  if (name == "tied_within") return *make_program(name, kTiedWithin);
  if (name == "tied_float") return *make_program(name, kTiedFloat);
  for (const auto& path : find_programs(CINCH_STDLIB_DIR)) {
    if (path.stem() == name) return *read_program(path);
  }
  throw std::runtime_error("no program " + name);
}

}  // namespace

const Both& program_for_both(const std::string& name) {
  static std::map<std::string, Both> made;
  const auto found = made.find(name);
  if (found != made.end()) return found->second;
  const auto compiled = compile(program_file(name));
  if (!compiled) throw std::runtime_error(compiled.error());
  const auto loaded = load_for(compiled->kernels, "x86-64");
  auto image =
      codegen::make_image(compiled->kernels, {codegen::TargetKind::Cuda, codegen::kEmulatedArch});
  return made.emplace(name, Both{*loaded, std::move(*image)}).first->second;
}

}  // namespace cinch::testing
