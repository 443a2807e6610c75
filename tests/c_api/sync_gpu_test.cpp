// Ranks of the C API that compute on the emulated GPU, whose driver replaces NVIDIA's: tensors are
// in device memory, and updates equal those of ranks on CPUs.
#include <gmock/gmock.h>

#include <fstream>

#include "codegen/emulator/driver.h"
#include "runtime/planner/plan_file.h"
#include "sync_ranks.h"

namespace cinch::c_api {

rt::Result<const rt::GpuDriver*> gpu_driver() {
  static const rt::GpuDriver& driver = emulator::start_driver();
  return &driver;
}

}  // namespace cinch::c_api

namespace cinch::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

TEST(CApiSyncGpu, RanksGiveWhatThoseOnCpusGive) {
  const Program cpu = compile_for(CINCH_CPU), gpu = compile_for(CINCH_CUDA);
  for (const char* plan : {"two_shot", "ring"}) {
    const RanksRun wanted = run_on_loopback({.programs = {cpu.get(), cpu.get()}, .plan = plan});
    EXPECT_THAT(wanted.errors, Each(""));
    const RanksRun both = run_on_loopback(
        {.devices = {CINCH_CUDA, CINCH_CUDA}, .programs = {gpu.get(), gpu.get()}, .plan = plan});
    const RanksRun one = run_on_loopback(
        {.devices = {CINCH_CPU, CINCH_CUDA}, .programs = {cpu.get(), gpu.get()}, .plan = plan});
    for (const RanksRun* run : {&both, &one}) {
      EXPECT_THAT(run->errors, Each("")) << plan;
      EXPECT_EQ(run->updates, wanted.updates) << plan;
    }
  }
}

// By a plan file. The library compiles the program, and what carries its sums, for the CPUs too.
TEST(CApiSyncGpu, CpusOfARankOnAGpuEncodeWhatThePlanSays) {
  for (const char* name : {"ef_sign", "dgc"}) {
    const Program cpu = compile_for(CINCH_CPU, name), gpu = compile_for(CINCH_CUDA, name);
    rt::PlanFile file;
    file.world = kWorld;
    file.programs = {{name, cpu->image().fingerprint}};
    file.routes = {{.plan = "two_shot", .device = rt::OptionDevice::Cpu}, {.plan = "two_shot"}};
    file.tensors = {{"large", 1501, 1, 0, 0}, {"small", 17, 1, rt::kDense, 1}};
    const std::string path = ::testing::TempDir() + "/on_cpus_" + name + ".json";
    std::ofstream(path) << rt::plan_file_to_json(file);
    const RanksRun wanted =
        run_on_loopback({.programs = {cpu.get(), cpu.get()}, .plan = path.c_str()});
    EXPECT_THAT(wanted.errors, Each("")) << name;
    const RanksRun found = run_on_loopback({.devices = {CINCH_CUDA, CINCH_CPU},
                                            .programs = {gpu.get(), cpu.get()},
                                            .plan = path.c_str()});
    EXPECT_THAT(found.errors, Each("")) << name;
    EXPECT_EQ(found.updates, wanted.updates) << name;
  }
}

TEST(CApiSyncGpu, WithoutAProgramAnyServes) {
  const Program gpu = compile_for(CINCH_CUDA);
  const RanksRun wanted = run_on_loopback({});
  RanksCase on_gpus{.devices = {CINCH_CUDA, CINCH_CUDA}, .plain = gpu.get()};
  const RanksRun run = run_on_loopback(on_gpus);
  EXPECT_THAT(run.errors, Each(""));
  EXPECT_EQ(run.updates, wanted.updates);
  on_gpus.plain = nullptr;
  EXPECT_THAT(run_on_loopback(on_gpus).errors, Each(HasSubstr("needs some program")));
}

TEST(CApiSyncGpu, ScaledStepsGiveWhatThoseOnCpusGive) {
  const Program cpu = compile_for(CINCH_CPU), gpu = compile_for(CINCH_CUDA);
  auto how = sized<cinch_step_options>();
  how.scale = 1000;
  how.is_sum = 1;
  how.skips_non_finite = 1;
  const RanksRun wanted = run_on_loopback({.programs = {cpu.get(), cpu.get()}, .how = &how});
  const RanksRun found = run_on_loopback(
      {.devices = {CINCH_CPU, CINCH_CUDA}, .programs = {cpu.get(), gpu.get()}, .how = &how});
  EXPECT_THAT(wanted.errors, Each(""));
  EXPECT_THAT(found.errors, Each(""));
  EXPECT_EQ(found.updates, wanted.updates);
  EXPECT_NE(found.updates, run_on_loopback({.programs = {cpu.get(), cpu.get()}}).updates);
}

TEST(CApiSyncGpu, ProgramsAreForTheDevice) {
  const Program cpu = compile_for(CINCH_CPU), gpu = compile_for(CINCH_CUDA);
  const RanksRun run =
      run_on_loopback({.devices = {CINCH_CPU, CINCH_CUDA}, .programs = {gpu.get(), cpu.get()}});
  EXPECT_THAT(run.errors[0],
              ::testing::AnyOf(HasSubstr("a program for a GPU"), HasSubstr("a program for CPUs")));
  EXPECT_THAT(run.errors[1],
              ::testing::AnyOf(HasSubstr("a program for a GPU"), HasSubstr("a program for CPUs")));
}

}  // namespace
}  // namespace cinch::testing
