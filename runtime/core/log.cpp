// Bodies of log.h.
#include "runtime/core/log.h"

#include <memory>
#include <mutex>
#include <utility>

namespace cinch::rt {
namespace {

using TakesLines = std::function<void(const std::string&)>;

struct Log {
  std::mutex mutex;
  std::shared_ptr<const TakesLines> takes_lines;
};

// It is never destroyed: threads may outlive static objects.
Log& the_log() {
  static Log& log = *new Log;
  return log;
}

}  // namespace

void set_log(std::function<void(const std::string& line)> takes_lines) {
  auto next = takes_lines ? std::make_shared<const TakesLines>(std::move(takes_lines)) : nullptr;
  const std::lock_guard lock(the_log().mutex);
  the_log().takes_lines.swap(next);
}

void tell_log(const std::string& line) {
  std::shared_ptr<const TakesLines> takes_lines;
  {
    const std::lock_guard lock(the_log().mutex);
    takes_lines = the_log().takes_lines;
  }
  if (takes_lines != nullptr) (*takes_lines)(line);
}

}  // namespace cinch::rt
