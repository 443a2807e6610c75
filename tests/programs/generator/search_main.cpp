// Tries many programs of the generator, each in a process that may fall; keeps what failed.
//   program_search --count 1000 [--from N] [--small | --odd | --pairs] [--run
//   machine,in-place,lowest,levels,gpu]
//                  [--sizes 1,33,1025] [--keep FOLDER]
//   program_search --try FILE …      prints the kind of the failure; status 1 where there is one
// Without --sizes each program gets three sizes of its own (a small program fewer), and each
// thousandth a large one. Without --run, each fourth program also runs on the lowest level of
// vectors, whose machine code differs most.
// Prints how many agreed and which pairs of neighbours those have reached.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "tests/programs/generator/generator.h"
#include "tests/programs/generator/trial.h"

namespace {

using namespace cinch::testing;

struct Command {
  std::uint64_t from = 0, count = 100;
  bool is_small = false, is_odd = false, is_pairs = false, has_runners = false;
  TrialOptions trial;
  std::string keep, file;
};

constexpr unsigned kSecondsPerProgram = 120;
constexpr std::uint64_t kProgramsPerProcess = 100;
constexpr std::uint64_t kProgramsPerLargeSize = 1000;
constexpr std::uint64_t kProgramsPerReport = 1000;

// A child's report to its parent, in shared memory.
struct Shared {
  std::uint64_t at;  // the program that is tried
  std::uint64_t agreed, steps, steps_failed;
  std::array<bool, kProgramsPerProcess> has_failed;
};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

Runner runner_named(const std::string& name) {
  if (name == "lowest") return Runner::Lowest;
  if (name == "levels") return Runner::Levels;
  if (name == "in-place") return Runner::InPlace;
  return name == "gpu" ? Runner::Gpu : Runner::Machine;
}

// With the kind of data whose turn it is.
void add_size(TrialOptions& trial, std::int64_t num_elems) {
  constexpr DataKind kData[] = {DataKind::Normal,   DataKind::HeavyTailed, DataKind::Normal,
                                DataKind::Sparse,   DataKind::NaN,         DataKind::Constant,
                                DataKind::Infinity, DataKind::Normal,      DataKind::Zeros,
                                DataKind::Subnormal};
  const std::uint64_t turn = trial.sizes.size() + trial.seed;
  trial.sizes.push_back({num_elems, kData[turn % std::size(kData)]});
}

bool read_command(int argc, char** argv, Command& command) {
  std::string runners = "machine,in-place", sizes;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    command.is_small |= word == "--small";
    command.is_odd |= word == "--odd";
    command.is_pairs |= word == "--pairs";
    if (word == "--small" || word == "--odd" || word == "--pairs") continue;
    if (++i == argc) return false;
    if (word == "--from") command.from = std::stoull(argv[i]);
    if (word == "--count") command.count = std::stoull(argv[i]);
    if (word == "--run") runners = argv[i], command.has_runners = true;
    if (word == "--sizes") sizes = argv[i];
    if (word == "--keep") command.keep = argv[i];
    if (word == "--try") command.file = argv[i];
    if (word == "--seed") command.trial.seed = std::stoull(argv[i]);
  }
  for (const std::string& name : split(runners)) {
    command.trial.runners.push_back(runner_named(name));
  }
  for (const std::string& size : split(sizes)) add_size(command.trial, std::stoll(size));
  return true;
}

// The runners of --run and the sizes of --sizes; otherwise a few of each length.
TrialOptions trial_of(const Command& command, std::uint64_t number) {
  constexpr std::int64_t kShort[] = {1, 31, 33}, kLong[] = {1000, 1023, 1025};
  TrialOptions trial = command.trial;
  trial.seed += number;
  if (!command.has_runners && number % 4 == 0) trial.runners.push_back(Runner::Lowest);
  if (!trial.sizes.empty()) return trial;
  if (!command.is_small || number % 4 == 0) {
    add_size(trial, 0);
    add_size(trial, kShort[number / 4 % 3]);
  }
  if (!command.is_small || number % 4 != 0) add_size(trial, kLong[number / 4 % 3]);
  if (number % kProgramsPerLargeSize == 0) add_size(trial, 100003);
  return trial;
}

GeneratedProgram program_of(const Command& command, std::uint64_t number) {
  if (command.is_odd) return generate_odd_program(number);
  if (command.is_pairs) return generate_pair_program(number);
  return command.is_small ? generate_small_program(number) : generate_program(number);
}

void keep_failure(const Command& command, std::uint64_t number, const std::string& kind,
                  const std::string& text) {
  std::cout << fmt::format("{}: {}: {}\n", number, kind, text.substr(0, text.find('\n')))
            << std::flush;
  if (command.keep.empty()) return;
  const GeneratedProgram program = program_of(command, number);
  const std::filesystem::path folder = command.keep;
  std::ofstream(folder / (program.name + ".cinch")) << program.text;
  std::ofstream(folder / (program.name + ".txt")) << kind << "\n" << text << "\n";
}

void try_one(const Command& command, std::uint64_t number, std::uint64_t slot, Shared& shared) {
  shared.at = number;
  alarm(kSecondsPerProgram);
  const GeneratedProgram program = program_of(command, number);
  const TrialResult result = try_program(program.name, program.text, trial_of(command, number));
  shared.steps += result.num_steps_done;
  shared.steps_failed += result.num_steps_failed;
  shared.agreed += result.agrees();
  shared.has_failed[slot] = !result.agrees();
  if (!result.agrees()) keep_failure(command, number, result.kind, result.text);
}

// Tries programs from `begin` on in a process of their own, until `end` or until it crashes.
// Returns the number after the last one that was tried.
std::uint64_t try_in_child(const Command& command, std::uint64_t begin, std::uint64_t end,
                           Shared& shared) {
  shared.has_failed.fill(false);
  const pid_t child = fork();
  if (child == 0) {
    for (std::uint64_t i = begin; i < end; ++i) try_one(command, i, i - begin, shared);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return end;
  const bool hangs = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
  shared.has_failed[shared.at - begin] = true;
  keep_failure(command, shared.at, hangs ? "hangs" : "falls", fmt::format("status {}", status));
  return shared.at + 1;
}

void print_pairs(const Neighbours& reached, const Neighbours& all) {
  const auto legal = all.legal();
  std::set<std::string> names;
  std::size_t met = 0;
  for (const auto& pair : legal) {
    met += reached.pairs.contains(pair);
    names.insert(pair.first);
    names.insert(pair.second);
  }
  std::cout << fmt::format("{} names; {} of {} legal pairs reached ({:.1f} %)\n", names.size(), met,
                           legal.size(),
                           100.0 * static_cast<double>(met) /
                               static_cast<double>(std::max<std::size_t>(legal.size(), 1)));
}

int search(const Command& command) {
  auto* shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  Neighbours reached, all;
  const std::uint64_t end = command.from + command.count;
  for (std::uint64_t i = command.from; i < end;) {
    const std::uint64_t next =
        try_in_child(command, i, std::min(i + kProgramsPerProcess, end), *shared);
    for (std::uint64_t k = i; k < next; ++k) {
      const Neighbours neighbours = program_of(command, k).neighbours;
      all.add(neighbours);
      if (!shared->has_failed[k - i]) reached.add(neighbours);
    }
    if (next / kProgramsPerReport != i / kProgramsPerReport) {
      std::cout << fmt::format("tried up to {}\n", next) << std::flush;
    }
    i = next;
  }
  std::cout << fmt::format("{} programs, {} agree; {} steps, in {} of which a check failed\n",
                           command.count, shared->agreed, shared->steps, shared->steps_failed);
  print_pairs(reached, all);
  return shared->agreed == command.count ? 0 : 1;
}

// A file's compressor is its last one.
int try_file(const Command& command) {
  std::ifstream in(command.file);
  std::ostringstream text;
  text << in.rdbuf();
  const std::size_t at = text.str().rfind("\ncompressor ");
  std::istringstream rest(text.str().substr(at + 1));
  std::string name;
  rest >> name >> name;
  alarm(kSecondsPerProgram);
  TrialOptions trial = command.trial;
  if (trial.sizes.empty()) {
    for (const std::int64_t size : {0, 1, 31, 33, 1000, 1023, 1025}) add_size(trial, size);
  }
  const TrialResult result = try_program(name, text.str(), trial);
  std::cout << result.kind << "\n" << result.text << "\n";
  return result.agrees() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Command command;
  if (!read_command(argc, argv, command)) {
    std::cerr
        << "usage: program_search --count N [--from N] [--small | --odd | --pairs] [--run NAME,…] "
           "[--sizes N,…] [--keep FOLDER] | --try FILE\n";
    return 2;
  }
  return command.file.empty() ? search(command) : try_file(command);
}
