// Bodies of matrix_columns.h.
#include "compiler/driver/codecs/matrix_columns.h"

#include <cmath>

#include "compiler/driver/process/exit_code.h"

namespace cinch::driver {

std::int64_t matrix_columns(std::int64_t elements, std::optional<std::int64_t> asked) {
  if (asked) {
    if (elements % *asked == 0) return *asked;
    throw CommandError(ExitCode::Usage, "--elements must be a multiple of --columns");
  }
  if (elements == 0) return 1;
  auto columns = static_cast<std::int64_t>(std::sqrt(static_cast<double>(elements)));
  while (elements % columns != 0) --columns;
  return columns;
}

}  // namespace cinch::driver
