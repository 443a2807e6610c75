// Forms that nobody would write but the compiler must handle: values that are stored, read and
// changed again, in an order that a plan of kernels must keep.
#include <fmt/format.h>

#include "tests/programs/generator/program_builder.h"

namespace cinch::testing {
namespace {

using B = ProgramBuilder;

// ---- assignments ----

void assign_again(B& b, const std::string&) {
  const Elem elem = b.chance(15) ? Elem::Bool : b.any_number();
  const Shape shape = b.any_shape();
  const std::string x = b.pick_mutable(elem, shape);
  const std::uint64_t times = 2 + b.random(2);
  for (std::uint64_t i = 0; i < times; ++i) {
    // Names, reads or stores existing values before they change.
    if (b.chance(40)) b.let(x, elem, shape);
    if (b.chance(60)) b.let(mixed(b, elem, x, b.pick(elem, shape)), elem, shape);
    if (b.chance(40) && elem == Elem::F32 && shape == Shape::Vector) late_number(b, x);
    b.assign(x, mixed(b, elem, x, b.pick(elem, shape)));
  }
}

// One use of x between two changes of it.
void use_between(B& b, const std::string& x, Elem elem, const Index& index) {
  switch (b.random(5)) {
    case 0:
      b.let(x, elem, Shape::Vector);
      break;
    case 1:
      b.let(mixed(b, elem, x, b.pick(elem, Shape::Vector)), elem, Shape::Vector);
      break;
    case 2:
      if (elem == Elem::F32) late_number(b, x);
      break;
    case 3:
      b.let(fmt::format("max({}[{}])", x, index.name), elem, Shape::Scalar);
      break;
    default:
      b.let(fmt::format("{}[(n as u32) - 1 - iota(n)]", x), elem, Shape::Vector);
  }
}

void scatter_again(B& b, const std::string&) {
  const Elem elem = b.chance(60) ? Elem::F32 : b.any_number();
  std::string x;
  if (b.chance(40)) {
    const Index first = unique_index(b);
    x = b.fresh("x");
    const std::string values = b.pick(elem, Shape::Vector);
    b.statement(fmt::format("let mut {} = scatter({}[{}], at: {}, size: n)", x, values, first.name,
                            first.name));
    b.define(x, elem, Shape::Vector, true);
  } else {
    x = b.pick_mutable(elem, Shape::Vector);
  }
  const std::uint64_t times = 2 + b.random(3);
  for (std::uint64_t i = 0; i < times; ++i) {
    const Index index = unique_index(b);
    if (b.chance(60)) use_between(b, x, elem, index);
    b.statement(fmt::format("{}[{}] = {}", x, index.name, values_for(b, index, elem)));
    b.changed(x);
    if (b.chance(50)) use_between(b, x, elem, index);
  }
}

// Values that are read late change early: by indices and values that are known at once.
void changed_before_read(B& b, const std::string&) {
  const Elem elem = b.chance(75) ? Elem::F32 : b.any_number();
  const std::string k = b.fresh("k"), x = b.fresh("x"), i = b.fresh("i");
  b.declare(fmt::format("size {} = clamp(n / {}, 1, n)", k, 2 + b.random(6)));
  b.statement(fmt::format("let {} = random_index({}, size: n, shared: true)", i, k));
  const std::string start = early_vector(b, elem);
  b.statement(b.chance(50)
                  ? fmt::format("let mut {} = {}", x, start)
                  : fmt::format("let mut {} = scatter({}[{}], at: {}, size: n)", x, start, i, i));
  b.define(x, elem, Shape::Vector, true);
  const std::uint64_t times = 1 + b.random(3);
  for (std::uint64_t t = 0; t < times; ++t) {
    const bool is_read = b.chance(70);
    const std::string before =
        is_read ? b.let(mixed(b, elem, x, early_vector(b, elem)), elem, Shape::Vector) : x;
    if (elem == Elem::F32) late_number(b, before);
    if (b.chance(30)) b.let(mixed(b, elem, x, b.pick(elem, Shape::Vector)), elem, Shape::Vector);
    const bool is_whole = b.chance(30);
    const std::string values = early_vector(b, elem);
    b.statement(is_whole ? fmt::format("{}[random_index(n, size: n, shared: true)] = {}", x, values)
                         : fmt::format("{}[{}] = {}[{}]", x, i, values, i));
    b.changed(x);
  }
}

// The rows of such a matrix mirror themselves; of its transpose they do not.
void product_with_cosines(B& b, const std::string&) {
  const int w = b.width();
  if (w > 128) return;  // more elements take long to compute
  const std::string angle =
      fmt::format("pi / {} * ((2 * (i % {}) + 1) * (i / {}) % {}) as f64", 2 * w, w, w, 4 * w);
  const std::string cosines =
      fmt::format("reshape(map(iota({}), |i| cos({}) as f32), {}, {})", w * w, angle, w, w);
  const std::string matrix = b.chance(70) ? cosines : "transpose(" + cosines + ")";
  b.let(b.pick(Elem::F32, Shape::Matrix) + " @ " + matrix, Elem::F32, Shape::Matrix);
}

// Both may run at the same time, if neither needs the other.
void add_up_beside(B& b, const std::string&) {
  std::vector<std::string> sums;
  for (int i = 0; i < 2; ++i) {
    const std::string x = b.pick(Elem::F32, Shape::Vector);
    sums.push_back(b.let(
        fmt::format("scatter_add({}, at: {} % 24, size: 24)", x, b.pick(Elem::U32, Shape::Vector)),
        Elem::F32, Shape::Bins));
  }
  b.let(fmt::format("{} - {}", sums[0], sums[1]), Elem::F32, Shape::Bins);
}

void add_up_again(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string x = b.pick_mutable(elem, Shape::Bins);
  for (int i = 0; i < 2; ++i) {
    const std::string v = b.pick(elem, Shape::Vector), at = b.pick(Elem::U32, Shape::Vector);
    if (b.chance(50)) b.let(x, elem, Shape::Bins);
    b.assign(x, fmt::format("{} + scatter_add({}, at: {} % 24, size: 24)", x, v, at));
    b.let(fmt::format("{} * {}[{} % 24]", v, x, at), elem, Shape::Vector);
  }
}

// ---- states ----

void state_twice(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const Shape shape = b.choose(std::vector{Shape::Vector, Shape::Vector, Shape::Matrix,
                                           Shape::Scalar, Shape::Rows, Shape::Bins});
  static const std::map<Shape, std::string> kDims = {
      {Shape::Vector, "; n]"}, {Shape::Rows, "; rows, 1]"}, {Shape::Bins, "; 24]"}};
  std::string dims = shape == Shape::Matrix   ? fmt::format("; rows, {}]", b.width())
                     : shape == Shape::Scalar ? ""
                                              : kDims.at(shape);
  const std::string s = b.fresh("state_");
  b.declare(fmt::format("state {}: {}{}{} = {}", s, dims.empty() ? "" : "[", elem_name(elem), dims,
                        b.random(3)));
  if (b.chance(70)) b.let(s, elem, shape);
  const std::string before = b.let(mixed(b, elem, s, b.pick(elem, shape)), elem, shape);
  b.statement(fmt::format("{} = {}", s, mixed(b, elem, s, b.pick(elem, shape))));
  b.define(s, elem, shape, true);
  b.let(mixed(b, elem, s, before), elem, shape);
  if (shape == Shape::Vector && b.chance(50)) {
    const Index index = unique_index(b);
    b.statement(fmt::format("{}[{}] = {}", s, index.name, values_for(b, index, elem)));
    b.changed(s);
  }
  if (b.chance(50)) b.assign(s, mixed(b, elem, s, before));
}

void state_of_any_width(B& b, const std::string&) {
  static const std::vector<const char*> kTypes = {"u1",  "u2",  "u3",   "i5",  "u7",     "u9",
                                                  "i12", "u17", "bf16", "f16", "f8e4m3", "bool"};
  const std::string type = b.choose(kTypes), s = b.fresh("state_");
  const bool is_bool = type == "bool", is_narrow_float = type.find('f') != std::string::npos;
  const Elem elem = is_bool ? Elem::Bool : is_narrow_float ? Elem::F32 : Elem::I32;
  const std::string as = is_bool ? "" : std::string(" as ") + elem_name(elem);
  const bool is_matrix = b.chance(30);
  const Shape shape = is_matrix ? Shape::Matrix : Shape::Vector;
  b.declare(fmt::format("state {}: [{}; {}] = {}", s, type,
                        is_matrix ? fmt::format("rows, {}", b.width()) : "n",
                        is_bool ? "false" : "1"));
  const std::string before = b.let(s + as, elem, shape);
  b.statement(fmt::format("{} = ({}) as {}", s, mixed(b, elem, before, b.pick(elem, shape)), type));
  const std::string after = b.let(s + as, elem, shape);
  if (b.chance(50)) {
    b.statement(fmt::format("{} = ({}) as {}", s, mixed(b, elem, after, before), type));
    b.let(s + as, elem, shape);
  }
}

// ---- inputs ----

void inputs_besides_the_gradient(B& b, const std::string&) {
  if (b.chance(60)) {
    const std::string weights = b.fresh("input_");
    b.declare(fmt::format("input {}: [f32; n]", weights));
    b.let(weights, Elem::F32, Shape::Vector);
    b.let(mixed(b, Elem::F32, weights, b.pick(Elem::F32, Shape::Vector)), Elem::F32, Shape::Vector);
  }
  if (b.chance(60)) {
    const std::string rate = b.fresh("input_");
    const bool is_float = b.chance(60);
    b.declare(fmt::format("input {}: {}", rate, is_float ? "f32 in (0, 4]" : "i32 in -3..=9"));
    b.let(rate, is_float ? Elem::F32 : Elem::I32, Shape::Scalar);
  }
}

// ---- selections of selections ----

void select_again(B& b, const std::string&) {
  const std::string k = b.fresh("k"), few = b.fresh("k");
  b.declare(fmt::format("size {} = clamp(n / 3, 1, n)", k));
  b.declare(fmt::format("size {} = clamp(n / 11, 1, n)", few));
  const std::string i = b.fresh("i"), y = b.fresh("y"), j = b.fresh("i");
  const std::string keys = b.pick(b.any_number(), Shape::Vector);
  b.statement(fmt::format("let {} = top_k({}, {})", i, keys, k));
  const Elem elem = b.any_number();
  b.statement(fmt::format("let {} = {}[{}]", y, b.pick(elem, Shape::Vector), i));
  b.statement(fmt::format("let {} = top_k({}, {})", j, y, few));
  b.let(fmt::format("scatter({}[{}], at: {}[{}], size: n)", y, j, i, j), elem, Shape::Vector);
  if (b.chance(50)) b.let(fmt::format("kth_largest({}, {})", y, few), elem, Shape::Scalar);
  if (b.chance(50)) b.let(fmt::format("max(sort({})[0..{}])", y, few), elem, Shape::Scalar);
}

void filter_again(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string f = b.pick(elem, Shape::Counted), h = b.pick(Elem::F32, Shape::Counted);
  const std::string again = b.fresh("y");
  b.statement(fmt::format("let {} = filter({}, where: {} > 0.5)", again, f, h));
  static const std::vector<const char*> kForms = {"sum({})", "max({})", "min(sort({}))",
                                                  "sum(cumsum({}))"};
  b.let(fmt::format(fmt::runtime(b.choose(kForms)), again), elem, Shape::Scalar);
  const std::string places = b.fresh("i");
  b.need_count();
  b.statement(fmt::format("let {} = kept[nonzero({} > 0.5)]", places, h));
  b.let(fmt::format("scatter({}, at: {}, size: n)", again, places), elem, Shape::Vector);
  if (b.chance(50)) {
    const std::string x = b.pick_mutable(elem, Shape::Vector);
    b.statement(fmt::format("{}[{}] = {}", x, places, again));
    b.changed(x);
  }
}

void filters_by_one_mask(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string mask = b.pick(Elem::Bool, Shape::Vector), at = b.fresh("i");
  const std::string few = b.fresh("y"), others = b.fresh("y");
  b.statement(
      fmt::format("let {} = filter({}, where: {})", few, b.pick(elem, Shape::Vector), mask));
  if (b.chance(50)) b.let(fmt::format("max({})", few), elem, Shape::Scalar);
  b.statement(fmt::format("let {} = nonzero({})", at, mask));
  b.statement(fmt::format("let {} = {}[{}]", others, b.pick(elem, Shape::Vector), at));
  if (b.chance(50))
    b.let(fmt::format("scatter({}, at: {}, size: n)", few, at), elem, Shape::Vector);
  b.let("sum(" + mixed(b, elem, few, others) + ")", elem, Shape::Scalar);
  if (b.chance(50)) b.let(fmt::format("len({}) as u32", at), Elem::U32, Shape::Scalar);
}

void select_rows(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string x = b.pick(elem, Shape::Matrix);
  const std::string at = b.fresh("i");
  b.statement(
      fmt::format("let {} = top_k({}, 3, axis: 1)", at, b.pick(b.any_number(), Shape::Matrix)));
  b.let(fmt::format("scatter({}, at: {}, size: {})", at, at, b.width()), Elem::U32, Shape::Matrix);
  const std::string rows = b.fresh("i");
  b.statement(fmt::format("let {} = argsort(reshape(max({}, axis: 1), rows))", rows, x));
  b.let(fmt::format("{}[{}]", x, rows), elem, Shape::Matrix);
  b.let(fmt::format("min(min({}[{}[0..ceil_div(rows, 2)]], axis: 0))", x, rows), elem,
        Shape::Scalar);
}

// ---- control ----

void loop_of_arrays(B& b, const std::string&) {
  const Elem elem = b.chance(60) ? Elem::F32 : b.any_number();
  const std::string x = b.pick_mutable(elem, Shape::Vector);
  const std::string m = b.pick_mutable(elem, Shape::Matrix);
  const std::string s = b.pick_mutable(Elem::F32, Shape::Scalar);
  const Index index = unique_index(b);
  const std::string values = values_for(b, index, elem);
  const std::string other = b.pick(elem, Shape::Vector);
  if (b.chance(50)) {
    b.statement(fmt::format("for i in 0..{} {{", 1 + b.random(4)));
  } else {
    b.statement(fmt::format("while {} < 30 && any({} != {}), at_most: {} {{", s, x, other,
                            1 + b.random(4)));
  }
  const std::string before = b.fresh("y");
  b.statement(fmt::format("  let {} = {}", before, x));
  if (b.chance(60)) b.statement(fmt::format("  {} = {}", x, mixed(b, elem, x, other)));
  b.statement(fmt::format("  {}[{}] = {}", x, index.name, values));
  if (b.chance(50)) {
    b.statement(fmt::format("  {} = chunk({}, {})", m,
                            mixed(b, elem, before, "unchunk(" + m + ", n)"), b.width()));
  }
  if (b.chance(50)) b.statement(fmt::format("  {} = {}", x, mixed(b, elem, x, before)));
  if (b.chance(40)) {
    b.statement(fmt::format("  if {} > 0.25 {{ {} = {} }} else {{ {}[{}] = {} }}", s, x, before, x,
                            index.name, values));
  }
  b.statement(fmt::format("  {} = {} * 0.5 + ({} as f32)", s, s, "max(" + x + ")"));
  b.statement("}");
  for (const std::string& name : {x, m, s}) b.changed(name);
}

void branch_of_stores(B& b, const std::string&) {
  const Elem elem = b.chance(60) ? Elem::F32 : b.any_number();
  const std::string x = b.pick_mutable(elem, Shape::Vector),
                    y = b.pick_mutable(elem, Shape::Scalar);
  const Index index = unique_index(b);
  const std::string values = values_for(b, index, elem);
  const std::string before =
      b.chance(50) ? b.let(x, elem, Shape::Vector) : b.pick(elem, Shape::Vector);
  b.statement(fmt::format("if {} {{", b.pick(Elem::Bool, Shape::Scalar)));
  b.statement(fmt::format("  {}[{}] = {}", x, index.name, values));
  b.statement(fmt::format("  {} = max({})", y, x));
  b.statement(b.chance(50) ? fmt::format("}} else {{ {} = {} }}", x, mixed(b, elem, before, x))
                           : "}");
  b.changed(x);
  b.changed(y);
  b.let(mixed(b, elem, x, before), elem, Shape::Vector);
}

// Puts any production into a block: everything under control flow.
void block_of_anything(B& b, const std::string&) {
  if (b.num_blocks() > 1) return;
  b.need_count();
  const Elem elem = b.any_number();
  const Shape shape = b.any_shape();
  const std::string x = b.pick_mutable(Elem::F32, Shape::Vector), y = b.pick_mutable(elem, shape);
  const std::string s = b.pick_mutable(Elem::F32, Shape::Scalar);
  const std::uint64_t kind = b.random(4);
  if (kind == 0) b.open_block(fmt::format("for {} in 0..{}", b.fresh("r"), 1 + b.random(3)));
  if (kind == 1) b.open_block(fmt::format("while {} < 9, at_most: {}", s, 1 + b.random(3)));
  if (kind > 1) b.open_block("if " + b.pick(Elem::Bool, Shape::Scalar));
  const auto fill_block = [&] {
    b.add_productions(1 + b.random(3));
    b.assign(x, mixed(b, Elem::F32, x, b.pick(Elem::F32, Shape::Vector)));
    if (b.chance(60)) b.assign(y, mixed(b, elem, y, b.pick(elem, shape)));
    if (b.chance(60)) b.assign(s, mixed(b, Elem::F32, s, b.pick(Elem::F32, Shape::Scalar)));
  };
  fill_block();
  if (kind == 3) {
    b.next_block("else");
    fill_block();
  }
  b.close_block();
}

// It fails at some steps and sizes, when other kernels have run already.
void failing_check(B& b, const std::string&) {
  const std::string x = b.pick(Elem::F32, Shape::Vector);
  if (b.chance(50)) {
    b.statement(fmt::format("assert step != 1 || max({} * max({})) < 2.5, \"midway\"", x,
                            b.pick(Elem::F32, Shape::Vector)));
    return;
  }
  const Elem elem = b.any_number();
  const std::string s = b.pick(Elem::F32, Shape::Scalar);
  b.let(fmt::format("{}[{} % (n as u32) + (({} > 3.5) as u32)]", b.pick(elem, Shape::Vector),
                    b.pick(Elem::U32, Shape::Vector), s),
        elem, Shape::Vector);
}

void wrapper_again(B& b, const std::string&) {
  static const std::vector<std::string> kWrappers = {"error_feedback($, decay: 0.75)",
                                                     "momentum($)",
                                                     "momentum($, nesterov: true)",
                                                     "clip($)",
                                                     "scaled($)",
                                                     "exact_below($, elements: 40)"};
  const std::uint64_t depth = 1 + b.random(2);
  for (std::uint64_t i = 0; i < depth; ++i) b.wrap(b.choose(kWrappers));
}

// ---- views ----

void rows_and_flat(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string m = b.pick(elem, Shape::Matrix), v = b.pick(elem, Shape::Vector);
  const std::string flat = b.fresh("y");
  b.statement(fmt::format("let {} = reshape({}, rows * {})", flat, m, b.width()));
  b.let(fmt::format("{}[0..n]", flat), elem, Shape::Vector);
  const std::string less =
      b.let(fmt::format("{} - max({}, axis: {})", m, m, b.random(2)), elem, Shape::Matrix);
  b.let(mixed(b, elem, "unchunk(" + less + ", n)", v), elem, Shape::Vector);
  b.let(fmt::format("reshape(cumsum({}), rows, {})", flat, b.width()), elem, Shape::Matrix);
  b.let(fmt::format("max({} * reshape({}, rows * {}))", flat, less, b.width()), elem,
        Shape::Scalar);
  if (b.chance(50)) {
    b.let(fmt::format("sort(chunk({}[(n as u32) - 1 - iota(n)], {}), axis: 1)", v, b.width()), elem,
          Shape::Matrix);
  }
}

void views_of_changed(B& b, const std::string&) {
  const Elem elem = b.any_number();
  const std::string x = b.pick_mutable(elem, Shape::Vector);
  const std::string rows = b.let(fmt::format("chunk({}, {})", x, b.width()), elem, Shape::Matrix);
  const Index index = unique_index(b);
  b.statement(fmt::format("{}[{}] = {}", x, index.name, values_for(b, index, elem)));
  b.changed(x);
  b.let(fmt::format("chunk({}, {}) - {}", x, b.width(), rows), elem, Shape::Matrix);
  b.let(fmt::format("transpose(max(transpose(chunk({}, {})), axis: 1))", x, b.width()), elem,
        Shape::Columns);
}

// ---- fields ----

void packed_field(B& b, const std::string&) {
  const std::string f = b.fresh("f"), x = b.pick(Elem::U32, Shape::Vector);
  switch (b.random(4)) {
    case 1: {
      const std::string lengths = b.fresh("l");
      b.add_wire(lengths + ": [u4; 16]", lengths + ": min(iota(16) + 1, 15) as u4",
                 "(w." + lengths + "[0] as f32)");
      b.add_wire(fmt::format("{}: [u32; n] huffman({})", f, lengths),
                 fmt::format("{}: {} % 16", f, x), "(w." + f + " as f32)");
      break;
    }
    case 0:
      b.add_wire(f + ": [u32; n] elias below 4096", fmt::format("{}: {} % 4096", f, x),
                 "(w." + f + " as f32)");
      break;
    default: {
      const std::string k = b.fresh("k"), i = b.fresh("i");
      b.declare(fmt::format("size {} = clamp(n / {}, 1, n)", k, 2 + b.random(9)));
      const std::string keys = b.pick(b.any_number(), Shape::Vector);
      b.statement(fmt::format("let {} = top_k({}, {})", i, keys, k));
      b.add_wire(
          fmt::format("{}: [u32; {}] {}ascending below n", f, k, b.chance(50) ? "elias " : ""),
          f + ": " + i, fmt::format("scatter(fill(1.5, {}), at: w.{}, size: n)", k, f));
    }
  }
}

}  // namespace

void add_odd_productions(std::vector<Production>& table) {
  const std::size_t first = table.size();
  table.push_back({"assign again", assign_again});
  table.push_back({"scatter again", scatter_again});
  for (int i = 0; i < 3; ++i) table.push_back({"changed before it is read", changed_before_read});
  table.push_back({"scatter_add again", add_up_again});
  table.push_back({"scatter_add beside another", add_up_beside});
  table.push_back({"product with cosines", product_with_cosines});
  table.push_back({"state before and after", state_twice, true});
  table.push_back({"state of any width", state_of_any_width, true});
  table.push_back({"inputs besides the gradient", inputs_besides_the_gradient, true});
  table.push_back({"selection of a selection", select_again});
  table.push_back({"filter of a filter", filter_again});
  table.push_back({"filters by one mask", filters_by_one_mask});
  table.push_back({"selection of rows", select_rows});
  table.push_back({"loop of arrays", loop_of_arrays});
  table.push_back({"branch of stores", branch_of_stores});
  for (int i = 0; i < 3; ++i) table.push_back({"block of anything", block_of_anything});
  table.push_back({"check that fails", failing_check});
  table.push_back({"wrapper of a wrapper", wrapper_again, true});
  table.push_back({"rows and flat", rows_and_flat});
  table.push_back({"views of what changes", views_of_changed});
  table.push_back({"packed field", packed_field, true});
  for (std::size_t i = first; i < table.size(); ++i) table[i].is_odd = true;
}

}  // namespace cinch::testing
