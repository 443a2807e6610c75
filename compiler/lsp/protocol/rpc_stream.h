// JSON-RPC over two file descriptors: each message is a header with its length, an empty line and
// the JSON text.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

namespace cinch::lsp {

/// The longest message that is read; no editor sends longer ones, and they are skipped.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{64} << 20;

class RpcStream {
 public:
  RpcStream(int input, int output) : input_(input), output_(output) {}

  /// Waits for the next message and returns its JSON text; nothing at the end of the input. Skips a
  /// header without a length.
  std::optional<std::string> read();
  /// Has a message begun to arrive, so that read() would not wait for long?
  bool has_input();
  /// Sends a message. Sets is_broken() if the other end has gone.
  void write(const std::string& text);
  bool is_broken() const { return is_broken_; }

 private:
  bool fill();
  std::optional<std::string> read_line();
  std::optional<std::string> take(std::size_t num_bytes);
  bool skip(std::size_t num_bytes);

  int input_, output_;
  std::string buffer_;  // read but not yet returned
  bool is_broken_ = false;
};

// Replaces unpaired halves of UTF-16 pairs. JSON can contain them, and editors send them while
// somebody types; UTF-8, in which documents are kept, has none.

/// The JSON text with U+FFFD for each such half, whether it is an escape (`\ud83d`) or three bytes.
/// Both are one UTF-16 unit, so that positions stay.
std::string without_lone_surrogates(std::string json);

}  // namespace cinch::lsp
