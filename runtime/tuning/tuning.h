// The table of tuning numbers by architecture: ours, built in, with machine, date and benchmark of
// each entry (or the word that nobody measured it), and over it the user's, which `cinch tune`
// writes.
//
//   {"format": 1, "entries": [{"architecture": "x86-64-v3", "numbers": {"task_bytes": 262144},
//    "measured": {"machine": "…", "date": "2026-11-22", "benchmark": "cinch tune"}}]}
//
// Numbers that an entry leaves out are those of the built-in one.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/tuning/numbers.h"

namespace cinch::rt {

struct TuningMeasured {
  std::string machine, date, benchmark;
};

struct TuningEntry {
  std::string architecture;  // "x86-64-v3", "sm_90", "emulated"
  std::variant<CpuTuning, GpuTuning> numbers;
  std::optional<TuningMeasured> measured;  // none: nobody has
};

struct TuningTable {
  std::vector<TuningEntry> entries;
  /// Null where it has none.
  const TuningEntry* find(std::string_view architecture) const;
  /// In place of the entry of the same architecture, else behind all.
  void put(TuningEntry entry);
};

/// Numbers that an entry leaves out are those of `base`, else the defaults of numbers.h. Errors:
/// CorruptFile (no JSON, a name that is none, a number outside its range: says which),
/// VersionMismatch.
Result<TuningTable> parse_tuning(std::string_view text, const TuningTable& base);
std::string print_tuning(const TuningTable& table);
/// A user's whole file. Errors: those of parse_tuning, Io; all name the file.
Result<TuningTable> load_tuning(const std::string& path);
/// The same; an empty table where there is no file.
Result<TuningTable> load_tuning_if_there(const std::string& path);
/// Puts the entry into the file's table, with the others that it has; makes file and folder where
/// there are none. Errors: those of load_tuning; the file is then as it was.
Status put_tuning(const std::string& path, TuningEntry entry);

const TuningTable& builtin_tuning();

/// Where the user's table lies: the file that CINCH_TUNING names, else
/// $XDG_CONFIG_HOME/cinch/tuning.json, else ~/.config/cinch/tuning.json. Empty: CINCH_TUNING is
/// "off", or there is no home.
std::string user_tuning_path();

struct UserTuning {
  std::string path;              // as user_tuning_path
  bool is_named = false;         // by CINCH_TUNING
  bool is_there = false;         // a table was read
  TuningTable table;             // empty where none was
  std::optional<Error> problem;  // a table that cannot be used: then the built-in one serves alone
};
/// Read when first asked for, once per process. A file that is not there is no problem, unless
/// CINCH_TUNING names it.
const UserTuning& user_tuning();

/// The numbers in use: the user's, else the built-in ones; of an architecture of GPUs that neither
/// has, those of the highest one below it.
CpuTuning cpu_tuning(std::string_view architecture);
GpuTuning gpu_tuning(std::string_view architecture);

}  // namespace cinch::rt
