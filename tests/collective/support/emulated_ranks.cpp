// Bodies of emulated_ranks.h.
#include "tests/collective/support/emulated_ranks.h"

#include <gtest/gtest.h>

#include <map>

#include "codegen/jit/compile_program.h"
#include "tests/programs/harness/compile.h"

namespace cinch::testing {
namespace {

// Compiled once per process.
const rt::ProgramImage& emulated_image(const std::string& expression) {
  static std::map<std::string, rt::ProgramImage> made;
  const auto found = made.find(expression);
  if (found != made.end()) return found->second;
  const auto compiled = compile(library_file(expression));
  EXPECT_TRUE(compiled) << expression << ": " << compiled.error();
  auto image =
      codegen::make_image(compiled->kernels, {codegen::TargetKind::Cuda, codegen::kEmulatedArch});
  EXPECT_TRUE(image) << expression << ": " << image.error().message;
  return made.emplace(expression, std::move(*image)).first->second;
}

std::shared_ptr<const rt::GpuProgram> load_on(const std::shared_ptr<const rt::GpuDevice>& device,
                                              const std::string& expression) {
  auto program = rt::GpuProgram::load(device, emulated_image(expression));
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
