// The metadata of an image as JSON: two archives for the functions of describe.h.
#include "runtime/image/image_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ranges>

#include "runtime/core/numbers/parse_number.h"
#include "runtime/image/describe.h"
#include "runtime/image/validate.h"

namespace cinch::rt {
namespace {

using nlohmann::json;

// Members are taken by non-const reference so that one `describe` serves both archives; the writer
// changes nothing.
class JsonWriter {
 public:
  static constexpr bool kIsText = false;
  explicit JsonWriter(json& out) : out_(out) { out_ = json::object(); }

  template <typename T>
  JsonWriter& operator()(const char* name, T& value) {
    write(out_[name], value);
    return *this;
  }
  JsonWriter& index(const char* name, std::uint32_t& value) { return (*this)(name, value); }
  /// A list that is omitted if empty, so that images of programs without it stay the same.
  template <typename T>
  void if_any(const char* name, std::vector<T>& list) {
    if (!list.empty()) write(out_[name], list);
  }
  void if_any(const char* name, bool value) {
    if (value) write(out_[name], value);
  }
  void if_any(const char* name, std::uint32_t index) {
    if (index != kNoIndex) write(out_[name], index);
  }

 private:
  template <typename T>
  static void write(json& out, T& value) {
    if constexpr (std::is_same_v<T, double>) {
      // JSON has neither infinity nor NaN: numbers that must keep all bits are written as text.
      out = fmt::format("{:a}", value);
    } else if constexpr (std::is_same_v<T, DType>) {
      out = dtype_name(value);
    } else if constexpr (std::is_same_v<T, HostExprId>) {
      out = value.is_valid() ? json(value.index()) : json(nullptr);
    } else if constexpr (std::is_enum_v<T>) {
      out = static_cast<std::uint64_t>(value);
    } else if constexpr (requires { value.has_value(); }) {
      if (value) write(out, *value);
    } else if constexpr (!std::is_class_v<T> || std::is_same_v<T, std::string>) {
      out = value;
    } else if constexpr (std::ranges::range<T>) {
      out = json::array();
      for (auto& element : value) write(out.emplace_back(), element);
    } else {
      JsonWriter inner(out);
      describe(inner, value);
    }
  }

  json& out_;
};

// Reads member by member; keeps the first fault with its path.
class JsonReader {
 public:
  static constexpr bool kIsText = false;
  JsonReader(const json& in, std::string path, std::string& fault, int depth)
      : in_(in), path_(std::move(path)), fault_(fault), depth_(depth) {
    if (!in_.is_object()) set_fault(path_, "an object");
  }

  template <typename T>
  JsonReader& operator()(const char* name, T& value) {
    if (!fault_.empty()) return *this;
    const auto found = in_.find(name);
    const std::string path = path_ + "." + name;
    if (found == in_.end()) {
      set_fault(path, "this member");
    } else {
      read(*found, path, value);
    }
    return *this;
  }
  JsonReader& index(const char* name, std::uint32_t& value) { return (*this)(name, value); }
  template <typename T>
  void if_any(const char* name, T& value) {
    const auto found = in_.find(name);
    if (fault_.empty() && found != in_.end()) read(*found, path_ + "." + name, value);
  }

 private:
  void set_fault(const std::string& path, const char* wanted) {
    if (fault_.empty()) fault_ = fmt::format("{}: {} expected", path, wanted);
  }

  void read(const json& in, const std::string& path, std::string& value) {
    if (!in.is_string()) return set_fault(path, "text");
    value = in.get<std::string>();
  }
  void read(const json& in, const std::string& path, bool& value) {
    if (!in.is_boolean()) return set_fault(path, "true or false");
    value = in.get<bool>();
  }
  void read(const json& in, const std::string& path, double& value) {
    if (!in.is_string()) return set_fault(path, "a number as text");
    const auto number = parse_number(in.get_ref<const std::string&>());
    if (!number) return set_fault(path, "a number as text");
    value = *number;
  }
  void read(const json& in, const std::string& path, DType& value) {
    const auto dtype = in.is_string() ? parse_dtype(in.get<std::string>()) : std::nullopt;
    if (!dtype) return set_fault(path, "a scalar type");
    value = *dtype;
  }
  void read(const json& in, const std::string& path, HostExprId& value) {
    value = {};
    if (in.is_null()) return;
    std::uint32_t index = 0;
    read(in, path, index);
    value = HostExprId(index);
  }
  template <typename T>
    requires std::is_unsigned_v<T>
  void read(const json& in, const std::string& path, T& value) {
    if (!in.is_number_unsigned() || in.get<std::uint64_t>() > T(-1)) {
      return set_fault(path, "a number in range");
    }
    value = static_cast<T>(in.get<std::uint64_t>());
  }
  template <typename T>
    requires std::is_enum_v<T>
  void read(const json& in, const std::string& path, T& value) {
    std::underlying_type_t<T> number = 0;
    read(in, path, number);
    if (number >= names_of(value).size()) return set_fault(path, "a known kind");
    value = static_cast<T>(number);
  }
  template <typename T>
  void read(const json& in, const std::string& path, std::optional<T>& value) {
    value.reset();
    if (!in.is_null()) read(in, path, value.emplace());
  }
  template <typename T>
  void read(const json& in, const std::string& path, std::vector<T>& list) {
    if (!in.is_array()) return set_fault(path, "a list");
    // Grows one by one: a list of invalid entries would otherwise take a hundred times its text
    // before the fault is found.
    for (std::size_t i = 0; i < in.size() && fault_.empty(); ++i) {
      read(in[i], fmt::format("{}[{}]", path, i), list.emplace_back());
    }
  }
  template <typename T, std::size_t N>
  void read(const json& in, const std::string& path, std::array<T, N>& list) {
    if (!in.is_array() || in.size() != N) return set_fault(path, "a list of fixed length");
    for (std::size_t i = 0; i < N && fault_.empty(); ++i) {
      read(in[i], fmt::format("{}[{}]", path, i), list[i]);
    }
  }
  template <typename T>
    requires std::is_class_v<T>
  void read(const json& in, const std::string& path, T& value) {
    // Steps contain steps: each level takes two levels of JSON, and there are a few above.
    if (depth_ > kMaxStepDepth + 8) return set_fault(path, "less nesting");
    JsonReader inner(in, path, fault_, depth_ + 1);
    describe(inner, value);
  }

  const json& in_;
  std::string path_;
  std::string& fault_;
  int depth_;
};

}  // namespace

json image_to_json(const ProgramImage& image) {
  json out;
  JsonWriter writer(out);
  describe(writer, const_cast<ProgramImage&>(image));
  out["exprs"] = image.info.exprs->to_json();
  return out;
}

Result<ProgramImage> image_from_json(const json& in) {
  ProgramImage image;
  std::string fault;
  JsonReader reader(in, "image", fault, 0);
  describe(reader, image);
  if (fault.empty() && !in.contains("exprs")) fault = "image.exprs: this member expected";
  if (!fault.empty()) return fail(ErrorKind::CorruptFile, fault);
  auto pool = TRY(HostExprPool::from_json(in.at("exprs")));
  image.info.exprs = std::move(pool);
  return image;
}

}  // namespace cinch::rt
