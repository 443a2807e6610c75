#include "codegen/emulator/module.h"

#include <utility>

namespace cinch::emulator {

using rt::ErrorKind;

rt::Result<Module> Module::load(std::span<const std::uint8_t> shared_object) {
  auto object = rt::SharedObject::load(shared_object, "emulated kernels");
  CINCH_TRY(object);
  const auto* info = static_cast<const ModuleInfo*>(object->find(kModuleSymbol));
  if (info == nullptr || info->abi != kModuleAbi) {
    return rt::fail(ErrorKind::CorruptFile,
                    "no kernels for the emulated GPU, or those of another version of Cinch");
  }
  return Module(std::move(*object), info);
}

std::vector<std::string> Module::kernels() const {
  std::vector<std::string> names;
  names.reserve(info_->num_kernels);
  for (std::uint64_t i = 0; i < info_->num_kernels; ++i) names.emplace_back(info_->kernels[i].name);
  return names;
}

const KernelEntry* Module::find(std::string_view kernel) const {
  for (std::uint64_t i = 0; i < info_->num_kernels; ++i) {
    if (kernel == info_->kernels[i].name) return &info_->kernels[i];
  }
  return nullptr;
}

std::string Module::line(std::uint32_t number) const {
  std::string_view text(info_->text, info_->text_size);
  for (std::uint32_t i = 1; i < number; ++i) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  if (number == 0) return {};
  text = text.substr(0, text.find('\n'));
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string() : std::string(text.substr(begin));
}

}  // namespace cinch::emulator
