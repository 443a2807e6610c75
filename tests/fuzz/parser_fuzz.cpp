// libFuzzer target: any bytes through lexer, parser, renderers and formatter. Built with
// -DCINCH_FUZZ=ON.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "dsl/diag/render.h"
#include "dsl/syntax/syntax.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cinch::dsl;
  SourceSet sources;
  const SourceBuffer& source =
      sources.add("fuzz.cinch", std::string(reinterpret_cast<const char*>(data), size));
  DiagSink sink;
  const cinch::ast::Module module = parse(source, sink);
  render_text(sink.all(), sources);
  render_json(sink.all(), sources);
  if (sink.has_errors()) return 0;
  const SourceBuffer& formatted = sources.add("formatted.cinch", format(source, module));
  const cinch::ast::Module again = parse(formatted, sink);
  // The formatter may change only the layout, and leaves its own output unchanged.
  if (sink.has_errors() || dump(again) != dump(module)) std::abort();
  if (format(formatted, again) != formatted.text()) std::abort();
  return 0;
}
