// Calls of `extern fn` for the interpreter: the function's text, compiled to a loop over elements.
#include <fmt/format.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "codegen/emit/c_family.h"
#include "codegen/emit/kernel_source.h"
#include "codegen/jit/clang_jit.h"
#include "codegen/jit/extern_functions.h"
#include "runtime/core/lang/embed.h"
#include "runtime/module/shared_object.h"

namespace cinch::codegen {
namespace {

constexpr const char* kSymbol = "cinch_call_elements";
using CallElements = void (*)(const std::uint64_t* const* operands, std::uint64_t* result,
                              std::uint64_t num_elems);

std::string operand_text(DType type, std::size_t i) {
  const std::string word = fmt::format("operands[{}][i]", i);
  if (type == kF32) return fmt::format("f32_bits(u32({}))", word);
  if (type == kF64) return fmt::format("f64_bits({})", word);
  return fmt::format("{}({})", dtype_name(type), word);
}

std::string result_text(DType type, const std::string& call) {
  if (is_float(type)) return fmt::format("u64(lang::bits_of({}))", call);
  return fmt::format("u64({}({}))", is_signed_int(type) ? "i64" : "u64", call);
}

KernelSource source_of(const rt::ExternInfo& function) {
  std::string arguments;
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    arguments += (i ? ", " : "") + operand_text(function.params[i], i);
  }
  KernelSource source;
  source.target.arch = "native";
  source.symbols = {kSymbol};
  source.text = lang::source_text();
  source.text += prelude_text("scalar_ops.h");
  source.text += fmt::format(
      "namespace cinch {{\n{}"
      "extern \"C\" __attribute__((visibility(\"default\"))) void {}(\n"
      "    const u64* const* operands, u64* result, u64 num_elems) {{\n"
      "  for (u64 i = 0; i < num_elems; ++i) result[i] = {};\n"
      "}}\n}}  // namespace cinch\n",
      extern_definition(function, 0), kSymbol,
      result_text(function.result, "extern_0::call(" + arguments + ")"));
  return source;
}

struct Loaded {
  rt::SharedObject library;
  CallElements call = nullptr;
};

rt::Result<Loaded> load(const rt::ExternInfo& function) {
  CpuCompileOptions options;
  options.optimization_level = 1;
  const auto bytes = compile_cpu(source_of(function), options);
  CINCH_TRY(bytes);
  auto library = rt::SharedObject::load(*bytes, "a C++ function");
  CINCH_TRY(library);
  Loaded loaded{std::move(*library), nullptr};
  loaded.call = reinterpret_cast<CallElements>(loaded.library.find(kSymbol));
  return loaded;
}

}  // namespace

rt::Result<std::vector<std::uint64_t>> call_extern(
    const rt::ExternInfo& function, std::span<const std::vector<std::uint64_t>> operands,
    std::size_t num_elems) {
  static std::mutex mutex;
  static std::map<std::array<std::uint64_t, 2>, Loaded> loaded;
  const std::lock_guard lock(mutex);
  auto found = loaded.find(function.digest);
  if (found == loaded.end()) {
    auto made = load(function);
    CINCH_TRY(made);
    found = loaded.emplace(function.digest, std::move(*made)).first;
  }
  std::vector<const std::uint64_t*> pointers;
  pointers.reserve(operands.size());
  for (const auto& operand : operands) pointers.push_back(operand.data());
  std::vector<std::uint64_t> result(num_elems);
  found->second.call(pointers.data(), result.data(), num_elems);
  return result;
}

}  // namespace cinch::codegen
