// Loads, stores and atomics: bounds, alignment, whether bytes were written, races.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "codegen/emulator/launch.h"

namespace cinch::emulator {
namespace {

// The bits that all bytes of a range have set.
std::uint8_t common_state(const std::uint8_t* state, std::uint64_t size) {
  std::uint64_t all = ~std::uint64_t{0};
  for (; size >= 8; size -= 8, state += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, state, 8);
    all &= word;
  }
  all &= all >> 32;
  all &= all >> 16;
  auto common = static_cast<std::uint8_t>(all & (all >> 8));
  for (; size > 0; --size) common &= *state++;
  return common;
}

std::uint64_t read_word(const void* at, std::uint32_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, size);
  return word;
}

template <class T, class U>
T of_bits(U bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
std::uint64_t added_floats(std::uint64_t a, std::uint64_t b) {
  const T sum = of_bits<T>(a) + of_bits<T>(b);
  std::uint64_t word = 0;
  std::memcpy(&word, &sum, sizeof sum);
  return word;
}

std::int64_t signed_word(std::uint64_t x, std::uint32_t size) {
  const unsigned shift = 64 - 8 * size;
  return static_cast<std::int64_t>(x << shift) >> shift;
}

// The result of an atomic update; words of `size` bytes, upper bits are ignored.
std::uint64_t updated(AtomicOp op, std::uint64_t old, std::uint64_t value, std::uint64_t compare,
                      std::uint32_t size) {
  switch (op) {
    case AtomicOp::Load:
      return old;
    case AtomicOp::Store:
    case AtomicOp::Exchange:
      return value;
    case AtomicOp::CompareExchange:
      return old == compare ? value : old;
    case AtomicOp::Add:
      return old + value;
    case AtomicOp::And:
      return old & value;
    case AtomicOp::Or:
      return old | value;
    case AtomicOp::Xor:
      return old ^ value;
    case AtomicOp::Min:
      return std::min(old, value);
    case AtomicOp::Max:
      return std::max(old, value);
    case AtomicOp::MinSigned:
      return signed_word(old, size) < signed_word(value, size) ? old : value;
    case AtomicOp::MaxSigned:
      return signed_word(old, size) > signed_word(value, size) ? old : value;
    case AtomicOp::AddFloat:
      break;
  }
  return size == 4 ? added_floats<float>(old, value) : added_floats<double>(old, value);
}

}  // namespace

void Launch::access(const void* at, std::uint64_t size, std::uint64_t align, std::uint32_t site,
                    bool is_strong, bool is_write) {
  if (size == 0 || !find_place(at, size, align, site, is_write)) return;
  const std::uint64_t offset = arena_.offset_of(at);
  if (is_write) {
    std::memset(arena_.state() + offset, kAllocated | kWritten, size);
  } else {
    check_written(offset, size, site);
  }
  order_access(offset, size, site, is_strong, is_write);
}

// Returns false for memory that is the thread's own or the module's.
bool Launch::find_place(const void* at, std::uint64_t size, std::uint64_t align, std::uint32_t site,
                        bool is_write) {
  const std::uint64_t offset = arena_.offset_of(at);
  const bool is_in_arena = offset < arena_.size_bytes() && size <= arena_.size_bytes() - offset;
  if (!is_in_arena && is_elsewhere(at, size, is_write)) return false;
  bool is_fine = is_in_arena && (common_state(arena_.state() + offset, size) & kAllocated) != 0;
  if (is_fine && offset >= arena_.shared_begin()) {
    is_fine = (offset - arena_.shared_begin()) / blocks_.slot_bytes == blocks_.current->slot;
  }
  if (!is_fine) {
    reporter_.add_outside(at, size, site, is_write);
    cut_off();
  }
  if ((offset & (align - 1)) != 0) {
    reporter_.add(FindingKind::Misaligned, site,
                  reporter_.thread_text(blocks_.current->id) + (is_write ? " writes " : " reads ") +
                      std::to_string(size) + " bytes that must be aligned to " +
                      std::to_string(align) + ", at " + reporter_.place_text(offset, size));
    cut_off();
  }
  return true;
}

// Is it in the thread's own stack, or a constant of the module?
bool Launch::is_elsewhere(const void* at, std::uint64_t size, bool is_write) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  const auto lies_in = [&](const void* place, std::uint64_t bytes) {
    const std::uint64_t offset = begin - reinterpret_cast<std::uintptr_t>(place);
    return offset < bytes && size <= bytes - offset;
  };
  if (lies_in(blocks_.current->fiber.stack_begin, blocks_.current->fiber.stack_bytes)) return true;
  const ModuleInfo& info = request_.module->info();
  for (std::uint64_t i = 0; i < info.num_constants && !is_write; ++i) {
    if (lies_in(info.constants[i].begin, info.constants[i].size_bytes)) return true;
  }
  return false;
}

void Launch::check_written(std::uint64_t offset, std::uint64_t size, std::uint32_t site) {
  std::uint8_t* state = arena_.state() + offset;
  if ((common_state(state, size) & kWritten) != 0 ||
      !reporter_.is_new(FindingKind::Uninitialised, site)) {
    return;
  }
  std::uint64_t first = 0;
  while ((state[first] & kWritten) != 0) ++first;
  reporter_.add(FindingKind::Uninitialised, site,
                reporter_.thread_text(blocks_.current->id) + " reads " + std::to_string(size) +
                    " bytes that nobody has written, at " +
                    reporter_.place_text(offset + first, 1));
}

void Launch::order_access(std::uint64_t offset, std::uint64_t size, std::uint32_t site,
                          bool is_strong, bool is_write) {
  const Access own(blocks_.current->id, blocks_.current->clock, site, is_strong);
  const std::uint64_t begin = arena_.shared_begin();
  const std::uint64_t generation =
      offset < begin ? launch_generation_
                     : blocks_.slots[(offset - begin) / blocks_.slot_bytes].generation;
  while (size > 0) {
    const std::uint64_t in_page = offset % Shadow::kPageBytes;
    const std::uint64_t part = std::min(size, Shadow::kPageBytes - in_page);
    Shadow::Page& page = shadow_.page(offset, part, generation);
    const std::uint64_t end = (in_page + part) >> page.shift;
    for (std::uint64_t i = in_page >> page.shift; i < end; ++i) {
      const std::uint64_t at = offset - in_page + (i << page.shift);
      if (is_write) {
        order_write(page.cells[i], own, at);
      } else {
        order_read(page.cells[i], own, at);
      }
    }
    offset += part;
    size -= part;
  }
}

void Launch::order_read(Cell& cell, const Access& own, std::uint64_t offset) {
  const Access& write = cell.write;
  if (write && !(write.is_strong() && own.is_strong()) && !order_.is_known(write)) {
    reporter_.add_race(write, own, offset, "wrote", "reads");
  }
  Access& last = cell.read[0];
  if (last && last.thread() != own.thread() && !order_.is_known(last)) {
    // Of unordered readers, one of another warp makes the better report.
    const bool is_other = last.thread() / kWarpLanes != own.thread() / kWarpLanes;
    if (is_other || !cell.read[1]) cell.read[1] = last;
  }
  last = own;
}

void Launch::order_write(Cell& cell, const Access& own, std::uint64_t offset) {
  const auto conflicts = [&](const Access& before) {
    return before && !(before.is_strong() && own.is_strong()) && !order_.is_known(before);
  };
  if (conflicts(cell.write)) reporter_.add_race(cell.write, own, offset, "wrote", "writes");
  for (Access& read : cell.read) {
    if (conflicts(read)) reporter_.add_race(read, own, offset, "read", "writes");
    read = Access();
  }
  cell.write = own;
}

// Other threads may run before the access, but never between its report and the access itself.
void Launch::strong_access(const void* at, std::uint64_t size, std::uint64_t align,
                           std::uint32_t site, bool is_write) {
  blocks_.current->site = site;
  if (is_write) {
    make_progress();
  } else {
    ++idle_steps_;
  }
  if ((random_.next() & 1) != 0) yield();
  if (!request_.checks) return;
  access(at, size, align, site, true, is_write);
  if (is_write) {
    order_.release_to(at, false);
  } else {
    order_.acquire(at);
  }
}

void Launch::order_atomic(AtomicOp op, const void* at, std::uint32_t size, std::uint32_t site) {
  const bool reads = op != AtomicOp::Store && op != AtomicOp::Exchange;
  const bool writes = op != AtomicOp::Load;
  const std::uint64_t offset = arena_.offset_of(at);
  if (reads) check_written(offset, size, site);
  if (writes) std::memset(arena_.state() + offset, kAllocated | kWritten, size);
  order_access(offset, size, site, true, writes);
  if (op == AtomicOp::Load) return;
  if (op != AtomicOp::Store) order_.acquire(at);
  order_.release_to(at, op != AtomicOp::Store);
}

std::uint64_t Launch::atomic(AtomicOp op, void* at, std::uint32_t size, std::uint64_t value,
                             std::uint64_t compare, std::uint32_t site) {
  blocks_.current->site = site;
  ++idle_steps_;
  if ((random_.next() & 3) == 0) yield();
  History* history = nullptr;
  if (request_.checks && find_place(at, size, size, site, op != AtomicOp::Load)) {
    order_.count_atomic();
    // The history that the atomic reads or continues. An update alone makes none: it reads the
    // newest
    // value. Nor does a store to memory that was never written.
    const bool is_written =
        (common_state(arena_.state() + arena_.offset_of(at), size) & kWritten) != 0;
    const bool makes = op == AtomicOp::Load || (op == AtomicOp::Store && is_written);
    if (makes || order_.has_histories()) history = order_.history_of(at, size, makes);
    order_atomic(op, at, size, site);
  }
  if (op == AtomicOp::Load && history != nullptr) return order_.load_held(*history, site);
  const std::uint64_t old = read_word(at, size);
  if (op == AtomicOp::Load) {
    order_.acquire(at);
    return old;
  }
  const std::uint64_t now = updated(op, old, value, compare, size);
  std::memcpy(at, &now, size);
  if (history != nullptr) order_.add_held(*history, at, site);
  if (read_word(at, size) != old) make_progress();
  return old;
}

// Pages keep their granularity: a buffer of bytes stays one.

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
