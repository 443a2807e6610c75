// Compiled programs that were made before. The key holds all that decides what a program compiles
// to: its text, its values of constant parameters, the target and the build of this compiler; the
// texts it imports are looked up and compared on every hit.
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

// From the environment; behind the shared folders that it names comes what is installed with this
// executable or library: the standard library, compiled.
rt::CacheSettings cache_settings();

// What else decides on code for CUDA.
struct CudaCode {
  std::uint32_t block_warps = 0;
  codegen::CudaEffort effort = codegen::CudaEffort::Full;
};

class CompileCache {
 public:
  // Of a program, for a target. `bindings`: of what the request binds, what the code depends on.
  CompileCache(const ProgramText& program, const std::vector<std::string>& bindings,
               codegen::StateUpdate states, const codegen::Target& target, const CudaCode& code);

  std::optional<rt::ProgramImage> find() const;
  // As the bytes of an image file.
  std::optional<std::vector<std::uint8_t>> find_bytes() const;
  // Keeps the image of what was compiled from `sources`. A folder that cannot be written keeps
  // nothing: that is no error.
  void put(const rt::ProgramImage& image, const dsl::SourceSet& sources) const;

 private:
  bool are_current(const std::vector<rt::SourceStamp>& stamps) const;

  ProgramText program_;
  std::string title_;
  Hash128 key_;
  rt::ImageCache cache_;
};

}  // namespace cinch::service
