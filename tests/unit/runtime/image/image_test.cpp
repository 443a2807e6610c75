// Image files: a full image survives the round trip to the bit; damaged and malicious bytes are
// errors, never crashes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "runtime/core/files/file_bytes.h"
#include "runtime/core/hash.h"
#include "runtime/image/gpu_abi.h"
#include "runtime/image/image.h"
#include "runtime/image/image_file.h"
#include "runtime/image/validate.h"

namespace cinch::rt {
namespace {

using testing::HasSubstr;

// An image that uses every member at least once: a table.
ProgramImage full_image() {
  ProgramImage image;
  ProgramInfo& info = image.info;
  HostExprPool& pool = *info.exprs;
  const HostExprId n = pool.n();
  const HostExprId k = pool.clamp(
      pool.cast(pool.make(HostOp::Ceil,
                          pool.mul(pool.param(0, HostType::F32), pool.cast(n, HostType::F32))),
                HostType::Int),
      pool.const_int(1), n);
  const HostExprId m = pool.count(0, n);
  info.name = "sample";
  info.source = "sample.cinch";
  info.doc = "A sample.";
  info.constants = {{"bits", 4}, {"scale", 0.1}};
  info.params = {{"ratio", kF32, 0.01, ParamRange{0.0, 1.0, true, false}}, {"free", kI32, 3, {}}};
  info.sizes = {{"k", k}};
  info.states = {{"residual", {kF32, 1, {n}}}};
  info.counts = {{"m", n}, {"inner", k}};
  info.wire.counts = {{"m", n}};
  info.wire.fields = {
      {"index", {kU32, 1, {m}}, FieldSum::None, true, n, "[u32; m] of words"},
      {"code", {DType{DTypeKind::Int, 4}, 2, {k, pool.const_int(2)}}, FieldSum::Sum}};
  info.decode_draws = true;
  info.decode_world = true;
  info.decode_step = true;
  info.is_finish_linear = true;
  info.aggregation = Aggregation::SumToTest;
  image.target = "cpu:x86-64";
  image.fingerprint = fingerprint(info);
  const HostExprId bytes = pool.mul(n, pool.const_int(4));
  image.buffers = {
      {"g", kF32, 32, n, BufferRole::Gradient, 0, bytes},
      {"flag", kBool, 8, pool.const_int(1), BufferRole::Workspace, 0, pool.const_int(1)},
      {"i", kI64, 64, pool.const_int(1), BufferRole::Workspace, 0, pool.const_int(8)},
      {"table", kU8, 8, pool.const_int(3), BufferRole::Constant, 0, pool.const_int(3)},
      {"carried", kF32, 32, n, BufferRole::Workspace, 0, bytes},
      {"next", kF32, 32, n, BufferRole::Workspace, 0, bytes},
      {"m", kU32, 32, pool.const_int(1), BufferRole::Count, 0, pool.const_int(4)},
      {"residual", kF32, 32, n, BufferRole::State, 0, bytes},
      {"index", kU32, 32, n, BufferRole::Field, 0, bytes}};
  image.size_exprs = {n, k};
  image.kernels = {{"encode0",
                    KernelRole::Sweep,
                    pool.ceil_div(n, pool.const_int(1024)),
                    8,
                    true,
                    false,
                    {"map", "reduce"},
                    bytes,
                    bytes}};
  image.messages = {"k must fit"};
  image.constants = {{1, 2, 3}};
  Step launch{StepKind::Launch, 0};
  Step loop{StepKind::For, 2, kNoIndex, pool.const_int(0), k, {}, {launch}, {}};
  Step search{StepKind::While, 1, kNoIndex, pool.const_int(20), {}, {launch}, {loop}, {}};
  Step branch{StepKind::If, 1, kNoIndex, {}, {}, {}, {search}, {launch}};
  Step check{StepKind::CheckHost, 0, kNoIndex, pool.make(HostOp::Le, k, n)};
  Entry& encode = image.entries[static_cast<std::size_t>(EntryKind::Encode)];
  encode = {true,
            {check, {StepKind::Zero, 1}, {StepKind::Copy, 4, 5}, branch},
            {0, 1, 2, 3, 4, 5, 6, 7, 8}};
  image.binary = {0x7f, 'E', 'L', 'F', 9};
  image.counts_accesses = true;
  return image;
}

// Writes bytes whose JSON `change` has modified, with a correct checksum, as an attacker can.
template <typename Change>
std::vector<std::uint8_t> forged(const Change& change) {
  const auto bytes = write_image(full_image());
  std::uint64_t json_bytes = 0;
  std::memcpy(&json_bytes, bytes.data() + 24, 8);
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + 48;
  nlohmann::json json = nlohmann::json::parse(text, text + json_bytes);
  change(json);
  const std::string changed = json.dump();
  std::vector<std::uint8_t> out(bytes.begin(), bytes.begin() + 48);
  out.insert(out.end(), changed.begin(), changed.end());
  out.resize((out.size() + 15) / 16 * 16, 0);
  const std::size_t blobs = (48 + json_bytes + 15) / 16 * 16;
  out.insert(out.end(), bytes.begin() + blobs, bytes.end());
  const std::uint64_t sizes[2] = {out.size(), changed.size()};
  std::memcpy(out.data() + 16, sizes, 16);
  const Hash128 hash = hash128(out.data() + 48, out.size() - 48);
  std::memcpy(out.data() + 32, &hash.low, 8);
  std::memcpy(out.data() + 40, &hash.high, 8);
  return out;
}

// Only names and hashes are kept: an image holds compiled code.
TEST(ImageFile, KeepsTheFingerprintOfCppFunctions) {
  ProgramImage image = full_image();
  EXPECT_FALSE(image_to_json(image)["info"].contains("externs"));
  image.info.externs.push_back(
      {.name = "f", .params = {kF32}, .result = kF32, .source = "text", .digest = {~0ull, 2}});
  const auto read = read_image(write_image(image));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(fingerprint(read->info), fingerprint(image.info));
  EXPECT_EQ(read->info.externs.at(0).name, "f");
  EXPECT_EQ(read->info.externs.at(0).source, "");
}

TEST(ImageFile, RoundTripKeepsEverything) {
  const ProgramImage image = full_image();
  const auto bytes = write_image(image);
  const auto read = read_image(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(image_to_json(*read), image_to_json(image));
  EXPECT_EQ(read->binary, image.binary);
  EXPECT_EQ(read->constants, image.constants);
  EXPECT_EQ(write_image(*read), bytes);
  EXPECT_EQ(read->info.params[0].range->high, 1.0);
  EXPECT_TRUE(read->info.params[0].range->low_open);
  EXPECT_EQ(read->info.constants[1].value, 0.1);
  EXPECT_EQ(read->entries[1].steps[3].body[0].body[0].body[0].kind, StepKind::Launch);
}

TEST(ImageFile, SavesAndLoads) {
  const auto path = std::filesystem::temp_directory_path() / "cinch_image_test.cinchimg";
  ASSERT_TRUE(save_image(full_image(), path));
  const auto loaded = load_image(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->info.name, "sample");
  std::filesystem::remove(path);
  const auto missing = load_image(path);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::Io);
  EXPECT_FALSE(save_image(full_image(), "/nonexistent-folder/image"));
}

TEST(ImageFile, EveryCutIsAnError) {
  const auto bytes = write_image(full_image());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto read = read_image(std::span(bytes).first(size));
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().kind, ErrorKind::CorruptFile);
  }
  auto longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(read_image(longer));
}

TEST(ImageFile, EveryFlippedByteIsAnError) {
  const auto bytes = write_image(full_image());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto changed = bytes;
    changed[i] ^= 0x10;
    EXPECT_FALSE(read_image(changed)) << i;
  }
  auto other = bytes;
  other[8] = kImageFormatVersion + 1;
  EXPECT_EQ(read_image(other).error().kind, ErrorKind::VersionMismatch);
}

TEST(ImageFile, ForgedMetadataIsAnError) {
  ASSERT_TRUE(read_image(forged([](auto&) {})));
  // Omits or replaces each member of each object: never a crash, and rarely a valid image.
  const nlohmann::json flat = image_to_json(full_image()).flatten();
  for (const auto& [path, value] : flat.items()) {
    const nlohmann::json::json_pointer pointer(path);
    for (const nlohmann::json& other :
         {nlohmann::json("text"), nlohmann::json(4000000000u), nlohmann::json(-1),
          nlohmann::json::array(), nlohmann::json(nullptr)}) {
      const auto read = read_image(forged([&](nlohmann::json& json) { json[pointer] = other; }));
      if (!read) EXPECT_FALSE(read.error().message.empty());
    }
  }
}

TEST(ImageFile, DeepStepsAreRefused) {
  const auto bytes = forged([](nlohmann::json& json) {
    nlohmann::json step = json["entries"][1]["steps"][3];
    nlohmann::json deep = step;
    for (int i = 0; i < 500; ++i) {
      nlohmann::json outer = step;
      outer["body"] = nlohmann::json::array({deep});
      deep = outer;
    }
    json["entries"][1]["steps"] = nlohmann::json::array({deep});
  });
  const auto read = read_image(bytes);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("nest"));
}

struct Fault {
  const char* name;
  void (*make)(ProgramImage&);
  const char* message;
};

class ValidateImage : public testing::TestWithParam<Fault> {};

TEST_P(ValidateImage, NamesTheFault) {
  ProgramImage image = full_image();
  ASSERT_TRUE(validate_image(image));
  GetParam().make(image);
  const Status status = validate_image(image);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::CorruptFile);
  EXPECT_THAT(status.error().message, HasSubstr(GetParam().message));
}

auto& encode_steps(ProgramImage& image) {
  return image.entries[1].steps;
}

const Fault kFaults[] = {
    {"KernelIndex", [](ProgramImage& i) { encode_steps(i)[3].orelse[0].index = 7; },
     "no such kernel"},
    {"BesideNothing", [](ProgramImage& i) { encode_steps(i)[3].orelse[0].index2 = 2; },
     "launches beside it that are not there"},
    {"BesideManyTasks",
     [](ProgramImage& i) {
       std::vector<Step>& steps = encode_steps(i)[3].orelse;
       steps.push_back(steps[0]);
       steps[0].index2 = 2;
     },
     "other than a launch of a single task"},
    {"MessageIndex", [](ProgramImage& i) { encode_steps(i)[0].index = 1; }, "no such message"},
    {"ZeroBuffer", [](ProgramImage& i) { encode_steps(i)[1].index = 9; }, "no such buffer"},
    {"UnlistedBuffer", [](ProgramImage& i) { i.entries[1].buffers = {0, 2, 3}; }, "does not list"},
    {"EntryBuffer", [](ProgramImage& i) { i.entries[1].buffers[0] = 9; }, "no such buffer"},
    {"BufferTwice", [](ProgramImage& i) { i.entries[1].buffers[1] = 0; }, "a buffer twice"},
    {"BufferOfAnotherCall", [](ProgramImage& i) { std::swap(i.entries[1], i.entries[2]); },
     "that the call does not have"},
    {"WritesTheGradient", [](ProgramImage& i) { encode_steps(i)[1].index = 0; }, "only read"},
    {"WritesAConstant", [](ProgramImage& i) { encode_steps(i)[2].index = 3; }, "only read"},
    {"WritesAState", [](ProgramImage& i) { encode_steps(i)[2].index = 7; }, "only read"},
    {"CopyOntoItself", [](ProgramImage& i) { encode_steps(i)[2].index2 = 4; }, "from itself"},
    {"CopyOfAnotherSize", [](ProgramImage& i) { encode_steps(i)[2].index2 = 6; },
     "different sizes"},
    {"CollectiveInEncode",
     [](ProgramImage& i) {
       encode_steps(i)[2].kind = StepKind::Collective;
       encode_steps(i)[2].collective = {CollectiveKind::AllGather};
     },
     "outside of `sync`"},
    {"CollectiveWithoutScalars",
     [](ProgramImage& i) {
       encode_steps(i)[2].kind = StepKind::Collective;
       encode_steps(i)[2].collective = {CollectiveKind::SendReceive};
     },
     "without the scalars of its kind"},
    {"ScalarsOfACopy", [](ProgramImage& i) { encode_steps(i)[2].scalars = {1}; },
     "without the scalars of its kind"},
    {"FlagOfARole", [](ProgramImage& i) { encode_steps(i)[3].index = 3; }, "scalar buffer"},
    {"LongFlag", [](ProgramImage& i) { i.buffers[1].size_bytes = i.info.exprs->const_int(0); },
     "another size"},
    {"RoundOfFourBytes",
     [](ProgramImage& i) { i.buffers[2].size_bytes = i.info.exprs->const_int(4); }, "another size"},
    {"WideFlag", [](ProgramImage& i) { i.buffers[1].storage_bits = 32; }, "another width"},
    {"FormulaIndex", [](ProgramImage& i) { i.size_exprs[0] = HostExprId(9999); },
     "no such formula"},
    {"FormulaType",
     [](ProgramImage& i) { i.kernels[0].num_groups = i.info.exprs->const_bool(true); },
     "not an integer formula"},
    {"CountInSize",
     [](ProgramImage& i) { i.buffers[0].size_bytes = i.info.wire.fields[0].type.dims[0]; },
     "holds a count"},
    {"RoleIndex", [](ProgramImage& i) { i.buffers[3].role_index = 1; }, "role index"},
    {"StorageBits", [](ProgramImage& i) { i.buffers[0].storage_bits = 0; }, "bits per element"},
    {"NarrowStorage", [](ProgramImage& i) { i.buffers[4].storage_bits = 16; }, "bits per element"},
    {"TypeOfAField", [](ProgramImage& i) { i.buffers[8].dtype = kF32; },
     "f32 in 32 bits, but field 0 is u32"},
    {"TypeOfAState", [](ProgramImage& i) { i.buffers[7].dtype = kI32; },
     "i32 in 32 bits, but state 0 is f32"},
    {"RoleTwice", [](ProgramImage& i) { i.buffers[4].role = BufferRole::Gradient; },
     "gradient 0 has a buffer already"},
    {"StateInPlaceBesideIt", [](ProgramImage& i) { i.buffers[4].role = BufferRole::StateInPlace; },
     "has a buffer already"},
    {"ConstantOfAnotherSize", [](ProgramImage& i) { i.constants[0].push_back(4); },
     "other than its constant"},
    {"CountOfAnotherSize",
     [](ProgramImage& i) { i.buffers[6].size_bytes = i.info.exprs->const_int(1); },
     "count of another size"},
    {"Rank", [](ProgramImage& i) { i.info.states[0].type.rank = 3; }, "dimensions"},
    {"InputThatIsWritten",
     [](ProgramImage& i) {
       i.info.states[0].is_input = true;
       i.buffers[4].role = BufferRole::StateNext;
     },
     "an input that is written"},
    {"Symbol", [](ProgramImage& i) { i.kernels.push_back(i.kernels[0]); }, "symbol twice"},
    {"SymbolText", [](ProgramImage& i) { i.kernels[0].symbol = "a b"; }, "no symbol"},
    {"TooManyParts", [](ProgramImage& i) { i.messages.resize(kMaxImageParts + 1); },
     "too many parts"},
    {"TooManySteps",
     [](ProgramImage& i) {
       const Step launch = encode_steps(i)[3].orelse[0];
       for (int half = 0; half < 2; ++half) {
         encode_steps(i)[3].orelse.assign(kMaxImageParts / 2, launch);
         encode_steps(i).push_back(encode_steps(i)[3]);
       }
     },
     "too many steps"},
    {"GroupMultiple", [](ProgramImage& i) { i.kernels[0].group_multiple = 0; }, "group multiple"},
    {"StepKind", [](ProgramImage& i) { encode_steps(i)[0].kind = static_cast<StepKind>(77); },
     "kind of step"},
    {"ConditionType", [](ProgramImage& i) { encode_steps(i)[0].expr = i.info.exprs->n(); },
     "no condition"},
    {"NestedLaunch", [](ProgramImage& i) { encode_steps(i)[1].body.resize(1); }, "plain step"},
    {"DefaultOfAnotherType", [](ProgramImage& i) { i.info.params[1].default_value = 1e300; },
     "not a value of its type"},
    {"FloatAsInteger",
     [](ProgramImage& i) { i.size_exprs[0] = i.info.exprs->param(0, HostType::Int); },
     "no such parameter or count"},
    {"CountOfNoWire",
     [](ProgramImage& i) {
       HostExprPool& pool = *i.info.exprs;
       i.info.wire.fields[1].type.dims[0] = pool.count(1, pool.n());
     },
     "not of the wire"},
    {"CountInASizeOfKernels",
     [](ProgramImage& i) { i.size_exprs[0] = i.info.wire.fields[0].type.dims[0]; },
     "holds a count"},
    {"ParamLeaf", [](ProgramImage& i) { i.info.params.clear(); }, "no such parameter or count"},
    {"WireCounts", [](ProgramImage& i) { i.info.wire.counts.resize(3, i.info.wire.counts[0]); },
     "more counts"},
};

INSTANTIATE_TEST_SUITE_P(Faults, ValidateImage, testing::ValuesIn(kFaults),
                         [](const auto& info) { return info.param.name; });

// Whatever a list of its names does not have.
TEST(ImageFile, NamesWhatIsOfNoKnownKind) {
  const auto fault = [](auto change) {
    const auto read = read_image(forged(change));
    return read ? std::string("no error") : read.error().message;
  };
  EXPECT_THAT(fault([](nlohmann::json& json) { json["info"]["aggregation"] = 7; }),
              HasSubstr("image.info.aggregation: a known kind expected"));
  EXPECT_THAT(fault([](nlohmann::json& json) { json["info"]["wire"]["fields"][0]["sum"] = 9; }),
              HasSubstr("image.info.wire.fields[0].sum: a known kind expected"));
  EXPECT_THAT(fault([](nlohmann::json& json) { json["buffers"][0]["role"] = 9; }),
              HasSubstr("image.buffers[0].role: a known kind expected"));
  EXPECT_THAT(fault([](nlohmann::json& json) { json["entries"][1]["steps"][0]["kind"] = 8; }),
              HasSubstr("image.entries[1].steps[0].kind: a known kind expected"));
  EXPECT_THAT(fault([](nlohmann::json& json) { json["buffers"][0]["dtype"] = "f99"; }),
              HasSubstr("image.buffers[0].dtype: a scalar type expected"));
}

TEST(ImageFile, AListOfNothingIsRefusedAtItsFirst) {
  // Each of its steps would take a hundred bytes.
  const auto read = read_image(forged([](nlohmann::json& json) {
    json["entries"][1]["steps"] = nlohmann::json(std::vector<int>(100'000, 0));
  }));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("steps[0]: an object expected"));
}

// An image whose launches need no host in between: the same, and the tables for a GPU.
ProgramImage gpu_image() {
  ProgramImage image = full_image();
  HostExprPool& pool = *image.info.exprs;
  image.target = "cuda:sm_90";
  image.gpu_steps_threads = 32;
  image.kernels[0].cuda = {.block_threads = 32, .groups_per_block = 1, .resident_blocks = 1};
  image.size_exprs.push_back(pool.const_int(0));
  image.size_exprs.push_back(pool.const_int(20));
  const HostExprId n = pool.n(), bytes = image.buffers[0].size_bytes;
  image.buffers.push_back({"residual'", kF32, 32, n, BufferRole::StateNext, 0, bytes});
  image.buffers.push_back(
      {"inner", kU32, 32, pool.const_int(1), BufferRole::Count, 1, pool.const_int(4)});
  image.buffers.push_back({"code", {DTypeKind::Int, 4}, 4, n, BufferRole::Field, 1, n});
  return image;
}

class ValidateGpuImage : public testing::TestWithParam<Fault> {};

TEST_P(ValidateGpuImage, NamesTheFault) {
  ProgramImage image = gpu_image();
  const Status valid = validate_image(image);
  ASSERT_TRUE(valid) << valid.error().message;
  GetParam().make(image);
  const Status status = validate_image(image);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr(GetParam().message));
}

const Fault kGpuFaults[] = {
    {"BoundWithoutASlot", [](ProgramImage& i) { i.size_exprs.pop_back(); }, "not among the sizes"},
    {"TextWithoutAnEnd", [](ProgramImage& i) { i.binary = {'.', 'v'}; }, "a text with its end"},
    {"NoBinary", [](ProgramImage& i) { i.binary.clear(); }, "neither an object"},
    {"WavesOfBlocks", [](ProgramImage& i) { i.kernels[0].cuda.waves = 65536; }, "waves"},
    {"BlocksOfAMultiprocessor", [](ProgramImage& i) { i.kernels[0].cuda.resident_blocks = 0; },
     "blocks of a multiprocessor"},
    {"GroupsOfABlock",
     [](ProgramImage& i) { i.kernels[0].cuda.groups_per_block = std::uint64_t{1} << 63; },
     "groups of a block"},
    {"FunctionOfAnotherLaunch",
     [](ProgramImage& i) {
       i.kernels.push_back(i.kernels[0]);
       i.kernels[1].cuda.block_threads = 64;
     },
     "a symbol twice"},
    {"NoGradient", [](ProgramImage& i) { i.buffers[0].role = BufferRole::Workspace; },
     "no gradient"},
    {"NoOutput", [](ProgramImage& i) { i.entries[2].present = true; }, "no output"},
    {"NoNextState", [](ProgramImage& i) { i.buffers[9].role = BufferRole::Workspace; },
     "a state has none"},
    {"NoCount", [](ProgramImage& i) { i.buffers[10].role = BufferRole::Workspace; },
     "a count has none"},
    {"NoField", [](ProgramImage& i) { i.buffers[11].role = BufferRole::Workspace; },
     "a field has none"},
};

TEST(ValidateGpuImages, KernelsMayBeOneFunction) {
  ProgramImage image = gpu_image();
  image.kernels.push_back(image.kernels[0]);
  EXPECT_TRUE(validate_image(image));
}

INSTANTIATE_TEST_SUITE_P(Faults, ValidateGpuImage, testing::ValuesIn(kGpuFaults),
                         [](const auto& info) { return info.param.name; });

TEST(Fingerprint, ChangesWithWhatFixesAPayload) {
  const ProgramInfo base = full_image().info;
  const auto same = fingerprint(base);
  EXPECT_EQ(fingerprint(full_image().info), same);
  const auto changed = [&](auto change) {
    ProgramInfo info = base;
    change(info);
    return fingerprint(info) != same;
  };
  EXPECT_TRUE(changed([](ProgramInfo& i) { i.name = "other"; }));
  EXPECT_TRUE(changed([](ProgramInfo& i) { i.constants[0].value = 5; }));
  EXPECT_TRUE(changed([](ProgramInfo& i) { i.is_matrix = true; }));
  EXPECT_TRUE(changed([](ProgramInfo& i) { i.externs.emplace_back(); }));
  ProgramInfo calls = base;
  calls.externs.push_back({.name = "f", .digest = {1, 2}});
  const auto of_calls = fingerprint(calls);
  calls.externs[0].digest[1] = 3;
  EXPECT_NE(fingerprint(calls), of_calls);
  EXPECT_TRUE(changed([](ProgramInfo& i) { i.wire.fields[0].ascending = false; }));
  EXPECT_TRUE(changed([](ProgramInfo& i) { i.wire.fields[0].index_limit.reset(); }));
  EXPECT_TRUE(changed([](ProgramInfo& i) { i.wire.fields[1].sum = FieldSum::Max; }));
  EXPECT_TRUE(changed([](ProgramInfo& i) { i.wire.fields[1].type.dtype.bits = 5; }));
  EXPECT_TRUE(changed([](ProgramInfo& i) { i.wire.fields.pop_back(); }));
  EXPECT_TRUE(changed([](ProgramInfo& i) { i.wire.counts[0].bound = i.sizes[0].value; }));
  // Text for people, and default values of run-time parameters, do not count.
  EXPECT_FALSE(changed([](ProgramInfo& i) { i.doc = "other"; }));
  EXPECT_FALSE(changed([](ProgramInfo& i) { i.params[0].default_value = 0.5; }));
}

TEST(FileBytes, KeepsTheOldFileOnFailure) {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("cinch_file_bytes_test_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder / "target");
  // The target is a folder: the rename fails, and no temporary file is left.
  const std::uint8_t byte = 1;
  EXPECT_FALSE(write_file_bytes(folder / "target", {&byte, 1}));
  EXPECT_TRUE(std::filesystem::is_directory(folder / "target"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

}  // namespace

// The offsets with which the host writes a tensor's entry equal those of the struct that kernels
// read.

namespace {

using TensorEntry = GpuTensorOf<3, 2, 5, 4>;
using LeastEntry = GpuTensorOf<1, 1, 1, 1>;

TEST(GpuAbiTest, TheHostWritesWhereKernelsRead) {
  const GpuTensorLayout at = gpu_tensor_layout(3, 2, 4, 5);
  EXPECT_EQ(at.buffers, offsetof(TensorEntry, buffers));
  EXPECT_EQ(at.bytes, offsetof(TensorEntry, bytes));
  EXPECT_EQ(at.sizes, offsetof(TensorEntry, sizes));
  EXPECT_EQ(at.groups, offsetof(TensorEntry, groups));
  EXPECT_EQ(at.params, offsetof(TensorEntry, params));
  EXPECT_EQ(at.header, offsetof(TensorEntry, header));
  EXPECT_EQ(at.payload, offsetof(TensorEntry, payload));
  EXPECT_EQ(at.tensor, offsetof(TensorEntry, tensor));
  EXPECT_EQ(at.draw, offsetof(TensorEntry, draw));
  EXPECT_EQ(at.size_bytes, sizeof(TensorEntry));
}

TEST(GpuAbiTest, ListsHaveAtLeastOneEntry) {
  EXPECT_EQ(gpu_tensor_layout(0, 0, 0, 0).size_bytes, sizeof(LeastEntry));
}

}  // namespace
}  // namespace cinch::rt
