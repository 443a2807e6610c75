// Consecutive programs take consecutive productions of a shuffled table; each round has a shuffle
// of its own.
#include "tests/programs/generator/generator.h"

#include <algorithm>

#include "tests/programs/generator/program_builder.h"

namespace cinch::testing {
namespace {

constexpr std::uint64_t kProductionsPerProgram = 12;

// The round's order of the table: Fisher-Yates with the builder's generator.
std::vector<std::size_t> order_of_round(std::uint64_t round) {
  std::vector<std::size_t> order(productions().size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  ProgramBuilder random(round + 1000003);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.random(i)]);
  return order;
}

GeneratedProgram finished(ProgramBuilder& builder, std::uint64_t number) {
  GeneratedProgram program;
  program.name = "generated_" + std::to_string(number);
  program.text =
      "// Program " + std::to_string(number) + " of the generator.\n" + builder.text(program.name);
  program.uses = builder.uses();
  program.neighbours = builder.neighbours();
  return program;
}

void emit_production(ProgramBuilder& builder, const Production& production) {
  builder.use(production.name);
  builder.begin(production.name);
  production.emit(builder, production.name);
}

GeneratedProgram generate(std::uint64_t number, std::uint64_t num_productions) {
  const std::uint64_t per_round = (productions().size() + num_productions - 1) / num_productions;
  const std::vector<std::size_t> order = order_of_round(number / per_round);
  const std::uint64_t begin = number % per_round * num_productions;
  const std::uint64_t end = std::min<std::uint64_t>(begin + num_productions, order.size());
  ProgramBuilder builder(number);
  for (std::uint64_t i = begin; i < end; ++i) emit_production(builder, productions()[order[i]]);
  return finished(builder, number);
}

}  // namespace

std::uint64_t programs_per_round() {
  return (productions().size() + kProductionsPerProgram - 1) / kProductionsPerProgram;
}

std::vector<std::string> generator_operators() {
  std::vector<std::string> names;
  for (const Production& production : productions()) names.push_back(production.name);
  return names;
}

void Neighbours::add(const Neighbours& other) {
  for (const auto& [pair, times] : other.pairs) pairs[pair] += times;
  for (const auto& [name, types] : other.made) made[name].insert(types.begin(), types.end());
  for (const auto& [name, types] : other.read) read[name].insert(types.begin(), types.end());
}

std::set<std::pair<std::string, std::string>> Neighbours::legal() const {
  std::set<std::pair<std::string, std::string>> all;
  for (const auto& [maker, made_types] : made) {
    for (const auto& [reader, read_types] : read) {
      const bool meet = std::any_of(made_types.begin(), made_types.end(),
                                    [&](int type) { return read_types.contains(type); });
      if (meet) all.emplace(maker, reader);
    }
  }
  return all;
}

GeneratedProgram generate_program(std::uint64_t number) {
  return generate(number, kProductionsPerProgram);
}

GeneratedProgram generate_odd_program(std::uint64_t number) {
  std::vector<const Production*> odd;
  for (const Production& production : productions()) {
    if (production.is_odd) odd.push_back(&production);
  }
  ProgramBuilder builder(number);
  const std::uint64_t count = 2 + builder.random(7);
  for (std::uint64_t i = 0; i < count; ++i) emit_production(builder, *builder.choose(odd));
  return finished(builder, number);
}

std::uint64_t num_pair_programs() {
  return productions().size() * productions().size();
}

GeneratedProgram generate_pair_program(std::uint64_t number) {
  // Types are drawn: some draws let the two meet.
  constexpr std::uint64_t kDraws = 40;
  const std::size_t count = productions().size();
  const Production& maker = productions()[number % count];
  const Production& reader = productions()[number / count % count];
  for (std::uint64_t draw = 0;; ++draw) {
    ProgramBuilder builder(number * kDraws + draw);
    emit_production(builder, maker);
    builder.prefer(maker.name);
    emit_production(builder, reader);
    const bool do_meet = builder.neighbours().pairs.contains({maker.name, reader.name});
    if (do_meet || draw + 1 == kDraws) return finished(builder, number);
  }
}

GeneratedProgram generate_small_program(std::uint64_t number) {
  return generate(number, kProductionsPerProgram / 3);
}

}  // namespace cinch::testing
