// The table of productions: one per operator, named as the operator; a few for statements.
#include <fmt/format.h>

#include "tests/programs/generator/program_builder.h"

namespace cinch::testing {
namespace {

using B = ProgramBuilder;

// ---- element-wise ----

void unary_float(B& b, const std::string& op) {
  const bool needs_positive =
      op == "sqrt" || op == "rsqrt" || op == "log" || op == "log1p" || op == "log2";
  // Sines of f64 are not in the language's own functions.
  const Elem elem = op == "sin" || op == "cos" ? Elem::F32 : b.any_float();
  const Shape shape = b.any_shape();
  const std::string x = b.pick(elem, shape);
  b.let(needs_positive && b.chance(80) ? op + "(abs(" + x + ") + 0.125)" : op + "(" + x + ")", elem,
        shape);
}
void unary_number(B& b, const std::string& op) {
  const Elem elem = b.any_number();
  const Shape shape = b.any_shape();
  b.let(op + "(" + b.pick(elem, shape) + ")", elem, shape);
}
void negate(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const Shape shape = b.any_shape();
  b.let("-" + b.pick(elem, shape), elem, shape);
}
void bit_not(B& b, const std::string&) {
  const Elem elem = b.chance(40) ? Elem::Bool : b.any_int();
  const Shape shape = b.any_shape();
  b.let("!" + b.pick(elem, shape), elem, shape);
}
void float_test(B& b, const std::string& op) {
  const Shape shape = b.any_shape();
  b.let(op + "(log(" + b.pick(b.any_float(), shape) + "))", Elem::Bool, shape);
}
void bit_count(B& b, const std::string& op) {
  const Shape shape = b.any_shape();
  b.let(op + "(" + b.pick(b.any_int(), shape) + ")", Elem::U32, shape);
}

struct Operands {
  std::string left, right;
  Elem elem;
  Shape shape;
};
// Two values of one element type whose shapes meet or broadcast.
Operands two(B& b, Elem elem) {
  const Shape shape = b.any_shape();
  const std::string left = b.pick(elem, shape);
  Shape other = b.chance(25) ? Shape::Scalar : shape;
  if (shape == Shape::Matrix && b.chance(40)) other = b.chance(50) ? Shape::Rows : Shape::Columns;
  const std::string right = b.pick(elem, other);
  return {left, right, elem, shape};
}
void infix(B& b, const std::string& op) {
  const bool is_bits = op == "&" || op == "|" || op == "^" || op == "<<" || op == ">>";
  const Operands x = two(b, is_bits ? b.any_int() : b.any_number());
  b.let(x.left + " " + op + " " + x.right, x.elem, x.shape);
}
void comparison(B& b, const std::string& op) {
  const Operands x = two(b, b.any_number());
  b.let(x.left + " " + op + " " + x.right, Elem::Bool, x.shape);
}
void logical(B& b, const std::string& op) {
  const Operands x = two(b, Elem::Bool);
  b.let(x.left + " " + op + " " + x.right, Elem::Bool, x.shape);
}
void binary_float(B& b, const std::string& op) {
  const Operands x = two(b, b.any_float());
  b.let(op + "(" + x.left + ", " + x.right + ")", x.elem, x.shape);
}
void binary_number(B& b, const std::string& op) {
  const Operands x = two(b, b.any_number());
  b.let(op + "(" + x.left + ", " + x.right + ")", x.elem, x.shape);
}
void binary_int(B& b, const std::string& op) {
  const Operands x = two(b, b.any_int());
  b.let(op + "(" + x.left + ", " + x.right + ")", x.elem, x.shape);
}
void fused_multiply_add(B& b, const std::string&) {
  const Operands x = two(b, b.any_float());
  b.let(fmt::format("fma({}, {}, {})", x.left, x.right, b.pick(x.elem, x.shape)), x.elem, x.shape);
}
void clamp(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const Shape shape = b.any_shape();
  b.let("clamp(" + b.pick(elem, shape) + ", 1, 9)", elem, shape);
}
void select(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const Shape shape = b.any_shape();
  const std::string c = b.pick(Elem::Bool, shape), x = b.pick(elem, shape), y = b.pick(elem, shape);
  b.let(fmt::format("select({}, {}, {})", c, x, y), elem, shape);
}
void conversion(B& b, const std::string&) {
  const Elem from = b.any_number(), to = b.any_number();
  const Shape shape = b.any_shape();
  b.let(b.pick(from, shape) + " as " + elem_name(to), to, shape);
}
void narrow_conversion(B& b, const std::string& name) {
  const std::string type = name.substr(3);
  const bool is_narrow_float = type[0] == 'f' || type[0] == 'b';
  const Shape shape = b.any_shape();
  const Elem to = is_narrow_float ? Elem::F32 : Elem::I32;
  b.let(fmt::format("({} as {}) as {}", b.pick(b.any_number(), shape), type, elem_name(to)), to,
        shape);
}
void bitcast(B& b, const std::string&) {
  const Shape shape = b.any_shape();
  if (b.chance(50)) {
    b.let("bitcast<f32>(" + b.pick(Elem::U32, shape) + ")", Elem::F32, shape);
  } else {
    b.let("bitcast<u64>(" + b.pick(Elem::F64, shape) + ")", Elem::U64, shape);
  }
}

// ---- map, fill, tables ----

void map_lambda(B& b, const std::string&) {
  const std::string x = b.pick(Elem::F32, Shape::Vector), y = b.pick(Elem::F32, Shape::Vector);
  const std::string s = b.pick(Elem::F32, Shape::Scalar),
                    captured = b.pick(Elem::F32, Shape::Vector);
  if (b.chance(50)) {
    b.let(fmt::format("map({}, {}, |a, b| if a > b {{ a - b }} else {{ b * {} }})", x, y, s),
          Elem::F32, Shape::Vector);
  } else {
    b.let(fmt::format("map(iota(n), |i| {}[(n as u32) - 1 - i] + {}[i])", captured, x), Elem::F32,
          Shape::Vector);
  }
}
void table_lambda(B& b, const std::string&) {
  const std::string table = b.fresh("Table");
  b.top_level(fmt::format("const {} = [-1.5, -0.5, 0.25, 1.0, 4.0]", table));
  const std::string x = b.pick(Elem::F32, Shape::Vector);
  b.let(fmt::format("map({}, |x| argmax(-abs({} - x)))", x, table), Elem::U32, Shape::Vector);
}
void fill(B& b, const std::string&) {
  const Elem elem = b.any_number();
  b.let(fmt::format("fill({}, n)", b.pick(elem, Shape::Scalar)), elem, Shape::Vector);
}
void length(B& b, const std::string&) {
  const std::string x = b.pick(Elem::F32, Shape::Vector);
  b.let(fmt::format("{} * len({})", x, b.pick(Elem::U32, Shape::Vector)), Elem::F32, Shape::Vector);
}
void function_call(B& b, const std::string&) {
  const std::string f = b.fresh("f");
  b.top_level(
      fmt::format("fn {}(x: [f32; k], s: f32) -> [f32; k] {{ let m = max(x)\n  x * s + m }}", f));
  b.let(fmt::format("{}({}, {})", f, b.pick(Elem::F32, Shape::Vector),
                    b.pick(Elem::F32, Shape::Scalar)),
        Elem::F32, Shape::Vector);
}

// ---- reductions and scans ----

// A reduction's call: of a vector, masked or not, or along an axis of a matrix.
void reduction(B& b, const std::string& op, Elem elem, Elem result) {
  const bool along = b.chance(50);
  const Shape shape = along ? Shape::Matrix : b.chance(80) ? Shape::Vector : Shape::Counted;
  std::string call = op + "(" + b.pick(elem, shape);
  if (shape != Shape::Counted && b.chance(40)) call += ", where: " + b.pick(Elem::Bool, shape);
  const int axis = static_cast<int>(b.random(2));
  if (along) call += fmt::format(", axis: {}", axis);
  b.let(call + ")", result, !along ? Shape::Scalar : axis == 1 ? Shape::Rows : Shape::Columns);
}
void reduce_number(B& b, const std::string& op) {
  const Elem elem = b.any_number();
  reduction(b, op, elem, elem);
}
void reduce_float(B& b, const std::string& op) {
  const Elem elem = b.any_float();
  reduction(b, op, elem, elem);
}
void reduce_to_index(B& b, const std::string& op) {
  reduction(b, op, b.any_number(), Elem::U32);
}
void reduce_mask(B& b, const std::string& op) {
  reduction(b, op, Elem::Bool, op == "count" ? Elem::U32 : Elem::Bool);
}
void dot(B& b, const std::string&) {
  const Elem elem = b.any_float();
  b.let(fmt::format("dot({}, {})", b.pick(elem, Shape::Vector), b.pick(elem, Shape::Vector)), elem,
        Shape::Scalar);
}
void reduce_lambda(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const bool along = b.chance(40);
  const std::string x = b.pick(elem, along ? Shape::Matrix : Shape::Vector);
  const char* body = b.chance(50) ? "max(a, b) - min(a, b)" : "a * 3 + b";
  b.let(fmt::format("reduce({}, 1, |a, b| {}{})", x, body, along ? ", axis: 1" : ""), elem,
        along ? Shape::Rows : Shape::Scalar);
}
void scan_lambda(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const bool along = b.chance(30);
  const Shape shape = along ? Shape::Matrix : Shape::Vector;
  const std::string x = b.pick(elem, shape);
  b.let(fmt::format("scan({}, 2, |a, b| {}{}{})", x, b.chance(50) ? "min(a, b)" : "a + b - a * b",
                    b.chance(50) ? ", exclusive: true" : "", along ? ", axis: 1" : ""),
        elem, shape);
}
void running(B& b, const std::string& op) {
  const Elem elem = b.any_number();
  const Shape shape = b.chance(60) ? Shape::Vector : Shape::Matrix;
  std::string call = op + "(" + b.pick(elem, shape);
  if (b.chance(50)) call += ", exclusive: true";
  if (shape == Shape::Matrix) call += fmt::format(", axis: {}", b.random(2));
  b.let(call + ")", elem, shape);
}

// ---- filters, sorts, moves ----

void filter(B& b, const std::string&) {
  b.need_count();
  const Elem elem = b.any_number();
  b.let("filter(" + b.pick(elem, Shape::Vector) + ", where: keep)", elem, Shape::Counted);
}
void nonzero(B& b, const std::string&) {
  b.need_count();
  const Elem elem = b.any_number();
  b.let(b.pick(elem, Shape::Vector) + "[kept]", elem, Shape::Counted);
}
void limited_filter(B& b, const std::string&) {
  const std::string x = b.pick(Elem::F32, Shape::Vector);
  b.let(fmt::format("sum(filter({}, where: {}, limit: max(n / 3, 1)))", x,
                    b.pick(Elem::Bool, Shape::Vector)),
        Elem::F32, Shape::Scalar);
}
void sort(B& b, const std::string& op) {
  const Elem elem = b.any_number();
  const Shape shape = b.chance(50) ? Shape::Vector : Shape::Matrix;
  std::string call = op + "(" + b.pick(elem, shape);
  Elem result = op == "argsort" ? Elem::U32 : elem;
  if (op == "sort_by_key") {
    result = b.any_number();
    call += ", " + b.pick(result, shape);
  }
  if (b.chance(50)) call += ", descending: true";
  if (shape == Shape::Matrix) call += fmt::format(", axis: {}", b.random(2));
  b.let(call + ")", result, shape);
}
void top_k(B& b, const std::string&) {
  const std::string x = b.pick(b.any_number(), Shape::Vector);
  b.declare(fmt::format("size {} = clamp(n / 5, 1, n)", b.fresh("k")));
  const std::string k = b.fresh("k");
  b.declare(fmt::format("size {} = clamp(n / 7, 1, n)", k));
  const std::string index = b.fresh("index");
  b.statement(fmt::format("let {} = top_k({}, {})", index, x, k));
  b.let(fmt::format("scatter({}[{}], at: {}, size: n)", b.pick(Elem::F32, Shape::Vector), index,
                    index),
        Elem::F32, Shape::Vector);
  b.use("scatter");
}
void top_k_rows(B& b, const std::string&) {
  const std::string x = b.pick(b.any_number(), Shape::Matrix);
  b.let(fmt::format("max(top_k({}, 3, axis: 1), axis: 1)", x), Elem::U32, Shape::Rows);
}
void ranked(B& b, const std::string& name) {
  const Elem elem = name == "quantile" ? b.any_float() : b.any_number();
  const bool is_vector = b.chance(60);
  const Shape shape = is_vector ? Shape::Vector : Shape::Matrix;
  std::string call = name + "(" + b.pick(elem, shape);
  if (name == "kth_largest") call += is_vector ? ", clamp(n / 4, 1, n)" : ", 3";
  if (name == "quantile") {
    call += b.choose(std::vector<std::string>{", 0", ", 0.25", ", 2 / 3", ", 1", ", 1 / (1 + n)"});
  }
  if (b.chance(40)) call += ", where: " + b.pick(Elem::Bool, shape);
  b.let(call + (is_vector ? ")" : ", axis: 1)"), elem, is_vector ? Shape::Scalar : Shape::Rows);
}
void searchsorted(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const Shape shape = b.any_shape();
  const std::string x = b.pick(elem, shape), side = b.chance(50) ? ", side: right" : "";
  if (b.chance(50)) {
    b.let(fmt::format("searchsorted(sort({}), {}{})", b.pick(elem, Shape::Vector), x, side),
          Elem::U32, shape);
  } else {
    const std::string table = b.fresh("Table");
    b.top_level(fmt::format("const {} = [-2{}, 0{}, 0{}, 3{}, 9{}]", table,
                            is_float(elem) ? ".5" : "", is_float(elem) ? ".0" : "",
                            is_float(elem) ? ".0" : "", is_float(elem) ? ".25" : "",
                            is_float(elem) ? ".0" : ""));
    const bool is_signed = is_float(elem) || elem == Elem::I32 || elem == Elem::I64;
    b.let(fmt::format("searchsorted({}, {}{})",
                      is_signed ? table : "[1, 2, 2, 40] as " + std::string(elem_name(elem)), x,
                      side),
          Elem::U32, shape);
  }
}
void pack(B& b, const std::string&) {
  const std::string x = b.pick(Elem::U32, Shape::Vector);
  const std::uint64_t bits = 1 + b.random(11);
  b.let(fmt::format("unpack(pack({} & {}, bits: {}), bits: {}, size: n) as u32", x,
                    (1u << bits) - 1, bits, bits),
        Elem::U32, Shape::Vector);
}
void concat(B& b, const std::string&) {
  const Elem elem = b.any_number();
  b.let(fmt::format("concat({}, {})[n / 2..n / 2 + n]", b.pick(elem, Shape::Vector),
                    b.pick(elem, Shape::Vector)),
        elem, Shape::Vector);
}
void stack(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string x = b.pick(elem, Shape::Vector), y = b.pick(elem, Shape::Vector);
  if (b.chance(50)) {
    b.let(fmt::format("stack({}, {})[1]", x, y), elem, Shape::Vector);
  } else {
    b.let(fmt::format("stack({}, {}, axis: 1)[.., 0]", x, y), elem, Shape::Vector);
  }
}
void join_matrices(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string x = b.pick(elem, Shape::Matrix), y = b.pick(elem, Shape::Matrix);
  const int w = b.width();
  if (b.chance(50)) {
    b.let(fmt::format("concat({}, {}, axis: 1)[.., {}..{}]", x, y, w / 2, w / 2 + w), elem,
          Shape::Matrix);
  } else {
    b.let(fmt::format("concat({}, {})[rows / 2..rows / 2 + rows]", x, y), elem, Shape::Matrix);
  }
}
void columns(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string x = b.pick(elem, Shape::Matrix);
  const int w = b.width();
  switch (b.random(4)) {
    case 0:
      b.let(fmt::format("reshape({}[.., {}], rows, 1)", x, b.random(static_cast<unsigned>(w))),
            elem, Shape::Rows);
      break;
    case 1:
      b.let(fmt::format("concat({}[.., {}..], {}[.., ..{}], axis: 1)", x, w / 2, x, w / 2), elem,
            Shape::Matrix);
      break;
    case 2:
      b.let(fmt::format("{}[.., ({} as u32) - 1 - iota({})]", x, w, w), elem, Shape::Matrix);
      break;
    default:
      b.let(fmt::format("{}[{} % (rows as u32), {} % {}]", x, b.pick(Elem::U32, Shape::Vector),
                        b.pick(Elem::U32, Shape::Vector), w),
            elem, Shape::Vector);
  }
}
void store_block(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string x = b.fresh("x"), y = b.pick(elem, Shape::Matrix);
  const int w = b.width();
  b.statement(fmt::format("let mut {} = {}", x, b.pick(elem, Shape::Matrix)));
  switch (b.random(4)) {
    case 0:
      b.statement(fmt::format("{}[.., {}] = {}[.., {}]", x, w - 1, y, w / 2));
      break;
    case 1:
      b.statement(fmt::format("{}[rows / 2.., {}..] += {}[rows / 2.., {}..]", x, w / 2, y, w / 2));
      break;
    case 2:
      b.statement(fmt::format("{}[iota(min(rows, {})), iota(min(rows, {}))] = {}", x, w, w,
                              b.pick(elem, Shape::Scalar)));
      break;
    default:
      b.statement(fmt::format("{}[rows - 1, ..{}] -= {}[0, ..{}]", x, (w + 1) / 2, y, (w + 1) / 2));
  }
  b.define(x, elem, Shape::Matrix, true);
}
void flip(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const Shape shape = b.chance(50) ? Shape::Vector : Shape::Matrix;
  const std::string x = b.pick(elem, shape);
  const std::string axis = shape == Shape::Vector ? "" : fmt::format(", axis: {}", b.random(2));
  b.let(fmt::format("flip({}{})", x, axis), elem, shape);
}
void outer(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string x = b.pick(elem, Shape::Vector), y = b.pick(elem, Shape::Bins);
  b.let(fmt::format("sum(outer({}, {}), axis: 1)[.., 0]", x, y), elem, Shape::Vector);
}
void slice(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string x = b.pick(elem, Shape::Vector);
  b.let(fmt::format("concat(slice({}, n / 3, n - n / 3), {}[0..n / 3])", x, x), elem,
        Shape::Vector);
}
void gather(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string x = b.pick(elem, Shape::Vector);
  b.let(fmt::format("{}[{} % (n as u32)]", x, b.pick(Elem::U32, Shape::Vector)), elem,
        Shape::Vector);
}
void gather_rows(B& b, const std::string&) {
  const Elem elem = b.any_number();
  b.let(b.pick(elem, Shape::Matrix) + "[(rows as u32) - 1 - iota(rows)]", elem, Shape::Matrix);
}
void gather_scalar(B& b, const std::string&) {
  const Elem elem = b.any_number();
  b.let(b.pick(elem, Shape::Vector) + "[n / 2]", elem, Shape::Scalar);
}
void scatter(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string order =
      b.let("argsort(" + b.pick(Elem::F32, Shape::Vector) + ")", Elem::U32, Shape::Vector);
  b.let(fmt::format("scatter({}, at: {}, size: n)", b.pick(elem, Shape::Vector), order), elem,
        Shape::Vector);
}
void scatter_add(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string x = b.pick(elem, Shape::Vector);
  b.let(fmt::format("scatter_add({}, at: {} % 24, size: 24)", x, b.pick(Elem::U32, Shape::Vector)),
        elem, Shape::Bins);
}
void scatter_reduce(B& b, const std::string& name) {
  const Elem elem = b.any_number();
  const std::string x = b.pick(elem, Shape::Vector);
  const std::string at = b.pick(Elem::U32, Shape::Vector);
  b.let(fmt::format("{}({}, at: {} % 23, size: 24)", name, x, at), elem, Shape::Bins);
}
void scatter_keep(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string x = b.pick(elem, Shape::Vector);
  const std::string at = b.pick(Elem::U32, Shape::Vector);
  const char* which = b.chance(2) ? "first" : "last";
  b.let(fmt::format("scatter({}, at: {} % 23, size: 24, keep: {})", x, at, which), elem,
        Shape::Bins);
}
void histogram(B& b, const std::string&) {
  b.let(fmt::format("histogram({} & 31, bins: 24)", b.pick(Elem::U32, Shape::Vector)), Elem::U32,
        Shape::Bins);
}
void reshape(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string x = b.pick(elem, Shape::Matrix);
  b.let(fmt::format("reshape(reshape({}, rows * {}), rows, {})", x, b.width(), b.width()), elem,
        Shape::Matrix);
}
void transpose(B& b, const std::string&) {
  const Elem elem = b.any_number();
  b.let(fmt::format("reshape(transpose({}), rows, {})", b.pick(elem, Shape::Matrix), b.width()),
        elem, Shape::Matrix);
}
void chunk(B& b, const std::string&) {
  const Elem elem = b.any_number();
  b.let(fmt::format("chunk({}, {})", b.pick(elem, Shape::Vector), b.width()), elem, Shape::Matrix);
}
void unchunk(B& b, const std::string&) {
  const Elem elem = b.any_number();
  b.let("unchunk(" + b.pick(elem, Shape::Matrix) + ", n)", elem, Shape::Vector);
}
void iota(B& b, const std::string&) {
  b.let("iota(n)", Elem::U32, Shape::Vector);
}

// ---- draws and matrices ----

std::string draw_options(B& b) {
  std::string options;
  if (b.is_decode() || b.chance(50)) options += ", shared: true";
  if (b.chance(20)) options += fmt::format(", stream: {}", b.random(1000));
  return options;
}
void random_vector(B& b, const std::string& op) {
  b.let(op + "(n" + draw_options(b) + ")", op == "random_bits" ? Elem::U32 : Elem::F32,
        Shape::Vector);
}
void random_index(B& b, const std::string&) {
  const std::string index =
      b.let("random_index(n, size: n" + draw_options(b) + ")", Elem::U32, Shape::Vector);
  b.let(fmt::format("scatter({}, at: {}, size: n)", b.pick(Elem::F32, Shape::Vector), index),
        Elem::F32, Shape::Vector);
}
void stochastic_round(B& b, const std::string&) {
  const Elem elem = b.any_float();
  const Shape shape = b.chance(70) ? Shape::Vector : Shape::Matrix;
  b.let("stochastic_round(" + b.pick(elem, shape) + " * 4" + draw_options(b) + ")", elem, shape);
}
void matmul(B& b, const std::string&) {
  const std::string x = b.pick(Elem::F32, Shape::Matrix), y = b.pick(Elem::F32, Shape::Matrix);
  b.let(fmt::format("{} @ (transpose({}) @ {})", x, y, x), Elem::F32, Shape::Matrix);
}
void orthonormalize(B& b, const std::string&) {
  b.let("orthonormalize(" + b.pick(Elem::F32, Shape::Matrix) + ")", Elem::F32, Shape::Matrix);
}
void hadamard(B& b, const std::string&) {
  b.let("hadamard(" + b.pick(Elem::F32, Shape::Matrix) + ")", Elem::F32, Shape::Matrix);
}

// ---- statements ----

void if_statement(B& b, const std::string&) {
  const std::string x = b.fresh("x"), start = b.pick(Elem::F32, Shape::Vector),
                    s = b.pick(Elem::F32, Shape::Scalar);
  const std::string c = b.pick(Elem::Bool, Shape::Scalar);
  b.statement(fmt::format("let mut {} = {}", x, start));
  b.statement(
      fmt::format("if {} {{ {} = {} * {} }} else {{ {} = {} - mean({}) }}", c, x, x, s, x, x, x));
  b.define(x, Elem::F32, Shape::Vector, true);
}
void if_expression(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const Shape shape = b.any_shape();
  const std::string c = b.pick(Elem::Bool, Shape::Scalar), x = b.pick(elem, shape),
                    y = b.pick(elem, shape);
  b.let(fmt::format("if {} {{ {} }} else {{ {} }}", c, x, y), elem, shape);
}
void for_statement(B& b, const std::string&) {
  const std::string x = b.fresh("x"), start = b.pick(Elem::F32, Shape::Vector);
  b.statement(fmt::format("let mut {} = {}", x, start));
  const bool draws = b.chance(40);
  b.statement(fmt::format("for i in 0..{} {{ {} = {} * 0.5 + {} }}", 1 + b.random(4), x, x,
                          draws ? "random(n, shared: true)" : "max(" + x + ") * (i as f32)"));
  b.define(x, Elem::F32, Shape::Vector, true);
}
void while_statement(B& b, const std::string&) {
  const std::string x = b.fresh("x");
  b.statement(fmt::format("let mut {} = {}", x, b.pick(Elem::F32, Shape::Scalar)));
  b.statement(fmt::format("while {} < 40 && count({} > {}) > 2, at_most: 9 {{ {} = {} * 2 + 0.5 }}",
                          x, b.pick(Elem::F32, Shape::Vector), x, x, x));
  b.define(x, Elem::F32, Shape::Scalar, true);
}
void assert_statement(B& b, const std::string&) {
  b.statement(
      fmt::format("assert {} < 40, \"a number of the program\"", b.pick(Elem::F32, Shape::Scalar)));
}
void assign_indexed(B& b, const std::string&) {
  const std::string x = b.fresh("x"), start = b.pick(Elem::F32, Shape::Vector);
  b.need_count();
  b.statement(fmt::format("let mut {} = {}", x, start));
  b.statement(fmt::format("{}[kept] = {}", x, b.pick(Elem::F32, Shape::Counted)));
  b.define(x, Elem::F32, Shape::Vector, true);
}
void state_vector(B& b, const std::string&) {
  const std::string s = b.fresh("state_");
  b.declare(fmt::format("state {}: [f32; n] = 0.25", s));
  b.statement(fmt::format("{} = {} * 0.5 + {}", s, s, b.pick(Elem::F32, Shape::Vector)));
  b.define(s, Elem::F32, Shape::Vector, true);
}
void state_packed(B& b, const std::string&) {
  const std::string s = b.fresh("state_");
  b.declare(fmt::format("state {}: [u5; n] = 3", s));
  b.statement(fmt::format("{} = (({} as u32) * 5 + ({} & 7)) as u5", s, s,
                          b.pick(Elem::U32, Shape::Vector)));
  b.let("(" + s + " as u32) + 1", Elem::U32, Shape::Vector);
}
void state_scalar(B& b, const std::string&) {
  const std::string s = b.fresh("state_");
  b.declare(fmt::format("state {}: f32 = 1", s));
  b.statement(fmt::format("{} = {} * 0.75 + {}", s, s, b.pick(Elem::F32, Shape::Scalar)));
  b.let(s + " * 2", Elem::F32, Shape::Scalar);
}
void wrapper(B& b, const std::string&) {
  b.wrap("error_feedback($, decay: 0.5)");
}
void finish(B& b, const std::string&) {
  b.add_finish();
}

std::vector<Production> make_table() {
  std::vector<Production> table;
  const auto add = [&](std::initializer_list<const char*> names,
                       void (*emit)(B&, const std::string&)) {
    for (const char* name : names) table.push_back({name, emit});
  };
  add({"sqrt", "rsqrt", "exp", "exp2", "log", "log1p", "log2", "sin", "cos", "tanh", "floor",
       "ceil", "round", "trunc"},
      unary_float);
  add({"abs", "sign"}, unary_number);
  add({"neg"}, negate);
  add({"bit_not"}, bit_not);
  add({"isnan", "isfinite"}, float_test);
  add({"popcount", "clz"}, bit_count);
  add({"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"}, infix);
  add({"==", "!=", "<", "<=", ">", ">="}, comparison);
  add({"&&", "||"}, logical);
  add({"pow", "divide_or_zero"}, binary_float);
  add({"min of two", "max of two"},
      [](B& b, const std::string& name) { binary_number(b, name.substr(0, 3)); });
  add({"ceil_div", "floor_div"}, binary_int);
  add({"fma"}, fused_multiply_add);
  add({"clamp"}, clamp);
  add({"select"}, select);
  add({"as"}, conversion);
  add({"as f16", "as bf16", "as f8e4m3", "as f8e5m2", "as u1", "as u3", "as i2", "as i7", "as u8",
       "as i16", "as u24"},
      narrow_conversion);
  add({"bitcast"}, bitcast);
  add({"map"}, map_lambda);
  add({"table"}, table_lambda);
  add({"fill"}, fill);
  add({"len"}, length);
  add({"fn"}, function_call);
  add({"sum", "prod", "min", "max"}, reduce_number);
  add({"mean", "var", "std", "norm1", "norm2", "norm_inf"}, reduce_float);
  add({"argmax", "argmin"}, reduce_to_index);
  add({"any", "all", "count"}, reduce_mask);
  add({"dot"}, dot);
  add({"reduce"}, reduce_lambda);
  add({"scan"}, scan_lambda);
  add({"cumsum", "cummax"}, running);
  add({"filter"}, filter);
  add({"nonzero"}, nonzero);
  add({"limit"}, limited_filter);
  add({"sort", "argsort", "sort_by_key"}, sort);
  add({"top_k"}, top_k);
  add({"top_k of rows"}, top_k_rows);
  add({"kth_largest", "median", "quantile"}, ranked);
  add({"searchsorted"}, searchsorted);
  add({"pack"}, pack);
  add({"concat"}, concat);
  add({"stack"}, stack);
  add({"join of matrices"}, join_matrices);
  add({"columns"}, columns);
  add({"store to a block"}, store_block);
  add({"flip"}, flip);
  add({"outer"}, outer);
  add({"slice"}, slice);
  add({"gather"}, gather);
  add({"gather of rows"}, gather_rows);
  add({"gather of one"}, gather_scalar);
  add({"scatter"}, scatter);
  add({"scatter_add"}, scatter_add);
  add({"scatter_min", "scatter_max"}, scatter_reduce);
  add({"scatter keep"}, scatter_keep);
  add({"histogram"}, histogram);
  add({"reshape"}, reshape);
  add({"transpose"}, transpose);
  add({"chunk"}, chunk);
  add({"unchunk"}, unchunk);
  add({"iota"}, iota);
  add({"random", "random_bits", "normal"}, random_vector);
  add({"random_index"}, random_index);
  add({"stochastic_round"}, stochastic_round);
  add({"matmul"}, matmul);
  add({"orthonormalize"}, orthonormalize);
  add({"hadamard"}, hadamard);
  add({"if statement"}, if_statement);
  add({"if expression"}, if_expression);
  add({"for"}, for_statement);
  add({"while"}, while_statement);
  add({"assert"}, assert_statement);
  add({"x[i] = v"}, assign_indexed);
  table.push_back({"state of a vector", state_vector, true});
  table.push_back({"state of packed integers", state_packed, true});
  table.push_back({"state of a scalar", state_scalar, true});
  table.push_back({"wrapper", wrapper, true});
  table.push_back({"finish", finish, true});
  add_form_productions(table);
  add_odd_productions(table);
  return table;
}

}  // namespace

const std::vector<Production>& productions() {
  static const std::vector<Production> kTable = make_table();
  return kTable;
}

}  // namespace cinch::testing
