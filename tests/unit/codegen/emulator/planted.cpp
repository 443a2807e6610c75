// Bodies of emulated.h.
#include "tests/unit/codegen/emulator/emulated.h"

#include <map>
#include <set>

#include "codegen/jit/emulated.h"

namespace cinch::emulator {

const Module* compile(const std::string& text, const std::vector<std::string>& kernels,
                      bool checks) {
  static std::map<std::pair<std::string, bool>, Module> modules;
  const auto found = modules.find({text, checks});
  if (found != modules.end()) return &found->second;
  codegen::KernelSource source;
  source.target = {codegen::TargetKind::Cuda, "sm_90"};
  source.text = text;
  source.symbols = kernels;
  const auto binary = codegen::compile_emulated(source, {.checks = checks});
  EXPECT_TRUE(binary) << (binary ? "" : binary.error().message);
  if (!binary) return nullptr;
  auto module = Module::load(*binary);
  EXPECT_TRUE(module) << (module ? "" : module.error().message);
  if (!module) return nullptr;
  return &modules.emplace(std::pair(text, checks), std::move(*module)).first->second;
}

namespace {

constexpr std::uint64_t kSeeds = 20;

// WORD(…) becomes the text in its parentheses, or nothing.
std::string resolve(std::string text, const std::string& word, bool is_kept) {
  const std::string mark = word + "(";
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
    std::size_t end = at + mark.size();
    for (int depth = 1; depth > 0; ++end) {
      if (text[end] == '(') ++depth;
      if (text[end] == ')') --depth;
    }
    const std::string inner = text.substr(at + mark.size(), end - 1 - at - mark.size());
    text.replace(at, end - at, is_kept ? inner : "");
  }
  return text;
}

std::string twin(const std::string& text, bool is_faulty) {
  return resolve(resolve(text, "FAULT", is_faulty), "RIGHT", !is_faulty);
}

// Lines of the comments `// here`.
std::set<int> marked_lines(const std::string& text) {
  std::set<int> lines;
  int line = 1;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n') ++line;
    if (text.compare(at, 7, "// here") == 0) lines.insert(line);
  }
  return lines;
}

struct Outcome {
  rt::Status status;
  std::vector<Finding> findings;
};

Outcome run(const Module& module, const Planted& planted, std::uint64_t seed) {
  Gpu gpu({.schedule_seed = seed, .max_loop_steps = 1u << 18});
  std::vector<int> values(planted.n);
  for (std::uint32_t i = 0; i < planted.n; ++i) values[i] = static_cast<int>(i);
  Array<int> out(gpu, planted.n);
  const Array in(gpu, values);
  if (planted.zeroes_out) out.zero();
  Params params(out.get(), in.get(), planted.n);
  const auto status = gpu.launch(module, "k", params.data(), {planted.blocks}, {planted.block},
                                 planted.shared_bytes);
  return {status, gpu.findings()};
}

}  // namespace

void planted(const Planted& planted) {
  const std::string faulty = twin(planted.text, true);
  const Module* module = compile(faulty, {"k"});
  const Module* correct = compile(twin(planted.text, false), {"k"});
  ASSERT_TRUE(module && correct);
  const std::set<int> lines = marked_lines(faulty);
  ASSERT_FALSE(lines.empty());
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Outcome found = run(*module, planted, seed);
    ASSERT_FALSE(found.status) << "not found with seed " << seed;
    EXPECT_EQ(found.status.error().kind, planted.error);
    ASSERT_FALSE(found.findings.empty());
    for (const Finding& finding : found.findings) {
      EXPECT_EQ(finding.kind, planted.kind) << finding.text;
      EXPECT_TRUE(lines.contains(finding.line)) << finding.text;
      EXPECT_EQ(finding.kernel, "k");
      EXPECT_NE(finding.text.find(planted.says), std::string::npos) << finding.text;
    }
    const Outcome clean = run(*correct, planted, seed);
    ASSERT_TRUE(clean.status) << "seed " << seed << ": " << clean.status.error().message;
  }
}

}  // namespace cinch::emulator
