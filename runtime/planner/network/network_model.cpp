// Lines through measured times.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "runtime/core/json.h"
#include "runtime/planner/network/network_model.h"

namespace cinch::rt {
namespace {

using nlohmann::json;

constexpr const char* kFile = "cinch network";
constexpr int kNetworkFormat = 1;

ExchangeKind kind_of(const JsonPart& part) {
  const std::string name = part.text();
  const auto* const found = std::ranges::find(kMeasuredKinds, name, exchange_kind_name);
  if (found == kMeasuredKinds.end()) part.refuse("is not an exchange: " + part.value.dump());
  return *found;
}

FittedLine read_line(const JsonPart& part) {
  return {{part.at("seconds").number(), part.at("seconds_per_byte").number()},
          part.at("typical_error").number(),
          part.at("largest_error").number()};
}

void read_lines(const JsonPart& models, NetworkModel& to) {
  std::array<bool, kMeasuredKinds.size()> have_come{};
  for (const JsonPart& part : models.entries()) {
    const std::size_t index = NetworkModel::index_of(kind_of(part.at("exchange")));
    if (have_come[index]) part.refuse("comes twice");
    have_come[index] = true;
    to.lines[index] = read_line(part);
    to.gaps[index] = part.at("gap_seconds").number();
  }
  for (std::size_t i = 0; i < have_come.size(); ++i) {
    if (!have_come[i]) {
      models.refuse(fmt::format("has nothing on {}", exchange_kind_name(kMeasuredKinds[i])));
    }
  }
}

json line_json(const FittedLine& fitted, double gap) {
  return {{"gap_seconds", gap},
          {"seconds", fitted.line.base},
          {"seconds_per_byte", fitted.line.slope},
          {"typical_error", fitted.typical_error},
          {"largest_error", fitted.largest_error}};
}

std::vector<NetworkPoint> read_points(const JsonPart& from) {
  std::vector<NetworkPoint> points;
  for (const JsonPart& point : from.entries()) {
    points.push_back(
        {kind_of(point.at("exchange")), point.at("bytes").count(), point.at("seconds").number()});
  }
  return points;
}

json points_json(const std::vector<NetworkPoint>& points) {
  json written = json::array();
  for (const NetworkPoint& point : points) {
    written.push_back({{"exchange", exchange_kind_name(point.kind)},
                       {"bytes", point.bytes},
                       {"seconds", point.seconds}});
  }
  return written;
}

// Messages within machines, which files of one network do not have.
void read_within(const JsonPart& file, NetworkModel& to) {
  const auto ranks = file.find("ranks_per_machine");
  if (!ranks) return;
  to.ranks_per_machine = static_cast<std::uint32_t>(ranks->count(to.world));
  if (to.ranks_per_machine == 0 || to.world % to.ranks_per_machine != 0) {
    ranks->refuse(fmt::format("does not divide {} ranks", to.world));
  }
  const JsonPart within = file.at("within");
  to.within = read_line(within);
  to.within_gap = within.at("gap_seconds").number();
  to.within_points = read_points(within.at("points"));
}

NetworkModel read_model(const JsonPart& file) {
  NetworkModel model;
  model.transport = file.at("transport").text();
  const JsonPart world = file.at("ranks");
  if (world.count() == 0 || world.count() > UINT32_MAX)
    world.refuse("is not a number of ranks from 1 to 4294967295");
  model.world = static_cast<std::uint32_t>(world.count());
  read_lines(file.at("models"), model);
  model.points = read_points(file.at("points"));
  read_within(file, model);
  return model;
}

// Errors above this share weigh linearly, not quadratically.
constexpr double kUsualError = 0.25;
constexpr int kRounds = 30;

// base * u + slope * v should be 1.
struct Row {
  double u = 0, v = 0, weight = 1;
  double error(const Line& line) const { return line.base * u + line.slope * v - 1; }
};

// Least squares. If base or slope would be negative, it becomes zero and the other is fitted alone.
Line solve(std::span<const Row> rows) {
  double uu = 0, uv = 0, vv = 0, u = 0, v = 0;
  for (const Row& row : rows) {
    uu += row.weight * row.u * row.u;
    uv += row.weight * row.u * row.v;
    vv += row.weight * row.v * row.v;
    u += row.weight * row.u;
    v += row.weight * row.v;
  }
  const double determinant = uu * vv - uv * uv;
  if (determinant > 1e-12 * uu * vv) {
    const Line line{(u * vv - v * uv) / determinant, (v * uu - u * uv) / determinant};
    if (line.base >= 0 && line.slope >= 0) return line;
    if (line.base < 0) return {0, v / vv};
  }
  return uu > 0 ? Line{u / uu, 0} : Line{};
}

}  // namespace

std::size_t NetworkModel::index_of(ExchangeKind kind) {
  const ExchangeKind measured = kind == ExchangeKind::Receive ? ExchangeKind::Send : kind;
  return static_cast<std::size_t>(std::ranges::find(kMeasuredKinds, measured) -
                                  kMeasuredKinds.begin());
}

NetworkModel fit_network(std::string transport, std::uint32_t world,
                         std::vector<NetworkPoint> points) {
  NetworkModel model{std::move(transport), world, {}, {}, std::move(points)};
  for (std::size_t i = 0; i < kMeasuredKinds.size(); ++i) {
    std::vector<Sample> samples;
    for (const NetworkPoint& point : model.points) {
      // A collective of no bytes may be no exchange at all.
      const bool is_none = point.bytes == 0 && point.kind != ExchangeKind::Send;
      if (point.kind != kMeasuredKinds[i] || is_none) continue;
      samples.push_back({static_cast<double>(point.bytes), point.seconds});
    }
    model.lines[i] = fit_line(samples);
  }
  return model;
}

NetworkModel shaped_network(std::uint32_t world, const LinkShape& shape) {
  NetworkModel model{"loopback", world, {}, {}, {}};
  if (world == 1) return model;
  for (std::size_t i = 0; i < kMeasuredKinds.size(); ++i) {
    const double rounds = kMeasuredKinds[i] == ExchangeKind::AllReduce ? 2 : 1;
    Line& line = model.lines[i].line;
    line.base = rounds * shape.latency_seconds;
    line.slope = shape.bytes_per_second > 0 ? 1 / shape.bytes_per_second : 0;
  }
  return model;
}

std::string network_to_json(const NetworkModel& model) {
  json models = json::array();
  for (std::size_t i = 0; i < kMeasuredKinds.size(); ++i) {
    models.push_back(line_json(model.lines[i], model.gaps[i]));
    models.back()["exchange"] = exchange_kind_name(kMeasuredKinds[i]);
  }
  json written = {
      {"file", kFile},        {"format", kNetworkFormat}, {"transport", model.transport},
      {"ranks", model.world}, {"models", models},         {"points", points_json(model.points)}};
  if (model.has_two_networks()) {
    written["ranks_per_machine"] = model.ranks_per_machine;
    written["within"] = line_json(model.within, model.within_gap);
    written["within"]["points"] = points_json(model.within_points);
  }
  return written.dump(1) + "\n";
}

Result<NetworkModel> network_from_json(std::string_view text) {
  return read_json_file(text, kFile, kNetworkFormat, "measurements", read_model);
}

FittedLine fit_line(std::span<const Sample> samples) {
  std::vector<Row> rows;
  for (const Sample& sample : samples) {
    if (sample.seconds > 0) rows.push_back({1 / sample.seconds, sample.size / sample.seconds});
  }
  if (rows.empty()) return {};
  FittedLine fitted;
  // If all samples have one size, not zero, calls are taken to have no base cost.
  if (std::ranges::all_of(
          samples, [&](const Sample& s) { return s.size == samples[0].size && s.size > 0; })) {
    for (Row& row : rows) row.u = 0;
    double v = 0, vv = 0;
    for (const Row& row : rows) {
      v += row.v;
      vv += row.v * row.v;
    }
    fitted.line = {0, v / vv};
  } else {
    for (int round = 0; round < kRounds; ++round) {
      fitted.line = solve(rows);
      for (Row& row : rows) {
        const double error = std::abs(row.error(fitted.line));
        row.weight = error > kUsualError ? kUsualError / error : 1;
      }
    }
  }
  std::vector<double> errors;
  errors.reserve(rows.size());
  for (const Row& row : rows) errors.push_back(std::abs(row.error(fitted.line)));
  std::ranges::sort(errors);
  fitted.typical_error = errors[errors.size() / 2];
  fitted.largest_error = errors.back();
  return fitted;
}

}  // namespace cinch::rt
