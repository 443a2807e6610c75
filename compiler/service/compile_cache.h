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
#include "compiler/service/program_lookup.h"
#include "dsl/source/source.h"
#include "runtime/cache/image_cache.h"

namespace cinch::service {

// Settings from the environment. Behind the shared folders that it names comes the compiled
// standard library that is installed with this executable or library.
rt::CacheSettings cache_settings();

// What else decides the code for CUDA.
struct CudaCode {
  std::uint32_t block_warps = 0;
  codegen::CudaEffort effort = codegen::CudaEffort::Full;
};

class CompileCache {
 public:
  // The cache entry of a program for a target. `bindings`: those of the request's bindings that the
  // code depends on.
  CompileCache(const ProgramText& program, const std::vector<std::string>& bindings,
               codegen::StateUpdate states, const codegen::Target& target, const CudaCode& code);

  std::optional<rt::ProgramImage> find() const;
  // Returns the bytes of an image file.
  std::optional<std::vector<std::uint8_t>> find_bytes() const;
  // Keeps the image that was compiled from `sources`. If the folder cannot be written, keeps
  // nothing; that is no error.
  void put(const rt::ProgramImage& image, const dsl::SourceSet& sources) const;

 private:
  bool are_current(const std::vector<rt::SourceStamp>& stamps) const;

  ProgramText program_;
  std::string title_;
  Hash128 key_;
  rt::ImageCache cache_;
};

}  // namespace cinch::service
