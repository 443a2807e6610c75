// Source text and positions in it: SourceBuffer (one file), Span (a part of a file) and SourceSet
// (all files of a run). Offsets are in bytes and count from 0. Lines and columns count from 1;
// columns are UTF-8 code points, and a tab is one column. This code reads no files: callers pass
// their text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cinch::dsl {

/// The number of a file in its SourceSet; kNoFile for text that belongs to no file.
using FileId = std::uint32_t;
inline constexpr FileId kNoFile = 0xffffffffu;

/// Bytes [begin, end) of file `file`.
struct Span {
  FileId file = kNoFile;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  std::uint32_t size() const { return end - begin; }
  bool is_empty() const { return begin == end; }
  bool has_file() const { return file != kNoFile; }
  friend bool operator==(const Span&, const Span&) = default;
};

/// From the start of `first` to the end of `last`. Both are in one file.
inline Span join(const Span& first, const Span& last) {
  return {first.file, first.begin < last.begin ? first.begin : last.begin,
          first.end > last.end ? first.end : last.end};
}

/// A position for people: both numbers count from 1.
struct LineColumn {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  friend bool operator==(const LineColumn&, const LineColumn&) = default;
};

/// One file's name and text, with a table of its lines. Immutable.
class SourceBuffer {
 public:
  /// Diagnostics show `name`. `text` may hold any bytes, fewer than 2^32.
  SourceBuffer(FileId id, std::string name, std::string text);

  FileId id() const { return id_; }
  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }
  std::uint32_t size_bytes() const { return static_cast<std::uint32_t>(text_.size()); }

  /// The text under a span of this file. A span beyond the end is cut there.
  std::string_view text(const Span& span) const;
  /// The whole file as a span.
  Span whole() const { return {id_, 0, size_bytes()}; }

  /// The number of lines, at least 1. A newline at the end of the file begins no further line.
  std::uint32_t num_lines() const { return static_cast<std::uint32_t>(line_starts_.size()); }
  /// The line (from 1) of byte `offset`. Offsets after the end belong to the last line.
  std::uint32_t line_of(std::uint32_t offset) const;
  /// The line and column of byte `offset`.
  LineColumn position(std::uint32_t offset) const;
  /// The text of a line (from 1) without its line end.
  std::string_view line_text(std::uint32_t line) const;
  /// The offset of the first byte of a line (from 1).
  std::uint32_t line_begin(std::uint32_t line) const { return line_starts_[line - 1]; }

 private:
  FileId id_;
  std::string name_;
  std::string text_;
  std::vector<std::uint32_t> line_starts_;
};

/// The number of UTF-8 code points in `text`. A stray continuation byte counts as one.
std::uint32_t count_code_points(std::string_view text);

/// All files of one run. Buffers keep their addresses while the set lives.
class SourceSet {
 public:
  /// Adds a file and returns its buffer, whose id() is its number.
  const SourceBuffer& add(std::string name, std::string text);
  /// The file with this number, or nullptr.
  const SourceBuffer* find(FileId id) const;
  /// The file with this name, or nullptr.
  const SourceBuffer* find_name(std::string_view name) const;
  std::size_t num_files() const { return files_.size(); }

 private:
  std::vector<std::unique_ptr<SourceBuffer>> files_;
};

}  // namespace cinch::dsl
