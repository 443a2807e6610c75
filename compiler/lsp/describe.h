// Descriptions of names, for hover and completion.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "compiler/lsp/analysis.h"

namespace cinch::lsp {

/// An operator of the language.
struct OperatorInfo {
  std::string signature, meaning;
};
std::optional<OperatorInfo> find_operator(std::string_view name);
/// Names of operators that are called by name, in the order of the tables.
std::vector<std::string_view> operator_names();

/// The meaning of a built-in name: `n`, `world` …; empty for any other.
std::string_view builtin_name_meaning(std::string_view name);

/// The declaration as code, with the type if the text does not state it: "let a: [f32; n]".
std::string declaration_text(const Analysis& analysis, const sema::FileUnit& unit,
                             const Declaration& decl);

/// What the compiler knows of a compressor of the document: claims, payload, and bytes that its
/// sweeps move per element. Markdown; empty if the compressor cannot be compiled as it is.
std::string compressor_text(const Analysis& analysis, const std::string& name);

/// What the statement at a place adds to the sweeps over memory, per element. Markdown; empty if
/// that is not known.
std::string cost_text(const Analysis& analysis, std::uint32_t offset);

}  // namespace cinch::lsp
