// cinch probe: measures exchanges between ranks.

#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/ranks/rank_transports.h"
#include "compiler/driver/report/text.h"
#include "runtime/collective/loopback.h"
#include "runtime/planner/network/network_model.h"
#include "runtime/transports/mpi/mpi_transport.h"

namespace cinch::driver {
namespace {

rt::ProbeOptions probe_options(const ProbeCommandOptions& options) {
  return {options.largest_bytes, options.seconds, options.timeout(), options.ranks_per_machine};
}

void check_machines(const ProbeCommandOptions& options, std::uint32_t world) {
  if (world % options.ranks_per_machine == 0) return;
  throw UsageError("--machine-ranks {}: {} ranks cannot be split into machines of {} each",
                   options.ranks_per_machine, world, options.ranks_per_machine);
}

rt::NetworkModel probe_loopback(const ProbeCommandOptions& options) {
  if (options.ranks == 0) {
    throw UsageError("--ranks is required: the number of ranks");
  }
  check_machines(options, options.ranks);
  rt::LoopbackWorld world(options.ranks, link_shape(options));
  return measure_on_threads(options.ranks, probe_options(options),
                            [&](std::uint32_t rank) { return world.transport(rank); });
}

rt::NetworkModel probe_nccl(const ProbeCommandOptions& options) {
  const NcclRanks ranks(options, options.ranks);
  check_machines(options, ranks.world());
  return measure_on_threads(ranks.world(), probe_options(options),
                            [&](std::uint32_t rank) { return ranks.open(rank); });
}

// Returns nothing on ranks that do not report.
std::optional<rt::NetworkModel> probe_mpi(const ProbeCommandOptions& options) {
  const rt::ProbeOptions probe = probe_options(options);
  auto transport = value_or_throw(
      rt::open_mpi_transport({.is_exact = options.is_exact, .timeout = probe.timeout}));
  if (options.ranks > 0 && options.ranks != transport->world()) {
    throw UsageError("{} ranks were launched, not {}", transport->world(), options.ranks);
  }
  check_machines(options, transport->world());
  rt::NetworkModel model = value_or_throw(rt::measure_network(*transport, probe));
  const bool reports = transport->rank() == 0;
  transport.reset();
  value_or_throw(rt::leave_mpi(probe.timeout));
  if (reports) return model;
  return std::nullopt;
}

void print_line(const rt::FittedLine& of, double gap, std::string_view name) {
  print_text("{:<15} {:>11.1f} {:>11} {:>9.0f}% {:>8.0f}% {:>11.1f}\n", name, of.line.base * 1e6,
             of.line.slope > 0 ? fmt::format("{:.1f}", 1e-6 / of.line.slope) : "-",
             100 * of.typical_error, 100 * of.largest_error, 1e6 * gap);
}

void print_model(const rt::NetworkModel& model) {
  const std::string title =
      fmt::format("{}, {}; bytes are those that a rank sends, times those of the last rank",
                  model.transport, plainly_counted(model.world, "rank"));
  print_text("{}\n", wrapped(title, 0, sentence_width()));
  print_text("{:<15} {:>11} {:>11} {:>20} {:>11}\n", "", "latency", "bandwidth",
             "the line is off by", "at once");
  print_text("{:<15} {:>11} {:>11} {:>10} {:>9} {:>11}\n", "exchange", "us", "MB/s", "usually",
             "at most", "us each");
  for (const rt::ExchangeKind kind : rt::kMeasuredKinds) {
    print_line(model.of(kind), model.gaps[rt::NetworkModel::index_of(kind)],
               rt::exchange_kind_name(kind));
  }
  if (model.has_two_networks()) {
    print_line(model.within, model.within_gap, "send within");
    print_text("send: between machines of {}, and within them\n",
               plainly_counted(model.ranks_per_machine, "rank"));
  }
  print_text("\n{:<15} {:>11} {:>11} {:>11} {:>8}\n", "exchange", "bytes", "measured us", "line us",
             "off by");
  for (const rt::NetworkPoint& point : model.points) {
    const double fitted = model.of(point.kind).line.at(static_cast<double>(point.bytes));
    print_text("{:<15} {:>11} {:>11.1f} {:>11.1f} {:>+7.0f}%\n", rt::exchange_kind_name(point.kind),
               point.bytes, point.seconds * 1e6, fitted * 1e6,
               point.seconds > 0 ? 100 * (fitted / point.seconds - 1) : 0);
  }
}

std::optional<rt::NetworkModel> probe(const ProbeCommandOptions& options) {
  const Progress progress("measuring exchanges");
  if (options.transport == "loopback") return probe_loopback(options);
  if (options.transport == "nccl") return probe_nccl(options);
  if (options.transport != "ucx") return probe_mpi(options);
  const auto transport = open_ucx_rank(options);
  check_machines(options, transport->world());
  rt::NetworkModel model = value_or_throw(rt::measure_network(*transport, probe_options(options)));
  return transport->rank() == 0 ? std::optional(std::move(model)) : std::nullopt;
}

}  // namespace

ExitCode run_probe(const ProbeCommandOptions& options) {
  if (options.transport == "mpi" && options.ranks > 1 && !is_launched_rank()) {
    return launch_mpi_ranks(options.words, options.ranks);
  }
  if (options.transport == "ucx" && options.ranks > 1 && !is_ucx_rank(options)) {
    return launch_ucx_ranks(options, options.ranks);
  }
  require_place_for(options.output);
  const std::optional<rt::NetworkModel> model = probe(options);
  if (!model) return ExitCode::Done;
  const std::string text = rt::network_to_json(*model);
  if (!options.output.empty()) write_file(options.output, text);
  if (options.json) {
    print_result(nlohmann::json::parse(text));
  } else {
    print_model(*model);
  }
  return ExitCode::Done;
}

}  // namespace cinch::driver
