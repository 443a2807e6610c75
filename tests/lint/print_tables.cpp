// print_tables: prints the rows of the language's tables as JSON, {"macro": [[column, …], …]}. The
// generated pages of docs/ are made from them.
#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace {

using Row = std::vector<std::string>;
using Rows = std::vector<Row>;

template <typename... Columns>
Row row(const Columns&... columns) {
  return {columns...};
}

Rows builtins() {
  return {
#define BUILTIN(name, group, call, signature, meaning) row(#name, #group, signature, meaning),
#include "dsl/sema/builtins.def"
#undef BUILTIN
  };
}

Rows scalar_ops() {
  return {
#define SCALAR_OP(name, arity, operands, result, cost, meaning) \
  row(#name, #arity, #operands, #result, #cost, meaning),
#include "runtime/core/numbers/scalar_op.def"
#undef SCALAR_OP
  };
}

Rows diagnostics() {
  return {
#define CINCH_DIAG(name, severity, code, text, help) row(#name, #severity, code, text, help),
#include "dsl/diag/diag.def"
#undef CINCH_DIAG
  };
}

Rows foreign_words() {
  return {
#define FOREIGN_WORD(place, word, theirs, ours, why) row(#place, word, theirs, ours, why),
#include "dsl/diag/foreign_words.def"
  };
}

}  // namespace

int main() try {
  const nlohmann::json tables = {{"BUILTIN", builtins()},
                                 {"SCALAR_OP", scalar_ops()},
                                 {"CINCH_DIAG", diagnostics()},
                                 {"FOREIGN_WORD", foreign_words()}};
  std::cout << tables.dump() << '\n';
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
