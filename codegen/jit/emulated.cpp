// Prelude, text and entries as one source for cinch_clang.
#include "codegen/jit/clang_jit.h"

#include <string>

#include "codegen/emit/kernel_source.h"
#include "codegen/jit/library.h"

namespace cinch::codegen {
namespace {

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

rt::Result<std::vector<std::uint8_t>> compile_emulated(const KernelSource& source,
                                                       const EmulatedCompileOptions& options) {
  const auto& backend = clang_backend();
  CINCH_TRY(backend);
  const CinchClangBackend* functions = backend->functions;
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
