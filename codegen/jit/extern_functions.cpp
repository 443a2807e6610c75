#include "codegen/jit/extern_functions.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <new>
#include <string_view>

#include "codegen/jit/library.h"
#include "runtime/core/files/confined.h"
#include "runtime/core/files/file_bytes.h"

namespace cinch::codegen {
namespace {

namespace fs = std::filesystem;

// Between the quotes of an #include nothing can be escaped.
bool is_file_name(const std::string& header) {
  return !header.empty() && header.find_first_of("\"\n\r\\") == std::string::npos &&
         header.find('\0') == std::string::npos;
}

// Clang's errors show words and lines of what it reads, so that a stranger's text must not name any
// file.
bool is_header_name(const std::string& header) {
  constexpr std::string_view kEndings[] = {".h",   ".hh",  ".hpp", ".hxx", ".h++", ".H",
                                           ".cuh", ".inc", ".inl", ".ipp", ".tpp", ".tcc",
                                           ".c",   ".cc",  ".cpp", ".cxx", ".cu"};
  const std::string ending = fs::path(header).extension().string();
  return std::ranges::find(kEndings, ending) != std::end(kEndings);
}

// The file next to the program, if it exists; else the name, for Clang to search.
std::string place_of(const std::string& header, const std::string& program) {
  const fs::path beside = (fs::path(program).parent_path() / header).lexically_normal();
  std::error_code error;
  return fs::exists(beside, error) ? beside.string() : header;
}

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> list;
  list.reserve(texts.size());
  for (const std::string& text : texts) list.push_back(text.c_str());
  return list;
}

rt::ExternReply made_of(const CinchExternReply& reply) {
  rt::ExternReply made;
  made.outcome = static_cast<rt::ExternOutcome>(reply.outcome);
  made.message = reply.message;
  made.source = reply.source;
  made.work = reply.work;
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
  if (!is_file_name(request.header)) return broken("this is not a name of a file");
  if (!is_header_name(request.header)) {
    return broken("names of C++ headers end with .h, .hpp or the like");
  }
  const auto& backend = clang_backend();
  CINCH_TRY(backend);
  const std::string header = place_of(request.header, request.from);
  std::vector<std::string> types;
  types.reserve(request.params.size());
  for (const DType type : request.params) types.push_back(dtype_name(type));
  const std::string result = dtype_name(request.result);
  const std::vector<const char*> params = pointers(types);
  const std::vector<const char*> folders = pointers(search_.include_folders);
  CinchExternRequest asked{};
  asked.header = header.c_str();
  asked.name = request.name.c_str();
  asked.params = params.data();
  asked.num_params = params.size();
  asked.result = result.c_str();
  asked.include_folders = folders.data();
  asked.num_include_folders = folders.size();
  asked.compile_commands = search_.compile_commands.c_str();
  asked.confine = search_.confine.c_str();
  has_read_ = true;
  CinchExternReply* reply = backend->functions->read_extern(&asked);
  rt::ExternReply made = made_of(*reply);
  backend->functions->release_extern(reply);
  if (made.outcome == rt::ExternOutcome::NoMemory) throw std::bad_alloc();
  if (const std::string changed = changed_file(made.files); !changed.empty()) {
    return broken("'" + changed + "' changed while it was read");
  }
  if (made.outcome == rt::ExternOutcome::HeaderBroken && !search_.confine.empty()) {
    made.notes.push_back({rt::confined_text(search_.confine), {}, 0, 0});
  }
  return made;
}

}  // namespace cinch::codegen
