// The part of validation that looks at entries. Internal to runtime/image.
#pragma once
#include <string>
#include <vector>

#include "runtime/image/image.h"

namespace cinch::rt {

/// What the checks of all parts share: it keeps the first fault and looks up formulas.
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
  /// Checks that the formula exists, with the parameters and counts that it uses.
  bool check_formula(HostExprId id, const std::string& place, Counts counts = Counts::None);
  void check_int(HostExprId id, const std::string& place, Counts counts = Counts::None);
  /// Is the formula, which was checked before, this number?
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

/// Checks the entries; buffers and kernels were checked before.
void check_entries(const ProgramImage& image, ImageChecks& checks);

}  // namespace cinch::rt
