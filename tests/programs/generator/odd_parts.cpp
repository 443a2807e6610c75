// Bodies of program_builder.h.
#include "tests/programs/generator/program_builder.h"

#include <fmt/format.h>

namespace cinch::testing {

std::string mixed(ProgramBuilder& b, Elem elem, const std::string& x, const std::string& y) {
  static const std::vector<const char*> kFloats = {"{} * 0.5 + {}", "max({}, {})", "{} - {}",
                                                   "{} + {} * 0.25"};
  static const std::vector<const char*> kInts = {"{} + {} * 3", "{} ^ {}", "min({}, {})",
                                                 "{} * 5 - {}"};
  static const std::vector<const char*> kBools = {"{} && !{}", "{} || {}"};
  const char* form = b.choose(elem == Elem::Bool ? kBools : is_float(elem) ? kFloats : kInts);
  return fmt::format(fmt::runtime(form), x, y);
}

std::string late_number(ProgramBuilder& b, const std::string& x) {
  std::string inner = fmt::format("max(abs({}))", b.pick(Elem::F32, Shape::Vector));
  const std::uint64_t depth = 1 + b.random(3);
  for (std::uint64_t i = 0; i < depth; ++i) {
    inner = fmt::format("mean({} * {})", b.pick(Elem::F32, Shape::Vector), inner);
  }
  return b.let(fmt::format("mean({} * {})", x, inner), Elem::F32, Shape::Scalar);
}

Index unique_index(ProgramBuilder& b) {
  if (b.chance(20)) {
    b.need_count();
    return {"kept", "m"};
  }
  const std::string i = b.fresh("i");
  if (b.chance(25)) {
    const std::string keys = b.pick(b.any_number(), Shape::Vector);
    b.statement(fmt::format(
        "let {} = {}", i,
        b.chance(50) ? "argsort(" + keys + ")" : "random_index(n, size: n, shared: true)"));
    return {i, "n"};
  }
  const std::string k = b.fresh("k");
  b.declare(fmt::format("size {} = clamp(n / {}, 1, n)", k, 2 + b.random(8)));
  const std::string keys = b.pick(b.any_number(), Shape::Vector);
  static const std::vector<const char*> kForms = {
      "random_index({0}, size: n, shared: true)", "top_k({1}, {0})", "argsort({1})[0..{0}]",
      "argsort({1})[random_index({0}, size: n, shared: true)]", "argsort({1})[top_k({1}, {0})]"};
  b.statement(fmt::format("let {} = ", i) + fmt::format(fmt::runtime(b.choose(kForms)), k, keys));
  return {i, k};
}

std::string values_for(ProgramBuilder& b, const Index& index, Elem elem) {
  if (b.chance(20)) return b.pick(elem, Shape::Scalar);
  if (index.dims == "n") return b.pick(elem, Shape::Vector);
  if (index.dims == "m") return b.pick(elem, Shape::Counted);
  const std::string x = b.pick(elem, Shape::Vector);
  if (b.chance(30)) return x + "[" + index.name + "] * 3";
  return x + (b.chance(50) ? "[" + index.name + "]" : "[0.." + index.dims + "]");
}

std::string early_vector(ProgramBuilder& b, Elem elem) {
  const std::string x =
      fmt::format("{} * {}", b.base(), 0.5 * static_cast<double>(1 + b.random(9)));
  return elem == Elem::F32 ? "(" + x + ")" : fmt::format("(({} * 100) as {})", x, elem_name(elem));
}

}  // namespace cinch::testing
