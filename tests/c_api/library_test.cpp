// Compressors of libraries: which of their codes is used, and which libraries are rejected.
#include <cinch_library.h>
#include <gmock/gmock.h>

#include "runtime/image/image_file.h"
#include "support.h"

namespace cinch::testing {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

// An image of onebit for GPUs whose documentation names its code.
Bytes image_named(const std::string& name) {
  static const rt::ProgramImage kImage = [] {
    auto options = sized<cinch_compile_options>();
    options.program = "onebit";
    options.device = CINCH_CUDA;
    options.arch = "emulated";
    auto error = sized<cinch_error>();
    cinch_program* program = nullptr;
    EXPECT_EQ(cinch_program_compile(&options, &program, &error), CINCH_OK) << error.message;
    const std::string path = ::testing::TempDir() + "library_test.image";
    EXPECT_EQ(cinch_program_save(program, path.c_str(), &error), CINCH_OK) << error.message;
    cinch_program_release(program);
    return *rt::load_image(path);
  }();
  rt::ProgramImage named = kImage;
  named.info.doc = name;
  return rt::write_image(named);
}

class LibraryOfManyCodes : public ::testing::Test {
 protected:
  LibraryOfManyCodes() {
    for (const auto& [arch, is_ptx] : {std::pair("sm_80", 0), {"sm_80", 1}, {"sm_90", 0}}) {
      images.push_back(image_named(std::string(arch) + (is_ptx != 0 ? " ptx" : "")));
      gpu.push_back({arch, is_ptx, nullptr, 0});
    }
    for (std::size_t i = 0; i < gpu.size(); ++i) {
      gpu[i].image = images[i].data();
      gpu[i].image_size = images[i].size();
    }
    compressor = {CINCH_LIBRARY_VERSION,
                  sizeof compressor,
                  "onebit",
                  nullptr,
                  0,
                  nullptr,
                  0,
                  gpu.data(),
                  gpu.size()};
  }

  // The result of opening for a GPU: the code's name, or the message.
  std::string opened_for(const char* arch, cinch_choice choice = CINCH_GPU_CODE) {
    auto options = sized<cinch_open_options>();
    options.choice = choice;
    options.arch = arch;
    cinch_program* program = nullptr;
    error = sized<cinch_error>();
    if (cinch_program_open(&compressor, &options, &program, &error) != CINCH_OK)
      return error.message;
    const Program owner(program);
    auto info = sized<cinch_program_info>();
    EXPECT_EQ(cinch_program_get_info(program, &info, &error), CINCH_OK);
    EXPECT_EQ(std::string(info.cpu), std::string("cuda:") + arch);
    return info.doc;
  }

  std::vector<Bytes> images;
  std::vector<cinch_gpu_code> gpu;
  cinch_compressor compressor{};
  cinch_error error{};
};

TEST_F(LibraryOfManyCodes, TakesMachineCodeOfTheSameMajorElsePtx) {
  EXPECT_EQ(opened_for("sm_80"), "sm_80");
  EXPECT_EQ(opened_for("sm_86"), "sm_80");
  EXPECT_EQ(opened_for("sm_90"), "sm_90");
  EXPECT_EQ(opened_for("sm_100"), "sm_80 ptx");
  EXPECT_THAT(opened_for("sm_75"), HasSubstr("has no code for sm_75"));
  EXPECT_EQ(error.status, CINCH_UNAVAILABLE);
}

TEST_F(LibraryOfManyCodes, SaysWhatItHasForCpus) {
  EXPECT_THAT(opened_for("sm_75", CINCH_ANY_CODE), HasSubstr("it has no CPU"));
  EXPECT_EQ(error.status, CINCH_UNAVAILABLE);
}

TEST_F(LibraryOfManyCodes, RefusesOtherVersionsAndChoices) {
  EXPECT_THAT(opened_for("sm_80", static_cast<cinch_choice>(7)), HasSubstr("choice is 7"));
  compressor.library_version = 2;
  EXPECT_THAT(opened_for("sm_80"), HasSubstr("build it again"));
  EXPECT_EQ(error.status, CINCH_VERSION_MISMATCH);
  compressor.library_version = CINCH_LIBRARY_VERSION;
  compressor.struct_size = 8;
  EXPECT_THAT(opened_for("sm_80"), HasSubstr("a table of 8 bytes"));
}

TEST(Library, OfAnotherVersionIsNotSearched) {
  const cinch_library later{2, sizeof later, "later", "9.9", nullptr, 1};
  const cinch_compressor* found = nullptr;
  auto error = sized<cinch_error>();
  EXPECT_EQ(cinch_library_find(&later, "onebit", &found, &error), CINCH_VERSION_MISMATCH);
  EXPECT_THAT(error.message, HasSubstr("version 2"));
}

TEST_F(LibraryOfManyCodes, RefusesAnImageThatIsCut) {
  gpu[0].image_size -= 1;
  opened_for("sm_80");
  EXPECT_EQ(error.status, CINCH_CORRUPT_FILE);
}

}  // namespace
}  // namespace cinch::testing
