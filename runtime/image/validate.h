// Checks that a ProgramImage is well formed before anything runs it: images come from files.
// Reports the first fault.
#pragma once
#include <string>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// Steps may nest this deep (if in while in for …).
inline constexpr int kMaxStepDepth = 64;
/// The most buffers, kernels, steps of an entry, states, … of an image, and the most formulas.
inline constexpr std::size_t kMaxImageParts = 16384, kMaxImageFormulas = 65536;

/// Ok if a host that uses the image's tables stays within them, whatever they say. Every index is
/// in range. Every formula exists, has the type that its place needs, and uses only counts that are
/// known there. Fixed widths and sizes are valid; of enumerators, reading takes known ones alone
/// (describe.h). Every entry lists each buffer of its steps once, has only buffers that its call
/// binds, and writes none that is read only. Every step has what its kind needs. Results of
/// formulas are checked when they are evaluated (image.h). The binary is code and trusted; that of
/// a GPU has an end. Errors: CorruptFile, naming the place
/// ("kernel 2 (encode1): num_groups: not an integer formula").
Status validate_image(const ProgramImage& image);

bool is_gpu_image(const ProgramImage& image);

/// Is the binary an object file? If not, it is PTX.
bool has_object(const ProgramImage& image);

// The part of validation that looks at entries. Internal to runtime/image.

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
