// Each struct of the image is described once, by a `describe` that names its members to an archive;
// JsonWriter and JsonReader are the two archives. So a member cannot be written and forgotten on
// reading.
#include "runtime/image/image_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "runtime/core/numbers/parse_number.h"
#include "runtime/image/validate.h"

namespace cinch::rt {
namespace {

using nlohmann::json;

template <typename A>
void describe(A& a, ConstantInfo& x) {
  a("name", x.name)("value", x.value);
}
template <typename A>
void describe(A& a, SizeInfo& x) {
  a("name", x.name)("value", x.value);
}
template <typename A>
void describe(A& a, CountInfo& x) {
  a("name", x.name)("bound", x.bound);
}
template <typename A>
void describe(A& a, StateInfo& x) {
  a("name", x.name)("type", x.type);
}
template <typename A>
void describe(A& a, ArrayType& x) {
  a("dtype", x.dtype)("rank", x.rank)("rows", x.dims[0])("cols", x.dims[1]);
}
template <typename A>
void describe(A& a, ParamRange& x) {
  a("low", x.low)("high", x.high)("low_open", x.low_open)("high_open", x.high_open);
}
template <typename A>
void describe(A& a, ParamInfo& x) {
  a("name", x.name)("dtype", x.dtype)("default", x.default_value)("range", x.range);
  a.if_any("words", x.words);
}
template <typename A>
void describe(A& a, FieldInfo& x) {
  a("name", x.name)("type", x.type)("sum", x.sum)("ascending", x.ascending);
  a("index_limit", x.index_limit)("packing", x.packing);
}
template <typename A>
void describe(A& a, ExternInfo& x) {
  a("name", x.name)("digest", x.digest);
}
template <typename A>
void describe(A& a, WireInfo& x) {
  a("counts", x.counts)("fields", x.fields);
}
template <typename A>
void describe(A& a, SumCarrier& x) {
  a("kind", x.kind)("text", x.text)("shares_draws", x.shares_draws);
}
template <typename A>
void describe(A& a, ProgramInfo& x) {
  a("name", x.name)("source", x.source)("doc", x.doc)("constants", x.constants);
  a("params", x.params)("sizes", x.sizes)("states", x.states)("wire", x.wire)("counts", x.counts);
  a("is_matrix", x.is_matrix)("decode_draws", x.decode_draws);
  a("decode_world", x.decode_world)("decode_step", x.decode_step)("has_finish", x.has_finish);
  a("is_finish_linear", x.is_finish_linear)("has_sync", x.has_sync);
  a("is_local", x.is_local);
  a("aggregation", x.aggregation)("is_linear", x.is_linear)("carrier", x.carrier);
  a.if_any("externs", x.externs);
}
template <typename A>
void describe(A& a, BufferInfo& x) {
  a("name", x.name)("dtype", x.dtype)("storage_bits", x.storage_bits)("num_elems", x.num_elems);
  a("role", x.role)("role_index", x.role_index)("size_bytes", x.size_bytes);
}
template <typename A>
void describe(A& a, CudaLaunch& x) {
  a("block_threads", x.block_threads)("groups_per_block", x.groups_per_block);
  a("is_single_block", x.is_single_block)("resident_blocks", x.resident_blocks);
  a("shared_bytes", x.shared_bytes)("waves", x.waves);
  a("is_foldable", x.is_foldable);
}
template <typename A>
void describe(A& a, KernelInfo& x) {
  a("symbol", x.symbol)("role", x.role)("num_groups", x.num_groups);
  a("group_multiple", x.group_multiple)("is_ordered", x.is_ordered);
  a("is_sequential", x.is_sequential)("fused", x.fused);
  a("bytes_read", x.bytes_read)("bytes_written", x.bytes_written)("cuda", x.cuda);
  a.if_any("group_elems", x.group_elems);
  a.if_any("tiled", x.tiled);
  a.if_any("untouched", x.untouched);
}
template <typename A>
void describe(A& a, CollectiveInfo& x) {
  a("kind", x.kind)("reduction", x.reduction)("root", x.root);
}
template <typename A>
void describe(A& a, Step& x) {
  a("kind", x.kind)("index", x.index)("index2", x.index2)("expr", x.expr)("expr2", x.expr2);
  a("collective", x.collective)("cond", x.cond)("body", x.body)("orelse", x.orelse);
  a.if_any("scalars", x.scalars);
  a.if_any("message", x.message);
}
template <typename A>
void describe(A& a, Entry& x) {
  a("present", x.present)("steps", x.steps)("commit_step", x.commit_step)("buffers", x.buffers);
}
template <typename A>
void describe(A& a, ProgramImage& x) {
  a("target", x.target)("fingerprint", x.fingerprint)("info", x.info)("buffers", x.buffers);
  a("size_exprs", x.size_exprs)("kernels", x.kernels)("messages", x.messages);
  a("entries", x.entries)("counts_accesses", x.counts_accesses);
  a("gpu_steps_threads", x.gpu_steps_threads);
  a("gpu_steps_shared_bytes", x.gpu_steps_shared_bytes);
}

// Members are taken by non-const reference so that one `describe` serves both archives; the writer
// changes nothing.
class JsonWriter {
 public:
  explicit JsonWriter(json& out) : out_(out) { out_ = json::object(); }

  template <typename T>
  JsonWriter& operator()(const char* name, T& value) {
    write(out_[name], value);
    return *this;
  }
  /// A list that is omitted if empty, so that images of programs without it stay the same.
  template <typename T>
  void if_any(const char* name, std::vector<T>& list) {
    if (!list.empty()) write(out_[name], list);
  }
  void if_any(const char* name, std::uint32_t index) {
    if (index != kNoIndex) write(out_[name], index);
  }

 private:
  static void write(json& out, std::string& value) { out = value; }
  static void write(json& out, bool value) { out = value; }
  // JSON has neither infinity nor NaN: numbers that must keep all bits are written as text.
  static void write(json& out, double value) { out = fmt::format("{:a}", value); }
  static void write(json& out, DType value) { out = dtype_name(value); }
  static void write(json& out, HostExprId value) {
    out = value.is_valid() ? json(value.index()) : json(nullptr);
  }
  template <typename T>
    requires std::is_unsigned_v<T>
  static void write(json& out, T value) {
    out = static_cast<std::uint64_t>(value);
  }
  template <typename T>
    requires std::is_enum_v<T>
  static void write(json& out, T value) {
    out = static_cast<std::uint64_t>(value);
  }
  template <typename T>
  static void write(json& out, std::optional<T>& value) {
    if (value) write(out, *value);
  }
  template <typename T>
  static void write_list(json& out, T& list) {
    out = json::array();
    for (auto& element : list) write(out.emplace_back(), element);
  }
  template <typename T>
  static void write(json& out, std::vector<T>& list) {
    write_list(out, list);
  }
  template <typename T, std::size_t N>
  static void write(json& out, std::array<T, N>& list) {
    write_list(out, list);
  }
  template <typename T>
    requires std::is_class_v<T>
  static void write(json& out, T& value) {
    JsonWriter inner(out);
    describe(inner, value);
  }

  json& out_;
};

// Reads member by member; keeps the first fault with its path.
class JsonReader {
 public:
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
  template <typename T>
  void if_any(const char* name, std::vector<T>& list) {
    const auto found = in_.find(name);
    if (fault_.empty() && found != in_.end()) read(*found, path_ + "." + name, list);
  }
  void if_any(const char* name, std::uint32_t& index) {
    const auto found = in_.find(name);
    if (fault_.empty() && found != in_.end()) read(*found, path_ + "." + name, index);
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
  // An enumerator beyond the last is caught by the validator, which names the place.
  template <typename T>
    requires std::is_enum_v<T>
  void read(const json& in, const std::string& path, T& value) {
    std::underlying_type_t<T> number = 0;
    read(in, path, number);
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
  out["exprs"] = image.info.exprs.to_json();
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
