// Parameters of compressors: their ranges and defaults, and their values from outside and from
// compositions.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

/// The values that a parameter takes.
struct ParamType {
  DType dtype;
  std::optional<rt::ParamRange> range;
  std::vector<std::string> words;  // empty if its values are numbers
};

class Parameters : Part {
 public:
  using Part::Part;

  /// Collects the parameters that callers may bind, by the names that callers see.
  /// Parameters of a carrier have the names that they have in its
  /// program, or begin with "again.".
  void open(Spec& spec, bool is_carrier);
  /// Keeps the values from outside. Reports names that are not parameters.
  void check_bindings(const std::vector<Binding>& bindings, Span span);
  void bind_params(Instance& instance);
  /// The declared values of a parameter. Reports mistakes.
  std::optional<ParamType> declared_type(const ast::Param& param);
  /// The values that the parameter takes, as text for messages.
  static std::string takes_text(const ParamType& type);

  // Words as values of parameters: `fit: {exponential, gamma}`. The parameter gives each word a
  // number. Two parameters may give the same word different numbers.
  /// Declares the i-th word of a parameter, visible wherever the compressor's names are.
  void declare_word(Instance& instance, const ast::Param& param, std::size_t i);
  /// An operand of a comparison. Beside a parameter with words, a name means one of its words.
  Value compared(ast::ExprId id, ast::ExprId other);
  /// Is the name unknown here? It may be a word of the compressor that an open wrapper will wrap.
  bool may_be_word(ast::ExprId id);
  /// Reports a word with several numbers.
  Value ambiguous_word(const ast::Name& name);

 private:
  /// A composition's parameter, or the name from outside of a carrier's.
  using SharedName = std::pair<const ast::Param*, std::string>;
  std::string open_name(const Instance& instance, const ast::Param& param) const;
  std::optional<rt::ParamRange> param_range(const ast::Param& param, DType type);
  bool check_range(const std::string& name, DType dtype, double value,
                   const std::optional<rt::ParamRange>& range, Span span, Span range_span);
  std::optional<Constant> bound_value(Instance& instance, const ast::Param& param,
                                      const ParamType& type, const Binding& binding, Span span);
  Constant stand_in(const ParamType& type) const;
  /// Reports a value that the parameter does not take.
  bool may_have(const Instance& instance, const ast::Param& param, const ParamType& type,
                const Constant& value, Span span);
  /// The default of a parameter.
  std::optional<Constant> default_of(const ast::Param& param, DType dtype);
  void bind_param(Instance& instance, const ast::Param& param);
  static const std::vector<NamedParam>& names_of(const Instance& instance, const ast::Param& param);
  void share_param(Instance& instance, const ast::Param& param, const SharedName& shared,
                   const ParamType& type);
  bool take_named(const NamedParam& named, const ast::Param& param, ParamType& type);
  void bind_constant(Instance& instance, const ast::Param& param, DType dtype, Constant value);
  void add_param(Instance& instance, const ast::Param& param, const ParamType& type, double value,
                 std::optional<double> declared_default);
  const ast::Param* words_param(ast::ExprId id) const;

  std::map<std::string, Binding> bindings_;
  std::map<SharedName, Symbol> named_params_;  // once made
  bool is_carrier_ = false;
  std::vector<std::pair<const ast::Param*, std::pair<const Spec*, std::string>>> open_names_;
};

}  // namespace cinch::sema
