// Values come from the pool, or are made from the gradient by a cast or a reshape.
#include "tests/programs/generator/program_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cinch::testing {

const char* elem_name(Elem elem) {
  static constexpr const char* kNames[] = {"f32", "f64", "i32", "u32", "i64", "u64", "bool"};
  return kNames[static_cast<int>(elem)];
}

bool is_float(Elem elem) {
  return elem == Elem::F32 || elem == Elem::F64;
}

ProgramBuilder::ProgramBuilder(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 77) {
  // hadamard takes powers of two; products of wide rows take long.
  width_ = chance(60) ? 16 : chance(90) ? 4 << random(5) : 128 << random(2);
  production_ = "gradient";
  define("g", Elem::F32, Shape::Vector);
}

std::uint64_t ProgramBuilder::random(std::uint64_t below) {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return (z ^ (z >> 31)) % below;
}

namespace {

// Types as numbers, for Neighbours.
int type_number(const TypedValue& value) {
  return static_cast<int>(value.elem) * 8 + static_cast<int>(value.shape);
}

}  // namespace

void ProgramBuilder::begin(const std::string& production) {
  production_ = production;
}

void ProgramBuilder::define(std::string name, Elem elem, Shape shape, bool is_mutable) {
  values_.push_back({std::move(name), elem, shape, production_, is_mutable});
  neighbours_.made[production_].insert(type_number(values_.back()));
}

std::string ProgramBuilder::let(const std::string& expression, Elem elem, Shape shape) {
  std::string name = fresh("v");
  statement("let " + name + " = " + expression);
  define(name, elem, shape);
  return name;
}

// As `let`, for values outside of productions: `op` is their maker.
std::string ProgramBuilder::made(const std::string& op, const std::string& expression, Elem elem,
                                 Shape shape) {
  const std::string reader = std::exchange(production_, op);
  std::string name = let(expression, elem, shape);
  production_ = reader;
  return name;
}

std::string ProgramBuilder::picked(const TypedValue& value) {
  ++neighbours_.pairs[{value.maker, production_}];
  neighbours_.read[production_].insert(type_number(value));
  return value.name;
}

void ProgramBuilder::need_count() {
  if (has_count_) return;
  has_count_ = true;
  const std::string reader = std::exchange(production_, "nonzero");
  const std::string tested = pick(Elem::F32, Shape::Vector);
  statement("let keep = abs(" + tested + ") > 0.4");
  statement("let kept = nonzero(keep)");
  define("kept", Elem::U32, Shape::Counted);
  production_ = reader;
  use("nonzero");
}

std::string ProgramBuilder::pick(Elem elem, Shape shape) {
  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].elem == elem && values_[i].shape == shape) fitting.push_back(i);
  }
  const auto preferred = std::find_if(fitting.rbegin(), fitting.rend(), [&](std::size_t i) {
    return values_[i].maker == preferred_maker_;
  });
  if (preferred != fitting.rend()) return picked(values_[*preferred]);
  if (fitting.empty() || chance(10)) {
    make(elem, shape);
    return picked(values_.back());
  }
  // Picks newer values more often.
  return picked(values_[chance(50) ? fitting.back() : choose(fitting)]);
}

std::string ProgramBuilder::pick_mutable(Elem elem, Shape shape) {
  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const TypedValue& value = values_[i];
    if (value.is_mutable && value.elem == elem && value.shape == shape) fitting.push_back(i);
  }
  if (!fitting.empty() && chance(70)) return picked(values_[choose(fitting)]);
  std::string name = fresh("x");
  statement("let mut " + name + " = " + pick(elem, shape));
  define(name, elem, shape, true);
  return name;
}

void ProgramBuilder::assign(const std::string& name, const std::string& expression) {
  statement(name + " = " + expression);
  changed(name);
}

void ProgramBuilder::open_block(const std::string& header) {
  statement(header + " {");
  std::set<std::string>& names = blocks_.emplace_back();
  for (const TypedValue& value : values_) names.insert(value.name);
}

void ProgramBuilder::next_block(const std::string& header) {
  forget_values_of_block();
  const std::set<std::string> names = std::move(blocks_.back());
  blocks_.pop_back();
  statement("} " + header + " {");
  blocks_.push_back(names);
}

void ProgramBuilder::close_block() {
  forget_values_of_block();
  blocks_.pop_back();
  statement("}");
}

void ProgramBuilder::forget_values_of_block() {
  std::erase_if(values_,
                [&](const TypedValue& value) { return !blocks_.back().contains(value.name); });
}

void ProgramBuilder::add_productions(std::uint64_t count) {
  const std::string outer = production_;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Production& production = choose(productions());
    if (production.is_of_encode && (is_decode_ || !blocks_.empty())) continue;
    use(production.name);
    begin(production.name);
    production.emit(*this, production.name);
  }
  begin(outer);
}

void ProgramBuilder::changed(const std::string& name) {
  const auto is_it = [&](const TypedValue& value) { return value.name == name; };
  const auto found = std::find_if(values_.begin(), values_.end(), is_it);
  const TypedValue value = std::move(*found);
  values_.erase(found);
  define(value.name, value.elem, value.shape, true);
}

// From the first value, so that it always ends.
std::string ProgramBuilder::make(Elem elem, Shape shape) {
  const std::string factor = fmt::format("{}", 0.25 * static_cast<double>(1 + random(8)));
  switch (shape) {
    case Shape::Counted:
      need_count();
      return made("filter", "filter(" + make_vector(elem) + ", where: keep)", elem, shape);
    case Shape::Matrix:
      return made("chunk", fmt::format("chunk({}, {})", make_vector(elem), width_), elem, shape);
    case Shape::Rows:
    case Shape::Columns: {
      const std::string matrix = make(elem == Elem::Bool ? Elem::F32 : elem, Shape::Matrix);
      const char* axis = shape == Shape::Rows ? "1" : "0";
      if (elem != Elem::Bool)
        return made("max", fmt::format("max({}, axis: {})", matrix, axis), elem, shape);
      return made("any", fmt::format("any({} > 0.5, axis: {})", matrix, axis), elem, shape);
    }
    case Shape::Bins: {
      std::string counts =
          made("histogram", "histogram(bitcast<u32>(" + base_ + ") >> 27, bins: 24)", Elem::U32,
               Shape::Bins);
      if (elem == Elem::U32) return counts;
      if (elem == Elem::Bool) return made(">", counts + " > 2", elem, shape);
      return made("as", fmt::format("{} as {}", counts, elem_name(elem)), elem, shape);
    }
    case Shape::Scalar:
      if (elem == Elem::F32)
        return made("mean", "mean(" + base_ + " * " + factor + ")", elem, shape);
      if (elem == Elem::Bool) return made(">", "sum(" + base_ + ") > " + factor, elem, shape);
      return made("as", fmt::format("(max({}) * {}) as {}", base_, factor, elem_name(elem)), elem,
                  shape);
    case Shape::Vector:
      break;
  }
  return make_vector(elem);
}

// The first value is always there, and a gradient is always finite.
std::string ProgramBuilder::any_vector() {
  std::vector<std::string> vectors;
  for (const TypedValue& value : values_) {
    const bool fits = value.elem == Elem::F32 && value.shape == Shape::Vector;
    if (fits && value.name != base_) vectors.push_back(value.name);
  }
  return vectors.empty() || chance(50) ? base_ : choose(vectors);
}

std::string ProgramBuilder::make_vector(Elem elem) {
  const std::string factor = fmt::format("{}", 0.25 * static_cast<double>(1 + random(8)));
  const Shape shape = Shape::Vector;
  const std::string from = any_vector();
  switch (elem) {
    case Elem::F32:
      return made("*", from + " * " + factor, elem, shape);
    case Elem::F64:
      return made("*", fmt::format("({} as f64) * {}", from, factor), elem, shape);
    case Elem::Bool:
      return made(">", from + " > " + factor, elem, shape);
    case Elem::U32:
      return made("bitcast", fmt::format("bitcast<u32>({} * {})", from, factor), elem, shape);
    default:
      break;
  }
  const std::uint64_t scale = 100 * (1 + random(1000));
  return made("as", fmt::format("({} * {}) as {}", from, scale, elem_name(elem)), elem, shape);
}

std::string ProgramBuilder::field_type(Elem elem, const std::string& dims) {
  static const std::vector<std::string> kInts = {"u1",  "u3",  "u4",  "u7",  "u8",  "i2",
                                                 "i5",  "i8",  "u11", "i13", "u16", "i32",
                                                 "u32", "i33", "u64", "i64"};
  static const std::vector<std::string> kFloats = {"f16", "bf16",   "f32",   "f32",
                                                   "f64", "f8e4m3", "f8e5m2"};
  const std::string type = elem == Elem::Bool ? "bool" : choose(is_float(elem) ? kFloats : kInts);
  use("as " + type);
  return dims.empty() ? type : "[" + type + "; " + dims + "]";
}

namespace {

// A field of any type as f32 that cannot become infinite too easily.
std::string as_f32(const std::string& field, Elem elem) {
  return elem == Elem::Bool ? "select(" + field + ", 1.0, 0.0)" : "(" + field + " as f32)";
}

}  // namespace

std::string ProgramBuilder::dims_of(Shape shape) const {
  switch (shape) {
    case Shape::Scalar:
      return "";
    case Shape::Vector:
      return "n";
    case Shape::Matrix:
      return fmt::format("rows, {}", width_);
    case Shape::Rows:
      return "rows, 1";
    case Shape::Columns:
      return fmt::format("1, {}", width_);
    case Shape::Bins:
      return "24";
    case Shape::Counted:
      return "m";
  }
  return "";
}

void ProgramBuilder::add_wire(const std::string& field, const std::string& literal,
                              const std::string& term) {
  wire_.push_back(field);
  literal_.push_back(literal);
  decode_.push_back(term);
}

void ProgramBuilder::add_field(const TypedValue& value) {
  const std::string field = fresh("f");
  const std::string type = field_type(value.elem, dims_of(value.shape));
  const std::string scalar_type =
      value.shape == Shape::Scalar ? type : type.substr(1, type.find(';') - 1);
  const std::string read = as_f32("w." + field, value.elem);
  std::string term;
  switch (value.shape) {
    case Shape::Scalar:
    case Shape::Vector:
      term = read;
      break;
    case Shape::Matrix:
      term = "unchunk(" + read + ", n)";
      break;
    case Shape::Rows:
      term = fmt::format("unchunk({} * chunk(fill(0.5, n), {}), n)", read, width_);
      break;
    case Shape::Columns:
    case Shape::Bins:
      term = "sum(" + read + ")";
      break;
    case Shape::Counted:
      term = "scatter(" + read + ", at: w.kept, size: n)";
      break;
  }
  add_wire(field + ": " + type, fmt::format("{}: {} as {}", field, picked(value), scalar_type),
           term);
}

// The newest values depend on most others; older ones may have been changed since.
void ProgramBuilder::add_fields() {
  begin("wire");
  std::vector<TypedValue> chosen;
  const std::size_t wanted = 3 + random(4);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const TypedValue& value = values_[values_.size() - 1 - i];
    if (i < wanted || random(values_.size()) < 2) chosen.push_back(value);
  }
  for (const TypedValue& value : chosen) {
    if (value.name != "kept") add_field(value);
  }
}

// Everything in encode's body except states, applied to the values that decode has.
void ProgramBuilder::add_to_decode() {
  is_decode_ = true;
  has_count_ = false;
  base_ = "x";
  lines_.clear();
  values_.clear();
  begin("decoded");
  define("x", Elem::F32, Shape::Vector, true);
  add_productions(1 + random(4));
  begin("output");
  statement("x = x * 0.5 + " + pick(Elem::F32, Shape::Vector));
  statement("x = x + " + pick(Elem::F32, Shape::Scalar));
}

std::string ProgramBuilder::encode_text() const {
  std::string out = "\n  encode(g: [f32; n]) {\n";
  for (const std::string& line : lines_) out += "    " + line + "\n";
  out += "    wire {\n";
  if (has_wire_count_) out += "      kept: kept,\n";
  for (const std::string& field : literal_) out += "      " + field + ",\n";
  return out + "    }\n  }\n";
}

std::string ProgramBuilder::decode_text() {
  static const std::vector<std::string> kTails = {
      "x = x - mean(x * mean(x * max(x)))",
      "x[top_k(abs(x), (n + 3) / 4)] = mean(x)",
      "x[argsort(x)] = x * 0.5 + 1",
      "x = unchunk(chunk(x, 32) - mean(chunk(x, 32), axis: 1), n)",
      "x[random_index((n + 1) / 2, size: n, shared: true)] = max(x)\n    x = x + mean(x)",
      "for i in 0..3 { x = x * 0.5 + max(x) * (i as f32) }",
      "if max(x) > 1 { x = x * 0.25 } else { x = cumsum(x) }"};
  std::string out = "\n  decode(w) {\n    let mut x = fill(0.0, n)\n";
  for (const std::string& term : decode_) out += "    x = x * 0.5 + " + term + "\n";
  if (has_wire_count_) out += "    x = x + scatter(fill(1.0, len(w.kept)), at: w.kept, size: n)\n";
  if (chance(30)) out += "    " + choose(kTails) + "\n";
  if (chance(40)) {
    add_to_decode();
    for (const std::string& line : lines_) out += "    " + line + "\n";
  }
  return out + "    x\n  }\n";
}

std::string ProgramBuilder::finish_text() {
  if (!has_finish_) return "";
  if (chance(50)) return "\n  finish(sum) { sum / world - mean(sum) * 0.125 }\n";
  items_.emplace_back("state kept_sum: [f32; n] = 0");
  return "\n  finish(sum) {\n    let before = kept_sum\n    kept_sum = kept_sum * 0.5 + sum\n"
         "    kept_sum[top_k(abs(kept_sum), (n + 3) / 4)] = 0\n"
         "    kept_sum + before * mean(kept_sum)\n  }\n";
}

std::string ProgramBuilder::text(const std::string& name) {
  add_fields();
  has_wire_count_ = has_count_;
  const std::string own_name = wrappers_.empty() ? name : name + "_inner";
  std::string bodies = encode_text();
  bodies += decode_text();
  bodies += finish_text();
  std::string out = wrappers_.empty() ? "" : "import std.wrap\n";
  for (const std::string& text : top_) out += text + "\n";
  out += fmt::format("\ncompressor {} {{\n  size rows = ceil_div(n, {})\n\n", own_name, width_);
  for (const std::string& item : items_) out += "  " + item + "\n";
  out += "\n  wire {\n";
  if (has_wire_count_) out += "    count m <= n,\n    kept: [u32; m],\n";
  for (const std::string& field : wire_) out += "    " + field + ",\n";
  out += "  }\n" + bodies + "}\n";
  if (wrappers_.empty()) return out;
  std::string whole = own_name;
  bool has_states = std::ranges::any_of(
      items_, [](const std::string& item) { return item.starts_with("state "); });
  for (std::string wrapper : wrappers_) {
    // A residual around states is an error.
    const bool is_residual = wrapper.starts_with("error_feedback");
    if (is_residual && has_states) wrapper = "clip($)";
    has_states |= is_residual || wrapper.starts_with("momentum");
    whole = wrapper.replace(wrapper.find('$'), 1, whole);
  }
  return out + "\ncompressor " + name + " = " + whole + "\n";
}

}  // namespace cinch::testing
