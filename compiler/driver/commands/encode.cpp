// cinch encode and cinch decode: a gradient to a payload, and back. The payload gives the tensor's
// shape.

#include "compiler/driver/codecs/codec.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/text.h"
#include "runtime/payload/payload.h"

namespace cinch::driver {
ExitCode run_encode(const RunOptions& options) {
  if (options.worker >= options.world) {
    throw UsageError("--worker must be below --world");
  }
  require_distinct_files({{"--payload", options.payload}, {"--state-out", options.state_out}});
  const rt::NpyArray gradient = read_gradient(options.inputs.at(0), options.dtype);
  const CodecFactory factory(options);
  factory.require_payloads("encode");
  const Shape shape = shape_of(gradient, factory.info().is_matrix);
  const auto codec = factory.open(shape, options.worker, options.world);
  if (!options.state_in.empty()) codec->load_states(options.state_in);
  const std::vector<std::uint8_t> payload = codec->encode(view_of(gradient), options.step);
  end_if_interrupted();
  write_file(options.payload, payload);
  if (!options.state_out.empty()) codec->save_states(options.state_out);
  if (options.json) {
    const nlohmann::json report = {{"compressor", factory.info().name},
                                   {"elements", shape.num_elems()},
                                   {"payload_bytes", payload.size()},
                                   {"bound_bytes", codec->payload_bound(options.step)},
                                   {"fingerprint", factory.fingerprint()}};
    print_result(report);
  } else {
    print_text("{}: {}, {}\n", options.payload,
               plainly_counted(static_cast<std::uint64_t>(shape.num_elems()), "element"),
               plainly_counted(payload.size(), "byte"));
  }
  return ExitCode::Done;
}

// cinch decode: decodes a payload to a gradient. The payload gives the tensor's shape.

namespace {

constexpr std::int64_t kMostElements = (std::int64_t{1} << 32) - 1;

// The header is untrusted: its sizes are limited before memory is allocated.
void check_shape(Shape shape, const std::string& path) {
  const bool fits = shape.rows >= 0 && shape.cols >= 0 && shape.rows <= kMostElements &&
                    shape.cols <= kMostElements &&
                    (shape.cols == 0 || shape.rows <= kMostElements / shape.cols);
  if (fits) return;
  throw CommandError(ExitCode::AtFault,
                     "{}: rows and columns: found {} and {}, expected fewer than 2^32 "
                     "elements",
                     path, shape.rows, shape.cols);
}

}  // namespace

ExitCode run_decode(const RunOptions& options) {
  const std::vector<std::uint8_t> payload = value_or_throw(rt::read_payload_file(options.payload));
  const CodecFactory factory(options);
  factory.require_payloads("decode");
  const rt::PayloadHeader header =
      value_or_throw(rt::read_payload_header(payload), options.payload);
  const Shape shape{header.rows, header.cols};
  check_shape(shape, options.payload);
  const auto codec = factory.open(shape, options.worker, options.world);
  std::vector<float> decoded(static_cast<std::size_t>(shape.num_elems()));
  codec->decode(payload, decoded, options.step);
  end_if_interrupted();
  std::vector<std::int64_t> dims{shape.rows};
  if (factory.info().is_matrix) dims.push_back(shape.cols);
  write_gradient(options.output, decoded, dims);
  if (options.json) {
    const nlohmann::json report = {{"compressor", factory.info().name},
                                   {"elements", shape.num_elems()},
                                   {"payload_bytes", payload.size()},
                                   {"non_finite", header.is_non_finite()}};
    print_result(report);
  } else {
    print_text("{}: {}\n", options.output,
               plainly_counted(static_cast<std::uint64_t>(shape.num_elems()), "element"));
  }
  return ExitCode::Done;
}

}  // namespace cinch::driver
