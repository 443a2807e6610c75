#include "runtime/core/own_stack.h"

#include <pthread.h>

#include <csignal>
#include <cstdint>
#include <exception>

namespace cinch::rt {
namespace {

struct Stack {
  std::uintptr_t begin = 0, end = 0;  // it grows from the end
};

Stack stack_of_thread() {
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return {};
  void* begin = nullptr;
  std::size_t size = 0;
  ::pthread_attr_getstack(&attributes, &begin, &size);
  ::pthread_attr_destroy(&attributes);
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  return {at, at + size};
}

struct Work {
  const std::function<void()>& run;
  std::exception_ptr thrown;
};

void* run_work(void* given) {
  auto& work = *static_cast<Work*>(given);
  try {
    work.run();
  } catch (...) {
    work.thrown = std::current_exception();
  }
  return nullptr;
}

}  // namespace

bool has_stack(std::size_t bytes) {
  thread_local const Stack kStack = stack_of_thread();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return here > kStack.begin && here <= kStack.end && here - kStack.begin >= bytes;
}

void run_on_own_stack(std::size_t bytes, const std::function<void()>& work) {
  Work given{work, nullptr};
  sigset_t blocked;
  sigset_t before;
  ::sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
    ::sigdelset(&blocked, fault);
  }
  pthread_attr_t attributes;
  pthread_t thread{};
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, bytes);
  ::pthread_sigmask(SIG_SETMASK, &blocked, &before);
  const bool has_started = ::pthread_create(&thread, &attributes, run_work, &given) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (has_started) {
    ::pthread_join(thread, nullptr);
  } else {
    run_work(&given);
  }
  if (given.thrown) std::rethrow_exception(given.thrown);
}

}  // namespace cinch::rt
