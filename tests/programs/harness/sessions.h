// Loads programs and opens sessions for a test. A failure fails the test and returns null.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "runtime/session/session.h"
#include "tests/programs/harness/compile.h"

namespace cinch::testing {

/// Kernels for the machine's highest level of vectors.
inline Loaded load(const kir::KernelProgram& kernels, bool count_accesses = false) {
  auto loaded = load_for(kernels, architectures().present.back(), count_accesses);
  EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error());
  return loaded ? std::move(*loaded) : nullptr;
}

inline Loaded load(const ProgramFile& program, bool count_accesses = false) {
  const auto compiled = compile(program);
  EXPECT_TRUE(compiled) << program.name << ": " << (compiled ? "" : compiled.error());
  return compiled ? load(compiled->kernels, count_accesses) : nullptr;
}

/// A file of the standard library, as "sparsify/topk.cinch".
inline ProgramFile library_program(const std::string& path) {
  auto program = read_program(std::string(CINCH_STDLIB_DIR) + "/" + path);
  EXPECT_TRUE(program) << path;
  return program ? std::move(*program) : ProgramFile();
}

inline std::unique_ptr<rt::Session> open(const Loaded& program, const rt::SessionOptions& options) {
  if (program == nullptr) return nullptr;
  auto opened = rt::Session::open(program, options);
  EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
  return opened ? std::make_unique<rt::Session>(std::move(*opened)) : nullptr;
}

/// For a vector.
inline std::unique_ptr<rt::Session> open(const Loaded& program, std::size_t num_elems) {
  rt::SessionOptions options;
  options.rows = static_cast<std::int64_t>(num_elems);
  return open(program, options);
}

}  // namespace cinch::testing
