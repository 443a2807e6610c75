// Texts of the interpreter's arrays.
#include "compiler/driver/report/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::driver {
namespace {

// What is shown of a row, and of the rows of a matrix.
constexpr std::int64_t kMostElements = 8, kMostRows = 4;
constexpr std::int64_t kMostInJson = 1000;

// All floats as f64, which holds each of them exactly.
double float_of(DType type, std::uint64_t element) {
  return f64_of(convert_element(type, kF64, element));
}

// The fewest digits that tell an f32 or an f64 from its neighbours. Narrower floats are as f32.
std::string float_text(DType type, std::uint64_t element) {
  const double value = float_of(type, element);
  std::string text =
      type == kF64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  const bool is_whole = text.find_first_not_of("-0123456789") == std::string::npos;
  return is_whole ? text + ".0" : text;
}

std::string element_text(DType type, std::uint64_t element) {
  if (is_bool(type)) return element != 0 ? "true" : "false";
  if (is_float(type)) return float_text(type, element);
  return is_signed_int(type) ? fmt::format("{}", static_cast<std::int64_t>(element))
                             : fmt::format("{}", element);
}

std::string row_text(const interp::Array& array, std::int64_t row) {
  std::string text = "[";
  const std::int64_t cols = array.cols();
  // One more element takes no more room than "…".
  const std::int64_t shown = cols <= kMostElements + 1 ? cols : kMostElements;
  for (std::int64_t i = 0; i < shown; ++i) {
    text += (i == 0 ? "" : ", ") +
            element_text(array.dtype, array.bits[static_cast<std::size_t>(row * cols + i)]);
  }
  return text + (shown < cols ? ", …]" : "]");
}

nlohmann::json element_json(DType type, std::uint64_t element) {
  if (is_bool(type)) return element != 0;
  if (is_signed_int(type)) return static_cast<std::int64_t>(element);
  if (!is_float(type)) return element;
  const double value = float_of(type, element);
  if (std::isfinite(value)) return value;
  return element_text(type, element);
}

}  // namespace

std::string type_text(const interp::Array& array) {
  std::string name = dtype_name(array.dtype);
  if (array.rank == 0) return name;
  if (array.rank == 1) return fmt::format("[{}; {}]", name, array.dims[0]);
  return fmt::format("[{}; {}, {}]", name, array.dims[0], array.dims[1]);
}

std::string value_text(const interp::Array& array) {
  if (array.rank == 0) return element_text(array.dtype, array.bits[0]);
  if (array.rank == 1) return row_text(array, 0);
  std::string text = "[";
  const std::int64_t shown = array.rows() <= kMostRows + 1 ? array.rows() : kMostRows;
  for (std::int64_t row = 0; row < shown; ++row)
    text += (row == 0 ? "" : ", ") + row_text(array, row);
  return text + (shown < array.rows() ? ", …]" : "]");
}

nlohmann::json value_json(const interp::Array& array) {
  nlohmann::json shape = nlohmann::json::array(), elements = nlohmann::json::array();
  for (int d = 0; d < array.rank; ++d) shape.push_back(array.dims[d]);
  const std::int64_t shown = std::min(array.size(), kMostInJson);
  for (std::int64_t i = 0; i < shown; ++i)
    elements.push_back(element_json(array.dtype, array.bits[static_cast<std::size_t>(i)]));
  return {{"type", dtype_name(array.dtype)}, {"shape", shape}, {"elements", elements}};
}

}  // namespace cinch::driver
