// The part of validation that looks at entries. Internal to runtime/image.
#pragma once
#include <string>
#include <vector>

#include "runtime/image/image.h"

namespace cinch::rt {

/// What the checks of all parts share: the first fault is kept, formulas are looked up.
class ImageChecks {
 public:
  explicit ImageChecks(const ProgramImage& image);
  ImageChecks(const ImageChecks&) = delete;
  ImageChecks& operator=(const ImageChecks&) = delete;

  const std::string& first_fault() const { return fault_; }
  bool has_fault() const { return !fault_.empty(); }
  void fault(std::string text);
  void require(bool condition, const std::string& place, const char* what);

  enum class Counts { None, OfWire, Any };
  /// The formula exists, as do the parameters and counts that it asks for.
  bool check_formula(HostExprId id, const std::string& place, Counts counts = Counts::None);
  void check_int(HostExprId id, const std::string& place, Counts counts = Counts::None);
  /// The formula that was checked is this number.
  bool is_number(HostExprId id, std::int64_t value) const;

 private:
  struct Leaves {
    bool are_there = true;    // parameters of a fitting type, and counts
    bool are_of_wire = true;  // counts
  };
  Leaves leaves_of(const HostExprNode& node) const;

  const ProgramInfo& info_;
  std::vector<Leaves> leaves_;
  std::string fault_;
};

/// Of buffers and kernels that were checked.
void check_entries(const ProgramImage& image, ImageChecks& checks);

}  // namespace cinch::rt
