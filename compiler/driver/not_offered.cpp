// Commands whose names are taken but that this version does not offer.
#include "compiler/driver/commands.h"

namespace cinch::driver {

ExitCode run_not_offered(const std::string& command) {
  throw CommandError(ExitCode::Unavailable, "'cinch " + command + "' is not in this version");
}

}  // namespace cinch::driver
