// libFuzzer target: a rank's checkpoint after a corrected preamble, and states of other pieces that
// are joined. The first two bytes are the length of the description.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/call/joins.h"
#include "runtime/core/hash.h"
#include "runtime/sync/states/checkpoint.h"
#include "tests/fuzz/target.h"

namespace {

using namespace cinch;

constexpr std::size_t kPreamble = 40, kHashedFrom = 32;

void seal(std::vector<std::uint8_t>& file, std::uint64_t description_bytes) {
  const std::uint64_t bytes = file.size();
  std::memcpy(file.data() + 16, &bytes, 8);
  std::memcpy(file.data() + 32, &description_bytes, 8);
  const std::uint64_t hash = hash64(file.data() + kHashedFrom, file.size() - kHashedFrom);
  std::memcpy(file.data() + 24, &hash, 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)rt::read_checkpoint({data, size});
  if (size < 2) return 0;
  std::uint16_t description_bytes = 0;
  std::memcpy(&description_bytes, data, 2);
  std::vector<std::uint8_t> file = rt::write_checkpoint({});
  file.resize(kPreamble);
  file.insert(file.end(), data + 2, data + size);
  seal(file, description_bytes);
  const auto read = rt::read_checkpoint(file);
  if (!read) return 0;
  const auto again = rt::read_checkpoint(rt::write_checkpoint(*read));
  if (!again || *again != *read) std::abort();
  std::vector<rt::StateSlice> slices;
  for (const rt::SavedSite& site : read->sites) {
    slices.push_back({site.first, site.num_elems, site.states});
  }
  if (slices.empty()) return 0;
  const auto joined = rt::join_slices(slices.front(), std::span(slices).subspan(1));
  if (joined && joined->size() != slices.front().states.size()) std::abort();
  return 0;
}
