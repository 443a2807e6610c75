// Bodies of emulated.h.
#include "tests/unit/codegen/emulator/emulated.h"

#include <map>

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

}  // namespace cinch::emulator
