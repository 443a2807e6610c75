// Random well-typed programs: text from a number. Every program uses a few productions of a table;
// a run of consecutive numbers goes through the whole table, so that every operator of the language
// is reached.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cinch::testing {

struct GeneratedProgram {
  std::string name;  // of the compressor to run
  std::string text;
  std::map<std::string, int> uses;  // operators and statements, by name
};

/// The same number gives the same program, everywhere.
GeneratedProgram generate_program(std::uint64_t number);

/// Programs 0 … this - 1 use every production at least once.
std::uint64_t programs_per_round();

/// Names of all productions' operators, as in `uses`.
std::vector<std::string> generator_operators();

}  // namespace cinch::testing
