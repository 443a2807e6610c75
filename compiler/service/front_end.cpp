// Front end of all that compiles.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "codegen/jit/library.h"
#include "compiler/service/front_end.h"
#include "dsl/diag/render.h"
#include "runtime/call/parameters.h"
#include "runtime/core/files/file_bytes.h"
#include "runtime/core/numbers/parse_number.h"

namespace cinch::service {
static constexpr std::string_view kImageMagic = "CINCHIMG";

bool is_image(std::string_view bytes) {
  return bytes.starts_with(kImageMagic);
}

bool is_image_file(const std::string& path) {
  std::error_code error;
  // Data in a pipe can be read only once, so that they cannot be an image.
  if (!std::filesystem::is_regular_file(path, error)) return false;
  auto reader = value_or_throw(rt::FileReader::open(path));
  std::vector<std::uint8_t> bytes;
  value_or_throw(reader.read_up_to(kImageMagic.size(), bytes));
  return is_image({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

const dsl::SourceBuffer& FrontEnd::load(const std::string& path) {
  return add({path, "", value_or_throw(rt::read_text_file(path))});
}

const dsl::SourceBuffer& FrontEnd::add(const ProgramText& program) {
  if (is_image(program.text)) {
    throw ServiceError(Fault::Program, program.path +
                                           ": a compiled image, no program text; run, encode and "
                                           "decode take it, from a regular file");
  }
  return sources.add(program.path, program.text);
}

void FrontEnd::end_if_errors() const {
  if (show) show(sink, sources);
  if (!sink.has_errors()) return;
  throw ServiceError(Fault::Program,
                     show ? "" : dsl::render_text(sink.all(), sources, {/*colour=*/false}));
}

sema::ExternReader extern_reader(const rt::HeaderSearch& headers) {
  return [reader = std::make_shared<codegen::HeaderReader>(headers)](
             const rt::ExternRequest& request) { return value_or_throw(reader->read(request)); };
}

static bool is_name(const std::string& text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto is_inside = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  return !text.empty() && is_letter(text[0]) && std::ranges::all_of(text, is_inside);
}

// Parses a fraction, or a count such as 64k.
static std::optional<double> number_in(const std::string& text) {
  if (const std::optional<double> number = parse_number(text)) return number;
  const ParsedCount count = parse_count(text);
  if (count.state != ParsedCount::State::Whole) return std::nullopt;
  const auto magnitude = static_cast<double>(count.magnitude);
  return count.is_negative ? -magnitude : magnitude;
}

double value_of(const sema::Binding& binding, const rt::ProgramInfo& info) {
  if (binding.word.empty()) return binding.value;
  const auto param = rt::find_parameter(info.params, binding.name);
  if (!param) throw ServiceError(Fault::Argument, "--set: " + param.error().message);
  const auto value = rt::parameter_value(**param, binding.word);
  if (!value) throw ServiceError(Fault::Argument, "--set: " + value.error().message);
  return *value;
}

std::vector<sema::Binding> parse_bindings(const std::vector<std::string>& words) {
  std::vector<sema::Binding> bindings;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string text = equals == std::string::npos ? "" : word.substr(equals + 1);
    std::optional<double> value = number_in(text);
    if (text == "true" || text == "false") value = text == "true" ? 1 : 0;
    const bool is_word = !value && is_name(text);
    if (equals == 0 || (!value && !is_word)) {
      throw ServiceError(Fault::Argument,
                         "--set takes NAME=VALUE, such as ratio=0.01; found '" + word + "'");
    }
    bindings.push_back({word.substr(0, equals), value.value_or(0), is_word ? text : ""});
  }
  return bindings;
}

// Without a name: the file's only compressor that works alone, or the one with the file's name.
static std::string choose_compressor(const sema::CheckedModule& module, const ProgramText& place) {
  if (!place.compressor.empty()) return place.compressor;
  std::string stem = std::filesystem::path(place.path).stem();
  std::vector<std::string> names;
  for (const sema::CompressorEntry& entry : module.compressors()) {
    if (entry.name == stem) return stem;
    if (!entry.is_wrapper) names.push_back(entry.name);
  }
  if (names.size() == 1) return names[0];
  if (names.empty()) {
    const bool has_wrappers = !module.compressors().empty();
    throw ServiceError(Fault::Program,
                       place.path + (has_wrappers ? ": all of its compressors wrap another one"
                                                  : ": no compressor in it"));
  }
  std::string message = place.path + ": it has several compressors; say which:";
  for (const std::string& name : names) message += " " + place.path + ":" + name;
  throw ServiceError(Fault::Program, message);
}

sema::CheckedProgram check_program(FrontEnd& front_end, const ProgramText& program,
                                   const std::vector<std::string>& bindings, bool is_carrier) {
  const std::vector<sema::Binding> values = parse_bindings(bindings);
  const dsl::SourceBuffer& file = front_end.add(program);
  const sema::CheckedModule module =
      sema::check_module(front_end.sources, file.id(), import_loader(program.headers.confine),
                         front_end.sink, sema::CheckDepth::Names, extern_reader(program.headers));
  if (front_end.sink.has_errors()) front_end.end_if_errors();
  const std::string name = choose_compressor(module, program);
  std::optional<sema::CheckedProgram> checked =
      is_carrier ? sema::elaborate_carrier(module, name, values, front_end.sink)
                 : sema::elaborate(module, name, values, front_end.sink);
  front_end.end_if_errors();
  if (!checked && is_carrier) {
    throw ServiceError(Fault::Request, name + ": no other program carries its sums");
  }
  if (!checked) throw ServiceError(Fault::Program, "no program");
  return std::move(*checked);
}

std::vector<LibraryProgram> library_programs() {
  std::vector<LibraryProgram> programs;
  FrontEnd front_end;
  for (const StdlibFile& file : stdlib_files()) {
    if (is_part(file)) continue;
    const dsl::SourceBuffer& source = front_end.load(file.path);
    const auto module = sema::check_module(front_end.sources, source.id(), load_import,
                                           front_end.sink, sema::CheckDepth::Names);
    for (const sema::CompressorEntry& entry : module.compressors()) {
      if (!entry.is_wrapper) programs.push_back({file.path, entry.name});
    }
  }
  front_end.end_if_errors();
  return programs;
}

// Errors of the runtime as the service's.

void throw_error(const rt::Error& error) {
  switch (error.kind) {
    case rt::ErrorKind::Unavailable:
    case rt::ErrorKind::OutOfMemory:
    case rt::ErrorKind::Device:
      throw ServiceError(Fault::Unavailable, error.message);
    case rt::ErrorKind::Internal:
      throw ServiceError(Fault::Internal, error.message);
    case rt::ErrorKind::Io:
      throw ServiceError(Fault::File, error.message);
    default:
      throw ServiceError(Fault::Request, error.message);
  }
}

}  // namespace cinch::service
