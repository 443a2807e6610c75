// What the standard streams are, and progress on a terminal.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace cinch::driver {

// Colour goes to a terminal only, and never where NO_COLOR is set (https://no-color.org).
bool colour_on_output();
bool colour_on_errors();

// Columns of the terminal that standard output is; 0 where it is none or does not say.
std::size_t output_width();
// The same; 80 where that is 0.
std::size_t text_width();
// `line`, in UTF-8, cut to `width` characters, the last one "…"; whole where `width` is 0.
std::string fit_to_width(const std::string& line, std::size_t width);

// One line on standard error that is rewritten in place while work goes on; nothing where that is
// no terminal or the output is for programs, and nothing for work of less than half a second.
class Progress {
 public:
  enum class Reader { People, Program };
  Progress(std::string what, Reader reader);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // `done` of `total` steps; total 0 where it is not known.
  void update(std::uint64_t done, std::uint64_t total);
  // Takes the line away until the next update: before anything else is printed.
  void clear();

 private:
  std::string what_;
  bool is_shown_ = false;
  bool is_wanted_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_;
};

inline Progress::Reader reader_of(bool json) {
  return json ? Progress::Reader::Program : Progress::Reader::People;
}

}  // namespace cinch::driver
