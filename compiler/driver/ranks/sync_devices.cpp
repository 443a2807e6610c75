#include "compiler/driver/ranks/sync_rank.h"

#include "compiler/driver/front_end.h"
#include "compiler/driver/process/exit_code.h"
#include "compiler/driver/target.h"

namespace cinch::driver {

namespace {

// Any program: only the services that every image holds are used.
ProgramOptions any_program() {
  ProgramOptions any;
  any.program = "fp16";
  return any;
}

int count_devices(const rt::GpuDevice& device) {
  int count = 0;
  value_or_throw(device.status(device.driver().device_count(&count), "counting devices"));
  return count;
}

}  // namespace

rt::SyncDevice SyncDevices::open(int ordinal) {
  const auto device = open_gpu(execution_, ordinal);
  const codegen::Target target{codegen::TargetKind::Cuda, device->arch()};
  const auto load = [&](ProgramOptions program) {
    FrontEnd front_end;
    program.is_ahead_of_time = true;  // its speed is measured
    return value_or_throw(
        rt::GpuProgram::load(device, compile_program(front_end, program, target)));
  };
  rt::SyncDevice made;
  for (const ProgramOptions& program : programs_) made.programs.push_back(load(program));
  made.plain = programs_.empty() ? load(any_program()) : made.programs[0];
  if (device->driver().allocates_apart) made.turns = &turns_;
  return made;
}

std::optional<rt::SyncDevice> SyncDevices::of(std::uint32_t rank) {
  if (!is_gpu(execution_)) return std::nullopt;
  if (opened_.empty()) opened_[0] = open(0);
  const int count = count_devices(*opened_[0].plain->device());
  const int ordinal = static_cast<int>(rank % static_cast<std::uint32_t>(count));
  if (!opened_.contains(ordinal)) opened_[ordinal] = open(ordinal);
  return opened_[ordinal];
}

}  // namespace cinch::driver
