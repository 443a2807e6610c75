// Calls of `extern fn` for the interpreter: the function's text, compiled to a loop over elements.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <new>

#include "codegen/emit/c_family.h"
#include "codegen/jit/library.h"
#include "runtime/core/files/file_bytes.h"
#include "runtime/core/lang/embed.h"
#include "runtime/module/shared_object.h"

namespace cinch::codegen {
namespace {

namespace fs = std::filesystem;

// Clang's errors show words and lines of what it reads, so that a stranger's text must not name any
// file.
bool is_header_name(const std::string& header) {
  constexpr std::string_view kEndings[] = {".h",   ".hh",  ".hpp", ".hxx", ".h++", ".H",
                                           ".cuh", ".inc", ".inl", ".ipp", ".tpp", ".tcc",
                                           ".c",   ".cc",  ".cpp", ".cxx", ".cu"};
  const std::string ending = fs::path(header).extension().string();
  return std::ranges::find(kEndings, ending) != std::end(kEndings);
}

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> list;
  list.reserve(texts.size());
  for (const std::string& text : texts) list.push_back(text.c_str());
  return list;
}

rt::ExternReply made_of(const CinchExternReply& reply) {
  rt::ExternReply made{.outcome = static_cast<rt::ExternOutcome>(reply.outcome),
                       .message = reply.message,
                       .source = reply.source,
                       .work = reply.work};
  for (std::size_t i = 0; i < reply.num_notes; ++i) {
    const CinchExternNote& note = reply.notes[i];
    made.notes.push_back({note.text, note.path, note.begin, note.end});
  }
  for (std::size_t i = 0; i < reply.num_files; ++i) {
    made.files.push_back({reply.files[i].path, {reply.files[i].text, reply.files[i].size}});
  }
  return made;
}

rt::ExternReply broken(std::string message) {
  rt::ExternReply reply;
  reply.message = std::move(message);
  return reply;
}

}  // namespace

std::string changed_file(std::span<const rt::ExternFile> files) {
  for (const rt::ExternFile& file : files) {
    const auto now = rt::read_text_file(file.path);
    if (!now || *now != file.text) return file.path;
  }
  return "";
}

HeaderReader::~HeaderReader() {
  if (has_read_) clang_backend()->functions->forget_headers();
}

rt::Result<rt::ExternReply> HeaderReader::read(const rt::ExternRequest& request) {
  // Between the quotes of an #include nothing can be escaped.
  if (request.header.empty() ||
      request.header.find_first_of(std::string_view("\"\n\r\\\0", 5)) != std::string::npos)
    return broken("this is not a name of a file");
  if (!is_header_name(request.header)) {
    return broken("names of C++ headers end with .h, .hpp or the like");
  }
  const CinchClangBackend* functions = TRY(clang_backend()).functions;
  // The file next to the program, if it exists; else the name, for Clang to search.
  const fs::path beside =
      (fs::path(request.from).parent_path() / request.header).lexically_normal();
  std::error_code error;
  const std::string header = fs::exists(beside, error) ? beside.string() : request.header;
  std::vector<std::string> types;
  types.reserve(request.params.size());
  for (const DType type : request.params) types.push_back(dtype_name(type));
  const std::string result = dtype_name(request.result);
  const std::vector<const char*> params = pointers(types);
  const std::vector<const char*> folders = pointers(search_.include_folders);
  CinchExternRequest asked{.header = header.c_str(), .name = request.name.c_str()};
  asked.params = params.data();
  asked.num_params = params.size();
  asked.result = result.c_str();
  asked.include_folders = folders.data();
  asked.num_include_folders = folders.size();
  asked.compile_commands = search_.compile_commands.c_str();
  asked.confine = search_.confine.c_str();
  has_read_ = true;
  CinchExternReply* reply = functions->read_extern(&asked);
  rt::ExternReply made = made_of(*reply);
  functions->release_extern(reply);
  if (made.outcome == rt::ExternOutcome::NoMemory) throw std::bad_alloc();
  if (const std::string changed = changed_file(made.files); !changed.empty()) {
    return broken("'" + changed + "' changed while it was read");
  }
  if (made.outcome == rt::ExternOutcome::HeaderBroken && !search_.confine.empty()) {
    made.notes.push_back({rt::confined_text(search_.confine), {}, 0, 0});
  }
  return made;
}

namespace {

constexpr const char* kSymbol = "cinch_call_elements";
using CallElements = void (*)(const std::uint64_t* const* operands, std::uint64_t* result,
                              std::uint64_t num_elems);

std::string operand_text(DType type, std::size_t i) {
  const std::string word = fmt::format("operands[{}][i]", i);
  if (type == kF32) return fmt::format("f32_bits(u32({}))", word);
  if (type == kF64) return fmt::format("f64_bits({})", word);
  return fmt::format("{}({})", dtype_name(type), word);
}

KernelSource source_of(const rt::ExternInfo& function) {
  std::string arguments;
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    arguments += (i ? ", " : "") + operand_text(function.params[i], i);
  }
  const std::string call = "extern_0::call(" + arguments + ")";
  const DType type = function.result;
  KernelSource source;
  source.target.arch = "native";
  source.symbols = {kSymbol};
  source.text = lang::source_text();
  source.text += prelude_text("scalar_ops.h");
  source.text += fmt::format(
      "namespace cinch {{\n{}"
      "extern \"C\" __attribute__((visibility(\"default\"))) void {}(\n"
      "    const u64* const* operands, u64* result, u64 num_elems) {{\n"
      "  for (u64 i = 0; i < num_elems; ++i) result[i] = {};\n"
      "}}\n}}  // namespace cinch\n",
      extern_definition(function, 0), kSymbol,
      is_float(type) ? fmt::format("u64(lang::bits_of({}))", call)
                     : fmt::format("u64({}({}))", is_signed_int(type) ? "i64" : "u64", call));
  return source;
}

struct Loaded {
  rt::SharedObject library;
  CallElements call = nullptr;
};

rt::Result<Loaded> load(const rt::ExternInfo& function) {
  CpuCompileOptions options;
  options.optimization_level = 1;
  const auto bytes = TRY(compile_cpu(source_of(function), options));
  auto library = TRY(rt::SharedObject::load(bytes, "a C++ function"));
  Loaded loaded{std::move(library), nullptr};
  loaded.call = reinterpret_cast<CallElements>(loaded.library.find(kSymbol));
  return loaded;
}

}  // namespace

rt::Result<std::vector<std::uint64_t>> call_extern(
    const rt::ExternInfo& function, std::span<const std::vector<std::uint64_t>> operands,
    std::size_t num_elems) {
  static std::mutex mutex;
  static std::map<std::array<std::uint64_t, 2>, Loaded> loaded;
  const std::lock_guard lock(mutex);
  auto found = loaded.find(function.digest);
  if (found == loaded.end()) {
    auto made = TRY(load(function));
    found = loaded.emplace(function.digest, std::move(made)).first;
  }
  std::vector<const std::uint64_t*> pointers;
  pointers.reserve(operands.size());
  for (const auto& operand : operands) pointers.push_back(operand.data());
  std::vector<std::uint64_t> result(num_elems);
  found->second.call(pointers.data(), result.data(), num_elems);
  return result;
}

}  // namespace cinch::codegen
