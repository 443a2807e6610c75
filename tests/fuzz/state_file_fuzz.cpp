// libFuzzer target: state files, after a corrected preamble.
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/call/state_file.h"
#include "runtime/core/hash.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cinch::rt;
  const std::vector<std::uint8_t> held(12);
  const StateView expected[] = {{"a", "f32", held}, {"residual", "u3", held}};
  const StateFileKey key{{1, 2}, 3, 1};
  (void)read_states({data, size}, key, expected);
  std::vector<std::uint8_t> file = write_states(key, expected);
  file.resize(64);
  file.insert(file.end(), data, data + size);
  const std::uint64_t file_bytes = file.size();
  const std::uint64_t hash = cinch::hash64(file.data() + 64, file.size() - 64);
  std::memcpy(file.data() + 48, &file_bytes, 8);
  std::memcpy(file.data() + 56, &hash, 8);
  (void)read_states(file, key, expected);
  return 0;
}
