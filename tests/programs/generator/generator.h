// Random well-typed programs: text from a number. Every program uses a few productions of a table;
// a run of consecutive numbers goes through the whole table, so that every operator of the language
// is reached.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cinch::testing {

/// Who read what whom made. Productions and the operators that the builder uses by itself, by name;
/// types are numbers that mean something only to each other.
struct Neighbours {
  std::map<std::pair<std::string, std::string>, int> pairs;  // maker, reader
  std::map<std::string, std::set<int>> made, read;           // types by name

  void add(const Neighbours& other);
  /// Pairs that can meet: the reader has read a type that the maker has made, anywhere in what was
  /// added up.
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

/// A program of a third of the productions: many of them are compiled in the time of few.
GeneratedProgram generate_small_program(std::uint64_t number);

/// A program of odd productions alone.
GeneratedProgram generate_odd_program(std::uint64_t number);

/// A program for one pair of productions: the second reads what the first has made, if it can. So
/// many numbers go through all pairs.
GeneratedProgram generate_pair_program(std::uint64_t number);
std::uint64_t num_pair_programs();

/// Programs 0 … this - 1 use every production at least once.
std::uint64_t programs_per_round();

/// Names of all productions' operators, as in `uses`.
std::vector<std::string> generator_operators();

}  // namespace cinch::testing
