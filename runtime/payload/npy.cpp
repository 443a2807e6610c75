// Reads and writes .npy: the magic, a version, a length, and a Python literal of a dictionary.
// Accepts exactly the form that NumPy documents.
#include "runtime/payload/npy.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <string_view>

#include "runtime/core/files/file_bytes.h"
#include "runtime/core/sizes/host_value.h"

namespace cinch::rt {

namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::string_view kMagic = "\x93NUMPY";
// NumPy's own limit for untrusted headers is 10000 characters.
constexpr std::size_t kMostHeaderBytes = 65536;
constexpr std::size_t kMostPreambleBytes = 12;
constexpr std::size_t kMostDims = 32;
constexpr std::int64_t kMostElems = std::int64_t{1} << 56;

tl::unexpected<Error> corrupt_npy(std::string message) {
  return fail(ErrorKind::CorruptFile, ".npy header: " + std::move(message));
}

// The dictionary's entries found so far.
struct Fields {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
};

// A cursor over the dictionary's text. Every take_* returns whether it found its text.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  void skip_blanks() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  bool take(std::string_view word) {
    skip_blanks();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  bool at_end() {
    skip_blanks();
    return text_.empty();
  }
  std::optional<std::string> take_string() {
    skip_blanks();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return std::nullopt;
    const std::size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }
  std::optional<std::int64_t> take_number() {
    skip_blanks();
    std::int64_t value = 0;
    std::size_t digits = 0;
    for (; digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits) {
      value = value * 10 + (text_[digits] - '0');
      if (value > kMostElems) return std::nullopt;
    }
    if (digits == 0) return std::nullopt;
    text_.remove_prefix(digits);
    return value;
  }

 private:
  std::string_view text_;
};

// "(3, 4)", "(3,)" or "()".
std::optional<std::vector<std::int64_t>> take_shape(Cursor& cursor) {
  std::vector<std::int64_t> shape;
  if (!cursor.take("(")) return std::nullopt;
  while (!cursor.take(")")) {
    const auto dim = cursor.take_number();
    if (!dim || shape.size() == kMostDims) return std::nullopt;
    shape.push_back(*dim);
    if (cursor.take(",")) continue;
    // A single dimension needs its comma: (3) is a number in Python.
    if (shape.size() == 1 || !cursor.take(")")) return std::nullopt;
    break;
  }
  return shape;
}

std::optional<bool> take_bool(Cursor& cursor) {
  if (cursor.take("True")) return true;
  if (cursor.take("False")) return false;
  return std::nullopt;
}

Result<Fields> parse_dictionary(std::string_view text) {
  Cursor cursor(text);
  Fields fields;
  if (!cursor.take("{")) return corrupt_npy("the header is not a dictionary");
  for (bool is_open = !cursor.take("}"); is_open;) {
    const auto key = cursor.take_string();
    if (!key || !cursor.take(":")) return corrupt_npy("a key is malformed");
    bool is_new = false, is_read = false;
    if (*key == "descr") {
      is_new = !fields.descr;
      is_read = (fields.descr = cursor.take_string()).has_value();
    } else if (*key == "fortran_order") {
      is_new = !fields.fortran_order;
      is_read = (fields.fortran_order = take_bool(cursor)).has_value();
    } else if (*key == "shape") {
      is_new = !fields.shape;
      is_read = (fields.shape = take_shape(cursor)).has_value();
    } else {
      return corrupt_npy(fmt::format("unknown key `{}`", *key));
    }
    if (!is_new) return corrupt_npy(fmt::format("`{}` stands twice", *key));
    if (!is_read) return corrupt_npy(fmt::format("the value of `{}` is malformed", *key));
    // A comma may come before the closing bracket.
    const bool has_comma = cursor.take(",");
    is_open = !cursor.take("}");
    if (is_open && !has_comma) return corrupt_npy("no comma between entries");
  }
  if (!cursor.at_end()) return corrupt_npy("text behind the dictionary");
  return fields;
}

Result<DType> dtype_of(const std::string& descr) {
  if (descr == "<f4") return kF32;
  if (descr == "<f2") return kF16;
  if (descr == "|V2" || descr == "<V2" || descr == "<u2") return kBF16;
  const bool is_big = !descr.empty() && descr[0] == '>';
  return fail(ErrorKind::InvalidArgument,
              fmt::format(".npy type `{}`{}: a gradient is `<f4`, `<f2`, or bf16 as `|V2` or `<u2`",
                          descr, is_big ? " (big endian)" : ""));
}

std::optional<std::int64_t> product(const std::vector<std::int64_t>& shape) {
  std::int64_t total = 1;
  for (std::int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(total, dim, &total) || total > kMostElems) {
      return std::nullopt;
    }
  }
  return total;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (std::int64_t dim : shape) text += std::to_string(dim) + ", ";
  if (shape.size() == 1) {
    text.pop_back();
  } else if (shape.size() > 1) {
    text.resize(text.size() - 2);
  }
  return text + ")";
}

std::uint64_t data_bytes(const NpyHeader& header) {
  return static_cast<std::uint64_t>(product(header.shape).value_or(0)) * (header.dtype.bits / 8);
}

tl::unexpected<Error> wrong_size(const NpyHeader& header, const std::string& found) {
  return fail(
      ErrorKind::CorruptFile,
      fmt::format(".npy data: shape {} of {} takes {} bytes, found {}", shape_text(header.shape),
                  dtype_name(header.dtype), data_bytes(header), found));
}

tl::unexpected<Error> in_file(const std::string& path, const Error& error) {
  return fail(error.kind, path + ": " + error.message);
}

}  // namespace

std::int64_t NpyArray::num_elems() const {
  return product(shape).value_or(0);
}

Result<NpyHeader> parse_npy_header(Bytes bytes) {
  if (bytes.size() < 10 || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return fail(ErrorKind::CorruptFile, "not an .npy file: it does not begin with \\x93NUMPY");
  }
  const int major = bytes[6];
  if (major < 1 || major > 3 || bytes[7] != 0) {
    return corrupt_npy(fmt::format("version {}.{}, known are 1.0, 2.0 and 3.0", major, bytes[7]));
  }
  const std::size_t begin = major == 1 ? 10 : 12;
  if (bytes.size() < begin) return corrupt_npy("cut short");
  std::size_t length = bytes[8] | std::size_t{bytes[9]} << 8;
  if (major > 1) length |= std::size_t{bytes[10]} << 16 | std::size_t{bytes[11]} << 24;
  if (length > kMostHeaderBytes) return corrupt_npy(fmt::format("length {} is absurd", length));
  if (bytes.size() - begin < length) {
    return corrupt_npy(
        fmt::format("length {}, but {} bytes are left", length, bytes.size() - begin));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + begin, length);
  const auto fields = TRY(parse_dictionary(text));
  const auto& [descr, fortran_order, shape] = fields;
  if (!descr) return corrupt_npy("no `descr`");
  if (!fortran_order) return corrupt_npy("no `fortran_order`");
  if (!shape) return corrupt_npy("no `shape`");
  const auto dtype = TRY(dtype_of(*descr));
  if (*fortran_order && shape->size() > 1) {
    return fail(ErrorKind::InvalidArgument, ".npy order: Fortran order, C order is needed");
  }
  if (!product(*shape)) return corrupt_npy("shape " + shape_text(*shape) + " is absurd");
  return NpyHeader{dtype, *shape, static_cast<std::int64_t>(begin + length)};
}

Result<NpyArray> parse_npy(Bytes bytes) {
  auto header = TRY(parse_npy_header(bytes));
  const Bytes data = bytes.subspan(static_cast<std::size_t>(header.data_offset_bytes));
  if (data.size() != data_bytes(header)) {
    return wrong_size(header, std::to_string(data.size()));
  }
  return NpyArray{header.dtype, std::move(header.shape), {data.begin(), data.end()}};
}

Result<std::vector<std::uint8_t>> read_npy_bytes(const std::string& path) {
  auto reader = TRY(FileReader::open(path));
  std::vector<std::uint8_t> bytes;
  Status status = reader.read_up_to(kMostHeaderBytes + kMostPreambleBytes, bytes);
  CINCH_TRY(status);
  const auto header = parse_npy_header(bytes);
  if (!header) return in_file(path, header.error());
  const auto begin = static_cast<std::uint64_t>(header->data_offset_bytes);
  const std::uint64_t end = begin + data_bytes(*header);
  const bool is_longer = reader.size_bytes() > end;
  if (!is_longer) status = reader.read_up_to(end + 1, bytes);
  CINCH_TRY(status);
  if (!is_longer && bytes.size() <= end) return bytes;
  const std::string found = is_longer ? std::to_string(reader.size_bytes() - begin) : "more";
  return in_file(path, wrong_size(*header, found).value());
}

Result<NpyArray> read_npy(const std::string& path) {
  const auto bytes = TRY(read_npy_bytes(path));
  auto array = parse_npy(bytes);
  if (!array) return in_file(path, array.error());
  return array;
}

Result<std::vector<std::uint8_t>> format_npy(const NpyArray& array) {
  const char* descr = array.dtype == kF32    ? "<f4"
                      : array.dtype == kF16  ? "<f2"
                      : array.dtype == kBF16 ? "|V2"
                                             : nullptr;
  if (descr == nullptr) {
    return fail(ErrorKind::InvalidArgument, ".npy type: cannot write " + dtype_name(array.dtype));
  }
  const auto elems = product(array.shape);
  if (!elems || array.bytes.size() != static_cast<std::uint64_t>(*elems * (array.dtype.bits / 8))) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format(".npy data: {} bytes do not fit shape {} of {}", array.bytes.size(),
                            shape_text(array.shape), dtype_name(array.dtype)));
  }
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr,
                                 shape_text(array.shape));
  // Pads with blanks and a newline to a multiple of 64 bytes, as NumPy does.
  text.resize((10 + text.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  text += '\n';
  std::vector<std::uint8_t> bytes(kMagic.begin(), kMagic.end());
  bytes.insert(bytes.end(), {1, 0, static_cast<std::uint8_t>(text.size() & 255),
                             static_cast<std::uint8_t>(text.size() >> 8)});
  bytes.insert(bytes.end(), text.begin(), text.end());
  bytes.insert(bytes.end(), array.bytes.begin(), array.bytes.end());
  return bytes;
}

Status write_npy(const std::string& path, const NpyArray& array) {
  const auto bytes = TRY(format_npy(array));
  return write_file_bytes(path, bytes);
}

}  // namespace cinch::rt
