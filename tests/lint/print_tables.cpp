// print_tables: prints the rows of the language's tables as JSON, {"macro": [[column, …], …]}. The
// generated pages of docs/ are made from them.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows builtins() {
  return {
#define BUILTIN(name, group, signature, meaning) {#name, #group, signature, meaning},
#include "dsl/sema/builtins.def"
#undef BUILTIN
  };
}

Rows scalar_ops() {
  return {
#define SCALAR_OP(name, arity, operands, result, cost, meaning) \
  {#name, #arity, #operands, #result, #cost, meaning},
#include "runtime/core/scalar_op.def"
#undef SCALAR_OP
  };
}

Rows diagnostics() {
  return {
#define CINCH_DIAG(name, severity, code, text, help) {#name, #severity, code, text, help},
#include "dsl/diag/diag.def"
#undef CINCH_DIAG
  };
}

}  // namespace

int main() {
  const nlohmann::json tables = {
      {"BUILTIN", builtins()}, {"SCALAR_OP", scalar_ops()}, {"CINCH_DIAG", diagnostics()}};
  std::cout << tables.dump() << '\n';
}
