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
  /// HostEnv::params. Formulas see no inputs.
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

struct ConstTensorView;

/// Which inputs of a program have values. Values hold for one step: that of the first call that
/// uses them. So a call never takes weights or a learning rate of another step.
class GivenInputs {
 public:
  enum class Of : std::uint8_t { All, ScalarsOnly };
  explicit GivenInputs(const ProgramInfo& info, Of which = Of::All);

  /// Notes that the input has a value, and forgets those of a step that has begun. Other names are
  /// of no concern.
  void note(std::string_view name);
  /// Begins a call of the step. Errors: InvalidArgument, naming the first input without a value.
  Status use(std::uint64_t step);

 private:
  std::vector<std::string> names_;
  std::vector<bool> has_value_;  // by name
  std::optional<std::uint64_t> step_;
};

/// Finds an array among the inputs. Errors: InvalidArgument, with the inputs that there are.
Result<std::uint32_t> find_input_array(const ProgramInfo& info, std::string_view name);
/// Checks an array of `num_elems` elements for the input of a tensor of `wanted`. Errors:
/// InvalidArgument (another number of elements, a type that sessions do not take, null).
Status check_input_array(std::string_view name, const ConstTensorView& array, std::int64_t wanted);

}  // namespace cinch::rt
