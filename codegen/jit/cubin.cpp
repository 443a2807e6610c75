// A cubin is a 64-bit ELF file. Its section ".nv.info" lists attributes of functions: two bytes of
// format and kind, two of length, then values; those of format 4 begin with the function's symbol.
#include "codegen/jit/nvrtc.h"

#include <cstring>
#include <map>

namespace cinch::codegen {
namespace {

constexpr std::uint8_t kSizedValue = 4;
constexpr std::uint8_t kRegisterCount = 0x2f, kStackOfCalls = 0x12;
constexpr std::uint32_t kSymbolTable = 2;
constexpr std::string_view kSharedPrefix = ".nv.shared.";
constexpr std::string_view kCodePrefix = ".text.";

struct Section {
  std::uint32_t name = 0, type = 0, link = 0;
  std::uint64_t offset = 0, size_bytes = 0;
};

// Reads within bounds; places outside read as 0 and are remembered as a fault.
class Cubin {
 public:
  explicit Cubin(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  rt::Result<std::vector<KernelResources>> run() {
    if (bytes_.size() < 64 || std::memcmp(bytes_.data(),
                                          "\x7f"
                                          "ELF\x02",
                                          5) != 0) {
      return rt::fail(rt::ErrorKind::CorruptFile, "no cubin: not a 64-bit ELF file");
    }
    read_sections();
    for (const Section& section : sections_) {
      const std::string name = section_name(section);
      if (name.starts_with(kCodePrefix)) kernel(name.substr(kCodePrefix.size()));
    }
    for (const Section& section : sections_) {
      const std::string name = section_name(section);
      if (name == ".nv.info") read_attributes(section);
      if (name.starts_with(kSharedPrefix)) {
        const auto found = index_.find(name.substr(kSharedPrefix.size()));
        if (found == index_.end()) continue;
        kernels_[found->second].shared_bytes = static_cast<std::uint32_t>(section.size_bytes);
      }
    }
    if (is_cut_) return rt::fail(rt::ErrorKind::CorruptFile, "a cubin that is cut short");
    return kernels_;
  }

 private:
  template <typename T>
  T read(std::uint64_t offset) {
    T value{};
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset) {
      is_cut_ = true;
      return value;
    }
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  std::string text(std::uint64_t offset) {
    std::string out;
    while (const char c = read<char>(offset++)) out += c;
    return out;
  }

  void read_sections() {
    const auto table = read<std::uint64_t>(40);
    const auto entry_bytes = read<std::uint16_t>(58);
    const auto count = read<std::uint16_t>(60);
    names_ = read<std::uint16_t>(62);
    for (std::uint16_t i = 0; i < count && !is_cut_; ++i) {
      const std::uint64_t at = table + std::uint64_t{entry_bytes} * i;
      sections_.push_back({read<std::uint32_t>(at), read<std::uint32_t>(at + 4),
                           read<std::uint32_t>(at + 40), read<std::uint64_t>(at + 24),
                           read<std::uint64_t>(at + 32)});
    }
  }

  std::string section_name(const Section& section) {
    if (names_ >= sections_.size()) return {};
    return text(sections_[names_].offset + section.name);
  }

  std::string symbol_name(std::uint32_t index) {
    constexpr std::uint64_t kSymbolBytes = 24;
    for (const Section& section : sections_) {
      if (section.type != kSymbolTable || section.link >= sections_.size()) continue;
      const auto name = read<std::uint32_t>(section.offset + kSymbolBytes * index);
      return text(sections_[section.link].offset + name);
    }
    return {};
  }

  void kernel(const std::string& symbol) {
    index_.emplace(symbol, kernels_.size());
    kernels_.push_back({.symbol = symbol});
  }

  void read_attributes(const Section& section) {
    const std::uint64_t end = section.offset + section.size_bytes;
    for (std::uint64_t at = section.offset; at + 4 <= end && !is_cut_;) {
      const auto format = read<std::uint8_t>(at), kind = read<std::uint8_t>(at + 1);
      const auto size_bytes = read<std::uint16_t>(at + 2);
      if (format == kSizedValue && size_bytes >= 8) note(kind, at + 4);
      at += 4 + (format == kSizedValue ? size_bytes : 0);
    }
  }

  void note(std::uint8_t kind, std::uint64_t at) {
    if (kind != kRegisterCount && kind != kStackOfCalls) return;
    const auto found = index_.find(symbol_name(read<std::uint32_t>(at)));
    if (found == index_.end()) return;
    KernelResources& kernel = kernels_[found->second];
    (kind == kRegisterCount ? kernel.registers : kernel.stack_bytes) = read<std::uint32_t>(at + 4);
  }

  std::span<const std::uint8_t> bytes_;
  std::vector<Section> sections_;
  std::size_t names_ = 0;
  std::vector<KernelResources> kernels_;
  std::map<std::string, std::size_t> index_;
  bool is_cut_ = false;
};

}  // namespace

rt::Result<std::vector<KernelResources>> cubin_resources(std::span<const std::uint8_t> cubin) {
  return Cubin(cubin).run();
}

}  // namespace cinch::codegen
