// Lays out a stream: finds the groups that fit, writes the lines in one sweep, then aligns
// comments.
#include "dsl/syntax/layout_stream.h"

#include <algorithm>

#include "dsl/source/source.h"

namespace cinch::dsl {

namespace {

constexpr std::size_t kIndent = 2;

using Piece = LayoutStream::Piece;

bool is_break(LayoutOp kind) {
  return kind == LayoutOp::Line || kind == LayoutOp::SoftLine || kind == LayoutOp::HardLine ||
         kind == LayoutOp::Blank;
}

std::size_t flat_width(const Piece& piece) {
  if (piece.kind == LayoutOp::Text) return count_code_points(piece.text);
  return piece.kind == LayoutOp::Space || piece.kind == LayoutOp::Line ? 1 : 0;
}

bool forces_break(const Piece& piece) {
  return piece.kind == LayoutOp::HardLine || piece.kind == LayoutOp::Blank ||
         (piece.kind == LayoutOp::Text && piece.text.find('\n') != std::string_view::npos);
}

// For each Begin: the width that its group needs on one line.
struct GroupWidths {
  // The width up to the first possible break after the group, and whether something inside must
  // break.
  std::vector<std::size_t> width;
  std::vector<bool> must_break;

  explicit GroupWidths(const std::vector<Piece>& pieces)
      : width(pieces.size()), must_break(pieces.size()) {
    std::vector<std::size_t> position(pieces.size() + 1, 0);
    std::vector<std::size_t> forced(pieces.size() + 1, 0);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      position[i + 1] = position[i] + flat_width(pieces[i]);
      forced[i + 1] = forced[i] + (forces_break(pieces[i]) ? 1 : 0);
    }
    std::vector<std::size_t> ends;
    std::vector<std::size_t> next_break(pieces.size() + 1, pieces.size());
    for (std::size_t i = pieces.size(); i-- > 0;) {
      next_break[i] = is_break(pieces[i].kind) ? i : next_break[i + 1];
      if (pieces[i].kind == LayoutOp::End) ends.push_back(i);
      if (pieces[i].kind != LayoutOp::Begin) continue;
      const std::size_t end = ends.back();
      ends.pop_back();
      width[i] = position[next_break[end]] - position[i];
      must_break[i] = forced[end] > forced[i];
    }
  }
};

struct OutputLine {
  std::string code;
  std::string comment;
  std::size_t indent = 0;
};

class Renderer {
 public:
  Renderer(const std::vector<Piece>& pieces, std::size_t width)
      : pieces_(pieces), groups_(pieces), width_(width), lines_(1) {}

  std::string run() {
    for (std::size_t i = 0; i < pieces_.size(); ++i) step(i);
    while (!lines_.empty() && is_empty(lines_.back())) lines_.pop_back();
    line_up_comments();
    std::string result;
    for (const OutputLine& line : lines_) result += line.code + line.comment + '\n';
    return result;
  }

 private:
  static bool is_empty(const OutputLine& line) { return line.code.empty() && line.comment.empty(); }

  bool in_broken_group() const { return broken_.empty() || broken_.back(); }

  void step(std::size_t i) {
    const Piece& piece = pieces_[i];
    switch (piece.kind) {
      case LayoutOp::Text:
        return write(piece.text);
      case LayoutOp::Trailing:
        lines_.back().comment = piece.text;
        needs_space_ = false;
        return;
      case LayoutOp::Space:
        needs_space_ = true;
        return;
      case LayoutOp::Line:
        if (in_broken_group()) return break_line();
        needs_space_ = true;
        return;
      case LayoutOp::SoftLine:
        if (in_broken_group()) break_line();
        return;
      case LayoutOp::HardLine:
        return break_line();
      case LayoutOp::Blank:
        return add_blank();
      case LayoutOp::Begin:
        // A group inside a group that fits also fits.
        broken_.push_back(groups_.must_break[i] ||
                          (in_broken_group() && column() + groups_.width[i] > width_));
        return;
      case LayoutOp::End:
        return broken_.pop_back();
      case LayoutOp::Indent:
        ++level_;
        return;
      case LayoutOp::Dedent:
        --level_;
        return;
    }
  }

  std::size_t column() const {
    const std::string& code = lines_.back().code;
    if (code.empty()) return level_ * kIndent;
    return count_code_points(code) + (needs_space_ ? 1 : 0);
  }

  void write(std::string_view text) {
    std::string& code = lines_.back().code;
    if (code.empty()) {
      code.assign(level_ * kIndent, ' ');
      lines_.back().indent = level_;
    } else if (needs_space_ && code.back() != '(' && code.back() != '[') {
      code += ' ';
    }
    needs_space_ = false;
    for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      std::string_view line = text.substr(0, end);
      while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) {
        line.remove_suffix(1);
      }
      lines_.back().code += line;
      lines_.emplace_back();
      text.remove_prefix(end + 1);
    }
    lines_.back().code += text;
  }

  void break_line() {
    needs_space_ = false;
    if (!is_empty(lines_.back())) lines_.emplace_back();
  }

  void add_blank() {
    break_line();
    const std::size_t num_lines = lines_.size();
    if (num_lines < 2) return;
    const OutputLine& before = lines_[num_lines - 2];
    const bool is_opening =
        before.comment.empty() && !before.code.empty() &&
        std::string_view("{([").find(before.code.back()) != std::string_view::npos;
    if (!is_empty(before) && !is_opening) lines_.emplace_back();
  }

  // Comments of neighbouring lines with the same indent start in the same column.
  void line_up_comments() {
    for (std::size_t i = 0; i < lines_.size();) {
      std::size_t end = i;
      std::size_t column = 0;
      while (end < lines_.size() && !lines_[end].comment.empty() &&
             lines_[end].indent == lines_[i].indent) {
        column = std::max<std::size_t>(column, count_code_points(lines_[end].code));
        ++end;
      }
      for (std::size_t j = i; j < end; ++j) {
        std::string& code = lines_[j].code;
        if (!code.empty()) code.append(column + 2 - count_code_points(code), ' ');
      }
      i = std::max(end, i + 1);
    }
  }

  const std::vector<Piece>& pieces_;
  GroupWidths groups_;
  std::size_t width_;
  std::vector<OutputLine> lines_;
  std::vector<bool> broken_;
  std::size_t level_ = 0;
  bool needs_space_ = false;
};

}  // namespace

void LayoutStream::text(std::string_view piece) {
  pieces_.push_back({LayoutOp::Text, piece});
  behind_last_text_ = pieces_.size();
}

void LayoutStream::op(LayoutOp kind) {
  pieces_.push_back({kind, {}});
}

void LayoutStream::insert_behind_last_text(const std::vector<Piece>& pieces) {
  const auto stays_inside = [](LayoutOp kind) {
    return kind == LayoutOp::End || kind == LayoutOp::Indent || kind == LayoutOp::Dedent;
  };
  std::size_t at = behind_last_text_;
  while (at < pieces_.size() && stays_inside(pieces_[at].kind)) ++at;
  pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(at), pieces.begin(), pieces.end());
  behind_last_text_ = at + pieces.size();
}

std::string LayoutStream::render(std::size_t width) const {
  return Renderer(pieces_, width).run();
}

}  // namespace cinch::dsl
