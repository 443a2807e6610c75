// Words for parts of the report of `cinch explain`, for its text and its page.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cinch::driver {

/// "sum ×4, compute w", of a kernel's `does`.
std::string work_in_words(const nlohmann::json& does);

/// Names of a kernel's `reads` or `writes`, each once; "scalars" where all are small.
std::string stream_names(const nlohmann::json& streams);

/// What moves bytes between kernels, one of each kind, and of what is in a branch or a loop one of
/// its own.
nlohmann::json joined_moves(const nlohmann::json& moves);

/// "[u32; k] ascending below n, in [u32; index.words]", of a field.
std::string field_in_words(const nlohmann::json& field);

/// The value of a size or a parameter: "0.001", "1,000,000", "true".
std::string value_in_words(const nlohmann::json& named);

/// Why the floor of `call` is above what its kernels move at worst; empty if it is not.
std::string why_floor_is_above(const std::string& call, const nlohmann::json& entry);

/// How it is told where in the text the value is for which a sweep waits.
enum class Places { None, FileName, Path };

/// Neighbouring sweeps of an entry, and why they are not one. Those of one reason are told
/// together: who is "3+4, 4+5".
struct Apart {
  std::string who, why;
};
std::vector<Apart> apart_in_words(const nlohmann::json& fusion, const nlohmann::json& kernels,
                                  Places places);

}  // namespace cinch::driver
