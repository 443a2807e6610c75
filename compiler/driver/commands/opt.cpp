// cinch opt: IR text in, passes, IR text out. For tests and for looking at passes one by one.
#include <fmt/format.h>

#include "compiler/driver/commands/commands.h"
#include "compiler/driver/front_end.h"
#include "compiler/driver/process/files.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/text.h"
#include "compiler/driver/target.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/service/compile.h"

namespace cinch::driver {
namespace {

void check_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name == "all" || pipeline::find_pass(name) != nullptr) continue;
    throw CommandError(ExitCode::Usage, "no pass '" + name + "'; cinch opt --list names them all");
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

}  // namespace

ExitCode run_opt(const OptOptions& options) {
  if (options.list_passes) {
    list_passes();
    return ExitCode::Done;
  }
  if (options.file.empty()) throw CommandError(ExitCode::Usage, "opt needs a FILE of IR text");
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

}  // namespace cinch::driver
