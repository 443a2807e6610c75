// Bodies of rank_threads.h.
#include "compiler/driver/ranks/rank_threads.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

#include "compiler/driver/process/exit_code.h"

namespace cinch::driver {

namespace {

// How close the error is to the cause: errors of ranks that were told of it, or waited in vain,
// come later.
int nearness(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CommandError& e) {
    return e.kind() == rt::ErrorKind::Cancelled ? 1 : e.kind() == rt::ErrorKind::TimedOut ? 2 : 3;
  } catch (...) {
    return 3;
  }
}

void rethrow_nearest(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr found;
  int nearest = 0;
  for (const std::exception_ptr& error : errors) {
    const int near = error ? nearness(error) : 0;
    if (near > nearest) found = error;
    nearest = std::max(nearest, near);
  }
  if (found) std::rethrow_exception(found);
}

}  // namespace

void run_on_rank_threads(std::uint32_t world, const std::function<void(std::uint32_t)>& body) {
  std::vector<std::exception_ptr> errors(world);
  std::vector<std::thread> threads;
  threads.reserve(world);
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  rethrow_nearest(errors);
}

}  // namespace cinch::driver
