// Pages keep their granularity: a buffer of bytes stays one.
#include "codegen/emulator/races/shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace cinch::emulator {

Shadow::Shadow(std::uint64_t size_bytes) : num_pages_((size_bytes + kPageBytes - 1) / kPageBytes) {
  void* memory = ::mmap(nullptr, num_pages_ * sizeof(Page*), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  pages_ = static_cast<Page**>(memory);
}

Shadow::~Shadow() {
  ::munmap(static_cast<void*>(pages_), num_pages_ * sizeof(Page*));
}

Shadow::Page& Shadow::prepare(std::uint64_t index, std::uint64_t ends, std::uint64_t generation) {
  if (!pages_[index]) {
    owned_.push_back(std::make_unique<Page>());
    pages_[index] = owned_.back().get();
  }
  Page& page = *pages_[index];
  unsigned shift = page.shift;
  while ((ends & ((1u << shift) - 1)) != 0) --shift;
  if (page.generation != generation || page.cells.empty()) {
    page.cells.assign(kPageBytes >> shift, Cell{});
  } else if (shift != page.shift) {
    const unsigned finer = page.shift - shift;
    std::vector<Cell> cells(kPageBytes >> shift);
    for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = page.cells[i >> finer];
    page.cells = std::move(cells);
  }
  page.shift = shift;
  page.generation = generation;
  return page;
}

}  // namespace cinch::emulator
