// Compiled programs that were made before. The key holds all that decides what a program compiles
// to: its text, its values of constant parameters, the target and the build of this compiler; the
// texts it imports are looked up and compared on every hit.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "codegen/emit/kernel_source.h"
#include "compiler/service/program_lookup.h"
#include "dsl/source/source.h"
#include "runtime/cache/image_cache.h"

namespace cinch::service {

class CompileCache {
 public:
  // Of a program, for a target; `block_warps` is part of code for CUDA. `bindings`: of what the
  // request binds, what the code depends on.
  CompileCache(const ProgramText& program, const std::vector<std::string>& bindings,
               codegen::StateUpdate states, const codegen::Target& target,
               std::uint32_t block_warps);

  std::optional<rt::ProgramImage> find() const;
  // Keeps the image of what was compiled from `sources`. A folder that cannot be written keeps
  // nothing: that is no error.
  void put(const rt::ProgramImage& image, const dsl::SourceSet& sources) const;

 private:
  bool is_current(const rt::SourceStamp& stamp) const;

  ProgramText program_;
  std::string title_;
  Hash128 key_;
  rt::ImageCache cache_;
};

}  // namespace cinch::service
