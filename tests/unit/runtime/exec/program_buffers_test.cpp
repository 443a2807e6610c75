// The memory of a session: exact sizes, reuse, states that are swapped only on commit.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "runtime/core/sizes/host_expr.h"
#include "runtime/exec/program_buffers.h"

namespace cinch::rt {
namespace {

ProgramImage state_image() {
  ProgramImage image;
  HostExprPool& pool = *image.info.exprs;
  const HostExprId n = pool.n(), bytes = pool.mul(n, pool.const_int(4));
  image.info.states = {{"s", {kF32, 1, {n}}}};
  image.info.counts = {{"m", n}};
  image.info.wire.counts = {{"m", n}};
  image.constants = {{7, 8, 9}};
  image.buffers = {{"s", kF32, 32, n, BufferRole::State, 0, bytes},
                   {"s'", kF32, 32, n, BufferRole::StateNext, 0, bytes},
                   {"w", kF32, 32, n, BufferRole::Workspace, 0, bytes},
                   {"m", kU32, 32, pool.const_int(1), BufferRole::Count, 0, pool.const_int(4)},
                   {"t", kU8, 8, pool.const_int(3), BufferRole::Constant, 0, pool.const_int(3)},
                   {"g", kF32, 32, n, BufferRole::Gradient, 0, bytes}};
  image.entries[1] = {true, {}, {0, 1, 2, 3, 4, 5}};
  image.entries[2] = {true, {}, {0, 2}};
  return image;
}

HostEnv env_of(std::int64_t n) {
  HostEnv env;
  env.n = n;
  env.rows = n;
  return env;
}

TEST(ProgramBuffers, PreparesByRole) {
  const ProgramImage image = state_image();
  ProgramBuffers buffers(image);
  ASSERT_TRUE(buffers.allocate_states(std::vector<std::int64_t>{40}));
  ASSERT_TRUE(buffers.prepare(EntryKind::Encode, env_of(10), true));
  EXPECT_EQ(buffers.bytes()[2], 40);
  EXPECT_EQ(buffers.pointers()[5], nullptr) << "gradients are the caller's";
  EXPECT_EQ(static_cast<std::uint8_t*>(buffers.pointers()[2])[39], 0xa5) << "poisoned";
  EXPECT_EQ(static_cast<std::uint8_t*>(buffers.pointers()[4])[1], 8);
  EXPECT_EQ(buffers.state(0)[39], 0) << "states start as zero";
  EXPECT_EQ(buffers.count(0), 0u);
  buffers.set_count(0, 17);
  EXPECT_EQ(buffers.count(0), 17u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffers.pointers()[2]) % kBufferAlignment, 0u);
  EXPECT_EQ(buffers.state_bytes(), 40);
  EXPECT_EQ(buffers.workspace_bytes(), 40 + 40 + 4 + 3);
}

TEST(ProgramBuffers, StatesChangeOnlyOnCommitOfWhatWritesThem) {
  const ProgramImage image = state_image();
  ProgramBuffers buffers(image);
  ASSERT_TRUE(buffers.allocate_states(std::vector<std::int64_t>{4}));
  ASSERT_TRUE(buffers.prepare(EntryKind::Encode, env_of(1), false));
  const float value = 3;
  std::memcpy(buffers.pointers()[1], &value, 4);
  float held = -1;
  std::memcpy(&held, buffers.state(0).data(), 4);
  EXPECT_EQ(held, 0);
  buffers.commit_states(EntryKind::Decode);
  std::memcpy(&held, buffers.state(0).data(), 4);
  EXPECT_EQ(held, 0) << "decode writes no state";
  buffers.commit_states(EntryKind::Encode);
  std::memcpy(&held, buffers.state(0).data(), 4);
  EXPECT_EQ(held, 3);
}

TEST(ProgramBuffers, KeepsMemoryAcrossCallsOfOneSize) {
  const ProgramImage image = state_image();
  ProgramBuffers buffers(image);
  ASSERT_TRUE(buffers.allocate_states(std::vector<std::int64_t>{400}));
  ASSERT_TRUE(buffers.prepare(EntryKind::Encode, env_of(100), false));
  void* workspace = buffers.pointers()[2];
  ASSERT_TRUE(buffers.prepare(EntryKind::Encode, env_of(100), false));
  EXPECT_EQ(buffers.pointers()[2], workspace);
  float gradient = 0;
  EXPECT_EQ(buffers.bind(BufferRole::Gradient, 0, &gradient, 399).error().kind,
            ErrorKind::Overflow);
  ASSERT_TRUE(buffers.bind(BufferRole::Gradient, 0, &gradient, 400));
  EXPECT_EQ(buffers.pointers()[5], &gradient);
  ASSERT_TRUE(buffers.prepare(EntryKind::Decode, env_of(100), false));
  EXPECT_EQ(buffers.pointers()[5], nullptr) << "bindings last one call";
}

TEST(ProgramBuffers, RefusesSizesThatDoNotFit) {
  const ProgramImage image = state_image();
  ProgramBuffers buffers(image);
  ASSERT_TRUE(buffers.allocate_states(std::vector<std::int64_t>{4}));
  EXPECT_EQ(buffers.prepare(EntryKind::Encode, env_of(2), false).error().kind, ErrorKind::Internal);
  EXPECT_EQ(buffers.prepare(EntryKind::Encode, env_of(INT64_MAX / 2), false).error().kind,
            ErrorKind::Overflow);
}

TEST(ProgramBuffers, RefusesWhatFormulasOfAFileMayGive) {
  ProgramImage image = state_image();
  HostExprPool& pool = *image.info.exprs;
  const auto fault_with = [&](BufferIndex index, HostExprId size) {
    ProgramImage changed = image;
    changed.buffers[index].size_bytes = size;
    ProgramBuffers buffers(changed);
    EXPECT_TRUE(buffers.allocate_states(std::vector<std::int64_t>{40}));
    const Status status = buffers.prepare(EntryKind::Encode, env_of(10), false);
    return status ? std::optional<ErrorKind>() : status.error().kind;
  };
  EXPECT_EQ(fault_with(2, pool.const_int(40)), std::nullopt);
  EXPECT_EQ(fault_with(2, pool.const_int(-1)), std::nullopt) << "as of a branch not taken";
  EXPECT_EQ(fault_with(2, pool.const_int(INT64_MAX)), ErrorKind::Overflow);
  EXPECT_EQ(fault_with(5, pool.const_int(41)), ErrorKind::Overflow) << "more than the gradient";
  EXPECT_EQ(fault_with(1, pool.const_int(44)), ErrorKind::Internal) << "a next state of its own";
}

TEST(AlignedBuffer, SizesAndErrors) {
  AlignedBuffer buffer;
  EXPECT_TRUE(buffer.resize(0));
  EXPECT_EQ(buffer.size_bytes(), 0);
  EXPECT_TRUE(buffer.resize(5));
  EXPECT_EQ(buffer.bytes().size(), 5u);
  EXPECT_EQ(buffer.resize(-1).error().kind, ErrorKind::InvalidArgument);
  EXPECT_TRUE(buffer.resize(std::int64_t{8} << 20));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % (1 << 21), 0u);
}

}  // namespace
}  // namespace cinch::rt
