// Decides which numbers are in use: the user's table overrides the built-in one.
#include <charconv>
#include <filesystem>

#include "runtime/core/check.h"
#include "runtime/core/files/file_bytes.h"
#include "runtime/core/log.h"
#include "runtime/tuning/tuning.h"

namespace cinch::rt {
namespace {

namespace fs = std::filesystem;

UserTuning read_user_tuning() {
  UserTuning user;
  user.path = user_tuning_path();
  std::error_code error;
  user.is_named = !user.path.empty() && !environment_variable("CINCH_TUNING").empty();
  if (user.path.empty() || (!user.is_named && !fs::exists(user.path, error))) return user;
  auto table = load_tuning(user.path);
  if (!table) {
    user.problem = table.error();
    return user;
  }
  user.is_there = true;
  user.table = std::move(*table);
  return user;
}

// The number in "sm_90"; -1 for anything else.
int arch_number(std::string_view architecture) {
  constexpr std::string_view kPrefix = "sm_";
  if (!architecture.starts_with(kPrefix)) return -1;
  int number = -1;
  std::from_chars(architecture.data() + kPrefix.size(), architecture.data() + architecture.size(),
                  number);
  return number;
}

// An entry for the architecture itself, the user's first; else that of the next lower one.
const TuningEntry* entry_for(std::string_view architecture) {
  const TuningTable* const tables[] = {&user_tuning().table, &builtin_tuning()};
  for (const TuningTable* table : tables) {
    if (const TuningEntry* entry = table->find(architecture)) return entry;
  }
  const TuningEntry* nearest = nullptr;
  int highest = 0;
  const int wanted = arch_number(architecture);
  for (const TuningTable* table : tables) {
    for (const TuningEntry& entry : table->entries) {
      const int number = arch_number(entry.architecture);
      if (number <= highest || number > wanted) continue;
      nearest = &entry;
      highest = number;
    }
  }
  return nearest;
}

template <typename Tuning>
Tuning numbers_for(std::string_view architecture) {
  const TuningEntry* entry = entry_for(architecture);
  const auto* numbers = entry == nullptr ? nullptr : std::get_if<Tuning>(&entry->numbers);
  return numbers == nullptr ? Tuning{} : *numbers;
}

}  // namespace

const TuningEntry* TuningTable::find(std::string_view architecture) const {
  for (const TuningEntry& entry : entries) {
    if (entry.architecture == architecture) return &entry;
  }
  return nullptr;
}

void TuningTable::put(TuningEntry entry) {
  for (TuningEntry& held : entries) {
    if (held.architecture != entry.architecture) continue;
    held = std::move(entry);
    return;
  }
  entries.push_back(std::move(entry));
}

Result<TuningTable> load_tuning(const std::string& path) {
  const auto text = TRY(read_text_file(path));
  auto table = parse_tuning(text, builtin_tuning());
  if (!table) table.error().message = path + ": " + table.error().message;
  return table;
}

Result<TuningTable> load_tuning_if_there(const std::string& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  // Otherwise the path holds no table: it is missing, or a pipe or device, and reading a pipe would
  // wait for its writer.
  const bool can_hold_one = type == fs::file_type::regular || type == fs::file_type::directory;
  return can_hold_one ? load_tuning(path) : TuningTable{};
}

Status put_tuning(const std::string& path, TuningEntry entry) {
  auto table = TRY(load_tuning_if_there(path));
  table.put(std::move(entry));
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
      return fail(ErrorKind::Io, "cannot make " + folder.string() + ": " + error.message());
    }
  }
  const std::string text = print_tuning(table);
  return write_file_bytes(path, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

const TuningTable& builtin_tuning() {
  static const TuningTable kTable = [] {
    auto table = parse_tuning(kBuiltinTuning, {});
    if (!table) CINCH_BUG("the built-in table of tuning numbers: " + table.error().message);
    return std::move(*table);
  }();
  return kTable;
}

std::string user_tuning_path() {
  const std::string_view named = environment_variable("CINCH_TUNING");
  if (named == "off" || named == "0") return {};
  if (!named.empty()) return std::string(named);
  const fs::path folder = user_folder("XDG_CONFIG_HOME", ".config");
  return folder.empty() ? std::string() : (folder / "cinch" / "tuning.json").string();
}

const UserTuning& user_tuning() {
  static const UserTuning kUser = read_user_tuning();
  return kUser;
}

CpuTuning cpu_tuning(std::string_view architecture) {
  return numbers_for<CpuTuning>(architecture);
}

GpuTuning gpu_tuning(std::string_view architecture) {
  return numbers_for<GpuTuning>(architecture);
}

// The table of numbers, one per row.

namespace {

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::int64_t kTaskBytes[] = {32 * kKiB,  64 * kKiB,  128 * kKiB,
                                       256 * kKiB, 512 * kKiB, 1024 * kKiB};
constexpr std::int64_t kTasksPerThread[] = {1, 2, 4, 8, 16, 32};
constexpr std::int64_t kSingleTaskBytes[] = {16 * kKiB,  32 * kKiB,  64 * kKiB, 128 * kKiB,
                                             256 * kKiB, 512 * kKiB, kMiB};
constexpr std::int64_t kBlockWarps[] = {2, 4, 8, 16};
constexpr std::int64_t kBlocksPerMultiprocessor[] = {0, 1, 2, 4, 8, 16, 32, 1024};
constexpr std::int64_t kServiceElements[] = {1024, 2048, 4096, 8192, 16384};
constexpr std::int64_t kMostServiceBlocks[] = {256, 1024, 4096, 16384};

constexpr std::int64_t kOneLaunchElements[] = {2 * kKiB,  4 * kKiB,  8 * kKiB,
                                               16 * kKiB, 32 * kKiB, 64 * kKiB};
// No more than the largest measured tensor: larger values would make no difference.
constexpr std::int64_t kFoldElements[] = {4 * kMiB, 8 * kMiB, 16 * kMiB};

constexpr std::int64_t kMany = std::int64_t{1} << 40;
constexpr std::int64_t kManyBlocks = std::int64_t{1} << 20;

constexpr TuningNumber<CpuTuning> kCpuNumbers[] = {
    {"task_bytes", "bytes that a task moves at most; it should be worth its start",
     &CpuTuning::task_bytes, 1, kMany, false, kTaskBytes},
    {"tasks_per_thread", "tasks of a launch for each thread, where they are worth their start",
     &CpuTuning::tasks_per_thread, 1, kManyBlocks, false, kTasksPerThread},
    {"single_task_bytes", "a launch that moves no more is one task, on one thread",
     &CpuTuning::single_task_bytes, 0, kMany, false, kSingleTaskBytes},
};

constexpr TuningNumber<GpuTuning> kGpuNumbers[] = {
    {"block_warps", "warps of a block; part of the compiled code", &GpuTuning::block_warps, 2, 16,
     true, kBlockWarps},
    {"blocks_per_multiprocessor",
     "blocks of a launch and tensor, at most; 0: what the compiled kernel asks for",
     &GpuTuning::blocks_per_multiprocessor, 0, kManyBlocks, false, kBlocksPerMultiprocessor},
    {"service_elements", "elements for each block of a kernel that begins or ends a call",
     &GpuTuning::service_elements, 1, kMany, false, kServiceElements},
    {"most_service_blocks", "blocks of such a kernel and tensor, at most",
     &GpuTuning::most_service_blocks, 1, kManyBlocks, false, kMostServiceBlocks},
    {"one_launch_elements",
     "a call for tensors that have no more is one launch, with a block for each tensor",
     &GpuTuning::one_launch_elements, 0, kMany, false, kOneLaunchElements},
    {"fold_elements",
     "a call for tensors of which one has more folds partial results by many blocks, by one more "
     "launch for each sweep that reduces",
     &GpuTuning::fold_elements, 0, kMany, false, kFoldElements},
};

}  // namespace

template <>
std::span<const TuningNumber<CpuTuning>> tuning_numbers() {
  return kCpuNumbers;
}
template <>
std::span<const TuningNumber<GpuTuning>> tuning_numbers() {
  return kGpuNumbers;
}

}  // namespace cinch::rt
