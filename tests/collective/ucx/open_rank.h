// One rank over UCX, for tests: launches.py starts it, and configures it by the environment.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/transports/ucx/ucx_transport.h"
#include "tests/environment.h"

namespace cinch::testing {

inline std::string text_from(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

/// Each transport of a process meets the others at a new port.
inline std::unique_ptr<rt::Transport> open_rank() {
  static std::uint64_t num_opened = 0;
  rt::UcxOptions options;
  options.rank = static_cast<std::uint32_t>(number_from("RANK", 0));
  options.world = static_cast<std::uint32_t>(number_from("WORLD_SIZE", 1));
  options.rendezvous = "127.0.0.1:" + std::to_string(number_from("CINCH_PORT", 1) + num_opened++);
  options.secret = text_from("CINCH_SECRET");
  options.transports = text_from("CINCH_UCX_PATHS");
  options.interface = "lo";
  auto transport = rt::open_ucx_transport(options);
  if (!transport) {
    ADD_FAILURE() << transport.error().message;
    std::exit(1);
  }
  return std::move(*transport);
}

}  // namespace cinch::testing
