// Destroys trees from their leaves; see json_tree.h.
#include "runtime/image/json_tree.h"

namespace cinch::rt {
namespace {

using nlohmann::json;

// Deeper than any of our files; deeper trees are destroyed by the library.
constexpr int kMaxDepth = 100;

// Leaves no child within a child: such values are destroyed without allocating.
void take_apart(json& value, int depth) noexcept {
  if (depth > kMaxDepth) return;
  if (auto* array = value.get_ptr<json::array_t*>()) {
    for (json& child : *array) take_apart(child, depth + 1);
    array->clear();
  }
  if (auto* object = value.get_ptr<json::object_t*>()) {
    for (auto& [name, child] : *object) take_apart(child, depth + 1);
    object->clear();
  }
}

}  // namespace

JsonTree::~JsonTree() {
  take_apart(root_, 0);
}

bool JsonTree::parse(std::string_view text) {
  // Parses into a member, so that a half-built tree is taken apart, too, if memory runs out.
  nlohmann::detail::json_sax_dom_parser<json> builder(root_, false);
  return json::sax_parse(text.begin(), text.end(), &builder);
}

}  // namespace cinch::rt
