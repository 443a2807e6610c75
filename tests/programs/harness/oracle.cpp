// Interpreter and session run the same calls: encode, decode, finish of twice the decoded tensor
// where the program has one.
#include "tests/programs/harness/oracle.h"
#include "runtime/core/check.h"
#include "tests/programs/harness/inputs.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "codegen/jit/library.h"
#include "runtime/call/payload_assembly.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::testing {

std::vector<float> doubled(const std::vector<float>& values) {
  std::vector<float> out = values;
  for (float& x : out) x += x;
  return out;
}

namespace {

std::vector<std::uint8_t> bytes_of(const interp::Array& array) {
  return rt::pack_elements(array.dtype, array.bits);
}

interp::Inputs inputs_of(const rt::SessionOptions& options, std::uint64_t step) {
  interp::Inputs inputs;
  inputs.call_extern = codegen::call_extern;
  inputs.rows = options.rows;
  inputs.cols = options.cols;
  inputs.draw = {options.seed, step, options.tensor, options.piece};
  inputs.worker = options.worker;
  inputs.world = options.world;
  return inputs;
}

// A field's packed bytes as the interpreter holds them. `env` has the payload's counts.
rt::Result<interp::Array> array_of(const rt::PayloadExpectation& expected,
                                   const rt::FieldInfo& field, const HostEnv& env,
                                   std::span<const std::uint8_t> bytes) {
  const rt::ArrayType& type = field.type;
  interp::Array array{type.dtype, type.rank, {1, 1}, {}};
  for (int i = 0; i < type.rank; ++i) {
    const auto dim = expected.info->exprs->eval_int(type.dims[i], env);
    if (!dim) return tl::unexpected<rt::Error>(dim.error());
    array.dims[i] = *dim;
  }
  array.bits = rt::unpack_elements(type.dtype, bytes, array.size());
  if (!is_signed_int(type.dtype)) return array;
  const int unused = 64 - type.dtype.bits;
  for (std::uint64_t& x : array.bits) {
    x = static_cast<std::uint64_t>(static_cast<std::int64_t>(x << unused) >> unused);
  }
  return array;
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
               rt::SessionOptions options)
    : program_(program), image_(image), options_(std::move(options)) {}

interp::Inputs Oracle::inputs(std::uint64_t step) const {
  interp::Inputs inputs = inputs_of(options_, step);
  inputs.states = states_;
  return inputs;
}

rt::Result<std::vector<std::uint8_t>> Oracle::assemble(const interp::Outputs& outputs,
                                                       std::uint64_t step) const {
  const rt::ParameterValues parameters(image_.info);
  const rt::PayloadExpectation expected = expected_payload(image_, options_, parameters, step);
  const rt::PayloadContext context{expected.info, expected.fingerprint, expected.decode_hash,
                                   expected.env};
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
  // A session holds no inputs.
  for (std::size_t i = 0; i < states_.size(); ++i) {
    result.states.push_back(program_.info.states[i].is_input ? std::vector<std::uint8_t>()
                                                             : bytes_of(states_[i]));
  }
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
    give_inputs(program_.info, states_);
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

rt::PayloadExpectation expected_payload(const rt::ProgramImage& image,
                                        const rt::SessionOptions& options,
                                        const rt::ParameterValues& parameters, std::uint64_t step) {
  rt::PayloadExpectation expected;
  expected.info = &image.info;
  expected.fingerprint = image.fingerprint;
  expected.decode_hash = rt::decode_hash(
      image.info,
      {parameters.given_words(), options.world, options.seed, step, options.tensor, options.piece});
  expected.env.n = options.rows * options.cols;
  expected.env.rows = options.rows;
  expected.env.cols = options.cols;
  expected.env.world = options.world;
  expected.env.worker = options.worker;
  expected.env.step = static_cast<std::int64_t>(step);
  expected.env.params = parameters.host_values();
  return expected;
}

rt::Result<std::vector<float>> interpret_decode(const ir::Program& program,
                                                const rt::PayloadExpectation& expected,
                                                const rt::PayloadView& view,
                                                const rt::SessionOptions& options,
                                                std::uint64_t step) {
  interp::Inputs inputs = inputs_of(options, step);
  inputs.counts.assign(view.counts.begin(), view.counts.end());
  inputs.is_non_finite = view.header.is_non_finite();
  HostEnv env = expected.env;
  env.counts = inputs.counts;
  for (std::size_t i = 0; i < view.fields.size(); ++i) {
    auto field = array_of(expected, expected.info->wire.fields[i], env, view.fields[i]);
    if (!field) return tl::unexpected<rt::Error>(field.error());
    inputs.fields.push_back(std::move(*field));
  }
  const auto outputs = interp::run(program, ir::FunctionKind::Decode, inputs);
  if (!outputs) return tl::unexpected<rt::Error>(outputs.error());
  return interp::to_floats(*outputs->output);
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
  CINCH_CHECK(give_inputs(session), "giving inputs");
  const auto payload = session.encode(gradient, step);
  if (payload) {
    result.payload.assign(payload->begin(), payload->end());
    decode_step(session, step, result);
    if (session.info().has_finish && !result.decode_error) finish_step(session, step, result);
  } else {
    result.encode_error = payload.error();
  }
  for (std::uint32_t i = 0; i < session.info().states.size(); ++i) {
    const auto state = session.state(i).value();
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
