// A cache in a folder of its own, and entries for it.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "runtime/cache/image_cache.h"

namespace cinch::rt {

inline CacheEntry entry_called(const std::string& title, std::size_t binary_bytes = 1000) {
  CacheEntry entry;
  entry.title = title;
  entry.imports = {{"std:wrap/clip.cinch", {1, 2}}, {"other.cinch", {3, 0xffffffffffffffffu}}};
  entry.image.info.name = title;
  entry.image.target = "cpu:x86-64";
  entry.image.binary.assign(binary_bytes, 0x5a);
  return entry;
}

class ImageCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "cinch_cache_XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) root = name;
    settings.folder = root / "own";
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::permissions(root, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(root, ignored);
  }

  ImageCache cache() const { return ImageCache(settings); }
  std::filesystem::path only_file() const {
    const auto entries = cache().list();
    return entries.size() == 1 ? entries[0].path : std::filesystem::path();
  }

  std::filesystem::path root;
  CacheSettings settings;
};

inline constexpr Hash128 kKey{0x1234, 0xabcd}, kOtherKey{0x1234, 0xabce};

}  // namespace cinch::rt
