// Finds compiled programs in the cache. The key holds everything that decides the result: text,
// values of constant parameters, target, and build of this compiler. Imported texts are looked up
// and compared on every hit.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/emit/kernel_source.h"
#include "codegen/jit/nvrtc.h"
#include "compiler/service/front_end.h"
#include "dsl/source/source.h"
#include "runtime/cache/image_cache.h"

namespace cinch::service {

// Settings from the environment. Behind the shared folders that it names comes the compiled
// standard library that is installed with this executable or library.
rt::CacheSettings cache_settings();

// What else decides the code.
struct CodeChoice {
  std::uint32_t block_warps = 0;  // CUDA
  codegen::Effort effort = codegen::Effort::Full;
  bool is_carrier = false;  // of the program's sums, in its place
};

// Names the fully optimised code of a program, which is perhaps not made yet.
struct BetterCode {
  Hash128 key;         // of its entry
  Hash128 imports;     // a digest of the texts that it must have been made from
  std::string folder;  // of the cache, absolute: settings and working folder may change
};
// Returns that code if the cache holds it.
std::optional<std::vector<std::uint8_t>> find_better(const BetterCode& code);

class CompileCache {
 public:
  // The cache entry of a program for a target. `bindings`: those of the request's bindings that the
  // code depends on.
  CompileCache(const ProgramText& program, const std::vector<std::string>& bindings,
               codegen::StateUpdate states, const codegen::Target& target, const CodeChoice& code);

  std::optional<rt::CacheEntry> find() const;
  // Its image is the bytes of an image file.
  std::optional<rt::StoredEntry> find_stored() const;
  // The imports among the texts that a program was compiled from.
  std::vector<rt::SourceStamp> stamps_of(const dsl::SourceSet& sources) const;
  // Keeps the image. If the folder cannot be written, keeps nothing, which is not an error.
  void put(const rt::ProgramImage& image, const std::vector<rt::SourceStamp>& imports) const;
  // Names the code that this entry has once it is made from these imports.
  BetterCode code_from(const std::vector<rt::SourceStamp>& imports) const;

 private:
  bool are_current(const std::vector<rt::SourceStamp>& stamps) const;

  ProgramText program_;
  std::string title_;
  Hash128 key_;
  rt::ImageCache cache_;
};

}  // namespace cinch::service
