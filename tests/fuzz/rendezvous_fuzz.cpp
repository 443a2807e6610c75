// libFuzzer target: bytes of strangers at the sockets where ranks meet, and headers of messages
// that no rank has sent.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "runtime/transports/ucx/rendezvous.h"
#include "runtime/transports/ucx/sockets.h"
#include "runtime/transports/ucx/ucx_links.h"
#include "tests/fuzz/target.h"

namespace {

using namespace cinch::rt;
using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kMostBody = 300;
constexpr std::uint32_t kWorld = 3;

void read_frame(const Frame& frame) {
  if (frame.body.size() > kMostBody) std::abort();
  const int num_kinds = read_hello(frame).has_value() + read_challenge(frame).has_value() +
                        read_answer(frame).has_value() + read_verdict(frame).has_value();
  if (num_kinds > 1) std::abort();
  const auto round = read_round(frame.body, kWorld);
  if (round && round->size() != kWorld) std::abort();
  // Nobody has the key.
  if (unsealed(sha256({}), "way", 0, frame.body)) std::abort();
  if (const auto said = read_part(frame.body)) (void)read_card(*said);
}

// In two pieces, as a stream brings them: the frames are the same ones.
void read_stream(Bytes bytes, std::size_t first) {
  FrameReader whole, in_pieces;
  whole.add(bytes);
  in_pieces.add(bytes.first(first));
  std::size_t num_whole = 0, num_in_pieces = 0;
  for (auto frame = whole.next(kMostBody); frame && *frame; frame = whole.next(kMostBody)) {
    read_frame(**frame);
    ++num_whole;
  }
  bool is_over = false;
  const auto take = [&] {
    for (;;) {
      const auto frame = in_pieces.next(kMostBody);
      is_over = is_over || !frame;
      if (!frame || !*frame) return;
      ++num_in_pieces;
    }
  };
  take();
  if (!is_over) {
    in_pieces.add(bytes.subspan(first));
    take();
  }
  if (num_whole != num_in_pieces) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Bytes bytes(data + 1, size - 1);
  read_stream(bytes, std::min<std::size_t>(data[0], bytes.size()));
  const SipKey keys[kWorld] = {{1, 2}, {3, 4}, {5, 6}};
  if (read_header(bytes, keys)) std::abort();
  (void)parse_net_address(std::string(bytes.begin(), bytes.end()));
  return 0;
}
