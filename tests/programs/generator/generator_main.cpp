// Prints a generated program, or what a run of programs uses:
//   program_generator NUMBER
//   program_generator --coverage COUNT
//   program_generator --pairs COUNT        legal pairs of neighbours that neither so many programs
//   nor
//                                          those for pairs reach
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/programs/generator/generator.h"

namespace {

int print_coverage(std::uint64_t count) {
  std::map<std::string, int> uses;
  for (const std::string& name : cinch::testing::generator_operators()) uses[name] = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    for (const auto& [name, times] : cinch::testing::generate_program(i).uses) uses[name] += times;
  }
  int unreached = 0;
  for (const auto& [name, times] : uses) {
    std::printf("%6d  %s\n", times, name.c_str());
    unreached += times == 0;
  }
  std::printf("%zu names, %d not reached in %llu programs\n", uses.size(), unreached,
              static_cast<unsigned long long>(count));
  return unreached == 0 ? 0 : 1;
}

int print_pairs(std::uint64_t count) {
  cinch::testing::Neighbours all;
  for (std::uint64_t i = 0; i < count; ++i) all.add(cinch::testing::generate_program(i).neighbours);
  for (std::uint64_t i = 0; i < cinch::testing::num_pair_programs(); ++i) {
    all.add(cinch::testing::generate_pair_program(i).neighbours);
  }
  const auto legal = all.legal();
  std::size_t unreached = 0;
  for (const auto& pair : legal) {
    if (all.pairs.contains(pair)) continue;
    ++unreached;
    std::printf("%s, read by %s\n", pair.first.c_str(), pair.second.c_str());
  }
  std::printf("%zu legal pairs, %zu not reached in %llu programs and %llu for pairs\n",
              legal.size(), unreached, static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(cinch::testing::num_pair_programs()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--coverage") == 0) {
    return print_coverage(std::strtoull(argv[2], nullptr, 10));
  }
  if (argc == 3 && std::strcmp(argv[1], "--pairs") == 0) {
    return print_pairs(std::strtoull(argv[2], nullptr, 10));
  }
  if (argc != 2) {
    std::fprintf(stderr, "usage: program_generator NUMBER | --coverage COUNT | --pairs COUNT\n");
    return 2;
  }
  const auto program = cinch::testing::generate_program(std::strtoull(argv[1], nullptr, 10));
  std::fputs(program.text.c_str(), stdout);
  return 0;
}
