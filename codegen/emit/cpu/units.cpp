// Kernels are compared as text, after the buffers, sizes and parameters that they name are numbered
// in the order of their first mention.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cpu/kernel/facts.h"
#include "codegen/emit/cpu/reuse.h"
#include "runtime/core/check.h"

namespace cinch::codegen {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Tables of KernelArgs that kernels index by the program's numbers.
constexpr std::string_view kTables[] = {"args->buffers[", "args->sizes[", "args->params["};
// Names of locals that end with a buffer's number.
constexpr std::string_view kBufferNames[] = {"histogram_", "cells_", "b"};

// Rewrites a text from its start to its end.
class Rewriter {
 public:
  explicit Rewriter(std::string_view text) : text_(text) {}

  // Takes the next word or character.
  std::string_view next() {
    std::size_t end = at_ + 1;
    if (is_word(text_[at_])) {
      while (end < text_.size() && is_word(text_[end])) ++end;
    }
    const std::string_view token = text_.substr(at_, end - at_);
    at_ = end;
    return token;
  }
  bool is_done() const { return at_ >= text_.size(); }
  // If a table is indexed by a number here: which table, and the number.
  bool take_entry(std::size_t& table, std::string_view& number) {
    for (table = 0; table < std::size(kTables); ++table) {
      if (!text_.substr(at_).starts_with(kTables[table])) continue;
      const std::size_t begin = at_ + kTables[table].size();
      const std::size_t end = std::min(text_.find(']', begin), text_.size());
      number = text_.substr(begin, end - begin);
      if (!is_number(number)) return false;
      at_ = end + 1;
      return true;
    }
    return false;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

struct Entry {
  std::size_t table;
  std::string number;
  friend auto operator<=>(const Entry&, const Entry&) = default;
};

// A kernel's text without its signature and the lines that fetch buffers, with places instead of
// numbers, and the table entries at these places.
struct Comparable {
  std::string text;
  std::vector<Entry> entries;
};

class Comparison {
 public:
  std::string rewrite(std::string_view text) {
    Rewriter from(text);
    std::string out;
    while (!from.is_done()) {
      std::size_t table = 0;
      std::string_view number;
      if (from.take_entry(table, number)) {
        out += fmt::format("{}@{}]", kTables[table], place({table, std::string(number)}));
        continue;
      }
      const std::string_view token = from.next();
      const std::string_view name = buffer_name(token);
      if (name.empty()) {
        out += token;
      } else {
        out += fmt::format("{}@{}", name, place({0, std::string(token.substr(name.size()))}));
      }
    }
    return out;
  }
  std::vector<Entry> take_entries() { return std::move(entries_); }

 private:
  static std::string_view buffer_name(std::string_view token) {
    for (const std::string_view name : kBufferNames) {
      if (token.starts_with(name) && is_number(token.substr(name.size()))) return name;
    }
    return {};
  }
  std::size_t place(const Entry& entry) {
    const auto [known, is_new] = places_.emplace(entry, entries_.size());
    if (is_new) entries_.push_back(entry);
    return known->second;
  }

  std::map<Entry, std::size_t> places_;
  std::vector<Entry> entries_;
};

constexpr std::string_view kArguments = "const KernelArgs* args, u64 group_begin, u64 group_end";

// The text behind the signature.
std::string_view body_of(std::string_view text) {
  const std::size_t begin = text.find(kArguments);
  CINCH_CHECK(begin != std::string_view::npos, "a kernel of other arguments");
  return text.substr(text.find('\n', begin) + 1);
}

Comparable compare_by(const std::string& text) {
  std::string_view body = body_of(text);
  // Buffers are fetched in the order of their numbers.
  while (body.find("u8* const b") == body.find_first_not_of(' ')) {
    body.remove_prefix(body.find('\n') + 1);
  }
  Comparison comparison;
  Comparable found{comparison.rewrite(body), {}};
  found.entries = comparison.take_entries();
  return found;
}

// The first kernel's function, which reads its table entries from `places`.
std::string shared_function(const std::string& name, const std::string& text,
                            const std::vector<Entry>& entries) {
  std::string out = fmt::format(
      "static __attribute__((noinline)) void {}({}, const u32* places) {{\n", name, kArguments);
  Rewriter from(body_of(text));
  while (!from.is_done()) {
    Entry entry{};
    std::string_view number;
    if (!from.take_entry(entry.table, number)) {
      out += from.next();
      continue;
    }
    entry.number = number;
    const auto place = std::ranges::find(entries, entry) - entries.begin();
    out += fmt::format("{}places[{}]]", kTables[entry.table], place);
  }
  return out;
}

std::string call(const std::string& symbol, const std::string& name,
                 const std::vector<Entry>& entries) {
  std::string numbers;
  for (const Entry& entry : entries) numbers += entry.number + "u, ";
  return fmt::format(
      "\nextern \"C\" __attribute__((visibility(\"default\"))) void {}({}) {{\n"
      "  static constexpr u32 places[] = {{{}}};\n"
      "  {}(args, group_begin, group_end, places);\n}}\n",
      symbol, kArguments, numbers, name);
}

}  // namespace

std::vector<CpuUnit> share_kernels(const kir::KernelProgram& program,
                                   const std::vector<std::string>& texts) {
  std::vector<Comparable> kernels;
  kernels.reserve(texts.size());
  for (const std::string& text : texts) kernels.push_back(compare_by(text));
  std::map<std::string_view, std::size_t> known;
  std::vector<CpuUnit> units;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const auto [unit, is_new] = known.emplace(kernels[k].text, units.size());
    if (is_new) units.emplace_back();
    units[unit->second].kernels.push_back(k);
  }
  for (CpuUnit& unit : units) {
    const std::size_t first = unit.kernels[0];
    const std::vector<Entry>& entries = kernels[first].entries;
    if (unit.kernels.size() == 1 || entries.empty()) {
      for (const std::size_t k : unit.kernels) unit.text += texts[k];
      continue;
    }
    const std::string name = "shared_" + program.kernels[first].info.symbol;
    unit.text = shared_function(name, texts[first], entries);
    for (const std::size_t k : unit.kernels) {
      unit.text += call(program.kernels[k].info.symbol, name, kernels[k].entries);
    }
  }
  return units;
}

Storage storage_of(const rt::BufferInfo& buffer) {
  Storage storage{.dtype = buffer.dtype, .bits = buffer.storage_bits};
  const int stage_bits = storage.bits <= 8    ? 8
                         : storage.bits <= 16 ? 16
                         : storage.bits <= 32 ? 32
                                              : 64;
  storage.is_packed = storage.bits != stage_bits;
  CINCH_CHECK(storage.bits >= 1 && storage.bits <= 64, "storage width of " + buffer.name);
  CINCH_CHECK(!is_float(buffer.dtype) || storage.bits == buffer.dtype.bits,
              "storage of floats in " + buffer.name);
  const bool is_signed = !storage.is_packed && is_signed_int(storage.dtype);
  const bool is_plain_float = is_float(storage.dtype) && !is_narrow_float(storage.dtype);
  storage.element = !storage.is_packed && is_plain_float
                        ? dtype_name(storage.dtype)
                        : fmt::format("{}{}", is_signed ? "i" : "u", stage_bits);
  return storage;
}

std::string from_storage(const Storage& storage, const std::string& x) {
  const DType dtype = storage.dtype;
  if (is_bool(dtype)) return fmt::format("is_nonzero({})", x);
  if (is_narrow_float(dtype)) return fmt::format("widen_{}({})", dtype_name(dtype), x);
  if (is_float(dtype)) return x;
  const std::string whole =
      fmt::format("lang::convert<{}>({})", c_type(kir::compute_type(dtype)), x);
  const bool needs_sign = storage.is_packed && is_signed_int(dtype);
  return needs_sign ? fmt::format("wrap_signed<{}>({})", storage.bits, whole) : whole;
}

std::string to_storage(const Storage& storage, const std::string& x) {
  const DType dtype = storage.dtype;
  if (is_bool(dtype)) return fmt::format("truth_to<{}>({})", storage.element, x);
  if (is_narrow_float(dtype)) return fmt::format("lang::f32_to_{}({})", dtype_name(dtype), x);
  if (is_float(dtype)) return fmt::format("lang::canonical({})", x);
  return fmt::format("lang::convert<{}>({})", storage.element, x);
}

}  // namespace cinch::codegen
