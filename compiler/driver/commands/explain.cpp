// cinch explain: shows what a program stores and costs, by its kernels' formulas; nothing is
// compiled to machine code.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/driver/commands/commands.h"
#include "compiler/driver/front_end.h"
#include "compiler/driver/page/pages.h"
#include "compiler/driver/process/files.h"
#include "compiler/driver/process/json_output.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/explain.h"
#include "compiler/driver/target.h"
#include "compiler/service/compile.h"

namespace cinch::driver {

namespace {

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

ExitCode run_explain(const ExplainOptions& options) {
  if (!options.target.empty() && options.execution.device != "cuda") {
    throw CommandError(ExitCode::Usage, "--target needs --device cuda");
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
