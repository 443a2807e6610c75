// The `cinch` command: every way in which a command can end.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>
#include <vector>

#include "compiler/driver/command_line.h"
#include "compiler/driver/process/exit_code.h"
#include "compiler/driver/process/interrupt.h"
#include "compiler/driver/process/json_output.h"
#include "compiler/driver/process/standard_streams.h"
#include "compiler/driver/report/report.h"

namespace {

using cinch::driver::ExitCode;

int end_with_lost_output(ExitCode code, const std::string& reason) {
  std::fprintf(stderr, "error: cannot write to standard output: %s\n", reason.c_str());
  return static_cast<int>(code == ExitCode::Done ? ExitCode::AtFault : code);
}

int end_with(ExitCode code, const std::string& message) {
  cinch::driver::end_if_interrupted();
  if (!message.empty()) std::fprintf(stderr, "error: %s\n", message.c_str());
  try {
    if (code != ExitCode::Done) cinch::driver::print_failure(code, message);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: no JSON is printed: %s\n", error.what());
  }
  const std::string unwritten = cinch::driver::flush_output();
  return unwritten.empty() ? static_cast<int>(code) : end_with_lost_output(code, unwritten);
}

int end_with_fault(const cinch::InternalError& error, const std::vector<std::string>& words) {
  if (error.kind() == cinch::InternalErrorKind::Limitation) {
    return end_with(ExitCode::Unavailable, "not in this version: " + error.message());
  }
  const std::string report = cinch::driver::write_report(error, words);
  const std::string place =
      report.empty() ? "no report could be written" : "a report is in " + report;
  return end_with(
      ExitCode::Internal,
      std::string(error.what()) + "\nThis is a fault of Cinch, not of the program; " + place);
}

// For output that cannot be written, and for exhausted resources of the machine.
int end_with_system_error(const std::system_error& error, const std::vector<std::string>& words) {
  if (std::ferror(stdout) != 0) {
    return end_with_lost_output(ExitCode::AtFault, error.code().message());
  }
  const bool is_shortage = error.code() == std::errc::too_many_files_open ||
                           error.code() == std::errc::too_many_files_open_in_system ||
                           error.code() == std::errc::resource_unavailable_try_again ||
                           error.code() == std::errc::not_enough_memory;
  if (is_shortage) return end_with(ExitCode::Unavailable, error.what());
  return end_with_fault({cinch::InternalErrorKind::Bug, error.what(), "main"}, words);
}

}  // namespace

int main(int argc, char** argv) {
  cinch::driver::hold_standard_streams();
  cinch::driver::install_interrupt_handler();
  try {
    const ExitCode code = cinch::driver::run_command_line(argc, argv);
    return end_with(code, "");
  } catch (const cinch::driver::CommandError& error) {
    return end_with(error.code(), error.what());
  } catch (const cinch::service::ServiceError& error) {
    return end_with(cinch::driver::exit_code_of(error.fault()), error.what());
  } catch (const cinch::InternalError& error) {
    return end_with_fault(error, std::vector<std::string>(argv, argv + argc));
  } catch (const std::bad_alloc&) {
    // Ends at once: objects that ran out of memory are half made and may not be destroyed.
    end_with(ExitCode::Unavailable, "not enough memory");
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(ExitCode::Unavailable));
  } catch (const std::system_error& error) {
    return end_with_system_error(error, std::vector<std::string>(argv, argv + argc));
  } catch (const std::exception& error) {
    const cinch::InternalError fault(cinch::InternalErrorKind::Bug, error.what(), "main");
    return end_with_fault(fault, std::vector<std::string>(argv, argv + argc));
  }
}
