// libFuzzer target: the payload reader, for a wire with a count, ascending indices with a limit,
// packed fields and a matrix. The check word is corrected, so that later checks are reached.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/core/sizes/host_expr.h"
#include "runtime/payload/payload.h"
#include "tests/fuzz/target.h"

namespace {

using namespace cinch;

rt::ProgramInfo make_info() {
  rt::ProgramInfo info;
  HostExprPool& pool = *info.exprs;
  const HostExprId n = pool.n(), m = pool.count(0, n);
  info.counts = info.wire.counts = {{"m", n}};
  info.wire.fields = {{"index", {kU32, 1, {m}}, rt::FieldSum::None, true, n},
                      {"code", {DType{DTypeKind::Int, 5}, 1, {m}}},
                      {"place",
                       {DType{DTypeKind::UInt, 11}, 2, {n, pool.const_int(2)}},
                       rt::FieldSum::None,
                       false,
                       pool.const_int(1000)},
                      {"flag", {kBool, 1, {n}}}};
  return info;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rt::ProgramInfo kInfo = make_info();
  std::vector<std::uint8_t> bytes(data, data + size);
  rt::PayloadExpectation expected;
  expected.info = &kInfo;
  expected.env.n = expected.env.rows = 37;
  (void)rt::read_payload(bytes, expected);
  if (size < 68) return 0;
  const std::int64_t payload_bytes = static_cast<std::int64_t>(size);
  std::memcpy(bytes.data() + 56, &payload_bytes, 8);
  const std::uint32_t word = rt::payload_check_word(bytes, 1);
  std::memcpy(bytes.data() + rt::kPayloadCheckOffset, &word, 4);
  const auto view = rt::read_payload(bytes, expected);
  if (!view || view->header.is_non_finite()) return 0;
  // An accepted payload keeps its promises.
  for (std::size_t i = 0; i < view->counts[0]; ++i) {
    std::uint32_t index = 0;
    std::memcpy(&index, view->fields[0].data() + 4 * i, 4);
    if (index >= 37) std::abort();
  }
  return 0;
}
