// libFuzzer target: image files. The bytes stand behind a preamble that is made right, so that the
// checksum does not hide the reader from the fuzzer. What is read must be written and read again.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/image/image_file.h"
#include "tests/fuzz/target.h"

namespace {

constexpr std::size_t kPreamble = 48;

// The first two bytes say how many of the rest are JSON.
std::vector<std::uint8_t> seal(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> file(kPreamble, 0);
  file.insert(file.end(), data + 2, data + size);
  const std::uint64_t json_bytes =
      static_cast<std::uint64_t>(data[0] | data[1] << 8) % (size - 2 + 1);
  const std::uint64_t sizes[2] = {file.size(), json_bytes};
  const std::uint32_t version = cinch::rt::kImageFormatVersion;
  const cinch::Hash128 hash = cinch::hash128(file.data() + kPreamble, file.size() - kPreamble);
  std::memcpy(file.data(), "CINCHIMG", 8);
  std::memcpy(file.data() + 8, &version, 4);
  std::memcpy(file.data() + 16, sizes, 16);
  std::memcpy(file.data() + 32, &hash.low, 8);
  std::memcpy(file.data() + 40, &hash.high, 8);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)cinch::rt::read_image({data, size});
  if (size < 2) return 0;
  const auto image = cinch::rt::read_image(seal(data, size));
  if (!image) return 0;
  const auto again = cinch::rt::read_image(cinch::rt::write_image(*image));
  if (!again) std::abort();
  return 0;
}
