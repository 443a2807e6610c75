// libFuzzer target: the .npy reader. An array that is read must be written and read back the same.
#include <cstdint>
#include <cstdlib>

#include "runtime/payload/npy.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cinch;
  (void)rt::parse_npy_header({data, size});
  const auto array = rt::parse_npy({data, size});
  if (!array) return 0;
  const auto file = rt::format_npy(*array);
  if (!file) std::abort();
  const auto again = rt::parse_npy(*file);
  if (!again || again->dtype != array->dtype || again->shape != array->shape ||
      again->bytes != array->bytes)
    std::abort();
  return 0;
}
