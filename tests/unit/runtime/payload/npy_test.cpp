// .npy: files of NumPy are read and written back byte for byte; everything else is rejected.
#include "runtime/payload/npy.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <random>

namespace cinch::rt {
namespace {

using Bytes = std::vector<std::uint8_t>;

// A file of version 1.0 with this dictionary and these data.
Bytes file(std::string dictionary, std::size_t data_bytes, int major = 1) {
  Bytes bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', static_cast<std::uint8_t>(major), 0};
  const std::size_t length = dictionary.size();
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) {
    bytes.push_back(static_cast<std::uint8_t>(length >> (8 * i)));
  }
  bytes.insert(bytes.end(), dictionary.begin(), dictionary.end());
  bytes.resize(bytes.size() + data_bytes, 7);
  return bytes;
}

void expect_refused(const Bytes& bytes, ErrorKind kind, const std::string& words) {
  const auto array = parse_npy(bytes);
  ASSERT_FALSE(array) << words;
  EXPECT_EQ(array.error().kind, kind) << array.error().message;
  EXPECT_NE(array.error().message.find(words), std::string::npos) << array.error().message;
}

TEST(NpyTest, WritesWhatNumPyWrites) {
  const NpyArray array{kF32, {3}, Bytes(12, 1)};
  const Bytes bytes = format_npy(array).value();
  // numpy.save of three f32: a header of 118 bytes, the data from 128 on.
  ASSERT_EQ(bytes.size(), 140u);
  std::string expected = "\x93NUMPY";
  expected += std::string("\1\0\x76\0", 4);
  expected += "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
  expected.resize(127, ' ');
  expected += '\n';
  EXPECT_EQ(std::string(bytes.begin(), bytes.begin() + 128), expected);
}

TEST(NpyTest, RoundTripsTypesAndShapes) {
  for (DType dtype : {kF32, kF16, kBF16}) {
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{}, {0}, {5}, {2, 3}, {2, 0, 3}, {1, 2, 3, 4}}) {
      NpyArray array{dtype, shape, {}};
      array.bytes.resize(static_cast<std::size_t>(array.num_elems()) * dtype.bits / 8, 0x3c);
      const auto bytes = format_npy(array);
      ASSERT_TRUE(bytes);
      EXPECT_EQ((bytes->size() - array.bytes.size()) % 64, 0u);
      const auto read = parse_npy(*bytes);
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(read->dtype, dtype);
      EXPECT_EQ(read->shape, shape);
      EXPECT_EQ(read->bytes, array.bytes);
    }
  }
}

TEST(NpyTest, ReadsOtherSpellings) {
  const auto dtype_of = [](const std::string& descr) {
    return parse_npy(file("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (2,)}", 4))
        .map([](const NpyArray& array) { return dtype_name(array.dtype); })
        .value_or("refused");
  };
  EXPECT_EQ(dtype_of("<f2"), "f16");
  EXPECT_EQ(dtype_of("|V2"), "bf16");
  EXPECT_EQ(dtype_of("<u2"), "bf16");
  // Versions 2 and 3, other order and quotes, and Fortran order where it makes no difference.
  for (int major : {2, 3}) {
    EXPECT_TRUE(parse_npy(
        file("{\"shape\": ( 2 ,3) , 'fortran_order':False,'descr':'<f4',}\n", 24, major)));
  }
  EXPECT_TRUE(parse_npy(file("{'descr': '<f4', 'fortran_order': True, 'shape': (6,), }", 24)));
}

TEST(NpyTest, RefusesWhatItDoesNotKnow) {
  const auto with = [](const std::string& descr, const std::string& order,
                       const std::string& shape) {
    return file(
        "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }", 24);
  };
  using enum ErrorKind;
  expect_refused({}, CorruptFile, "not an .npy file");
  expect_refused(Bytes(200, 'x'), CorruptFile, "not an .npy file");
  expect_refused(with("'<f8'", "False", "(3,)"), InvalidArgument, "`<f8`");
  expect_refused(with("'>f4'", "False", "(6,)"), InvalidArgument, "big endian");
  expect_refused(with("'<i4'", "False", "(6,)"), InvalidArgument, "`<i4`");
  expect_refused(with("[('a', '<f4')]", "False", "(6,)"), CorruptFile, "`descr`");
  expect_refused(with("'<f4'", "True", "(2, 3)"), InvalidArgument, "Fortran");
  expect_refused(with("'<f4'", "0", "(6,)"), CorruptFile, "`fortran_order`");
  expect_refused(with("'<f4'", "False", "(6)"), CorruptFile, "`shape`");
  expect_refused(with("'<f4'", "False", "(-6,)"), CorruptFile, "`shape`");
  expect_refused(with("'<f4'", "False", "(7,)"), CorruptFile, "takes 28 bytes, found 24");
  expect_refused(with("'<f4'", "False", "(5,)"), CorruptFile, "takes 20 bytes, found 24");
  expect_refused(with("'<f4'", "False", "(4294967296, 4294967296, 4294967296)"), CorruptFile,
                 "absurd");
  expect_refused(with("'<f4'", "False", "(99999999999999999999999,)"), CorruptFile, "`shape`");
  expect_refused(file("{'descr': '<f4', 'shape': (6,), }", 24), CorruptFile, "`fortran_order`");
  expect_refused(file("{'descr': '<f4', 'descr': '<f4', }", 24), CorruptFile, "twice");
  expect_refused(file("{'other': '<f4', }", 24), CorruptFile, "unknown key `other`");
  expect_refused(file("{'descr': '<f4' 'shape': (6,)}", 24), CorruptFile, "comma");
  expect_refused(file("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), } x", 24),
                 CorruptFile, "behind");
  expect_refused(file("", 0), CorruptFile, "dictionary");
  expect_refused(file("{}", 24, 4), CorruptFile, "version 4.0");
}

TEST(NpyTest, BrokenBytesNeverPassOrHarm) {
  const Bytes good = format_npy({kF32, {2, 3}, Bytes(24, 0)}).value();
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(parse_npy(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))));
  }
  std::mt19937 draw(4);
  for (int round = 0; round < 20000; ++round) {
    Bytes changed = good;
    for (int k = 0; k < 2; ++k) changed[draw() % 70] = static_cast<std::uint8_t>(draw());
    const auto array = parse_npy(changed);
    if (array) {
      EXPECT_EQ(array->num_elems() * array->dtype.bits / 8,
                static_cast<std::int64_t>(array->bytes.size()));
    }
  }
}

TEST(NpyTest, FilesOnDisk) {
  const std::string path = testing::TempDir() + "/cinch_npy_test.npy";
  const NpyArray array{kF16, {300000}, Bytes(600000, 0x11)};
  ASSERT_TRUE(write_npy(path, array));
  const auto read = read_npy(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->bytes, array.bytes);
  std::filesystem::remove(path);
  const auto missing = read_npy(path);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::Io);
  EXPECT_NE(missing.error().message.find(path), std::string::npos);
  EXPECT_EQ(write_npy("/no/such/folder/x.npy", array).error().kind, ErrorKind::Io);
  EXPECT_EQ(format_npy({kF64, {1}, Bytes(8)}).error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(format_npy({kF32, {2}, Bytes(9)}).error().kind, ErrorKind::InvalidArgument);
}

// A device may give endless bytes, and a file may be as large as a disk.
TEST(NpyTest, NoMoreIsReadThanTheHeaderSays) {
  const auto endless = read_npy("/dev/zero");
  ASSERT_FALSE(endless);
  EXPECT_NE(endless.error().message.find("not an .npy file"), std::string::npos);
  const std::string path = testing::TempDir() + "/cinch_long_npy_test.npy";
  ASSERT_TRUE(write_npy(path, {kF32, {3}, Bytes(12, 1)}));
  constexpr std::uintmax_t kBytes = std::uintmax_t{1} << 40;  // a sparse file
  std::filesystem::resize_file(path, kBytes);
  const auto longer = read_npy(path);
  std::filesystem::remove(path);
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().kind, ErrorKind::CorruptFile);
  EXPECT_NE(longer.error().message.find("takes 12 bytes, found " + std::to_string(kBytes - 128)),
            std::string::npos)
      << longer.error().message;
}

}  // namespace
}  // namespace cinch::rt
