// libFuzzer target: any bytes through the kernel IR's parser, verifier and printer.
// A program that the verifier accepts must come back from its text unchanged.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "codegen/kir/text/text.h"
#include "codegen/kir/verifier.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cinch;
  const auto program = kir::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!program || !kir::first_complaint(*program).empty()) return 0;
  const std::string text = kir::print(*program);
  const auto again = kir::parse(text);
  if (!again || !kir::first_complaint(*again).empty() || kir::print(*again) != text) std::abort();
  return 0;
}
