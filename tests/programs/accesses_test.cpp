// Compares the bytes that `cinch explain` states with those that a run counts, for the standard
// library, error feedback around it and every program of this folder, by kernel and by entry. A
// figure that does not depend on data must be exact; otherwise the count must lie between the
// minimum and the maximum.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <map>

#include "codegen/kir/cost.h"
#include "codegen/kir/kir.h"
#include "runtime/call/parameters.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/session/session.h"
#include "tests/programs/harness/compile.h"
#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/inputs.h"

namespace cinch::testing {
namespace {

constexpr std::int64_t kSizes[] = {1, 1000, 32768, 100003};
constexpr std::pair<std::int64_t, std::int64_t> kShapes[] = {{1, 1}, {5, 700}, {700, 5}, {64, 512}};
constexpr DataKind kData[] = {DataKind::Normal, DataKind::HeavyTailed, DataKind::Zeros};

// One session of a program; its formulas are evaluated as the session would.
class Comparison {
 public:
  Comparison(kir::KernelProgram& kernels, const std::shared_ptr<const rt::LoadedProgram>& loaded,
             const rt::SessionOptions& options)
      : kernels_(kernels), parameters_(loaded->info()), options_(options) {
    auto session = rt::Session::open(loaded, options);
    EXPECT_TRUE(session) << (session ? "" : session.error().message);
    if (session) session_ = std::make_unique<rt::Session>(std::move(*session));
  }

  void run(DataKind data) {
    if (!session_) return;
    check(rt::EntryKind::Init);
    for (std::uint64_t step = 0; step < 2; ++step) run_step(data, step);
  }

 private:
  bool has(rt::EntryKind kind) const {
    return kernels_.entries[static_cast<std::size_t>(kind)].present;
  }

  void run_step(DataKind data, std::uint64_t step) {
    step_ = step;
    const auto gradient = make_gradient(data, options_.rows * options_.cols, step + 3);
    ASSERT_TRUE(give_inputs(*session_));
    const auto view = session_->encode(gradient, step);
    if (!view && view.error().kind == rt::ErrorKind::CheckFailed) return;  // as the program demands
    ASSERT_TRUE(view) << view.error().message;
    check(rt::EntryKind::Encode);
    const std::vector<std::uint8_t> payload(view->begin(), view->end());
    std::vector<float> out(gradient.size());
    ASSERT_TRUE(session_->decode(payload, out, step));
    check(rt::EntryKind::Decode);
    if (has(rt::EntryKind::DecodeAdd)) {
      ASSERT_TRUE(session_->decode_add(payload, out, step));
      check(rt::EntryKind::DecodeAdd);
    }
    if (has(rt::EntryKind::Finish)) {
      std::vector<float> update(out.size());
      ASSERT_TRUE(session_->finish(out, update, step));
      // A run with a value that is not finite ends early.
      if (std::ranges::all_of(out, [](float x) { return std::isfinite(x); }))
        check(rt::EntryKind::Finish);
    }
  }

  std::uint64_t value(HostExprId id) const {
    HostEnv env{.n = options_.rows * options_.cols, .rows = options_.rows, .cols = options_.cols};
    env.world = options_.world;
    env.worker = options_.worker;
    env.step = static_cast<std::int64_t>(step_);
    env.params = parameters_.host_values();
    const auto result = kernels_.info.exprs->eval_int(id, env);
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    return result ? static_cast<std::uint64_t>(*result) : 0;
  }

  void within(const std::string& what, std::uint64_t counted, std::uint64_t least,
              std::uint64_t most) const {
    EXPECT_LE(least, most) << what;
    EXPECT_TRUE(least <= counted && counted <= most)
        << fmt::format("{}: {} counted, {} to {} by the formulas", what, counted, least, most);
  }

  void check(rt::EntryKind kind) {
    if (!has(kind)) return;
    const rt::AccessCounts accesses = session_->last_accesses().value();
    const std::string where =
        fmt::format("{}x{} step {} {}", options_.rows, options_.cols, step_, kir::entry_name(kind));
    for (std::size_t k = 0; k < accesses.kernels.size(); ++k) {
      const auto& counted = accesses.kernels[k];
      const kir::Kernel& kernel = kernels_.kernels[k];
      const kir::KernelBytes bytes = kir::kernel_bytes(kernels_, kernel);
      const std::string name = where + ", kernel " + kernel.info.symbol;
      within(name + " reads", counted.bytes_read, counted.launches * value(bytes.least_read),
             counted.launches * value(kernel.info.bytes_read));
      within(name + " writes", counted.bytes_written, counted.launches * value(bytes.least_written),
             counted.launches * value(kernel.info.bytes_written));
    }
    const kir::EntryBytes bytes = kir::entry_bytes(kernels_, kind);
    within(where + " reads", accesses.bytes_read, value(bytes.least_read), value(bytes.read));
    within(where + " writes", accesses.bytes_written, value(bytes.least_written),
           value(bytes.written));
  }

  kir::KernelProgram& kernels_;
  rt::ParameterValues parameters_;
  rt::SessionOptions options_;
  std::unique_ptr<rt::Session> session_;
  std::uint64_t step_ = 0;
};

std::vector<std::pair<std::int64_t, std::int64_t>> shapes_for(const ProgramFile& program,
                                                              bool is_matrix) {
  if (!program.shapes.empty()) return program.shapes;
  if (is_matrix) return {std::begin(kShapes), std::end(kShapes)};
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes;
  for (std::int64_t n : kSizes) shapes.emplace_back(n, 1);
  return shapes;
}

class AccessCheck : public ::testing::Test {
 public:
  explicit AccessCheck(ProgramFile program) : program_(std::move(program)) {}

  void TestBody() override {
    auto compiled = compile(program_);
    ASSERT_TRUE(compiled) << compiled.error();
    const auto loaded = load_for(compiled->kernels, architectures().present.back(), true);
    ASSERT_TRUE(loaded) << loaded.error();
    rt::SessionOptions options;
    options.world = program_.world;
    options.worker = program_.world > 1 ? 1 : 0;
    for (const auto& [rows, cols] : shapes_for(program_, compiled->oracle.info.is_matrix)) {
      options.rows = rows;
      options.cols = cols;
      for (DataKind data : kData) {
        // Counts do not depend on how kernels are divided into tasks.
        options.threads = data == DataKind::Normal ? 2 : 1;
        options.groups_per_task = data == DataKind::Normal ? 3 : 0;
        Comparison(compiled->kernels, *loaded, options).run(data);
      }
    }
  }

 private:
  ProgramFile program_;
};

// The library's accesses that depend on data, by their formulas: "encode writes". All others of the
// library are exact.
std::vector<std::string> decided_by_data(kir::KernelProgram& kernels) {
  HostEnv env{.n = 100003, .rows = 100003, .cols = 1};
  const rt::ParameterValues parameters(kernels.info);
  env.params = parameters.host_values();
  const auto differ = [&](HostExprId a, HostExprId b) {
    return kernels.info.exprs->eval_int(a, env).value() !=
           kernels.info.exprs->eval_int(b, env).value();
  };
  std::vector<std::string> found;
  for (std::size_t i = 0; i < rt::kNumEntries; ++i) {
    const auto kind = static_cast<rt::EntryKind>(i);
    const kir::EntryBytes bytes = kir::entry_bytes(kernels, kind);
    const std::string name = kir::entry_name(kind);
    if (differ(bytes.least_read, bytes.read)) found.push_back(name + " reads");
    if (differ(bytes.least_written, bytes.written)) found.push_back(name + " writes");
  }
  return found;
}

TEST(LibraryAccesses, OnlySelectionsGathersAndScattersOfTheLibraryDependOnData) {
  // Scatters look at the index first, selections store where a predicate holds, and payloads with a
  // count of their own, those with packed indices among them, may be shorter.
  std::map<std::string, std::vector<std::string>> expected;
  const std::vector<std::string> gathers = {"encode reads", "decode writes", "decode_add reads",
                                            "decode_add writes"};
  const std::vector<std::string> filters = {"encode writes", "decode reads", "decode writes",
                                            "decode_add reads", "decode_add writes"};
  const std::vector<std::string> all = {"encode reads",  "encode writes",    "decode reads",
                                        "decode writes", "decode_add reads", "decode_add writes"};
  expected["randomk"] = expected["randomk_unbiased"] = gathers;
  expected["threshold"] = expected["inceptionn"] = filters;
  // Its levels are stored one by one.
  expected["alq"] = {"encode reads", "encode writes"};
  expected["randomk_block"] = {"encode reads", "decode reads", "decode writes", "decode_add reads",
                               "decode_add writes"};
  for (const char* name :
       {"adacomp",  "adaq",      "block_topk", "bloom",          "cocktail",     "count_sketch",
        "demo",     "dgc",       "dgc_half",   "dgc_sampled",    "dragonn",      "gaussiank",
        "graddrop", "microadam", "mstopk",     "qsgd_elias",     "randomk_own",  "redsync",
        "sbc",      "sidco",     "sketchml",   "sparse_loco",    "stc",          "tbq_sparse",
        "three_lc", "topk",      "topk_elias", "variance_based", "bf16_lossless"}) {
    expected[name] = all;
  }
  for (const ProgramFile& program : compressors_of(CINCH_STDLIB_DIR)) {
    auto compiled = compile(program);
    ASSERT_TRUE(compiled) << compiled.error();
    EXPECT_EQ(decided_by_data(compiled->kernels), expected[program.name]) << program.name;
  }
}

void register_program(const ProgramFile& program) {
  ::testing::RegisterTest("Accesses", program.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [=]() -> AccessCheck* { return new AccessCheck(program); });
}

}  // namespace
}  // namespace cinch::testing

int main(int argc, char** argv) {
  using namespace cinch::testing;
  ::testing::InitGoogleTest(&argc, argv);
  const auto register_part = [](std::vector<ProgramFile> programs, std::size_t n) {
    for (const auto& program : everyday_part_of(std::move(programs), n)) register_program(program);
  };
  register_part(compressors_of(CINCH_STDLIB_DIR), 2);
  register_part(library_compositions(), 4);
  register_part(compressors_of(CINCH_PROGRAMS_DIR), 2);
  return RUN_ALL_TESTS();
}
