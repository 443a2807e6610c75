// Buffers in the order of hand_kernels.cpp.
#include "hand_program.h"

#include "runtime/core/files/file_bytes.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/image/image.h"

namespace cinch::rt {
namespace {

KernelInfo kernel(const char* symbol, HostExprId groups, bool is_sequential) {
  KernelInfo info;
  info.symbol = symbol;
  info.num_groups = groups;
  info.is_sequential = is_sequential;
  return info;
}

Entry entry(std::vector<Step> steps, std::vector<BufferIndex> buffers) {
  return {true, std::move(steps), std::move(buffers)};
}

}  // namespace

ProgramImage hand_image(HandOptions options) {
  ProgramImage image;
  ProgramInfo& info = image.info;
  HostExprPool& pool = *info.exprs;
  const HostExprId n = pool.n(), m = pool.count(0, n), bytes = pool.mul(n, pool.const_int(4));
  const HostExprId tiles = pool.ceil_div(n, pool.const_int(1024)), one = pool.const_int(1);
  info.name = "hand";
  info.params = {{"tau", kF32, 0.5, ParamRange{0.0, 4.0, true, false}}};
  info.states = {{"residual", {kF32, 1, {n}}}};
  info.counts = info.wire.counts = {{"m", n}};
  info.wire.fields = {{"index", {kU32, 1, {m}}, FieldSum::None, true, n},
                      {"value", {kF32, 1, {m}}}};
  info.has_finish = options.has_finish;
  image.target = "cpu:x86-64";
  image.fingerprint = fingerprint(info);
  image.size_exprs = {n, pool.world()};
  image.messages = {"no 12345"};
  image.buffers = {{"g", kF32, 32, n, BufferRole::Gradient, 0, bytes},
                   {"residual", kF32, 32, n, BufferRole::State, 0, bytes},
                   {"residual'", kF32, 32, n, BufferRole::StateNext, 0, bytes},
                   {"m", kU32, 32, one, BufferRole::Count, 0, pool.const_int(4)},
                   {"index", kU32, 32, n, BufferRole::Field, 0, bytes},
                   {"value", kF32, 32, n, BufferRole::Field, 1, bytes},
                   {"out", kF32, 32, n, BufferRole::Output, 0, bytes}};
  image.kernels = {kernel("hand_encode", tiles, true), kernel("hand_scatter", tiles, false),
                   kernel("hand_scatter_add", tiles, true), kernel("hand_init", tiles, false),
                   kernel("hand_finish", tiles, false)};
  const auto launch = [](std::uint32_t index) { return Step{StepKind::Launch, index}; };
  image.entries[1] = entry({launch(0)}, {0, 1, 2, 3, 4, 5});
  image.entries[2] = entry({{StepKind::Zero, 6}, launch(1)}, {3, 4, 5, 6});
  if (options.has_init) image.entries[0] = entry({launch(3)}, {2});
  if (options.has_decode_add) image.entries[3] = entry({launch(2)}, {3, 4, 5, 6});
  if (options.has_finish) image.entries[4] = entry({launch(4)}, {0, 1, 2, 6});
  image.binary = read_file_bytes(CINCH_HAND_KERNELS).value();
  return image;
}

}  // namespace cinch::rt
