// libFuzzer target: any bytes through the IR's parser, verifier and printer. A program that the
// verifier accepts must come back from its text unchanged; any other is printed without harm.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "compiler/ir/text/text.h"
#include "compiler/ir/verifier.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cinch;
  const auto program = ir::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!program) return 0;
  const std::string text = ir::print(*program);
  if (ir::find_fault(*program)) return 0;
  const auto again = ir::parse(text);
  if (!again || ir::find_fault(*again) || ir::print(*again) != text) std::abort();
  return 0;
}
