// Values of names, by the interpreter.
#include "compiler/driver/codecs/shown_values.h"

#include "compiler/driver/codecs/codec.h"

#include <algorithm>
#include <map>

#include "codegen/jit/library.h"
#include "compiler/driver/process/files.h"
#include "compiler/driver/report/text.h"
#include "compiler/driver/target.h"
#include "compiler/interp/observe.h"
#include "compiler/ir/ops.h"
#include "runtime/core/log.h"

namespace cinch::driver {
namespace {

constexpr ir::FunctionKind kBodies[] = {ir::FunctionKind::Encode, ir::FunctionKind::Decode,
                                        ir::FunctionKind::Sync};

std::vector<std::string> names_in(const ir::Function& function) {
  std::vector<std::string> names;
  for (const ir::Value& value : function.values) {
    const bool is_new = std::ranges::find(names, value.name) == names.end();
    if (!value.name.empty() && is_new) names.push_back(value.name);
  }
  return names;
}

bool has_name(const ir::Program& program, ir::FunctionKind kind, const std::string& name) {
  const ir::Function* const function = program.find(kind);
  return function != nullptr && std::ranges::any_of(function->values, [&](const ir::Value& value) {
           return value.name == name;
         });
}

[[noreturn]] void refuse_name(const ir::Program& program, const std::string& name) {
  std::vector<std::string> names;
  for (const ir::FunctionKind kind : kBodies) {
    const ir::Function* const function = program.find(kind);
    if (function == nullptr) continue;
    for (std::string& found : names_in(*function)) {
      if (std::ranges::find(names, found) == names.end()) names.push_back(std::move(found));
    }
  }
  const std::string_view near = nearest_name(name, {names.begin(), names.end()});
  throw CommandError(
      ExitCode::AtFault, "--show: {} has no value '{}'; it has: {}{}", program.info.name, name,
      names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")), did_you_mean(near));
}

using Latest = std::map<std::string, interp::Array, std::less<>>;

interp::Outputs run(const ir::Program& program, ir::FunctionKind kind, const interp::Inputs& inputs,
                    Latest& latest) {
  return value_or_throw(interp::run_observed(
      program, kind, inputs, [&](const ir::Value& value, const interp::Array& array) {
        latest.insert_or_assign(value.name, array);
      }));
}

}  // namespace

ValueViewer::ValueViewer(const ProgramOptions& program, std::vector<std::string> names)
    : names_(std::move(names)) {
  if (service::is_image_file(program.program))
    throw UsageError("--show needs the text of a program; {} is compiled", program.program);
  service::FrontEnd silent;  // shows nothing: diagnostics were shown already
  program_ = service::make_ir(silent, program, /*with_passes=*/false);
  for (const std::string& name : names_) {
    const bool is_known = std::ranges::any_of(
        kBodies, [&](ir::FunctionKind kind) { return has_name(program_, kind, name); });
    if (!is_known) refuse_name(program_, name);
  }
}

std::vector<ShownValue> ValueViewer::values(const RunOptions& options,
                                            std::span<const rt::NpyArray> steps,
                                            Shape shape) const {
  interp::Inputs inputs;
  inputs.rows = shape.rows;
  inputs.cols = shape.cols;
  inputs.draw.seed = options.seed;
  inputs.worker = options.worker;
  inputs.world = options.world;
  inputs.call_extern = codegen::call_extern;
  inputs.states = value_or_throw(interp::initial_states(program_, inputs));
  const InputSource given(program_.info, options, shape);
  const bool has_sync = program_.info.has_sync;
  const auto body = has_sync ? ir::FunctionKind::Sync : ir::FunctionKind::Encode;
  Latest in_body, in_decode;
  interp::Outputs out;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    inputs.gradient = to_f32(view_of(steps[i]));
    inputs.draw.step = options.step + i;
    given.set(inputs, inputs.draw.step);
    in_body.clear();
    if (shape.num_elems() > 0) out = run(program_, body, inputs, in_body);
    if (shape.num_elems() > 0) inputs.states = out.states;
  }
  if (!has_sync && shape.num_elems() > 0) {
    inputs.fields = out.fields;
    inputs.counts = out.counts;
    inputs.is_non_finite = out.non_finite;
    run(program_, ir::FunctionKind::Decode, inputs, in_decode);
  }
  std::vector<ShownValue> shown;
  for (const std::string& name : names_) {
    for (const ir::FunctionKind kind : kBodies) {
      if (!has_name(program_, kind, name)) continue;
      const Latest& latest = kind == ir::FunctionKind::Decode ? in_decode : in_body;
      ShownValue value{name, std::string(ir::function_kind_name(kind)), std::nullopt};
      if (const auto at = latest.find(name); at != latest.end()) value.array = at->second;
      shown.push_back(std::move(value));
    }
  }
  return shown;
}

}  // namespace cinch::driver
