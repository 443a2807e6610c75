// Interpreter and session run the same calls: encode, decode, finish of twice the decoded tensor
// where the program has one.
#include "tests/programs/harness/oracle.h"

#include <fmt/format.h>

#include <bit>

#include "runtime/payload/payload.h"
#include "runtime/session/parameters.h"
#include "runtime/session/payload_assembly.h"

namespace cinch::testing {
namespace {

std::vector<float> doubled(const std::vector<float>& values) {
  std::vector<float> out = values;
  for (float& x : out) x += x;
  return out;
}

std::vector<std::uint8_t> bytes_of(const interp::Array& array) {
  return rt::pack_elements(array.dtype, array.bits);
}

std::string hex(std::span<const std::uint8_t> bytes, std::size_t at) {
  std::string text;
  for (std::size_t i = at; i < bytes.size() && i < at + 8; ++i)
    text += fmt::format("{:02x} ", bytes[i]);
  return text;
}

std::string compare_bytes(const std::string& what, std::span<const std::uint8_t> oracle,
                          std::span<const std::uint8_t> cpu) {
  if (oracle.size() != cpu.size()) {
    return fmt::format("{}: interpreter has {} bytes, cpu {}", what, oracle.size(), cpu.size());
  }
  for (std::size_t i = 0; i < oracle.size(); ++i) {
    if (oracle[i] == cpu[i]) continue;
    return fmt::format("{}: byte {} of {}: interpreter {}, cpu {}", what, i, oracle.size(),
                       hex(oracle, i), hex(cpu, i));
  }
  return {};
}

std::string compare_floats(const std::string& what, const std::vector<float>& oracle,
                           const std::vector<float>& cpu) {
  if (oracle.size() != cpu.size()) {
    return fmt::format("{}: interpreter has {} elements, cpu {}", what, oracle.size(), cpu.size());
  }
  for (std::size_t i = 0; i < oracle.size(); ++i) {
    const auto a = std::bit_cast<std::uint32_t>(oracle[i]);
    const auto b = std::bit_cast<std::uint32_t>(cpu[i]);
    if (a == b) continue;
    return fmt::format("{}: element {} of {}: interpreter {} ({:08x}), cpu {} ({:08x})", what, i,
                       oracle.size(), oracle[i], a, cpu[i], b);
  }
  return {};
}

std::string compare_errors(const std::string& what, const std::optional<rt::Error>& oracle,
                           const std::optional<rt::Error>& cpu) {
  const auto text = [](const std::optional<rt::Error>& error) {
    return error ? fmt::format("{} ({})", rt::error_kind_name(error->kind), error->message)
                 : std::string("done");
  };
  const bool same = oracle.has_value() == cpu.has_value() && (!oracle || oracle->kind == cpu->kind);
  if (same) return {};
  return fmt::format("{}: interpreter: {}; cpu: {}", what, text(oracle), text(cpu));
}

}  // namespace

Oracle::Oracle(const ir::Program& program, const rt::ProgramImage& image,
               const rt::SessionOptions& options)
    : program_(program), image_(image), options_(options) {}

interp::Inputs Oracle::inputs(std::uint64_t step) const {
  interp::Inputs inputs;
  inputs.rows = options_.rows;
  inputs.cols = options_.cols;
  inputs.states = states_;
  inputs.draw = {options_.seed, step, options_.tensor, options_.piece};
  inputs.worker = options_.worker;
  inputs.world = options_.world;
  return inputs;
}

rt::Result<std::vector<std::uint8_t>> Oracle::assemble(const interp::Outputs& outputs,
                                                       std::uint64_t step) const {
  const rt::ParameterValues parameters(image_.info);
  rt::PayloadContext context;
  context.info = &image_.info;
  context.fingerprint = image_.fingerprint;
  context.decode_hash =
      rt::decode_hash(image_.info, {parameters.kernel_words(), options_.world, options_.seed, step,
                                    options_.tensor, options_.piece});
  context.env.n = options_.rows * options_.cols;
  context.env.rows = options_.rows;
  context.env.cols = options_.cols;
  context.env.world = options_.world;
  context.env.worker = options_.worker;
  context.env.step = static_cast<std::int64_t>(step);
  context.env.params = parameters.host_values();
  rt::EncodedFields encoded;
  encoded.non_finite = outputs.non_finite;
  for (std::int64_t count : outputs.counts) {
    encoded.counts.push_back(static_cast<std::uint32_t>(count));
  }
  std::vector<std::vector<std::uint8_t>> fields;
  for (const interp::Array& field : outputs.fields) fields.push_back(bytes_of(field));
  encoded.fields.assign(fields.begin(), fields.end());
  return rt::assemble_payload(context, encoded);
}

void Oracle::decode(const interp::Outputs& encoded, std::uint64_t step, StepResult& result) const {
  interp::Inputs inputs = this->inputs(step);
  inputs.states.clear();
  inputs.fields = encoded.fields;
  inputs.counts = encoded.counts;
  inputs.is_non_finite = encoded.non_finite;
  const auto outputs = interp::run(program_, ir::FunctionKind::Decode, inputs);
  if (outputs) {
    result.decoded = interp::to_floats(*outputs->output);
  } else {
    result.decode_error = outputs.error();
  }
}

void Oracle::finish(std::uint64_t step, StepResult& result) {
  interp::Inputs inputs = this->inputs(step);
  inputs.gradient = doubled(result.decoded);
  auto outputs = interp::run(program_, ir::FunctionKind::Finish, inputs);
  if (!outputs) {
    result.finish_error = outputs.error();
    return;
  }
  result.update = interp::to_floats(*outputs->output);
  if (!outputs->non_finite) states_ = std::move(outputs->states);
}

void Oracle::pack_states(StepResult& result) const {
  for (const interp::Array& state : states_) result.states.push_back(bytes_of(state));
}

StepResult Oracle::step(const std::vector<float>& gradient, std::uint64_t step) {
  StepResult result;
  if (states_.empty() && !program_.info.states.empty()) {
    auto initial = interp::initial_states(program_, inputs(step));
    if (!initial) {
      result.encode_error = initial.error();
      return result;
    }
    states_ = std::move(*initial);
  }
  interp::Inputs encode_inputs = inputs(step);
  encode_inputs.gradient = gradient;
  auto encoded = interp::run(program_, ir::FunctionKind::Encode, encode_inputs);
  if (!encoded) {
    result.encode_error = encoded.error();
    pack_states(result);
    return result;
  }
  auto payload = assemble(*encoded, step);
  if (!payload) {
    result.encode_error = payload.error();
    pack_states(result);
    return result;
  }
  result.payload = std::move(*payload);
  if (!encoded->non_finite) states_ = encoded->states;
  decode(*encoded, step, result);
  if (program_.find(ir::FunctionKind::Finish) != nullptr && !result.decode_error) {
    finish(step, result);
  }
  pack_states(result);
  return result;
}

namespace {

void decode_step(rt::Session& session, std::uint64_t step, StepResult& result) {
  result.decoded.assign(static_cast<std::size_t>(session.num_elems()), -1234.5f);
  const auto decoded = session.decode(result.payload, result.decoded, step);
  if (decoded) return;
  result.decode_error = decoded.error();
  result.decoded.clear();
}

void finish_step(rt::Session& session, std::uint64_t step, StepResult& result) {
  result.update.assign(result.decoded.size(), -1234.5f);
  const auto sum = doubled(result.decoded);
  const auto finished = session.finish(sum, result.update, step);
  if (finished) return;
  result.finish_error = finished.error();
  result.update.clear();
}

}  // namespace

StepResult run_step(rt::Session& session, const std::vector<float>& gradient, std::uint64_t step) {
  StepResult result;
  const auto payload = session.encode(gradient, step);
  if (payload) {
    result.payload.assign(payload->begin(), payload->end());
    decode_step(session, step, result);
    if (session.info().has_finish && !result.decode_error) finish_step(session, step, result);
  } else {
    result.encode_error = payload.error();
  }
  for (std::uint32_t i = 0; i < session.info().states.size(); ++i) {
    const auto state = session.state(i);
    result.states.emplace_back(state.begin(), state.end());
  }
  return result;
}

std::string compare(const StepResult& oracle, const StepResult& cpu) {
  std::string found = compare_errors("encode", oracle.encode_error, cpu.encode_error);
  if (found.empty()) found = compare_bytes("payload", oracle.payload, cpu.payload);
  if (found.empty()) found = compare_errors("decode", oracle.decode_error, cpu.decode_error);
  if (found.empty()) found = compare_floats("decoded", oracle.decoded, cpu.decoded);
  if (found.empty()) found = compare_errors("finish", oracle.finish_error, cpu.finish_error);
  if (found.empty()) found = compare_floats("update", oracle.update, cpu.update);
  if (found.empty() && oracle.states.size() != cpu.states.size()) found = "number of states";
  for (std::size_t i = 0; found.empty() && i < oracle.states.size(); ++i) {
    found = compare_bytes(fmt::format("state {}", i), oracle.states[i], cpu.states[i]);
  }
  return found;
}

}  // namespace cinch::testing
