// Random well-typed programs: a number gives a text. Every program uses a few productions of a
// table; a run of consecutive numbers goes through the whole table, so that every operator of the
// language is used.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cinch::testing {

/// Which makers' values each reader read: productions and the builder's own operators, by name.
/// Types are numbers that can only be compared.
struct Neighbours {
  std::map<std::pair<std::string, std::string>, int> pairs;  // maker, reader
  std::map<std::string, std::set<int>> made, read;           // types by name

  void add(const Neighbours& other);
  /// Pairs that can meet: the reader has read some type that the maker has made, anywhere in the
  /// summed data.
  std::set<std::pair<std::string, std::string>> legal() const;
};

struct GeneratedProgram {
  std::string name;  // of the compressor to run
  std::string text;
  std::map<std::string, int> uses;  // operators and statements, by name
  Neighbours neighbours;
};

/// The same number gives the same program, everywhere.
GeneratedProgram generate_program(std::uint64_t number);

/// A program with a third of the productions, so that many can be compiled in little time.
GeneratedProgram generate_small_program(std::uint64_t number);

/// A program with odd productions only.
GeneratedProgram generate_odd_program(std::uint64_t number);

/// A program for one pair of productions: the second reads the first one's value if it can. As many
/// numbers as there are pairs cover all of them.
GeneratedProgram generate_pair_program(std::uint64_t number);
std::uint64_t num_pair_programs();

/// Programs 0 … this - 1 use every production at least once.
std::uint64_t programs_per_round();

/// Names of all productions' operators, as in `uses`.
std::vector<std::string> generator_operators();

}  // namespace cinch::testing
