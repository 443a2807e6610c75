// The commands on texts: check, fmt, opt, lsp and explain.

#include <algorithm>
#include <csignal>

#include "compiler/driver/commands/commands.h"
#include "compiler/driver/page/pages.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/explain.h"
#include "compiler/driver/report/text.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/lsp/server.h"
#include "compiler/pipeline/pipeline.h"
#include "dsl/syntax/syntax.h"

namespace cinch::driver {
namespace {

struct Checked {
  std::string path;
  std::string compressor;  // of file:name, which must be there
};

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

Checked place_of(const std::string& name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string::npos || exists(name)) return {name, ""};
  return {name.substr(0, colon), name.substr(colon + 1)};
}

// What looks like a file is one, also if it is not there.
const dsl::SourceBuffer& load(FrontEnd& front_end, const std::string& name) {
  const bool is_file = name.find_first_of("./") != std::string::npos || exists(name);
  if (is_file) return front_end.load(name);
  return front_end.add(service::find_program({.program = name}));
}

// Returns whether the file changes; writes nothing if it has syntax errors.
bool format_one(FrontEnd& front_end, const std::string& path, bool check_only) {
  const bool is_input = path == kStandardInput;
  const dsl::SourceBuffer& source =
      front_end.sources.add(is_input ? "standard input" : path, read_text_or_input(path));
  dsl::DiagSink sink;
  const ast::Module module = dsl::parse(source, sink);
  if (sink.has_errors()) {
    for (const dsl::Diagnostic& diag : sink.all()) front_end.sink.add(diag);
    return false;
  }
  const std::string formatted = dsl::format(source, module);
  const bool changes = formatted != source.text();
  if (check_only) {
    if (changes) print_text("{}\n", source.name());
  } else if (is_input) {
    fmt::print("{}", formatted);
  } else if (changes) {
    write_file(path, formatted);
  }
  return changes;
}

void check_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name == "all" || pipeline::find_pass(name) != nullptr) continue;
    throw UsageError("no pass '" + name + "'; cinch opt --list names them all");
  }
}

void list_passes() {
  for (const pipeline::Pass& pass : pipeline::all_passes()) {
    print_text("{:<26} {}\n", pass.name, pass.doc);
  }
  std::string order;
  for (std::string_view name : pipeline::standard_order()) order += " " + std::string(name);
  print_text("\nstandard order:{}\n", order);
}

void print_pass_report(const OptOptions& options, const pipeline::Report& report) {
  for (const passes::Remark& remark : report.remarks) {
    if (options.remarks) print_aside("remark: {}: {}\n", remark.pass, remark.text);
  }
  for (const pipeline::PassTime& time : report.times) {
    if (!options.times) break;
    print_aside("{:<26} {:>11} {:6} rewrites\n", time.name, in_milliseconds(time.seconds * 1e3),
                time.num_rewrites);
  }
}

using nlohmann::json;

// Tables need the smaller width; lines beyond the larger one are hard to read.
constexpr std::size_t kLeastWidth = 60, kMostWidth = 100;

void print_explained(const json& report, const ExplainOptions& options) {
  const std::size_t width = std::clamp(text_width(), kLeastWidth, kMostWidth);
  if (options.formulas) {
    print_text("{}", formulas_text(report, options.fusion,
                                   output_width() == 0 ? sentence_width() : width));
  } else {
    print_text("{}", explanation_text(report, width, options.fusion));
  }
  if (report.contains("gpu_kernels")) print_text("{}", gpu_report_text(report, width));
}

}  // namespace

ExitCode run_check(const CheckOptions& options) {
  FrontEnd front_end;
  for (const std::string& name : options.files) {
    const auto [path, compressor] = place_of(name);
    // A file that another one imports was already checked with it.
    const dsl::SourceBuffer* known = front_end.sources.find_name(path);
    const dsl::FileId file = known != nullptr ? known->id() : load(front_end, path).id();
    const sema::CheckedModule module = sema::check_module(
        front_end.sources, file, service::import_loader(options.headers.confine), front_end.sink,
        sema::CheckDepth::Everything, service::extern_reader(options.headers));
    const auto all = module.compressors();
    const bool is_missing =
        !compressor.empty() &&
        std::ranges::find(all, compressor, &sema::CompressorEntry::name) == all.end();
    // Reports that the file has no such compressor.
    if (is_missing) sema::elaborate(module, compressor, {}, front_end.sink);
  }
  const DiagnosticsFormat format = options.json ? DiagnosticsFormat::Json : options.diagnostics;
  print_diagnostics(front_end.sink, front_end.sources, format);
  return front_end.sink.has_errors() ? ExitCode::AtFault : ExitCode::Done;
}

// cinch fmt: rewrites files in the canonical layout.

ExitCode run_format(const FormatOptions& options) {
  FrontEnd front_end;
  bool changes = false;
  for (const std::string& path : options.files) {
    changes = format_one(front_end, path, options.check_only) || changes;
  }
  front_end.end_if_errors();
  return changes && options.check_only ? ExitCode::AtFault : ExitCode::Done;
}

// cinch opt: IR text in, passes, IR text out. For tests and for looking at passes one by one.

ExitCode run_opt(const OptOptions& options) {
  if (options.list_passes) {
    list_passes();
    return ExitCode::Done;
  }
  if (options.file.empty()) throw UsageError("opt needs a FILE of IR text");
  check_names(options.passes);
  check_names(options.print_after);
  ir::Program program = value_or_throw(ir::parse(read_text_or_input(options.file)), options.file);
  if (const auto fault = ir::find_fault(program)) {
    throw CommandError(ExitCode::AtFault, options.file + ": " + *fault);
  }
  pipeline::Options run;
  run.passes = options.passes;
  run.print_after = options.print_after;
  run.print = [](std::string_view title, const std::string& text) {
    print_aside("// {}\n{}\n", title, text);
  };
  run.evaluate = service::evaluate_constant;
  if (options.pass_limit >= 0) run.pass_limit = options.pass_limit;
  print_pass_report(options, pipeline::run(program, run));
  fmt::print("{}", ir::print(program));
  return ExitCode::Done;
}

// cinch lsp: a language server for editors.

ExitCode run_lsp(const LspOptions& options) {
  // A closed editor then shows as an error of the write.
  std::signal(SIGPIPE, SIG_IGN);
  lsp::ServerOptions server{.version = kVersion, .headers = options.headers};
  return lsp::serve(server) ? ExitCode::Done : ExitCode::AtFault;
}

// cinch explain: shows what a program stores and costs, by its kernels' formulas; nothing is
// compiled to machine code.

ExitCode run_explain(const ExplainOptions& options) {
  if (!options.target.empty() && options.execution.device != "cuda") {
    throw UsageError("--target needs --device cuda");
  }
  FrontEnd front_end;
  rt::StepLimit steps = service::step_limit(options.program);
  const ir::Program program = service::make_ir(front_end, options.program, true, &steps);
  std::vector<codegen::SweepsApart> apart;
  kir::KernelProgram kernels =
      service::make_kernels(program, {options.program.states, &steps, &apart});
  service::FrontEnd silent;  // shows nothing: diagnostics were shown already
  const ir::Program lowered = service::make_ir(silent, options.program, /*with_passes=*/false);
  const sema::CheckedProgram checked = service::check_program(
      silent, service::find_program(options.program), options.program.bindings);
  json report = explain_report(
      {lowered, program, kernels, apart, steps.taken(), front_end.sources, checked}, options);
  if (options.execution.device == "cuda") add_gpu_report(front_end, options, report);
  if (!options.html.empty()) write_file(options.html, explain_page(report));
  if (options.json) {
    print_result(report);
  } else if (options.html.empty()) {
    print_explained(report, options);
  } else {
    print_text("{}: a page about {}\n", options.html, report["compressor"].get<std::string>());
  }
  return ExitCode::Done;
}

}  // namespace cinch::driver
