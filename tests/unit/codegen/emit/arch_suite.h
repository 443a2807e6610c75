// A test suite that runs once for each x86 level of this machine.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/codegen/emit/kernel_runner.h"

namespace cinch::codegen {
inline std::string arch_test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}
}  // namespace cinch::codegen

#define CINCH_ARCH_SUITE(Suite)                                \
  class Suite : public testing::TestWithParam<std::string> {}; \
  INSTANTIATE_TEST_SUITE_P(Arches, Suite, testing::ValuesIn(runnable_arches()), arch_test_name)
