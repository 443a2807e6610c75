// Typed 32-bit references into flat vectors: Id<OpTag> and Id<ValueTag> do not mix.
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

}  // namespace cinch

template <typename Tag>
struct std::hash<cinch::Id<Tag>> {
  std::size_t operator()(cinch::Id<Tag> id) const noexcept {
    return std::hash<std::uint32_t>{}(id.index());
  }
};
