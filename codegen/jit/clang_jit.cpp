// Calls cinch_clang, and interprets its replies.

#include "codegen/emit/cpu.h"
#include "codegen/emit/cpu/prelude.h"
#include "codegen/jit/library.h"
#include "runtime/core/check.h"
#include "runtime/module/cpu_module.h"

namespace cinch::codegen {
namespace {

std::string resolve_arch(std::string_view arch) {
  return std::string(arch == "native" ? rt::host_cpu_arch() : arch);
}

rt::Result<ReplyPtr> request_output(std::span<const KernelSource> sources,
                                    const CpuCompileOptions& options, CinchClangOutput output) {
  CINCH_CHECK(!sources.empty(), "nothing to compile");
  const CinchClangBackend* functions = TRY(clang_backend()).functions;
  const std::string arch = resolve_arch(sources[0].target.arch);
  std::vector<CinchClangText> texts;
  for (const KernelSource& source : sources)
    texts.push_back({source.text.data(), source.text.size()});
  CinchClangRequest request{};
  request.sources = texts.data();
  request.num_sources = texts.size();
  request.links_helpers = sources[0].links_helpers;
  request.file_name = "kernels.cpp";
  request.cpu = arch.c_str();
  request.lanes = cpu_arch(arch).lanes;
  request.output = output;
  request.address_sanitizer = options.sanitize_address;
  request.optimization_level = options.optimization_level;
  request.is_quick = options.effort == Effort::Quick;
  request.symbol_prefix = options.symbol_prefix.empty() ? nullptr : options.symbol_prefix.c_str();
  ReplyPtr reply(functions->compile(&request), functions->release);
  if (!reply->ok) return refusal(sources, *reply);
  if (options.times) {
    *options.times = times_of(*reply);
  }
  return reply;
}

std::vector<CinchClangBytes> borrowed(std::span<const NamedBytes> items) {
  std::vector<CinchClangBytes> out;
  out.reserve(items.size());
  for (const NamedBytes& item : items)
    out.push_back({item.name.c_str(), item.bytes.data(), item.bytes.size()});
  return out;
}

// For a call without sources.
template <typename Call>
rt::Result<std::vector<std::uint8_t>> library_part(const Call& call) {
  const CinchClangBackend* functions = TRY(clang_backend()).functions;
  ReplyPtr reply(call(*functions), functions->release);
  if (!reply->ok) return refusal({}, *reply);
  return bytes_of(reply);
}

struct Wrapped {
  std::string text;
  std::size_t begin = 0;  // where the emitted text begins
};

Wrapped wrap(const KernelSource& source) {
  Wrapped wrapped;
  std::string& text = wrapped.text;
  for (const char* part : {"types", "hooks", "threads", "memory", "arithmetic"}) {
    text += prelude_text(std::string("emulated/") + part + ".h");
  }
  text += "#line 1 \"kernels.cu\"\n";
  wrapped.begin = text.size();
  text += source.text;
  text += "\n#line 1 \"entries.h\"\n";
  text += prelude_text("emulated/entries.h");
  for (const std::string& symbol : source.symbols) text += "CINCH_EMULATED_ENTRY(" + symbol + ")\n";
  return wrapped;
}

}  // namespace

rt::Result<std::vector<std::uint8_t>> make_data_object(const std::string& arch,
                                                       std::span<const NamedBytes> data) {
  const std::vector<CinchClangBytes> items = borrowed(data);
  return library_part([&](const CinchClangBackend& backend) {
    return backend.make_data(arch.c_str(), items.data(), items.size());
  });
}

rt::Result<std::vector<std::uint8_t>> link_library(std::span<const NamedBytes> objects,
                                                   const std::string& soname,
                                                   const std::vector<std::string>& exports) {
  const std::vector<CinchClangBytes> items = borrowed(objects);
  std::vector<const char*> names;
  names.reserve(exports.size());
  for (const std::string& name : exports) names.push_back(name.c_str());
  return library_part([&](const CinchClangBackend& backend) {
    return backend.link_library(items.data(), items.size(), soname.c_str(), names.data(),
                                names.size());
  });
}

rt::Result<std::vector<std::uint8_t>> make_archive(std::span<const NamedBytes> members) {
  const std::vector<CinchClangBytes> items = borrowed(members);
  return library_part([&](const CinchClangBackend& backend) {
    return backend.make_archive(items.data(), items.size());
  });
}

std::vector<std::string> cpu_archs() {
  std::vector<std::string> names;
  for (const CpuArch& arch : kCpuArchs) names.emplace_back(arch.name);
  return names;
}

bool has_images(std::string_view arch) {
  return cpu_arch(resolve_arch(arch)).has_images;
}

bool can_link_helpers(const CpuCompileOptions& options) {
  const auto& backend = clang_backend();
  return backend && !options.sanitize_address && options.optimization_level == 3 &&
         cpu_helpers_digest() == backend->functions->helpers_digest;
}

rt::Result<std::vector<std::uint8_t>> compile_cpu(const KernelSource& source,
                                                  const CpuCompileOptions& options) {
  return compile_cpu(std::span(&source, 1), options);
}

rt::Result<std::vector<std::uint8_t>> compile_cpu(std::span<const KernelSource> sources,
                                                  const CpuCompileOptions& options) {
  return request_output(sources, options, kCinchSharedObject).map(bytes_of);
}

rt::Result<std::vector<std::uint8_t>> compile_cpu_to_object(const KernelSource& source,
                                                            const CpuCompileOptions& options) {
  return request_output(std::span(&source, 1), options, kCinchObject).map(bytes_of);
}

rt::Result<std::string> compile_cpu_to_assembly(const KernelSource& source,
                                                const CpuCompileOptions& options) {
  return request_output(std::span(&source, 1), options, kCinchAssembly)
      .map([](const ReplyPtr& reply) {
        return std::string(reply->bytes, reply->bytes + reply->size);
      });
}

rt::Result<std::string> format_source(std::string_view text) {
  const CinchClangBackend* functions = TRY(clang_backend()).functions;
  ReplyPtr reply(functions->format(text.data(), text.size()), functions->release);
  CINCH_CHECK(reply->ok, std::string("emitted source cannot be formatted: ") + reply->log);
  return std::string(reply->bytes, reply->bytes + reply->size);
}

rt::Result<ClangInfo> find_clang() {
  const OpenedBackend backend = TRY(clang_backend());
  return ClangInfo{backend.functions->version, backend.path};
}

// Prelude, text and entries as one source for cinch_clang.

rt::Result<std::vector<std::uint8_t>> compile_emulated(const KernelSource& source,
                                                       const EmulatedCompileOptions& options) {
  const CinchClangBackend* functions = TRY(clang_backend()).functions;
  const Wrapped wrapped = wrap(source);
  const CinchClangText text{wrapped.text.data(), wrapped.text.size()};
  CinchClangRequest request{};
  request.sources = &text;
  request.num_sources = 1;
  request.file_name = "emulated.h";
  request.cpu = "x86-64";
  request.lanes = 1;
  request.output = kCinchSharedObject;
  request.emulation = options.checks ? kCinchEmulatedChecked : kCinchEmulatedPlain;
  request.emulated_text_begin = wrapped.begin;
  request.emulated_text_size = source.text.size();
  const ReplyPtr reply(functions->compile(&request), functions->release);
  if (!reply->ok) return refusal(std::span(&source, 1), *reply);
  if (options.times) *options.times = times_of(*reply);
  return bytes_of(reply);
}

}  // namespace cinch::codegen
