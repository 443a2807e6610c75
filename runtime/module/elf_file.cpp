// Checks of shared libraries as files; see shared_object.h.
#include "runtime/module/shared_object.h"

#include <elf.h>

#include <cstring>
#include <vector>

#include "runtime/core/files/file_bytes.h"

namespace cinch::rt {
namespace {

Result<std::vector<std::uint8_t>> first_bytes(const std::filesystem::path& path,
                                              std::uint64_t size_bytes) {
  auto reader = FileReader::open(path);
  CINCH_TRY(reader);
  std::vector<std::uint8_t> bytes;
  CINCH_TRY(reader->read_up_to(size_bytes, bytes));
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
  const auto head = first_bytes(path, sizeof(Elf64_Ehdr));
  CINCH_TRY(head);
  Elf64_Ehdr header;
  if (!begins_as_elf(*head) || head->size() < sizeof header || (*head)[EI_CLASS] != ELFCLASS64)
    return corrupt("not a shared library of 64 bits");
  std::memcpy(&header, head->data(), sizeof header);
  const std::uint64_t size_bytes = std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  const std::uint64_t section_bytes = std::uint64_t{header.e_shnum} * header.e_shentsize;
  if (header.e_phentsize != sizeof(Elf64_Phdr) || !ends_within(header.e_phoff, size_bytes, whole) ||
      !ends_within(header.e_shoff, section_bytes, whole)) {
    return corrupt("cut short");
  }
  if (header.e_phoff > kFarthestTable) return corrupt("not a shared library that a linker made");
  const auto table = first_bytes(path, header.e_phoff + size_bytes);
  CINCH_TRY(table);
  if (table->size() < header.e_phoff + size_bytes) return corrupt("cut short");
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, table->data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (!ends_within(segment.p_offset, segment.p_filesz, whole)) return corrupt("cut short");
  }
  return Ok{};
}

}  // namespace cinch::rt
