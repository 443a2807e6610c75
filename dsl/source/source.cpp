// The table of lines of SourceBuffer, and the list of files of a run.
#include "dsl/source/source.h"

#include <algorithm>

namespace cinch::dsl {

namespace {

std::vector<std::uint32_t> find_line_starts(std::string_view text) {
  std::vector<std::uint32_t> starts{0};
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '\n') starts.push_back(static_cast<std::uint32_t>(i + 1));
  }
  return starts;
}

}  // namespace

SourceBuffer::SourceBuffer(FileId id, std::string name, std::string text)
    : id_(id),
      name_(std::move(name)),
      text_(std::move(text)),
      line_starts_(find_line_starts(text_)) {}

std::string_view SourceBuffer::text(const Span& span) const {
  const std::uint32_t begin = std::min(span.begin, size_bytes());
  const std::uint32_t end = std::clamp(span.end, begin, size_bytes());
  return std::string_view(text_).substr(begin, end - begin);
}

std::uint32_t SourceBuffer::line_of(std::uint32_t offset) const {
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return static_cast<std::uint32_t>(next - line_starts_.begin());
}

LineColumn SourceBuffer::position(std::uint32_t offset) const {
  const std::uint32_t line = line_of(offset);
  return {line, 1 + count_code_points(text({id_, line_begin(line), offset}))};
}

std::string_view SourceBuffer::line_text(std::uint32_t line) const {
  const std::uint32_t begin = line_begin(line);
  const std::uint32_t end = line < num_lines() ? line_begin(line + 1) : size_bytes();
  std::string_view result = text({id_, begin, end});
  while (!result.empty() && (result.back() == '\n' || result.back() == '\r'))
    result.remove_suffix(1);
  return result;
}

std::uint32_t count_code_points(std::string_view text) {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) == 0x80u; };
  std::uint32_t count = 0;
  bool in_sequence = false;
  for (const char c : text) {
    if (!(continues(c) && in_sequence)) ++count;
    in_sequence = (static_cast<unsigned char>(c) & 0x80u) != 0;
  }
  return count;
}

const SourceBuffer& SourceSet::add(std::string name, std::string text) {
  const auto id = static_cast<FileId>(files_.size());
  files_.push_back(std::make_unique<SourceBuffer>(id, std::move(name), std::move(text)));
  return *files_.back();
}

const SourceBuffer* SourceSet::find(FileId id) const {
  return id < files_.size() ? files_[id].get() : nullptr;
}

const SourceBuffer* SourceSet::find_name(std::string_view name) const {
  for (const auto& file : files_) {
    if (file->name() == name) return file.get();
  }
  return nullptr;
}

}  // namespace cinch::dsl
