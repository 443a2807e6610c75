// cinch encode: encodes a gradient to a payload.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "compiler/driver/codecs/codec.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/files.h"
#include "compiler/driver/process/interrupt.h"
#include "compiler/driver/process/json_output.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/text.h"

namespace cinch::driver {

ExitCode run_encode(const RunOptions& options) {
  if (options.worker >= options.world) {
    throw CommandError(ExitCode::Usage, "--worker must be below --world");
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

}  // namespace cinch::driver
