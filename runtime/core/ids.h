// Typed 32-bit references into flat vectors: Id<OpTag> and Id<ValueTag> do not mix. Names of enums'
// values.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace cinch {

/// Tag is any (incomplete) type. A default-constructed Id refers to nothing.
template <typename Tag>
class Id {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : index_(static_cast<std::uint32_t>(index)) {}

  constexpr std::uint32_t index() const { return index_; }
  constexpr bool is_valid() const { return index_ != kNone; }
  constexpr explicit operator bool() const { return is_valid(); }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;

 private:
  std::uint32_t index_ = kNone;
};

/// The name of an enum's value, from those of all values in their order; `otherwise` for a number
/// that is none of them.
template <typename Enum, std::size_t kCount>
const char* name_in(const char* const (&names)[kCount], Enum value, const char* otherwise) {
  const auto index = static_cast<std::size_t>(value);
  return index < kCount ? names[index] : otherwise;
}

}  // namespace cinch

template <typename Tag>
struct std::hash<cinch::Id<Tag>> {
  std::size_t operator()(cinch::Id<Tag> id) const noexcept {
    return std::hash<std::uint32_t>{}(id.index());
  }
};
