#include "tests/kept_code/entry_file.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstring>

namespace cinch::kept_code {
namespace {

struct Search {
  ElfW(Addr) base;
  std::string found;
};

constexpr std::size_t round_up_to_4(std::size_t size) {
  return (size + 3) & ~std::size_t{3};
}

// A segment of notes: headers, each with a name and a description behind it.
std::string build_id_in(const char* notes, std::size_t size) {
  for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
    ElfW(Nhdr) note{};
    std::memcpy(&note, notes + at, sizeof note);
    const std::size_t name = at + sizeof note, text = name + round_up_to_4(note.n_namesz);
    const bool is_gnu = note.n_namesz == sizeof ELF_NOTE_GNU &&
                        std::memcmp(notes + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0;
    if (is_gnu && note.n_type == NT_GNU_BUILD_ID) return {notes + text, note.n_descsz};
    at = text + round_up_to_4(note.n_descsz);
  }
  return {};
}

int look_at(dl_phdr_info* object, std::size_t, void* data) {
  auto* const search = static_cast<Search*>(data);
  if (object->dlpi_addr != search->base) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE || !search->found.empty()) continue;
    // The loader tells addresses as numbers.
    const auto* const notes = reinterpret_cast<const char*>(  // NOLINT(performance-no-int-to-ptr)
        object->dlpi_addr + segment.p_vaddr);
    search->found = build_id_in(notes, segment.p_memsz);
  }
  return 1;
}

}  // namespace

std::string build_id(void* library) {
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0) return {};
  Search search{map->l_addr, {}};
  ::dl_iterate_phdr(look_at, &search);
  return search.found;
}

}  // namespace cinch::kept_code
