// Keys and stamps of compiled programs.
#include "compiler/service/compile_cache.h"

#include <algorithm>
#include <filesystem>

#include "compiler/service/source_identity.h"
#include "runtime/core/files/file_bytes.h"
#include "runtime/module/shared_object.h"

namespace cinch::service {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kInLibrary = "std:";
// The folder in an installed tree, next to the compiler library (compiler/package/images.cmake).
constexpr const char* kCompiledFolder = "compiled";

// A path that stays the same if the library or the program's folder is moved.
std::string movable_path(const std::string& path, const std::string& program) {
  const std::string library = stdlib_folder();
  const fs::path in_library =
      library.empty() ? fs::path() : fs::path(path).lexically_relative(library);
  if (!in_library.empty() && *in_library.begin() != "..") {
    return std::string(kInLibrary) + in_library.string();
  }
  const fs::path beside = fs::path(path).lexically_relative(fs::path(program).parent_path());
  return beside.empty() ? path : beside.string();
}

Hash128 digest_of(const std::vector<rt::SourceStamp>& stamps) {
  Hasher hasher;
  for (const rt::SourceStamp& stamp : stamps) {
    hasher.add(stamp.path).add(stamp.text.low).add(stamp.text.high);
  }
  return hasher.finish128();
}

}  // namespace

rt::CacheSettings cache_settings() {
  rt::CacheSettings settings = rt::cache_settings_from_environment();
  const fs::path own = rt::own_folder();
  if (own.empty()) return settings;
  // For the library, and for the command in bin.
  for (const fs::path& beside : {own, own.parent_path() / "lib" / "cinch"}) {
    std::error_code error;
    const fs::path folder = beside / kCompiledFolder;
    if (fs::is_directory(folder, error)) settings.shared.push_back(folder);
  }
  return settings;
}

CompileCache::CompileCache(const ProgramText& program, const std::vector<std::string>& bindings,
                           codegen::StateUpdate states, const codegen::Target& target,
                           const CodeChoice& code)
    : program_(program), cache_(cache_settings()) {
  title_ = fs::path(program.path).stem().string();
  if (!program.compressor.empty() && program.compressor != title_)
    title_ += ":" + program.compressor;
  Hasher hasher;
  hasher.add(source_identity()).add(program.text);
  // Without a name, the file's own name decides among several compressors.
  hasher.add(title_).add(std::uint64_t{bindings.size()});
  for (const std::string& binding : bindings) {
    hasher.add(binding);
    title_ += " " + binding;
  }
  // They decide which header is found; the header's contents are checked like an import's.
  hasher.add(program.headers.compile_commands).add(program.headers.include_folders.size());
  for (const std::string& folder : program.headers.include_folders) hasher.add(folder);
  if (!program.headers.confine.empty()) hasher.add("confine").add(program.headers.confine);
  hasher.add(static_cast<std::uint64_t>(states));
  if (states == codegen::StateUpdate::InPlace) title_ += " in place";
  hasher.add(static_cast<std::uint64_t>(target.kind)).add(target.arch);
  title_ += " for " + target.arch;
  if (target.kind == codegen::TargetKind::Cuda) hasher.add(std::uint64_t{code.block_warps});
  hasher.add(static_cast<std::uint64_t>(code.effort));
  if (code.is_carrier) hasher.add("again");
  if (code.effort == codegen::Effort::Quick) title_ += ", compiled quickly";
  if (code.is_carrier) title_ += ", for sums";
  key_ = hasher.finish128();
}

bool CompileCache::are_current(const std::vector<rt::SourceStamp>& stamps) const {
  return std::ranges::all_of(stamps, [&](const rt::SourceStamp& stamp) {
    std::error_code error;
    const fs::path path = stamp.path.starts_with(kInLibrary)
                              ? fs::path(stdlib_folder()) / stamp.path.substr(kInLibrary.size())
                              : fs::path(program_.path).parent_path() / stamp.path;
    if (!fs::is_regular_file(path, error)) return false;
    const auto text = rt::read_text_file(path);
    return text && hash128(*text) == stamp.text;
  });
}

std::optional<rt::CacheEntry> CompileCache::find() const {
  auto entry = cache_.find(key_);
  if (entry && !are_current(entry->imports)) entry.reset();
  return entry;
}

std::optional<rt::StoredEntry> CompileCache::find_stored() const {
  auto entry = cache_.find_stored(key_);
  if (entry && !are_current(entry->imports)) entry.reset();
  return entry;
}

std::vector<rt::SourceStamp> CompileCache::stamps_of(const dsl::SourceSet& sources) const {
  std::vector<rt::SourceStamp> stamps;
  for (dsl::FileId id = 0; id < sources.num_files(); ++id) {
    const dsl::SourceBuffer& file = *sources.find(id);
    // Texts that are not files come from the bindings, which the key contains.
    std::error_code error;
    if (file.name() == program_.path || !fs::is_regular_file(file.name(), error)) continue;
    stamps.push_back({movable_path(file.name(), program_.path), hash128(file.text())});
  }
  return stamps;
}

void CompileCache::put(const rt::ProgramImage& image,
                       const std::vector<rt::SourceStamp>& imports) const {
  // If it cannot be kept it is compiled again next time.
  (void)cache_.put(key_, {title_, imports, image});
}

BetterCode CompileCache::code_from(const std::vector<rt::SourceStamp>& imports) const {
  std::error_code error;
  return {key_, digest_of(imports), fs::absolute(cache_.settings().folder, error).string()};
}

std::optional<std::vector<std::uint8_t>> find_better(const BetterCode& code) {
  rt::CacheSettings settings = cache_settings();
  settings.folder = code.folder;
  auto entry = rt::ImageCache(std::move(settings)).find_stored(code.key);
  if (!entry || digest_of(entry->imports) != code.imports) return std::nullopt;
  return std::move(entry->image);
}

}  // namespace cinch::service
