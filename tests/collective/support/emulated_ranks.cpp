// Bodies of emulated_ranks.h.
#include "tests/collective/support/emulated_ranks.h"

#include <gtest/gtest.h>

#include <map>

#include "codegen/jit/compile_program.h"
#include "tests/programs/harness/compile.h"

namespace cinch::testing {
namespace {

// Compiled once per process.
const rt::ProgramImage& emulated_image(const std::string& expression, bool is_carrier) {
  static std::map<std::pair<std::string, bool>, rt::ProgramImage> made;
  const auto found = made.find({expression, is_carrier});
  if (found != made.end()) return found->second;
  ProgramFile file = library_file(expression);
  file.is_carrier = is_carrier;
  const auto compiled = compile(file);
  EXPECT_TRUE(compiled) << expression << ": " << compiled.error();
  auto image =
      codegen::make_image(compiled->kernels, {codegen::TargetKind::Cuda, codegen::kEmulatedArch});
  EXPECT_TRUE(image) << expression << ": " << image.error().message;
  return made.emplace(std::pair(expression, is_carrier), std::move(*image)).first->second;
}

std::shared_ptr<const rt::GpuProgram> load_on(const std::shared_ptr<const rt::GpuDevice>& device,
                                              const std::string& expression,
                                              bool is_carrier = false) {
  auto program = rt::GpuProgram::load(device, emulated_image(expression, is_carrier));
  EXPECT_TRUE(program) << expression << ": " << program.error().message;
  return *program;
}

}  // namespace

rt::SyncDevice sync_device_on(const std::shared_ptr<const rt::GpuDevice>& device,
                              const std::vector<std::string>& expressions) {
  rt::SyncDevice made;
  for (const std::string& expression : expressions) {
    made.programs.push_back(load_on(device, expression));
  }
  // In the order of facts_of.
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    if (made.programs[i]->info().carrier.kind != rt::CarrierKind::Program) continue;
    made.programs.push_back(load_on(device, expressions[i], true));
  }
  if (expressions.empty()) made.plain = load_on(device, "signsgd");
  return made;
}

EmulatedRanks::EmulatedRanks(const emulator::GpuOptions& options)
    : gpu_(*rt::GpuDevice::open(emulator::start_driver(options))) {}

rt::SyncDevice EmulatedRanks::device(const std::vector<std::string>& expressions) {
  rt::SyncDevice made = sync_device_on(gpu_, expressions);
  made.turns = &turns_;
  return made;
}

}  // namespace cinch::testing
