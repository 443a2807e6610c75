// Bodies of sync_ranks.h.
#include "tests/collective/support/sync_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "runtime/core/numbers/floats.h"
#include "runtime/planner/planner.h"
#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/sessions.h"

namespace cinch::testing {

ProgramFile library_file(const std::string& expression) {
  return *make_program(
      "composed",
      "import std.wrap\nimport std.sign\nimport std.sparsify\nimport std.quantize\n"
      "import std.lowrank\ncompressor composed = " +
          expression + "\n");
}

namespace {

// Programs of one process, with their texts; ranks are threads.
struct KnownPrograms {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const rt::LoadedProgram>> by_name;
  std::map<const rt::LoadedProgram*, ProgramFile> files;
};

KnownPrograms& known_programs() {
  static auto* const kKnown = new KnownPrograms;
  return *kKnown;
}

std::shared_ptr<const rt::LoadedProgram> known(const std::string& name, const ProgramFile& file) {
  KnownPrograms& all = known_programs();
  const std::lock_guard lock(all.mutex);
  auto& program = all.by_name[name];
  if (program == nullptr) {
    program = load(file);
    all.files[program.get()] = file;
  }
  return program;
}

std::shared_ptr<const rt::LoadedProgram> carrier_of(const rt::LoadedProgram& program) {
  ProgramFile file;
  {
    KnownPrograms& all = known_programs();
    const std::lock_guard lock(all.mutex);
    file = all.files.at(&program);
  }
  file.is_carrier = true;
  return known("what carries " + file.text, file);
}

}  // namespace

std::shared_ptr<const rt::LoadedProgram> compiled_library(const std::string& expression) {
  return known(expression, library_file(expression));
}

std::shared_ptr<const rt::LoadedProgram> compiled_text(const std::string& name,
                                                       const std::string& text) {
  return known(text, *make_program(name, text));
}

std::vector<rt::CodecFacts> facts_of(Programs& programs, std::uint32_t world) {
  std::vector<rt::CodecFacts> facts;
  const std::size_t num_given = programs.size();
  for (std::size_t i = 0; i < num_given; ++i) {
    facts.push_back(rt::codec_facts(rt::image_of(programs[i]), world));
    if (facts[i].carrier.kind != rt::CarrierKind::Program) continue;
    facts[i].carrier_codec = static_cast<std::uint32_t>(programs.size());
    programs.push_back(carrier_of(*programs[i]));
  }
  for (std::size_t i = num_given; i < programs.size(); ++i)
    facts.push_back(rt::codec_facts(rt::image_of(programs[i]), world));
  return facts;
}

rt::SyncOptions sync_options(const SyncCase& one_case, std::uint32_t rank) {
  rt::SyncOptions options{.plan = one_case.plan,
                          .programs = one_case.programs,
                          .threads = 1,
                          .seed = one_case.seed,
                          .machine_ranks = one_case.machine_ranks,
                          .timeout = one_case.timeout};
  if (!one_case.devices.empty()) options.device = one_case.devices[rank];
  return options;
}

SyncCase make_sync_case(const std::shared_ptr<const rt::LoadedProgram>& program,
                        rt::PlanRequest request) {
  SyncCase made;
  if (program != nullptr) {
    made.programs = {program};
    request.codecs = facts_of(made.programs, request.world);
  } else {
    for (rt::PlanTensor& tensor : request.tensors) tensor.codec = rt::kDense;
  }
  const auto plan = rt::build_plan(request);
  EXPECT_TRUE(plan) << plan.error().message;
  if (plan) made.plan = std::make_shared<rt::Plan>(*plan);
  return made;
}

bool are_same(const Tensors& a, const Tensors& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return same_bits(x, y); });
}

Tensors make_gradients(const rt::Plan& plan, std::uint32_t rank, std::uint64_t step) {
  Tensors gradients;
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    const std::uint64_t seed = 1000 * step + 10 * std::uint64_t{rank} + t;
    gradients.push_back(make_gradient(DataKind::Normal, plan.tensors[t].num_elems(), seed));
  }
  return gradients;
}

Tensors gradients_of(const SyncCase& one_case, std::uint32_t rank, std::uint64_t step) {
  Tensors gradients = make_gradients(*one_case.plan, rank, step);
  if (one_case.change_gradients) one_case.change_gradients(rank, step, gradients);
  return gradients;
}

void run_ranks(rt::LoopbackWorld& world, std::uint32_t num_ranks,
               const std::function<void(const RankBody&)>& body) {
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto transport = world.transport(rank);
      body({*transport, rank});
    });
  }
  for (std::thread& thread : threads) thread.join();
}

States states_of(rt::SyncSession& session) {
  States states;
  const rt::Status visited = session.visit_states([&](const rt::SiteKey& key, rt::SiteStates& of) {
    const auto bytes = of.as_bytes();
    ASSERT_TRUE(bytes) << bytes.error().message;
    states[{key.piece, key.site}] = *bytes;
  });
  EXPECT_TRUE(visited) << visited.error().message;
  return states;
}

rt::Status step_on(rt::SyncSession& session, const Tensors& gradients, Tensors& updates,
                   std::uint64_t step) {
  updates.clear();
  for (const auto& gradient : gradients) updates.emplace_back(gradient.size());
  const std::vector<rt::ConstTensorView> from(gradients.begin(), gradients.end());
  const std::vector<rt::TensorView> to(updates.begin(), updates.end());
  return session.step(from, to, step);
}

std::vector<StepResult> run_steps(const SyncCase& one_case) {
  const std::uint32_t num_ranks = one_case.plan->world();
  std::vector<StepResult> results(one_case.num_steps);
  for (StepResult& result : results) {
    result.updates.resize(num_ranks);
    result.errors.resize(num_ranks);
  }
  rt::LoopbackWorld world(num_ranks, one_case.shape);
  run_ranks(world, num_ranks, [&](const RankBody& own) {
    auto session = rt::SyncSession::open(sync_options(one_case, own.rank), own.transport);
    for (std::uint64_t step = 0; step < one_case.num_steps; ++step) {
      StepResult& result = results[step];
      if (!session) {
        result.errors[own.rank] = session.error().message;
        continue;
      }
      const rt::Status status = step_on(**session, gradients_of(one_case, own.rank, step),
                                        result.updates[own.rank], step);
      if (!status) result.errors[own.rank] = status.error().message;
    }
  });
  return results;
}

}  // namespace cinch::testing
