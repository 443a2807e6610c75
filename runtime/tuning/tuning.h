// The table of tuning numbers by architecture. The built-in table has machine, date and benchmark
// for each entry (or says that nobody measured it). The user's table, which `cinch tune` writes,
// overrides it.
//
//   {"format": 1, "entries": [{"architecture": "x86-64-v3", "numbers": {"task_bytes": 262144},
//    "measured": {"machine": "…", "date": "2026-11-22", "benchmark": "cinch tune"}}]}
//
// Numbers that an entry omits are those of the built-in entry.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/core/error.h"

namespace cinch::rt {
// Numbers that decide how work is divided on one kind of machine; they never change a bit of a
// result. Each has a name, a range and values that `cinch tune` tries. tuning.h tells where values
// come from.

/// For a level of x86-64, or aarch64.
struct CpuTuning {
  std::int64_t task_bytes = 1 << 18;
  std::int64_t tasks_per_thread = 8;
  std::int64_t single_task_bytes = 1 << 18;
  friend bool operator==(const CpuTuning&, const CpuTuning&) = default;
};

/// For an architecture of GPUs.
struct GpuTuning {
  std::int64_t block_warps = 8;
  std::int64_t blocks_per_multiprocessor = 0;
  std::int64_t service_elements = 4096;
  std::int64_t most_service_blocks = 4096;
  std::int64_t one_launch_elements = 8192;
  std::int64_t fold_elements = std::int64_t{1} << 24;
  friend bool operator==(const GpuTuning&, const GpuTuning&) = default;
};

template <typename Tuning>
struct TuningNumber {
  const char* name;
  const char* meaning;
  std::int64_t Tuning::* member;
  std::int64_t least, most;
  bool is_power_of_two;
  std::span<const std::int64_t> candidates;
};

template <typename Tuning>
std::span<const TuningNumber<Tuning>> tuning_numbers();
template <>
std::span<const TuningNumber<CpuTuning>> tuning_numbers();
template <>
std::span<const TuningNumber<GpuTuning>> tuning_numbers();

struct TuningMeasured {
  std::string machine, date, benchmark;
};

struct TuningEntry {
  std::string architecture;  // "x86-64-v3", "sm_90", "emulated"
  std::variant<CpuTuning, GpuTuning> numbers;
  std::optional<TuningMeasured> measured;  // none: nobody has measured it
};

struct TuningTable {
  std::vector<TuningEntry> entries;
  /// Null if the table has no such architecture.
  const TuningEntry* find(std::string_view architecture) const;
  /// Replaces the entry of the same architecture, or appends it.
  void put(TuningEntry entry);
};

/// Parses a table. Numbers that an entry omits are those of `base`, else the defaults of tuning.h.
/// Errors: CorruptFile (not JSON, an unknown name, a number outside its range: says which),
/// VersionMismatch.
Result<TuningTable> parse_tuning(std::string_view text, const TuningTable& base);
std::string print_tuning(const TuningTable& table);
/// Loads a user's file. Errors: those of parse_tuning, Io; all name the file.
Result<TuningTable> load_tuning(const std::string& path);
/// The same; an empty table if there is no file.
Result<TuningTable> load_tuning_if_there(const std::string& path);
/// Puts the entry into the file's table and keeps its other entries; makes file and folder if
/// missing. Errors: those of load_tuning; the file is then unchanged.
Status put_tuning(const std::string& path, TuningEntry entry);

const TuningTable& builtin_tuning();
/// The text of tuning.json, which is built into the library.
extern const std::string_view kBuiltinTuning;

/// Path of the user's table: the file that CINCH_TUNING names, else
/// $XDG_CONFIG_HOME/cinch/tuning.json, else ~/.config/cinch/tuning.json. Empty if CINCH_TUNING is
/// "off", or if there is no home.
std::string user_tuning_path();

struct UserTuning {
  std::string path;              // as user_tuning_path
  bool is_named = false;         // by CINCH_TUNING
  bool is_there = false;         // a table was read
  TuningTable table;             // empty if no table was read
  std::optional<Error> problem;  // why a table cannot be used; then only the built-in one is used
};
/// The user's table, read at the first call, once per process. A missing file is not a problem,
/// unless CINCH_TUNING names it.
const UserTuning& user_tuning();

/// The numbers in use: the user's, else the built-in ones. For a GPU architecture that neither
/// table has, those of the next lower one.
CpuTuning cpu_tuning(std::string_view architecture);
GpuTuning gpu_tuning(std::string_view architecture);

}  // namespace cinch::rt
