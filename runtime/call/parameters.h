// Run-time parameters of a program: binds values by name, checks them against type and range, and
// converts them for kernels, host formulas and the payload's header.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/program_info.h"
#include "runtime/core/sizes/host_value.h"

namespace cinch::rt {

/// Checks that `value` is of the parameter's type and within its range. Errors: OutOfRange, naming
/// parameter, value, and range or type.
Status check_parameter(const ParamInfo& param, double value);

/// "near, far": the names of its values; "" if they have none.
std::string words_text(const ParamInfo& param);

/// Converts `text` for the parameter: the number of a word, "true", "false", or a number. Does not
/// check the range. Errors: OutOfRange, naming the words, or the type.
Result<double> parameter_value(const ParamInfo& param, std::string_view text);
/// Finds a parameter by name. Errors: InvalidArgument, with a similar name as a suggestion.
Result<const ParamInfo*> find_parameter(const std::vector<ParamInfo>& params,
                                        std::string_view name);

class ParameterValues {
 public:
  /// All at their defaults.
  explicit ParameterValues(const ProgramInfo& info);

  /// Sets a parameter. After an error nothing has changed. Errors: InvalidArgument (no such
  /// parameter, with a similar name as a suggestion), OutOfRange.
  Status set(std::string_view name, double value);
  double value(std::size_t index) const { return values_[index]; }
  std::size_t size() const { return values_.size(); }

  /// KernelArgs::params: f32 bits in the low half, f64 bits, integers sign-extended, bool 0 or 1.
  const std::vector<std::uint64_t>& kernel_words() const { return words_; }
  /// DecodeFacts::params: like kernel_words, but with every float as the f64 that the caller gave,
  /// on which sizes depend.
  const std::vector<std::uint64_t>& given_words() const { return given_words_; }
  /// HostEnv::params.
  const std::vector<HostValue>& host_values() const { return host_values_; }

 private:
  void update(std::size_t index, double value);

  std::vector<ParamInfo> params_;
  std::vector<HostType> host_types_;
  std::vector<double> values_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> given_words_;
  std::vector<HostValue> host_values_;
};

}  // namespace cinch::rt
