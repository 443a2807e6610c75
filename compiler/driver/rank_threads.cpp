// Bodies of rank_threads.h.
#include "compiler/driver/rank_threads.h"

#include <exception>
#include <thread>
#include <vector>

#include "compiler/driver/exit_code.h"

namespace cinch::driver {

namespace {

void rethrow_first(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr found;
  for (const std::exception_ptr& error : errors) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const CommandError& e) {
      if (!found || e.kind() != rt::ErrorKind::Cancelled) found = error;
      if (e.kind() != rt::ErrorKind::Cancelled) break;
    } catch (...) {
      found = error;
      break;
    }
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
  rethrow_first(errors);
}

}  // namespace cinch::driver
