// Words for parts of the report of `cinch explain`, for its text and its page.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cinch::driver {

/// A kernel's `does` as text: "sum ×4, compute w".
std::string work_in_words(const nlohmann::json& does);

/// Names of a kernel's `reads` or `writes`, each once; "scalars" if all are small.
std::string stream_names(const nlohmann::json& streams);

/// A field as text: "[u32; k] ascending below n, in [u32; index.words]".
std::string field_in_words(const nlohmann::json& field);

/// The value of a size or a parameter: "0.001", "1,000,000", "true".
std::string value_in_words(const nlohmann::json& named);

/// How to print the place of the value for which a sweep waits.
enum class Places { None, FileName, Path };

/// Neighbouring sweeps of an entry, and why they are not fused. Pairs with one reason are combined:
/// `who` is "3+4, 4+5".
struct Apart {
  std::string who, why;
};
std::vector<Apart> apart_in_words(const nlohmann::json& fusion, const nlohmann::json& kernels,
                                  Places places);

}  // namespace cinch::driver
