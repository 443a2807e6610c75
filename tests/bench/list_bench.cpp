// bench_list: a list of tensors in one call beside one tensor of the same total, and beside the
// same list with a call for each tensor. Calls take turns; medians.
//
//   bench_list SIZES.csv [--shrink N] [--seconds S] [--threads T] program …
//
// SIZES: a line "name,elements" per tensor behind comments and one line of names; with --shrink
// each has 1/N of its elements. Gives a line of JSON per program.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "compiler/bench/tuning_search.h"
#include "compiler/service/compile.h"
#include "compiler/service/front_end.h"
#include "runtime/call/list_session.h"
#include "runtime/module/cpu_module.h"
#include "runtime/session/session.h"

namespace cinch {
namespace {

struct Options {
  std::string sizes;
  std::int64_t shrink = 1;
  double seconds = 2;
  std::uint32_t threads = 0;
  std::vector<std::string> programs;
};

std::vector<std::int64_t> read_sizes(const Options& options) {
  std::ifstream file(options.sizes);
  std::vector<std::int64_t> sizes;
  for (std::string line; std::getline(file, line);) {
    const std::size_t comma = line.rfind(',');
    if (line.starts_with("#") || line.starts_with("name,") || comma == std::string::npos) continue;
    sizes.push_back(std::max<std::int64_t>(1, std::stoll(line.substr(comma + 1)) / options.shrink));
  }
  if (sizes.empty()) throw std::runtime_error(options.sizes + " has no sizes");
  return sizes;
}

void check(const rt::ListStatus& status) {
  if (!status) throw std::runtime_error(status.error().error.message);
}

// A list over the pieces of one gradient, with memory for payloads and outputs.
class List {
 public:
  List(const std::shared_ptr<const rt::LoadedProgram>& program,
       const std::vector<std::int64_t>& sizes, std::vector<float>& gradient,
       std::vector<float>& output, std::uint32_t threads)
      : session_(open(program, sizes, threads)) {
    std::vector<rt::TensorView> views;
    const auto total = static_cast<std::int64_t>(gradient.size());
    check(rt::bucket_tensors({gradient.data(), kF32, total, {}}, sizes, views));
    for (const rt::TensorView& view : views) {
      gradients_.emplace_back(view.data, view.dtype, view.num_elems);
    }
    check(rt::bucket_tensors({output.data(), kF32, total, {}}, sizes, outputs_));
    std::vector<std::size_t> bounds;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      bounds.push_back(
          static_cast<std::size_t>(service::value_or_throw(session_[i].payload_bound())));
    }
    memory_.resize(service::value_or_throw(rt::arena_bytes(bounds)));
    std::vector<std::size_t> offsets(sizes.size()), used(sizes.size());
    std::vector<std::span<std::uint8_t>> rooms;
    service::value_or_throw(
        rt::arena_rooms({memory_.data(), memory_.size(), offsets, used}, bounds, rooms));
    for (const std::span<std::uint8_t> room : rooms) slots_.push_back({room, {}});
  }

  void encode() {
    check(session_.encode({.step = step_++}, gradients_, slots_));
    payloads_.clear();
    for (const rt::PayloadSlot& slot : slots_) payloads_.push_back(slot.bytes);
  }
  void decode() { check(session_.decode({.step = step_ - 1}, payloads_, outputs_)); }

  // The same with a call for each tensor.
  void encode_one_by_one() {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      check(
          session_.encode({.step = step_, .which = {&i, 1}}, {&gradients_[i], 1}, {&slots_[i], 1}));
    }
    ++step_;
  }
  void decode_one_by_one() {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      check(session_.decode({.step = step_ - 1, .which = {&i, 1}}, {&payloads_[i], 1},
                            {&outputs_[i], 1}));
    }
  }

 private:
  static rt::SessionList open(const std::shared_ptr<const rt::LoadedProgram>& program,
                              const std::vector<std::int64_t>& sizes, std::uint32_t threads) {
    std::vector<rt::ListTensor> tensors;
    for (const std::int64_t size : sizes) {
      tensors.push_back({.rows = size, .tensor = static_cast<std::uint32_t>(tensors.size())});
    }
    rt::SessionOptions common;
    common.threads = threads;
    auto list = rt::SessionList::open(program, common, tensors);
    if (!list) throw std::runtime_error(list.error().error.message);
    return std::move(*list);
  }

  rt::SessionList session_;
  std::uint64_t step_ = 0;
  std::vector<rt::ConstTensorView> gradients_;
  std::vector<rt::TensorView> outputs_;
  std::vector<std::uint8_t> memory_;
  std::vector<rt::PayloadSlot> slots_;
  std::vector<rt::PayloadBytes> payloads_;
};

nlohmann::json measure(const std::string& name, const std::vector<std::int64_t>& sizes,
                       const Options& options) {
  service::FrontEnd front_end;
  auto image = service::make_program_image(
      front_end, {name, {}, {}}, {codegen::TargetKind::Cpu, std::string(rt::host_cpu_arch())});
  const auto program = service::value_or_throw(rt::LoadedProgram::load(std::move(image)));
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  std::vector<float> gradient = bench::made_up_gradient(total);
  std::vector<float> output(gradient.size());
  List list(program, sizes, gradient, output, options.threads);
  List one(program, {total}, gradient, output, options.threads);
  // Medians, and the minimum: on a busy machine, a long call is disturbed more often.
  const auto turns = [&](void (List::*call)(), void (List::*one_by_one)()) {
    std::array<double, 3> least{};
    least.fill(std::numeric_limits<double>::infinity());
    const auto timed = [&](std::size_t contestant, List& of, void (List::*what)()) {
      return [&of, &least, contestant, what] {
        const double ms = bench::timed_ms([&] { (of.*what)(); });
        least[contestant] = std::min(least[contestant], ms);
        return ms;
      };
    };
    const bench::Rounds rounds =
        bench::take_turns({timed(0, list, call), timed(1, one, call), timed(2, list, one_by_one)},
                          {options.seconds, 5, 1001});
    nlohmann::json figures{{"rounds", rounds.count}};
    for (std::size_t i = 0; i < least.size(); ++i) {
      const std::string contestant = std::array{"list", "one", "one_by_one"}[i];
      figures[contestant + "_ms"] = rounds.medians[i];
      figures[contestant + "_least_ms"] = least[i];
    }
    return figures;
  };
  return {{"program", name},
          {"tensors", sizes.size()},
          {"elements", total},
          {"encode", turns(&List::encode, &List::encode_one_by_one)},
          {"decode", turns(&List::decode, &List::decode_one_by_one)}};
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--shrink" && has_value) {
      options.shrink = std::max(1, std::atoi(argv[++i]));
    } else if (word == "--seconds" && has_value) {
      options.seconds = std::atof(argv[++i]);
    } else if (word == "--threads" && has_value) {
      options.threads = static_cast<std::uint32_t>(std::atoi(argv[++i]));
    } else if (options.sizes.empty()) {
      options.sizes = word;
    } else {
      options.programs.push_back(word);
    }
  }
  if (options.programs.empty()) throw std::runtime_error("bench_list SIZES.csv program …");
  return options;
}

}  // namespace
}  // namespace cinch

int main(int argc, char** argv) {
  try {
    const cinch::Options options = cinch::parse(argc, argv);
    const std::vector<std::int64_t> sizes = cinch::read_sizes(options);
    for (const std::string& program : options.programs) {
      fmt::print("{}\n", cinch::measure(program, sizes, options).dump());
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_list: {}\n", error.what());
    return 1;
  }
}
