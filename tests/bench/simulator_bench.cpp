// Processor time of simulated steps: every rank for itself, and classes of ranks.
//
//   bench_simulator [--only TEXT]
#include <fmt/format.h>

#include <ctime>
#include <string_view>

#include "runtime/core/error.h"
#include "runtime/simulator/fabric_step.h"

namespace {

using namespace cinch::rt;

constexpr double kNic = 12.5e9;

Topology fabric(std::uint32_t ranks, std::uint32_t on_machine, std::uint32_t machines_per_leaf) {
  Topology::Shape shape;
  shape.ranks_per_machine = on_machine;
  shape.machines_per_leaf = machines_per_leaf;
  shape.spines = 16;
  shape.machine = {3e11, 1'000'000};
  shape.nic = {kNic, 1'000'000};
  shape.uplink = {kNic * on_machine * machines_per_leaf / 16 / 2, 1'000'000};
  shape.machines = {ranks / on_machine};
  return std::move(*Topology::make(shape));
}

CodecFacts thirtieth() {
  return {"thirtieth", true, false, true,
          [](std::int64_t rows, std::int64_t cols) -> Result<std::uint64_t> {
            return static_cast<std::uint64_t>(rows * cols / 8 + 4);
          }};
}

FabricStep step_of(std::string_view plan, std::uint32_t ranks, std::uint32_t on_machine,
                   std::uint32_t num_tensors, std::int64_t elems) {
  FabricStep step;
  step.request.plan = plan;
  step.request.world = ranks;
  step.request.ranks_per_machine = on_machine;
  step.request.codecs = {thirtieth()};
  for (std::uint32_t t = 0; t < num_tensors; ++t) {
    step.request.tensors.push_back({fmt::format("t{}", t), elems + std::int64_t{15'000} * t, 1, 0});
    step.inputs.ready_seconds.push_back(1e-3 * (t + 1));
  }
  const CostCurve encode{{{0, 1e-6}, {1e6, 3e-5}}}, add{{{0, 1e-6}, {1e6, 4e-5}}};
  step.inputs.codecs = {{encode, add, add, add}};
  step.inputs.dense = {add, add, add, add};
  step.inputs.clear = {{{0, 1e-6}, {1e6, 1e-5}}};
  step.inputs.network = shaped_network(ranks, {1e-6, kNic});
  return step;
}

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

void measure(const std::string& name, std::string_view only, const Topology& topology,
             FabricStep step) {
  if (name.find(only) == std::string::npos) return;
  const double begin = cpu_seconds();
  const auto made = simulate_on_fabric(topology, std::move(step));
  const double took = cpu_seconds() - begin;
  if (!made) {
    fmt::print("{:<48} {}\n", name, made.error().message);
    return;
  }
  fmt::print("{:<48} {:>8.3f} s, {:>4} classes, step {:.3f} ms\n", name, took, made->num_classes,
             1e3 * made->cost.seconds);
  std::fflush(stdout);
}

void run(std::string_view only) {
  for (const std::string_view plan :
       {"allreduce", "allgather", "two_shot", "ring", "ps", "tree", "hierarchical"}) {
    const std::uint32_t on_machine = plan == "hierarchical" ? 8 : 1;
    const Topology topology = fabric(128, on_machine, 32 / on_machine);
    for (const std::int64_t elems : {131'000, 2'100'000}) {
      measure(fmt::format("every rank, {}, 128, 20 of {}", plan, elems), only, topology,
              step_of(plan, 128, on_machine, 20, elems));
    }
  }
  for (const std::string_view plan : {"two_shot", "hierarchical"}) {
    const std::uint32_t on_machine = plan == "hierarchical" ? 8 : 1;
    const Topology topology = fabric(100'000, on_machine, 32 / on_machine);
    for (const std::uint32_t tensors : {1, 20}) {
      FabricStep step = step_of(plan, 100'000, on_machine, tensors, 2'100'000);
      step.has_classes = true;
      measure(fmt::format("classes, {}, 100,000, {}", plan, tensors), only, topology, step);
      step.slowness.assign(100'000, 1);
      for (std::uint32_t i = 0; i < 100; ++i) step.slowness[std::size_t{1000} * i] = 2;
      measure(fmt::format("classes, {}, 100,000, {}, 0.1 % slow", plan, tensors), only, topology,
              step);
    }
  }
  FabricStep step = step_of("ring", 10'000, 1, 1, 1'000'000);
  step.has_classes = true;
  measure("classes, ring, 10,000, 1", only, fabric(10'000, 1, 16), step);
}

}  // namespace

int main(int argc, char** argv) {
  const bool has_only = argc == 3 && std::string_view(argv[1]) == "--only";
  run(has_only ? argv[2] : "");
  return 0;
}
