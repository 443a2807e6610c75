// Parses JSON texts when memory may run out. The library's own values allocate while they are
// destroyed, which then ends the process; these do not. Internal to runtime.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace cinch::rt {

class JsonTree {
 public:
  JsonTree() = default;
  ~JsonTree();
  JsonTree(const JsonTree&) = delete;
  JsonTree& operator=(const JsonTree&) = delete;

  /// Is the text JSON? Throws std::bad_alloc.
  bool parse(std::string_view text);
  const nlohmann::json& root() const { return root_; }

 private:
  nlohmann::json root_;
};

}  // namespace cinch::rt
