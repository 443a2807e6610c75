// The levels that this machine runs, and the kernels of images for it.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "runtime/core/files/file_bytes.h"
#include "runtime/module/cpu_module.h"

namespace cinch::rt {
namespace {

bool has_v2() {
  return __builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") &&
         __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
         __builtin_cpu_supports("popcnt");
}

bool has_v3() {
  return has_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt") &&
         __builtin_cpu_supports("movbe");
}

constexpr std::string_view kCpuPrefix = "cpu:";
constexpr std::string_view kLevels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

Result<std::vector<std::uint8_t>> first_bytes(const std::filesystem::path& path,
                                              std::uint64_t size_bytes) {
  auto reader = TRY(FileReader::open(path));
  std::vector<std::uint8_t> bytes;
  CINCH_TRY(reader.read_up_to(size_bytes, bytes));
  return bytes;
}

// Linkers put the table of segments right after the header; the bytes before it are read along with
// it.
constexpr std::uint64_t kFarthestTable = 1 << 16;

bool begins_as_elf(const std::vector<std::uint8_t>& bytes) {
  return bytes.size() >= SELFMAG && std::memcmp(bytes.data(), ELFMAG, SELFMAG) == 0;
}

bool ends_within(std::uint64_t begin, std::uint64_t size, std::uint64_t whole) {
  return begin <= whole && size <= whole - begin;
}

}  // namespace

std::string_view host_level() {
  const bool has_v4 = has_v3() && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  static const std::string_view kLevel = has_v4     ? "x86-64-v4"
                                         : has_v3() ? "x86-64-v3"
                                         : has_v2() ? "x86-64-v2"
                                                    : "x86-64";
  return kLevel;
}

std::string_view host_cpu_arch() {
  return host_level() == "x86-64-v2" ? "x86-64" : host_level();
}

bool host_supports(std::string_view arch) {
  const auto* const end = std::end(kLevels);
  const auto* const wanted = std::find(std::begin(kLevels), end, arch);
  return wanted != end && wanted <= std::find(std::begin(kLevels), end, host_level());
}

Result<CpuModule> CpuModule::load(std::span<const std::uint8_t> shared_object) {
  auto object = TRY(SharedObject::load(shared_object, "kernels"));
  return CpuModule(std::move(object));
}

Result<CpuModule> CpuModule::load(const ProgramImage& image) {
  if (!image.target.starts_with(kCpuPrefix)) {
    return fail(ErrorKind::Unavailable, "image for target " + image.target + ", not a CPU");
  }
  const std::string_view arch = std::string_view(image.target).substr(kCpuPrefix.size());
  if (!host_supports(arch)) {
    return fail(ErrorKind::Unavailable,
                "image for " + image.target + ", this machine has " + std::string(host_cpu_arch()));
  }
  auto module = TRY(load(image.binary));
  for (const KernelInfo& info : image.kernels) {
    const KernelFunction kernel = module.find(info.symbol);
    if (!kernel) return fail(ErrorKind::CorruptFile, "kernel " + info.symbol + " is missing");
    module.kernels_.push_back(kernel);
  }
  return module;
}

KernelFunction CpuModule::find(const std::string& symbol) const {
  return reinterpret_cast<KernelFunction>(object_.find(symbol.c_str()));
}

// Checks of shared libraries as files; see shared_object.h.

bool is_elf_file(const std::filesystem::path& path) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) return false;  // a pipe can be read only once
  const auto bytes = first_bytes(path, SELFMAG);
  return bytes && begins_as_elf(*bytes);
}

Status check_elf_file(const std::filesystem::path& path) {
  std::error_code code;
  const std::uint64_t whole = std::filesystem::file_size(path, code);
  if (code) return fail(ErrorKind::Io, path.string() + ": " + code.message());
  const auto corrupt = [&](const char* what) {
    return fail(ErrorKind::CorruptFile, path.string() + ": " + what);
  };
  const auto head = TRY(first_bytes(path, sizeof(Elf64_Ehdr)));
  Elf64_Ehdr header;
  if (!begins_as_elf(head) || head.size() < sizeof header || head[EI_CLASS] != ELFCLASS64)
    return corrupt("not a shared library of 64 bits");
  std::memcpy(&header, head.data(), sizeof header);
  const std::uint64_t size_bytes = std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  const std::uint64_t section_bytes = std::uint64_t{header.e_shnum} * header.e_shentsize;
  if (header.e_phentsize != sizeof(Elf64_Phdr) || !ends_within(header.e_phoff, size_bytes, whole) ||
      !ends_within(header.e_shoff, section_bytes, whole)) {
    return corrupt("cut short");
  }
  if (header.e_phoff > kFarthestTable) return corrupt("not a shared library that a linker made");
  const auto table = TRY(first_bytes(path, header.e_phoff + size_bytes));
  if (table.size() < header.e_phoff + size_bytes) return corrupt("cut short");
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, table.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (!ends_within(segment.p_offset, segment.p_filesz, whole)) return corrupt("cut short");
  }
  return Ok{};
}

}  // namespace cinch::rt
