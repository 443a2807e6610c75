// Values come from the pool, or are made from the gradient by a cast or a reshape.
#include "tests/programs/generator/program_builder.h"

#include <fmt/format.h>

namespace cinch::testing {

const char* elem_name(Elem elem) {
  static constexpr const char* kNames[] = {"f32", "f64", "i32", "u32", "i64", "u64", "bool"};
  return kNames[static_cast<int>(elem)];
}

bool is_float(Elem elem) {
  return elem == Elem::F32 || elem == Elem::F64;
}

ProgramBuilder::ProgramBuilder(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 77) {
  define("g", Elem::F32, Shape::Vector);
}

std::uint64_t ProgramBuilder::random(std::uint64_t below) {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return (z ^ (z >> 31)) % below;
}

std::string ProgramBuilder::let(const std::string& expression, Elem elem, Shape shape) {
  std::string name = fresh("v");
  statement("let " + name + " = " + expression);
  define(name, elem, shape);
  return name;
}

void ProgramBuilder::need_count() {
  if (has_count_) return;
  has_count_ = true;
  const std::string tested = pick(Elem::F32, Shape::Vector);
  statement("let keep = abs(" + tested + ") > 0.4");
  statement("let kept = nonzero(keep)");
  define("kept", Elem::U32, Shape::Counted);
  use("nonzero");
}

std::string ProgramBuilder::pick(Elem elem, Shape shape) {
  std::vector<std::string> fitting;
  for (const TypedValue& value : values_) {
    if (value.elem == elem && value.shape == shape) fitting.push_back(value.name);
  }
  // New values are more interesting than old ones.
  if (fitting.empty() || chance(10)) return make(elem, shape);
  const std::size_t newest = fitting.size() - 1;
  return chance(50) ? fitting[newest] : fitting[random(fitting.size())];
}

std::string ProgramBuilder::convert_shape(const std::string& vector, Elem elem, Shape shape) {
  switch (shape) {
    case Shape::Matrix:
      return let("chunk(" + vector + ", 16)", elem, shape);
    case Shape::Rows:
      return let("chunk(" + vector + ", 16)[iota(rows)]", elem, Shape::Matrix);
    default:
      return vector;
  }
}

// From the gradient, so that it always ends.
std::string ProgramBuilder::make(Elem elem, Shape shape) {
  const std::string factor = fmt::format("{}", 0.25 * static_cast<double>(1 + random(8)));
  switch (shape) {
    case Shape::Counted: {
      need_count();
      const std::string vector = make(elem, Shape::Vector);
      return let("filter(" + vector + ", where: keep)", elem, shape);
    }
    case Shape::Matrix:
      return convert_shape(make(elem, Shape::Vector), elem, shape);
    case Shape::Rows:
    case Shape::Columns: {
      const std::string matrix = make(elem == Elem::Bool ? Elem::F32 : elem, Shape::Matrix);
      const char* axis = shape == Shape::Rows ? "1" : "0";
      if (elem == Elem::Bool)
        return let(fmt::format("any({} > 0.5, axis: {})", matrix, axis), elem, shape);
      return let(fmt::format("max({}, axis: {})", matrix, axis), elem, shape);
    }
    case Shape::Bins: {
      std::string counts =
          let("histogram(bitcast<u32>(g) >> 27, bins: 24)", Elem::U32, Shape::Bins);
      if (elem == Elem::U32) return counts;
      if (elem == Elem::Bool) return let(counts + " > 2", elem, shape);
      return let(fmt::format("{} as {}", counts, elem_name(elem)), elem, shape);
    }
    case Shape::Scalar: {
      if (elem == Elem::F32) return let("mean(g * " + factor + ")", elem, shape);
      if (elem == Elem::Bool) return let("sum(g) > " + factor, elem, shape);
      return let(fmt::format("(max(g) * {}) as {}", factor, elem_name(elem)), elem, shape);
    }
    case Shape::Vector:
      break;
  }
  switch (elem) {
    case Elem::F32:
      return let("g * " + factor, elem, shape);
    case Elem::F64:
      return let(fmt::format("(g as f64) * {}", factor), elem, shape);
    case Elem::Bool:
      return let("g > " + factor, elem, shape);
    case Elem::U32:
      return let("bitcast<u32>(g * " + factor + ")", elem, shape);
    default:
      break;
  }
  return let(fmt::format("(g * {}) as {}", 100 * (1 + random(1000)), elem_name(elem)), elem, shape);
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

void ProgramBuilder::add_field(const TypedValue& value) {
  static constexpr const char* kDims[] = {"", "n", "rows, 16", "rows, 1", "1, 16", "24", "m"};
  const std::string field = fresh("f");
  const std::string type = field_type(value.elem, kDims[static_cast<int>(value.shape)]);
  wire_.push_back(field + ": " + type);
  const std::string scalar_type =
      value.shape == Shape::Scalar ? type : type.substr(1, type.find(';') - 1);
  literal_.push_back(fmt::format("{}: {} as {}", field, value.name, scalar_type));
  const std::string read = "w." + field;
  switch (value.shape) {
    case Shape::Scalar:
    case Shape::Vector:
      decode_.push_back(as_f32(read, value.elem));
      break;
    case Shape::Matrix:
      decode_.push_back("unchunk(" + as_f32(read, value.elem) + ", n)");
      break;
    case Shape::Rows:
      decode_.push_back("unchunk(" + as_f32(read, value.elem) + " * chunk(fill(0.5, n), 16), n)");
      break;
    case Shape::Columns:
    case Shape::Bins:
      decode_.push_back("sum(" + as_f32(read, value.elem) + ")");
      break;
    case Shape::Counted:
      decode_.push_back("scatter(" + as_f32(read, value.elem) + ", at: w.kept, size: n)");
      break;
  }
}

std::string ProgramBuilder::text(const std::string& name) {
  // The newest values hang on most of what was made.
  const std::size_t wanted = 3 + random(4);
  for (std::size_t i = 0; i < values_.size() && i < wanted; ++i) {
    const TypedValue value = values_[values_.size() - 1 - i];
    if (value.shape == Shape::Counted) need_count();
    if (value.name != "kept") add_field(value);
  }
  std::string out;
  for (const std::string& text : top_) out += text + "\n";
  if (is_wrapped_) out = "import std.wrap\n" + out;
  const std::string own_name = is_wrapped_ ? name + "_inner" : name;
  out += "\ncompressor " + own_name + " {\n  size rows = ceil_div(n, 16)\n\n";
  for (const std::string& item : items_) out += "  " + item + "\n";
  out += "\n  wire {\n";
  if (has_count_) out += "    count m <= n,\n    kept: [u32; m],\n";
  for (const std::string& field : wire_) out += "    " + field + ",\n";
  out += "  }\n\n  encode(g: [f32; n]) {\n";
  for (const std::string& line : lines_) out += "    " + line + "\n";
  out += "    wire {\n";
  if (has_count_) out += "      kept: kept,\n";
  for (const std::string& field : literal_) out += "      " + field + ",\n";
  out += "    }\n  }\n\n  decode(w) {\n    let mut x = fill(0.0, n)\n";
  for (const std::string& term : decode_) out += "    x = x * 0.5 + " + term + "\n";
  if (has_count_) out += "    x = x + scatter(fill(1.0, len(w.kept)), at: w.kept, size: n)\n";
  out += "    x\n  }\n";
  if (has_finish_) out += "\n  finish(sum) { sum / world - mean(sum) * 0.125 }\n";
  out += "}\n";
  if (is_wrapped_)
    out += "\ncompressor " + name + " = error_feedback(" + own_name + ", decay: 0.5)\n";
  return out;
}

}  // namespace cinch::testing
