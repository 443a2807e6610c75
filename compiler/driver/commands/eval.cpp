// cinch eval: computes expressions, and prints their values and types.

#include <algorithm>
#include <cctype>

#include "compiler/driver/codecs/codec.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/values.h"
#include "compiler/driver/target.h"
#include "compiler/interp/observe.h"

namespace cinch::driver {
namespace {

// The name of the expression's value in the program that computes it.
constexpr const char* kValue = "evaluated";

bool begins_with(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) {
    const bool is_word = text.starts_with(word) && text.size() > word.size() &&
                         std::isspace(static_cast<unsigned char>(text[word.size()])) != 0;
    return is_word;
  });
}

bool is_declaration(const std::string& text) {
  return begins_with(text, {"fn", "const", "import"});
}

// Does an `=` that is no comparison stand outside of brackets?
bool assigns(const std::string& text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i], next = i + 1 < text.size() ? text[i + 1] : ' ';
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    const bool is_equals = c == '=' && next != '=';
    const char last = i > 0 ? text[i - 1] : ' ';
    if (is_equals && depth == 0 && std::string_view("=<>!").find(last) == std::string_view::npos)
      return true;
  }
  return false;
}

bool is_statement(const std::string& text) {
  return begins_with(text, {"let", "for", "while", "assert"}) || assigns(text);
}

// Statements and expressions of one word of the command line: `let x = 2; x * x`.
std::vector<std::string> parts_of(const std::string& word) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : word) {
    depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    const bool ends = depth == 0 && (c == ';' || c == '\n');
    if (ends) parts.emplace_back();
    if (!ends && !(parts.back().empty() && c == ' ')) parts.back() += c;
  }
  for (std::string& part : parts) part.erase(part.find_last_not_of(' ') + 1);
  std::erase(parts, "");
  return parts;
}

// What a program may say to give the value a name. A number that is known before the program runs,
// and a value that has a name already, need a copy.
enum class Form : std::uint8_t { Plain, Repeated, Gathered };

struct Preamble {
  std::string declarations, statements;
};

service::ProgramRequest request_for(const Preamble& before, const std::string& expression,
                                    Form form) {
  std::string text = before.declarations +
                     "compressor eval {\n"
                     "wire { value: [f32; n] }\n"
                     "encode(g: [f32; n]) {\n" +
                     before.statements + "let " + kValue + " =\n";
  if (form == Form::Plain) text += expression;
  if (form == Form::Repeated) text += "fill(" + expression + ", 1)";
  if (form == Form::Gathered) text += "(" + expression + ")[iota(len(" + expression + "))]";
  text += "\nwire { value: g }\n}\ndecode(w) { w.value }\n}\n";
  return {.program = "expression:eval", .bindings = {}, .text = std::move(text)};
}

interp::Inputs inputs_of(const EvalOptions& options) {
  // Without a gradient `n` is 1, since a program runs only for tensors with elements.
  std::vector<float> gradient(1);
  if (!options.input.empty())
    gradient = to_f32(view_of(read_gradient(options.input, options.dtype)));
  interp::Inputs inputs = interp::inputs_for(gradient);
  inputs.draw.seed = options.seed;
  inputs.draw.step = options.step;
  return inputs;
}

std::optional<interp::Array> try_form(service::FrontEnd& front_end,
                                      const service::ProgramRequest& request,
                                      const interp::Inputs& inputs) {
  const ir::Program program = service::make_ir(front_end, request, /*with_passes=*/false);
  std::optional<interp::Array> found;
  value_or_throw(interp::run_observed(program, ir::FunctionKind::Encode, inputs,
                                      [&](const ir::Value& value, const interp::Array& array) {
                                        if (value.name == kValue) found = array;
                                      }));
  return found;
}

interp::Array evaluate(const Preamble& before, const std::string& expression,
                       const interp::Inputs& inputs) {
  FrontEnd front_end;
  if (auto found = try_form(front_end, request_for(before, expression, Form::Plain), inputs))
    return *found;
  for (const Form form : {Form::Repeated, Form::Gathered}) {
    service::FrontEnd silent;  // the other form may be wrong for this value
    try {
      auto found = try_form(silent, request_for(before, expression, form), inputs);
      if (found && form == Form::Repeated) {
        found->rank = 0;
        found->dims[0] = 1;
      }
      if (found) return *found;
    } catch (const service::ServiceError& error) {
      if (error.fault() != service::Fault::Program) throw;
    }
  }
  throw CommandError(ExitCode::AtFault, "'{}' has no value that can be shown", expression);
}

void print_values(const std::vector<std::pair<std::string, interp::Array>>& values) {
  for (const auto& [expression, array] : values) {
    const std::string text = value_text(array) + "  " + type_text(array);
    print_text("{}\n", values.size() == 1 ? text : expression + " = " + text);
  }
}

}  // namespace

ExitCode run_eval(const EvalOptions& options) {
  const interp::Inputs inputs = inputs_of(options);
  Preamble before;
  std::vector<std::pair<std::string, interp::Array>> values;
  bool has_statement = false;
  for (const std::string& word : options.expressions) {
    for (const std::string& part : parts_of(word)) {
      if (is_declaration(part)) {
        before.declarations += part + "\n";
      } else if (is_statement(part)) {
        before.statements += part + "\n";
        has_statement = true;
      } else {
        values.emplace_back(part, evaluate(before, part, inputs));
      }
    }
  }
  if (values.empty()) {
    throw UsageError(has_statement ? "nothing to compute: an expression follows the statements"
                                   : "nothing to compute");
  }
  if (!options.json) {
    print_values(values);
    return ExitCode::Done;
  }
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [expression, array] : values) {
    nlohmann::json value = value_json(array);
    value["expression"] = expression;
    list.push_back(std::move(value));
  }
  print_result(list);
  return ExitCode::Done;
}

}  // namespace cinch::driver
