// The server's loop. It reads all messages that have arrived before it handles the first, so that a
// request can still be cancelled. It checks documents when no message waits, so that after many
// changes in a row only the last text is checked.
#include "compiler/lsp/server.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <deque>
#include <utility>

#include "compiler/lsp/features.h"

namespace cinch::lsp {

namespace {

enum class MessageType { Error = 1, Warning = 2, Info = 3, Log = 4 };

Json capabilities() {
  const Json sync = {{"openClose", true}, {"change", 2}, {"save", true}};
  return {{"positionEncoding", "utf-16"},
          {"textDocumentSync", sync},
          {"hoverProvider", true},
          {"definitionProvider", true},
          {"referencesProvider", true},
          {"documentHighlightProvider", true},
          {"documentSymbolProvider", true},
          {"documentFormattingProvider", true},
          {"inlayHintProvider", true},
          {"completionProvider", {{"triggerCharacters", {".", ":"}}}},
          {"codeActionProvider", {{"codeActionKinds", {"quickfix"}}}},
          {"renameProvider", {{"prepareProvider", true}}}};
}

// The request that the editor tells of changes by other programs: of Cinch files, and of headers,
// from which `extern fn` takes functions.
Json watch_request() {
  Json watchers = Json::array();
  for (const char* files : {"**/*.cinch", "**/*.{h,hh,hpp,hxx,cuh}"})
    watchers.push_back({{"globPattern", files}});
  const Json registration = {{"id", "files"},
                             {"method", "workspace/didChangeWatchedFiles"},
                             {"registerOptions", {{"watchers", watchers}}}};
  return {{"id", "watch"},
          {"method", "client/registerCapability"},
          {"params", {{"registrations", Json::array({registration})}}}};
}

// Without the prefix that the library adds: a name and a number.
std::string plain_text(const Json::exception& error) {
  const std::string text = error.what();
  const std::size_t end = text.find("] ");
  return "wrong parameters: " + (end == std::string::npos ? text : text.substr(end + 2));
}

// Discarded if it is not JSON. No message of the protocol is deep, and a deep value could not be
// copied on the stack.
Json parse_message(const std::string& text) {
  constexpr int kMaxDepth = 200;
  bool is_too_deep = false;
  const auto note_depth = [&](int depth, Json::parse_event_t, const Json&) {
    is_too_deep |= depth > kMaxDepth;
    return !is_too_deep;
  };
  Json message = Json::parse(without_lone_surrogates(text), note_depth, false);
  return is_too_deep ? Json(Json::value_t::discarded) : message;
}

// The longest message that is read; no editor sends longer ones, and they are skipped.
constexpr std::size_t kMaxMessageBytes = std::size_t{64} << 20;

constexpr std::size_t kMaxHeaderLine = 4096;

// The length in a line of the header, if it is that line.
std::optional<std::size_t> length_in(std::string_view line) {
  const std::size_t colon = line.find(':');
  const auto is_same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  };
  if (colon == std::string_view::npos ||
      !std::ranges::equal(line.substr(0, colon), std::string_view("content-length"), is_same))
    return {};
  std::size_t length = 0;
  bool has_digit = false;
  for (const char c : line.substr(colon + 1)) {
    if (c == ' ' || c == '\t') continue;
    if (c < '0' || c > '9' || length > kMaxMessageBytes * 10) return {};
    length = length * 10 + static_cast<std::size_t>(c - '0');
    has_digit = true;
  }
  return has_digit ? std::optional(length) : std::nullopt;
}

// JSON-RPC over two file descriptors: each message is a header with its length, an empty line and
// the JSON text.
class RpcStream {
 public:
  RpcStream(int input, int output) : input_(input), output_(output) {}

  /// Waits for the next message and returns its JSON text; nothing at the end of the input. Skips a
  /// header without a length.
  std::optional<std::string> read() {
    while (true) {
      std::optional<std::size_t> length;
      std::optional<std::string> line;
      while ((line = read_line()) && !line->empty()) {
        if (const auto given = length_in(*line)) length = given;
      }
      if (!line) return std::nullopt;
      if (!length) continue;
      if (*length <= kMaxMessageBytes) return take(*length);
      if (!skip(*length)) return std::nullopt;
    }
  }

  /// Has a message begun to arrive, so that read() would not wait for long?
  bool has_input() {
    if (!buffer_.empty()) return true;
    pollfd waits{input_, POLLIN, 0};
    return ::poll(&waits, 1, 0) > 0;
  }

  /// Sends a message. Sets is_broken() if the other end has gone.
  void write(const std::string& text) {
    const std::string message =
        "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
    std::string_view left = message;
    while (!left.empty() && !is_broken_) {
      const ssize_t put = ::write(output_, left.data(), left.size());
      if (put > 0) left.remove_prefix(static_cast<std::size_t>(put));
      is_broken_ = put < 0 && errno != EINTR;
    }
  }

  bool is_broken() const { return is_broken_; }

 private:
  bool fill() {
    constexpr std::size_t kAtOnce = std::size_t{1} << 16;
    const std::size_t before = buffer_.size();
    buffer_.resize(before + kAtOnce);
    ssize_t got = 0;
    do {
      got = ::read(input_, buffer_.data() + before, kAtOnce);
    } while (got < 0 && errno == EINTR);
    buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return got > 0;
  }

  std::optional<std::string> read_line() {
    std::size_t end = std::string::npos;
    while ((end = buffer_.find('\n')) == std::string::npos) {
      // No header has such a long line: drops what has arrived of it.
      if (buffer_.size() > kMaxHeaderLine) buffer_.clear();
      if (!fill()) return std::nullopt;
    }
    std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    if (line.ends_with('\r')) line.pop_back();
    return line;
  }

  std::optional<std::string> take(std::size_t num_bytes) {
    while (buffer_.size() < num_bytes) {
      if (!fill()) return std::nullopt;
    }
    std::string text = buffer_.substr(0, num_bytes);
    buffer_.erase(0, num_bytes);
    return text;
  }

  bool skip(std::size_t num_bytes) {
    while (num_bytes > 0) {
      if (buffer_.empty() && !fill()) return false;
      const std::size_t some = std::min(num_bytes, buffer_.size());
      buffer_.erase(0, some);
      num_bytes -= some;
    }
    return true;
  }

  int input_, output_;
  std::string buffer_;  // read but not yet returned
  bool is_broken_ = false;
};

class Server {
 public:
  explicit Server(const ServerOptions& options)
      : stream_(options.input, options.output),
        version_(options.version),
        workspace_(options.headers, [this](const std::string& text) { log(text); }) {
    add_lifecycle();
    add_documents();
    add_features();
  }

  bool run() {
    while (!is_over_ && !stream_.is_broken()) {
      if (!receive()) break;
      if (queue_.empty()) {
        Document* document = workspace_.next_stale();
        if (document != nullptr) check(*document);
        continue;
      }
      const Json message = std::move(queue_.front());
      queue_.pop_front();
      handle(message);
    }
    return is_shut_down_ && is_over_;
  }

 private:
  using Request = std::function<Json(const Json&)>;
  using Notification = std::function<void(const Json&)>;

  // ---- messages

  // Reads messages that have arrived; waits for one if there is nothing else to do. Returns false
  // at the end of the input.
  bool receive() {
    while (stream_.has_input() || (queue_.empty() && workspace_.next_stale() == nullptr)) {
      const auto text = stream_.read();
      if (!text) {
        is_at_end_ = true;
        break;
      }
      Json message = parse_message(*text);
      if (message.is_discarded()) {
        respond_error(nullptr, {ErrorCode::ParseError, "the message is not JSON, or too deep"});
      } else if (message.is_object() && message.value("method", Json()) == "$/cancelRequest") {
        cancel(message);
      } else {
        queue_.push_back(std::move(message));
      }
    }
    return !is_at_end_ || !queue_.empty();
  }

  void cancel(const Json& message) {
    const Json params = message.value("params", Json::object());
    const Json id = params.is_object() ? params.value("id", Json()) : Json();
    const auto at = std::ranges::find_if(queue_, [&](const Json& waiting) {
      return waiting.is_object() && waiting.value("id", Json()) == id;
    });
    if (id.is_null() || at == queue_.end()) return;  // it was answered already
    queue_.erase(at);
    respond_error(id, {ErrorCode::RequestCancelled, "cancelled"});
  }

  void send(Json message) {
    message["jsonrpc"] = "2.0";
    // Texts may contain bytes that are not UTF-8.
    stream_.write(message.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  void respond_error(const Json& id, const RequestError& error) {
    send({{"id", id},
          {"error", {{"code", static_cast<int>(error.code)}, {"message", error.message}}}});
  }
  void notify(const std::string& method, Json params) {
    send({{"method", method}, {"params", std::move(params)}});
  }
  void log(const std::string& text, MessageType type = MessageType::Warning) {
    notify("window/logMessage", {{"type", static_cast<int>(type)}, {"message", text}});
  }

  // ---- dispatch

  void handle(const Json& message) {
    const bool has_method =
        message.is_object() && message.contains("method") && message["method"].is_string();
    // A response is ignored: an editor that refuses to watch files does without.
    if (message.is_object() && !message.contains("method") && message.contains("id")) return;
    if (!has_method) {
      return respond_error(nullptr, {ErrorCode::InvalidRequest, "a message without a method"});
    }
    const auto method = message["method"].get<std::string>();
    const Json params = message.value("params", Json::object());
    const auto id = message.find("id");
    if (id != message.end()) {
      if (id->is_string() || id->is_number()) return answer(*id, method, params);
      return respond_error(nullptr, {ErrorCode::InvalidRequest, "an id is a number or a string"});
    }
    const auto at = notifications_.find(method);
    if (at == notifications_.end() || (!is_initialized_ && method != "exit")) return;
    guarded([&] { at->second(params); },
            [&](const RequestError& error) { log(method + ": " + error.message); });
  }

  void answer(const Json& id, const std::string& method, const Json& params) {
    const auto fail = [&](const RequestError& error) { respond_error(id, error); };
    if (is_shut_down_) return fail({ErrorCode::InvalidRequest, "the server was shut down"});
    if (!is_initialized_ && method != "initialize") {
      return fail({ErrorCode::ServerNotInitialized, "the server was not initialized"});
    }
    const auto at = requests_.find(method);
    if (at == requests_.end())
      return fail({ErrorCode::MethodNotFound, "unknown method: " + method});
    guarded(
        [&] {
          Json result = at->second(params);
          send({{"id", id}, {"result", std::move(result)}});
        },
        fail);
  }

  // Runs the handler of a message. Neither an invalid message nor a bug of Cinch ends the server.
  void guarded(const std::function<void()>& run,
               const std::function<void(const RequestError&)>& fail) {
    try {
      run();
    } catch (const RequestError& error) {
      fail(error);
    } catch (const Json::exception& error) {
      fail({ErrorCode::InvalidParams, plain_text(error)});
    } catch (const std::exception& error) {
      log(error.what(), MessageType::Error);
      fail({ErrorCode::InternalError, error.what()});
    }
  }

  // ---- checking

  void check(Document& document) {
    if (!document.is_stale) return;
    guarded(
        [&] {
          workspace_.check(document);
          notify("textDocument/publishDiagnostics",
                 {{"uri", document.uri},
                  {"version", document.version},
                  {"diagnostics", diagnostics(*document.analysis)}});
        },
        [&](const RequestError& error) {
          notify("window/showMessage",
                 {{"type", static_cast<int>(MessageType::Error)},
                  {"message", "cinch: a fault of the checker: " + error.message}});
        });
  }

  // ---- what the editor may say

  void add_lifecycle() {
    requests_["initialize"] = [this](const Json& params) { return initialize(params); };
    requests_["shutdown"] = [this](const Json&) {
      is_shut_down_ = true;
      return Json();
    };
    notifications_["exit"] = [this](const Json&) { is_over_ = true; };
    notifications_["initialized"] = [this](const Json&) {
      if (watches_files_) send(watch_request());
    };
  }

  Json initialize(const Json& params) {
    if (is_initialized_) throw RequestError{ErrorCode::InvalidRequest, "initialized already"};
    is_initialized_ = true;
    // Can the editor watch files that the server names after it was initialized?
    const Json::json_pointer watching(
        "/capabilities/workspace/didChangeWatchedFiles/dynamicRegistration");
    watches_files_ = params.is_object() && params.value(watching, Json(false)) == Json(true);
    std::vector<std::string> folders;
    const Json given = params.value("workspaceFolders", Json());
    for (const Json& folder : given.is_array() ? given : Json::array()) {
      folders.push_back(path_of_uri(folder.at("uri").get<std::string>()));
    }
    const Json root = params.value("rootUri", Json());
    if (folders.empty() && root.is_string())
      folders.push_back(path_of_uri(root.get<std::string>()));
    workspace_.set_folders(std::move(folders));
    return {{"capabilities", capabilities()},
            {"serverInfo", {{"name", "cinch"}, {"version", version_}}}};
  }

  void add_documents() {
    notifications_["textDocument/didOpen"] = [this](const Json& params) {
      const Json& document = params.at("textDocument");
      workspace_.open(document.at("uri"), document.value("version", 0), document.at("text"));
    };
    notifications_["textDocument/didChange"] = [this](const Json& params) {
      const Json& document = params.at("textDocument");
      const Json version = document.value("version", Json());
      workspace_.change(document.at("uri"), version.is_number() ? version.get<std::int64_t>() : 0,
                        params.at("contentChanges"));
    };
    notifications_["textDocument/didClose"] = [this](const Json& params) {
      const Document closed = workspace_.document(params.at("textDocument").at("uri"));
      workspace_.close(closed.uri);
      notify("textDocument/publishDiagnostics",
             {{"uri", closed.uri}, {"diagnostics", Json::array()}});
    };
    // Not every editor watches files: what is imported may have changed since the last save.
    notifications_["textDocument/didSave"] = [this](const Json&) { workspace_.touch_all(); };
    notifications_["workspace/didChangeWatchedFiles"] = [this](const Json& params) {
      for (const Json& change : params.at("changes"))
        workspace_.note_change_on_disk(path_of_uri(change.at("uri").get<std::string>()));
    };
  }

  // A request about a place in a document, which is checked first.
  template <class Feature>
  void add_feature(const std::string& method, Feature feature) {
    requests_[method] = [this, feature](const Json& params) {
      Document& document = workspace_.document(params.at("textDocument").at("uri"));
      check(document);
      if (document.analysis == nullptr) return Json();
      const TextPositions positions(document.analysis->source().text());
      Query query{workspace_, document, *document.analysis, positions};
      if (params.contains("position"))
        query.offset = positions.offset(position_of(params["position"]));
      return Json(feature(query, params));
    };
  }

  // The begin of the range is the query's offset.
  template <class Feature>
  void add_range_feature(const std::string& method, Feature feature) {
    add_feature(method, [feature](Query query, const Json& params) {
      const Json& range = params.at("range");
      query.offset = query.positions.offset(position_of(range.at("start")));
      return feature(query, query.positions.offset(position_of(range.at("end"))));
    });
  }

  void add_features() {
    const auto add = [this](const std::string& method, Json (*feature)(const Query&)) {
      add_feature(method, [feature](const Query& query, const Json&) { return feature(query); });
    };
    add("textDocument/hover", hover);
    add("textDocument/definition", definition);
    add("textDocument/documentHighlight", highlights);
    add("textDocument/prepareRename", prepare_rename);
    add("textDocument/completion", completion);
    add("textDocument/documentSymbol", document_symbols);
    add_range_feature("textDocument/inlayHint", inlay_hints);
    add_range_feature("textDocument/codeAction", code_actions);
    add_feature("textDocument/references", [](const Query& query, const Json& params) {
      return references(query, params.at("context").value("includeDeclaration", true));
    });
    add_feature("textDocument/rename", [](const Query& query, const Json& params) {
      return rename(query, params.at("newName").get<std::string>());
    });
    requests_["textDocument/formatting"] = [this](const Json& params) {
      return formatting(workspace_.document(params.at("textDocument").at("uri")));
    };
  }

  RpcStream stream_;
  std::string version_;
  Workspace workspace_;
  std::map<std::string, Request> requests_;
  std::map<std::string, Notification> notifications_;
  std::deque<Json> queue_;
  bool watches_files_ = false;  // if the server asks for it
  bool is_initialized_ = false, is_shut_down_ = false, is_over_ = false, is_at_end_ = false;
};

}  // namespace

bool serve(const ServerOptions& options) {
  return Server(options).run();
}

}  // namespace cinch::lsp
