// Parameters of compressors.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

// Parameters of compressors: ranges, defaults, values from outside and from compositions.

/// What a parameter takes.
struct ParamType {
  DType dtype;
  std::optional<rt::ParamRange> range;
  std::vector<std::string> words;  // where its values have names
};

class Parameters : Part {
 public:
  using Part::Part;

  /// The parameters that may be bound from outside, by their names there.
  void open(Spec& spec);
  /// Keeps the values that are bound from outside; reports names that are no parameters.
  void check_bindings(const std::vector<Binding>& bindings, Span span);
  /// Gives each parameter its value.
  void bind_params(Instance& instance);
  /// Of a declaration; reports.
  std::optional<ParamType> declared_type(const ast::Param& param);
  /// What the parameter takes, in messages.
  static std::string takes_text(const ParamType& type);

 private:
  std::string open_name(const Instance& instance, const ast::Param& param) const;
  std::optional<rt::ParamRange> param_range(const ast::Param& param, DType type);
  bool check_range(const std::string& name, DType dtype, double value,
                   const std::optional<rt::ParamRange>& range, Span span, Span range_span);
  std::optional<Constant> bound_value(Instance& instance, const ast::Param& param,
                                      const ParamType& type, const Binding& binding, Span span);
  Constant stand_in(const ParamType& type) const;
  /// Reports a value that the parameter may not have.
  bool may_have(const Instance& instance, const ast::Param& param, const ParamType& type,
                const Constant& value, Span span);
  /// The value that stands behind `=` of a parameter.
  std::optional<Constant> default_of(const ast::Param& param, DType dtype);
  void bind_param(Instance& instance, const ast::Param& param);
  static const std::vector<NamedParam>& names_of(const Instance& instance, const ast::Param& param);
  void share_param(Instance& instance, const ast::Param& param, const NamedParam& named,
                   const ParamType& type);
  bool take_named(const NamedParam& named, const ast::Param& param, ParamType& type);
  void bind_constant(Instance& instance, const ast::Param& param, DType dtype, Constant value);
  void add_param(Instance& instance, const ast::Param& param, const ParamType& type, double value,
                 std::optional<double> declared_default);

  std::map<std::string, Binding> bindings_;
  std::map<const ast::Param*, Symbol> named_params_;  // by a composition's parameter, once made
  std::vector<std::pair<const ast::Param*, std::pair<const Spec*, std::string>>> open_names_;
};

/// Words that parameters take: `fit: {exponential, gamma}`. A word is a number, which its parameter
/// gives it; two parameters may give one word different numbers.
class ParamWords : Part {
 public:
  using Part::Part;

  /// Declares the i-th word of a parameter: seen wherever the compressor's names are.
  void declare_word(Instance& instance, const ast::Param& param, std::size_t i);
  /// An operand of a comparison: beside a parameter of words it is that parameter's word.
  Value compared(ast::ExprId id, ast::ExprId other);
  /// Is the name unknown here? Then it may be a word of the compressor that an open wrapper will
  /// wrap.
  bool may_be_word(ast::ExprId id);
  /// Reports a word that has several numbers.
  Value ambiguous_word(const ast::Name& name);

 private:
  const ast::Param* words_param(ast::ExprId id) const;
};

}  // namespace cinch::sema
