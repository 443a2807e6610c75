// The calls into cinch_clang, and what its replies mean.
#include "codegen/jit/clang_jit.h"

#include <algorithm>
#include <memory>

#include "codegen/jit/library.h"
#include "runtime/core/check.h"
#include "runtime/module/cpu_module.h"

namespace cinch::codegen {
namespace {

using ReplyPtr = std::unique_ptr<CinchClangReply, void (*)(CinchClangReply*)>;

struct CpuArch {
  std::string_view name;
  int lanes;
};
constexpr CpuArch kCpuArchs[] = {
    {"x86-64", 4}, {"x86-64-v3", 8}, {"x86-64-v4", 16}, {"aarch64", 4}};

std::string resolve_arch(std::string_view arch) {
  return std::string(arch == "native" ? rt::host_cpu_arch() : arch);
}

std::vector<std::uint8_t> bytes_of(const ReplyPtr& reply) {
  return {reply->bytes, reply->bytes + reply->size};
}

[[noreturn]] void throw_compile_error(const KernelSource& source, const char* log) {
  InternalError error(InternalErrorKind::Bug,
                      std::string("emitted source does not compile:\n") + log, "codegen/emit");
  error.attach("compile", source.text);
  throw error;
}

rt::Result<ReplyPtr> request_output(const KernelSource& source, const CpuCompileOptions& options,
                                    CinchClangOutput output) {
  const auto& backend = clang_backend();
  if (!backend) return tl::unexpected(backend.error());
  const CinchClangBackend* functions = backend->functions;
  const std::string arch = resolve_arch(source.target.arch);
  CinchClangRequest request{};
  request.source = source.text.data();
  request.source_size = source.text.size();
  request.file_name = "kernels.cpp";
  request.cpu = arch.c_str();
  request.lanes = vector_lanes(arch);
  request.output = output;
  request.address_sanitizer = options.sanitize_address;
  request.optimization_level = options.optimization_level;
  ReplyPtr reply(functions->compile(&request), functions->release);
  if (!reply->ok) throw_compile_error(source, reply->log);
  if (options.times) {
    *options.times = {reply->times.front_end_ms, reply->times.optimizer_ms,
                      reply->times.machine_code_ms, reply->times.link_ms};
  }
  return reply;
}

}  // namespace

std::vector<std::string> cpu_archs() {
  std::vector<std::string> names;
  for (const CpuArch& arch : kCpuArchs) names.emplace_back(arch.name);
  return names;
}

bool has_images(std::string_view arch) {
  return resolve_arch(arch) != "aarch64";
}

int vector_lanes(std::string_view arch) {
  const std::string name = resolve_arch(arch);
  const auto* const found = std::ranges::find(kCpuArchs, name, &CpuArch::name);
  CINCH_CHECK(found != std::end(kCpuArchs), "unknown CPU architecture " + name);
  return found->lanes;
}

rt::Result<std::vector<std::uint8_t>> compile_cpu(const KernelSource& source,
                                                  const CpuCompileOptions& options) {
  return request_output(source, options, kCinchSharedObject).map(bytes_of);
}

rt::Result<std::vector<std::uint8_t>> compile_cpu_to_object(const KernelSource& source,
                                                            const CpuCompileOptions& options) {
  return request_output(source, options, kCinchObject).map(bytes_of);
}

rt::Result<std::string> compile_cpu_to_assembly(const KernelSource& source,
                                                const CpuCompileOptions& options) {
  return request_output(source, options, kCinchAssembly).map([](const ReplyPtr& reply) {
    return std::string(reply->bytes, reply->bytes + reply->size);
  });
}

rt::Result<std::string> format_source(std::string_view text) {
  const auto& backend = clang_backend();
  if (!backend) return tl::unexpected(backend.error());
  const CinchClangBackend* functions = backend->functions;
  ReplyPtr reply(functions->format(text.data(), text.size()), functions->release);
  CINCH_CHECK(reply->ok, std::string("emitted source cannot be formatted: ") + reply->log);
  return std::string(reply->bytes, reply->bytes + reply->size);
}

rt::Result<ClangInfo> find_clang() {
  const auto& backend = clang_backend();
  if (!backend) return tl::unexpected(backend.error());
  return ClangInfo{backend->functions->version, backend->path};
}

}  // namespace cinch::codegen
