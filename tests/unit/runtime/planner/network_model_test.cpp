// Lines are recovered under noise, files report where they are damaged, and measurements of shaped
// links match their shape.
#include "runtime/planner/network/network_model.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

namespace cinch::rt {
namespace {

using nlohmann::json;

std::vector<Sample> samples_of(const Line& line) {
  std::vector<Sample> samples;
  for (int power = 8; power < 28; power += 2) {
    const double size = 1 << power;
    samples.push_back({size, line.at(size)});
  }
  return samples;
}

TEST(FitLine, FindsALineAgain) {
  const FittedLine fitted = fit_line(samples_of({50e-6, 8e-9}));
  EXPECT_NEAR(fitted.line.base, 50e-6, 1e-12);
  EXPECT_NEAR(fitted.line.slope, 8e-9, 1e-16);
  EXPECT_LT(fitted.largest_error, 1e-6);
}

TEST(FitLine, IsHardlyMovedByOneSampleThatIsFarOff) {
  std::vector<Sample> samples = samples_of({50e-6, 8e-9});
  samples[3].seconds *= 20;
  const FittedLine fitted = fit_line(samples);
  EXPECT_NEAR(fitted.line.base, 50e-6, 5e-6);
  EXPECT_NEAR(fitted.line.slope, 8e-9, 8e-10);
  EXPECT_LT(fitted.typical_error, 0.1);
  EXPECT_GT(fitted.largest_error, 0.9);
}

// Small sizes weigh as much as large ones: plain least squares would lose the latency.
TEST(FitLine, MeetsShortTimesAsWellAsLongOnes) {
  std::vector<Sample> samples = samples_of({50e-6, 8e-9});
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].seconds *= i % 2 == 0 ? 1.03 : 0.97;
  const FittedLine fitted = fit_line(samples);
  EXPECT_NEAR(fitted.line.base, 50e-6, 3e-6);
  EXPECT_LT(fitted.largest_error, 0.08);
}

TEST(FitLine, HasNeitherANegativeBaseNorANegativeSlope) {
  const std::vector<Sample> falls = {{0, 2e-3}, {1e6, 1e-3}, {2e6, 1e-3}};
  EXPECT_EQ(fit_line(falls).line.slope, 0);
  EXPECT_GT(fit_line(falls).line.base, 0);
  const std::vector<Sample> late = {{1e6, 1e-3}, {2e6, 3e-3}, {3e6, 5e-3}};
  EXPECT_EQ(fit_line(late).line.base, 0);
  EXPECT_GT(fit_line(late).line.slope, 0);
}

TEST(FitLine, TakesOneSizeAsItsSlopeAndNothingAsNothing) {
  const std::vector<Sample> one = {{1000, 2e-3}, {1000, 2e-3}};
  EXPECT_EQ(fit_line(one).line.base, 0);
  EXPECT_DOUBLE_EQ(fit_line(one).line.slope, 2e-6);
  const std::vector<Sample> calls = {{0, 2e-3}};
  EXPECT_DOUBLE_EQ(fit_line(calls).line.base, 2e-3);
  EXPECT_EQ(fit_line({}), FittedLine());
}

NetworkModel some_model() {
  std::vector<NetworkPoint> points;
  for (const ExchangeKind kind : kMeasuredKinds) {
    points.push_back({kind, 0, 1e-4});
    points.push_back({kind, 1 << 20, 1e-2});
  }
  return fit_network("mpi", 4, std::move(points));
}

TEST(NetworkFile, IsReadBack) {
  const auto read = network_from_json(network_to_json(some_model()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, some_model());
  EXPECT_EQ(read->of(ExchangeKind::Receive), read->of(ExchangeKind::Send));
}

TEST(NetworkFile, HasTwoNetworks) {
  NetworkModel model = some_model();
  model.ranks_per_machine = 2;
  model.within = {{1e-6, 2e-10}, 0.01, 0.02};
  model.within_gap = 3e-7;
  model.within_points = {{ExchangeKind::Send, 100, 5e-6}};
  const auto read = network_from_json(network_to_json(model));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, model);
  EXPECT_TRUE(read->is_within(2, 3));
  EXPECT_FALSE(read->is_within(1, 2));
  json damaged = json::parse(network_to_json(model));
  damaged["ranks_per_machine"] = 3;
  const auto refused = network_from_json(damaged.dump());
  EXPECT_EQ(refused ? "" : refused.error().message,
            "measurements: ranks_per_machine: does not divide 4 ranks");
  damaged.erase("within");
  damaged["ranks_per_machine"] = 2;
  EXPECT_FALSE(network_from_json(damaged.dump()));
}

Error error_of(const std::string& text) {
  const auto read = network_from_json(text);
  EXPECT_FALSE(read) << text;
  return read ? Error() : read.error();
}

TEST(NetworkFile, SaysWhereItIsDamaged) {
  const std::string text = network_to_json(some_model());
  const json whole = json::parse(text);
  struct Case {
    const char* pointer;
    json value;
    const char* says;
  };
  for (const auto& [pointer, value, says] :
       {Case{"/models/2/seconds", -1, "models[2].seconds: is not a number from 0 to 1000000: -1"},
        Case{"/models/1/exchange", "shout", "models[1].exchange: is not an exchange: \"shout\""},
        Case{"/models/1/exchange", "send", "models[1]: comes twice"},
        Case{"/points/3", 7, "points[3]: is not an object"},
        Case{"/points/0/bytes", 1.5, "points[0].bytes: is not a whole number of at least 0: 1.5"},
        Case{"/models", json::array(), "models: has nothing on send"},
        Case{"/ranks", 0, "ranks: is not a number of ranks from 1 to 4294967295"},
        Case{"/file", "plan", "file: is not \"cinch network\""}}) {
    json damaged = whole;
    damaged[json::json_pointer(pointer)] = value;
    const Error error = error_of(damaged.dump());
    EXPECT_EQ(error.kind, ErrorKind::CorruptFile);
    EXPECT_NE(error.message.find(says), std::string::npos) << error.message;
  }
  EXPECT_NE(error_of(text.substr(0, text.size() / 2)).message.find("measurements: line "),
            std::string::npos);
  EXPECT_NE(error_of("{}").message.find("has no \"file\""), std::string::npos);
  json other = whole;
  other["format"] = 2;
  EXPECT_EQ(error_of(other.dump()).kind, ErrorKind::VersionMismatch);
}

std::vector<Result<NetworkModel>> probe_loopback(std::uint32_t ranks, const LinkShape& shape,
                                                 const ProbeOptions& options) {
  LoopbackWorld world(ranks, shape);
  std::vector<Result<NetworkModel>> models(ranks, NetworkModel());
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto transport = world.transport(rank);
      models[rank] = measure_network(*transport, options);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return models;
}

TEST(Probe, MeasuresTwoNetworks) {
  ProbeOptions options{5000, 0.05, std::chrono::seconds(30)};
  options.ranks_per_machine = 2;
  const auto models = probe_loopback(4, {}, options);
  for (const auto& model : models) {
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(*model, *models[0]);
    EXPECT_TRUE(model->has_two_networks());
    EXPECT_FALSE(model->within_points.empty());
    EXPECT_GT(model->within.line.base, 0);
  }
  // One machine has one network, and so have machines of one rank.
  options.ranks_per_machine = 4;
  EXPECT_TRUE(probe_loopback(4, {}, options)[0]->within_points.empty());
}

TEST(Probe, GivesAllRanksTheSameModel) {
  for (const std::uint32_t ranks : {1U, 2U, 3U, 5U}) {
    const auto models = probe_loopback(ranks, {}, {5000, 0.05, std::chrono::seconds(30)});
    for (const auto& model : models) {
      ASSERT_TRUE(model) << model.error().message;
      EXPECT_EQ(*model, *models[0]);
    }
    EXPECT_EQ(models[0]->points.empty(), ranks == 1);
  }
}

// Links take at least their time, whatever else the machine does.
TEST(Probe, FindsNoLinkFasterThanItIs) {
  const LinkShape shape{2e-3, 100e6};
  const auto models = probe_loopback(3, shape, {1 << 18, 0.5, std::chrono::seconds(30)});
  ASSERT_TRUE(models[0]) << models[0].error().message;
  const NetworkModel ideal = shaped_network(3, shape);
  for (const NetworkPoint& point : models[0]->points) {
    const double least = ideal.of(point.kind).line.at(static_cast<double>(point.bytes));
    EXPECT_GE(point.seconds, 0.999 * least)
        << exchange_kind_name(point.kind) << ", " << point.bytes << " bytes";
  }
}

TEST(Probe, EndsWhenARankHasLeft) {
  LoopbackWorld world(2);
  const auto stays = world.transport(0);
  world.transport(1).reset();
  const auto model = measure_network(*stays, {1000, 0.01, std::chrono::seconds(30)});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::Cancelled);
}

}  // namespace
}  // namespace cinch::rt
