// Module: kernels for the emulated GPU, loaded from the bytes of a shared object that
// codegen::compile_emulated made. No compiler is involved.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/emulator/hooks.h"
#include "runtime/core/error.h"
#include "runtime/module/shared_object.h"

namespace cinch::emulator {

class Module {
 public:
  /// Errors: CorruptFile (not a shared object of compile_emulated, or one of another version), Io
  /// (no memory file).
  static rt::Result<Module> load(std::span<const std::uint8_t> shared_object);

  std::vector<std::string> kernels() const;
  bool has_checks() const { return info_->has_checks != 0; }
  /// Null if there is no such kernel.
  const KernelEntry* find(std::string_view kernel) const;
  const ModuleInfo& info() const { return *info_; }
  /// A line of the emitted text, without its indentation; empty if there is none.
  std::string line(std::uint32_t number) const;

 private:
  Module(rt::SharedObject object, const ModuleInfo* info)
      : object_(std::move(object)), info_(info) {}
  rt::SharedObject object_;
  const ModuleInfo* info_;
};

}  // namespace cinch::emulator
