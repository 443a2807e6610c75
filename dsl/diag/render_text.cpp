// Diagnostics for people: position, message, source line and caret.
#include <algorithm>

#include "dsl/diag/render.h"
#include "runtime/core/log.h"

namespace cinch::dsl {

namespace {

constexpr std::string_view kReset = "\x1b[0m";
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kYellow = "\x1b[1;35m";
constexpr std::string_view kCyan = "\x1b[1;36m";
constexpr std::string_view kGreen = "\x1b[1;32m";

std::string_view color_for(Severity severity) {
  if (severity == Severity::Error) return kRed;
  return severity == Severity::Warning ? kYellow : kCyan;
}

bool continues_code_point(char c) {
  return (static_cast<unsigned char>(c) & 0xc0u) == 0x80u;
}

// A piece of one line with the marked bytes [begin, end) in it.
struct Excerpt {
  std::string_view text;
  std::size_t begin = 0;
  std::size_t end = 0;
  bool is_cut_left = false;
  bool is_cut_right = false;
};

// The line on which a span begins. Of a very long line, only the part around the span.
Excerpt make_excerpt(const SourceBuffer& source, const Span& span) {
  constexpr std::size_t kMaxShown = 160;
  constexpr std::size_t kBefore = 60;
  const std::uint32_t line = source.line_of(span.begin);
  Excerpt result{source.line_text(line)};
  const std::size_t size = result.text.size();
  result.begin = std::min<std::size_t>(span.begin - source.line_begin(line), size);
  result.end = std::clamp<std::size_t>(span.end - source.line_begin(line), result.begin, size);
  if (size <= kMaxShown) return result;
  std::size_t first = result.begin > kBefore ? result.begin - kBefore : 0;
  std::size_t last = std::min(size, first + kMaxShown);
  // Does not cut a code point, which has at most three bytes after its first.
  for (int i = 0; i < 3 && first > 0 && continues_code_point(result.text[first]); ++i) --first;
  for (int i = 0; i < 3 && last < size && continues_code_point(result.text[last]); ++i) ++last;
  result.text = result.text.substr(first, last - first);
  result.begin -= first;
  result.end = std::min(result.end - first, result.text.size());
  result.is_cut_left = first > 0;
  result.is_cut_right = last < size;
  return result;
}

class TextRenderer {
 public:
  TextRenderer(const SourceSet& sources, TextOptions options)
      : sources_(sources), options_(options) {}

  void add(const Diagnostic& diag) {
    add_message(diag.severity(), diag.span, message(diag), diag.code());
    for (const Label& label : diag.labels) add_message(Severity::Note, label.span, label.text);
    for (const Note& note : diag.notes) {
      add_message(Severity::Note, note.span.value_or(Span{}), note.text);
    }
    if (diag.suggestion) {
      const std::string text = "did you mean `" + diag.suggestion->replacement + "`?";
      // A suggestion for the message's own span would show the line a second time.
      const bool is_elsewhere = diag.suggestion->span != diag.span;
      add_message(Severity::Note, is_elsewhere ? diag.suggestion->span : Span{}, text);
    }
  }

  void add_count(const Shown& shown) {
    if (shown.num_left_out() == 0) return;
    add_message(shown.errors_left_out > 0 ? Severity::Error : Severity::Warning, Span{},
                shown.left_out_text());
  }

  std::string take() { return std::move(out_); }

 private:
  void paint(std::string_view color, std::string_view text) {
    if (!options_.has_color) {
      out_ += text;
      return;
    }
    out_ += color;
    out_ += text;
    out_ += kReset;
  }

  void add_message(Severity severity, const Span& span, const std::string& text,
                   std::string_view code = {}) {
    const SourceBuffer* source = sources_.find(span.file);
    if (source) {
      const LineColumn at = source->position(span.begin);
      paint(kBold, rt::visible_text(source->name()) + ':' + std::to_string(at.line) + ':' +
                       std::to_string(at.column) + ": ");
    }
    std::string head(severity_name(severity));
    if (!code.empty()) head += "[" + std::string(code) + "]";
    paint(color_for(severity), head + ": ");
    paint(severity == Severity::Note ? std::string_view() : kBold, rt::visible_text(text));
    out_ += '\n';
    if (source) add_excerpt(*source, span);
  }

  void add_excerpt(const SourceBuffer& source, const Span& span) {
    constexpr std::size_t kGutter = 5;
    std::string number = std::to_string(source.line_of(span.begin));
    if (number.size() < kGutter) number.insert(0, kGutter - number.size(), ' ');
    const Excerpt excerpt = make_excerpt(source, span);
    const auto shown = [&](std::size_t begin, std::size_t end) {
      return rt::visible_text(excerpt.text.substr(begin, end - begin));
    };
    const std::string before = shown(0, excerpt.begin), marked = shown(excerpt.begin, excerpt.end);
    out_ += number + " | " + (excerpt.is_cut_left ? "…" : "") + before + marked +
            shown(excerpt.end, excerpt.text.size()) + (excerpt.is_cut_right ? "…" : "") + '\n';
    out_ += std::string(number.size(), ' ') + " | " + (excerpt.is_cut_left ? " " : "");
    add_blanks(before);
    paint(kGreen, std::string(std::max(1u, count_code_points(marked)), '^'));
    out_ += '\n';
  }

  // Blanks as wide as `text`: tabs stay, every other code point becomes a blank.
  void add_blanks(std::string_view text) {
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
      if (i < text.size() && text[i] != '\t') continue;
      out_ += std::string(count_code_points(text.substr(begin, i - begin)), ' ');
      if (i < text.size()) out_ += '\t';
      begin = i + 1;
    }
  }

  const SourceSet& sources_;
  TextOptions options_;
  std::string out_;
};

}  // namespace

std::string render_text(const Diagnostic& diag, const SourceSet& sources, TextOptions options) {
  TextRenderer renderer(sources, options);
  renderer.add(diag);
  return renderer.take();
}

std::string render_text(const std::vector<Diagnostic>& diags, const SourceSet& sources,
                        TextOptions options) {
  TextRenderer renderer(sources, options);
  const Shown shown = choose_shown(diags);
  for (const Diagnostic* diag : shown.diags) renderer.add(*diag);
  renderer.add_count(shown);
  return renderer.take();
}

}  // namespace cinch::dsl
