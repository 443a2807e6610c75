// Forms of writing: lookups in small tables, updates, quotients of exact numbers, literals beside
// integers of any type, rows beside matrices, several values of a fn, slices with one end.
#include <fmt/format.h>

#include "tests/programs/generator/program_builder.h"

namespace cinch::testing {
namespace {

using B = ProgramBuilder;

std::string numbers(B& b, std::uint64_t count, bool has_points) {
  std::string text = "[";
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(static_cast<int>(b.random(33)) - 16);
    if (has_points) text += b.chance(50) ? ".5" : ".0";
  }
  return text + "]";
}

// A reduction over a table for each element: it is made in registers.
void lookup(B& b, const std::string&) {
  const Elem elem = b.choose(std::vector{Elem::F32, Elem::F32, Elem::F64, Elem::I32, Elem::I64});
  const Shape shape = b.chance(70) ? Shape::Vector : Shape::Matrix;
  const std::string x = b.pick(elem, shape);
  const std::string table = b.fresh("T");
  b.top_level(fmt::format(
      "const {} = {}", table,
      numbers(b, b.choose(std::vector<std::uint64_t>{2, 3, 8, 16, 33, 64}), is_float(elem))));
  switch (b.random(5)) {
    case 0:
      b.let(fmt::format("map({}, |v| count({} < v))", x, table), Elem::U32, shape);
      break;
    case 1:
      b.let(fmt::format("map({}, |v| argmax(-abs({} - v)))", x, table), Elem::U32, shape);
      break;
    case 2:
      b.let(fmt::format("map({}, |v| sum({} * v, where: {} < v))", x, table, table), elem, shape);
      break;
    case 3:
      b.let(fmt::format("map({}, |v| min(abs({} - v) + {}))", x, table, table), elem, shape);
      break;
    default:
      b.let(fmt::format("map({}, |v| {}[argmax(-abs({} - v))] - v)", x, table, table), elem, shape);
  }
}

void update(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const Shape shape = b.any_shape();
  const std::string x = b.pick_mutable(elem, shape);
  const std::string op = b.choose(std::vector<std::string>{"+", "-", "*"});
  b.statement(fmt::format("{} {}= {}", x, op, b.pick(elem, shape)));
  b.changed(x);
}

void indexed_update(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string x = b.pick_mutable(elem, Shape::Vector);
  const std::string y = b.pick(elem, Shape::Vector);
  if (b.chance(50)) {
    const std::string i = b.fresh("i"), k = b.fresh("k");
    b.declare(fmt::format("size {} = clamp(n / {}, 1, n)", k, 2 + b.random(6)));
    b.statement(fmt::format("let {} = random_index({}, size: n, shared: true)", i, k));
    b.statement(fmt::format("{}[{}] += {}[{}]", x, i, y, i));
  } else {
    b.statement(fmt::format("{}[n / 3..] -= {}[n / 3..]", x, y));
  }
  b.changed(x);
}

// A store at indices of an earlier round needs to know that they are free of repeats in all rounds.
void indices_in_rounds(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string x = b.pick_mutable(elem, Shape::Vector);
  const std::string y = b.pick(elem, Shape::Vector);
  const std::string i = b.fresh("i"), j = b.fresh("i"), k = b.fresh("k"), r = b.fresh("r");
  b.declare(fmt::format("size {} = clamp(n / {}, 1, n)", k, 2 + b.random(6)));
  b.statement(fmt::format("let mut {} = top_k({}, {})", i, x, k));
  b.statement(fmt::format("let mut {} = random_index({}, size: n, shared: true)", j, k));
  b.statement(fmt::format("for {} in 0..{} {{", r, 1 + b.random(4)));
  b.statement(fmt::format("  {}[{}] += {}[{}]", x, i, y, i));
  if (b.chance(50)) {
    b.statement(fmt::format("  if {}[0] > 0 {{ {} = {} }}", x, j, i));
  } else {
    b.statement(fmt::format("  if {} % 2 == 0 {{ {} = {}[top_k({}[{}], {})] }}", r, j, i, y, i, k));
  }
  if (b.chance(70)) b.statement(fmt::format("  {} = top_k({}, {})", i, x, k));
  b.statement(fmt::format("  {}[{}] = {}[{}]", x, j, y, i));
  b.statement("}");
  b.changed(x);
}

void quotient(B& b, const std::string&) {
  const Elem elem = b.any_float();
  const Shape shape = b.any_shape();
  const std::string x = b.pick(elem, shape);
  const auto p = 1 + b.random(9), q = 2 + b.random(9);
  switch (b.random(3)) {
    case 0:
      b.let(fmt::format("{} / {} * {}", p, q, x), elem, shape);
      break;
    case 1:
      b.let(fmt::format("{} + (n / {} - {} / {})", x, q, p, q), elem, shape);
      break;
    default:
      b.let(fmt::format("select({} > 0, {} / {}, {})", x, p, q, x), elem, shape);
  }
}

// Literals take the type of the integers that they meet.
void literal(B& b, const std::string&) {
  const Elem elem = b.any_int();
  const Shape shape = b.any_shape();
  const std::string x = b.pick(elem, shape);
  switch (b.random(3)) {
    case 0:
      b.let(fmt::format("{} ^ (1 << ({} & 7))", x, x), elem, shape);
      break;
    case 1:
      b.let(fmt::format("{} | select({} > 5, 8, 3)", x, x), elem, shape);
      break;
    default:
      b.let(fmt::format("({} & -1) + floor_div({}, {})", x, x, 1 + b.random(5)), elem, shape);
  }
}

void row(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string x = b.pick(elem, Shape::Matrix);
  const std::string columns = b.pick(elem, Shape::Columns);
  b.let(fmt::format("{} - reshape({}, {})", x, columns, b.width()), elem, Shape::Matrix);
}

void several_values(B& b, const std::string&) {
  const std::string f = b.fresh("f"), low = b.fresh("v"), high = b.fresh("v");
  b.top_level(
      fmt::format("fn {}(x: [f32; ..]) -> ([f32; ..], f32) {{\n"
                  "  let m = max(x)\n  (x - m / 2, m)\n}}",
                  f));
  b.statement(fmt::format("let ({}, {}) = {}({})", low, high, f, b.pick(Elem::F32, Shape::Vector)));
  b.define(low, Elem::F32, Shape::Vector);
  b.define(high, Elem::F32, Shape::Scalar);
}

void function_of_elements(B& b, const std::string&) {
  const std::string f = b.fresh("f");
  b.top_level(
      fmt::format("fn {}(x: f32, y: f32) -> f32 {{ if x > y {{ x - y }} else {{ y / 3 }} }}", f));
  const Shape shape = b.any_shape();
  const std::string x = b.pick(Elem::F32, shape);
  b.let(fmt::format("{}({}, {})", f, x, b.pick(Elem::F32, b.chance(30) ? Shape::Scalar : shape)),
        Elem::F32, shape);
}

}  // namespace

void add_form_productions(std::vector<Production>& table) {
  for (int i = 0; i < 2; ++i) table.push_back({"lookup in a table", lookup});
  table.push_back({"update", update});
  table.push_back({"update of places", indexed_update});
  table.push_back({"indices in rounds", indices_in_rounds});
  table.push_back({"quotient", quotient});
  table.push_back({"literal beside integers", literal});
  table.push_back({"row beside a matrix", row});
  table.push_back({"several values", several_values});
  table.push_back({"fn of elements", function_of_elements});
}

}  // namespace cinch::testing
