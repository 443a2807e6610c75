// For every law that all programs must keep, a program that breaks it is found, and no other law
// fails.
#include "compiler/verify/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/core/sizes/host_expr.h"
#include "runtime/payload/payload.h"

namespace cinch::verify {
namespace {

enum class Defect {
  None,
  DecodesToNan,  // of 7 and 33 elements
  PassesItsBound,
  DiffersOnOthers,   // on all targets but the main one
  DiffersOnRanks,    // finish depends on the rank
  HidesNan,          // does not mark a gradient that is not finite
  NanChangesStates,  // marks it, but a state advances
  WritesBeforeRefusing,
  DecodeChangesStates,
  FailsAtSeven,  // elements
};

sema::CheckedProgram plain_program() {
  sema::CheckedProgram program;
  rt::ProgramInfo& info = program.info;
  info.name = "plain";
  const HostExprId n = info.exprs->n();
  info.wire.fields = {{"value", {kF32, 1, {n}}, rt::FieldSum::None, false, std::nullopt}};
  info.states = {{"calls", {kF32, 0, {}}}};
  return program;
}

// Sends a gradient as it is, and counts the calls.
class FakeTensor : public Tensor {
 public:
  FakeTensor(const rt::ProgramInfo& info, const TensorRequest& request, Defect defect, bool is_main)
      : info_(info), request_(request), defect_(defect), is_main_(is_main) {}

  rt::Result<Bytes> encode(std::span<const float> gradient, std::uint64_t) override {
    if (defect_ == Defect::FailsAtSeven && gradient.size() == 7) {
      return rt::fail(rt::ErrorKind::CheckFailed, "no sevens");
    }
    const bool is_finite = std::ranges::all_of(gradient, [](float x) { return std::isfinite(x); });
    const bool is_marked = !is_finite && defect_ != Defect::HidesNan;
    if (!is_marked || defect_ == Defect::NanChangesStates) ++calls_;
    const rt::PayloadLayout layout = *rt::payload_layout(info_, env(), {});
    Bytes bytes(static_cast<std::size_t>(layout.size_bytes));
    if (!is_marked && !gradient.empty()) {
      std::memcpy(bytes.data() + layout.fields[0].offset, gradient.data(), gradient.size_bytes());
    }
    rt::PayloadHeader header;
    header.flags = is_marked ? rt::kPayloadNonFinite : 0;
    header.rows = request_.shape.rows;
    header.cols = request_.shape.cols;
    rt::write_payload_frame(bytes, header, {}, layout);
    return bytes;
  }

  rt::Status decode(std::span<const std::uint8_t> payload, std::span<float> out,
                    std::uint64_t) override {
    if (defect_ == Defect::WritesBeforeRefusing) std::ranges::fill(out, 1.0f);
    if (defect_ == Defect::DecodeChangesStates) ++calls_;
    const rt::PayloadExpectation expected{&info_, {}, 0, env()};
    const auto view = rt::read_payload(payload, expected);
    if (!view) return tl::unexpected(view.error());
    if (view->header.is_non_finite()) {
      std::ranges::fill(out, std::nanf(""));
    } else if (!out.empty()) {
      std::memcpy(out.data(), view->fields[0].data(), out.size_bytes());
    }
    if (out.empty()) return rt::Ok{};
    if (defect_ == Defect::DecodesToNan && (out.size() == 7 || out.size() == 33))
      out[0] = std::nanf("");
    if (defect_ == Defect::DiffersOnOthers && !is_main_) out[0] += 1;
    return rt::Ok{};
  }

  rt::Status finish(std::span<float> sum, std::uint64_t) override {
    for (float& x : sum) x /= static_cast<float>(request_.world);
    if (defect_ == Defect::DiffersOnRanks && !sum.empty()) {
      sum[0] += static_cast<float>(request_.worker);
    }
    return rt::Ok{};
  }

  rt::Result<std::int64_t> payload_bound(std::uint64_t) override {
    const std::int64_t bound = rt::payload_bound_layout(info_, env())->size_bytes;
    return defect_ == Defect::PassesItsBound ? bound - 1 : bound;
  }

  std::vector<Bytes> states() override {
    Bytes state(sizeof calls_);
    std::memcpy(state.data(), &calls_, sizeof calls_);
    return {state};
  }

 private:
  HostEnv env() const {
    HostEnv env;
    env.n = request_.shape.num_elems();
    env.rows = request_.shape.rows;
    env.cols = request_.shape.cols;
    env.world = request_.world;
    return env;
  }

  const rt::ProgramInfo& info_;
  TensorRequest request_;
  Defect defect_;
  bool is_main_;
  float calls_ = 0;
};

struct FakeTarget : Target {
  FakeTarget(const rt::ProgramInfo& program, Defect d, bool main)
      : info(program), defect(d), is_main(main) {
    name = is_main ? "main" : "other";
  }
  rt::Result<std::unique_ptr<Tensor>> open(const TensorRequest& request) const override {
    return std::make_unique<FakeTensor>(info, request, defect, is_main);
  }
  const rt::ProgramInfo& info;
  Defect defect;
  bool is_main;
};

class VerifyTest : public testing::Test {
 protected:
  Report report_of(Defect defect, double seconds = 5, double more_seconds = 20) {
    Subject subject;
    subject.checked = &program;
    subject.ir = &ir;
    subject.main = std::make_unique<FakeTarget>(program.info, defect, true);
    for (Targets* targets : {&subject.threads, &subject.vector_widths, &subject.devices}) {
      targets->push_back(std::make_unique<FakeTarget>(program.info, defect, false));
    }
    Options options;
    options.seconds = seconds;
    options.more_seconds = more_seconds;
    return verify(subject, options, [](auto&&...) { return true; });
  }
  // The names of the laws that fail, each followed by a blank.
  std::string broken_by(Defect defect) {
    std::string names;
    for (const Finding& finding : report_of(defect).findings) {
      if (finding.holds) continue;
      names += finding.law + " ";
      EXPECT_TRUE(finding.counterexample) << finding.law;
      EXPECT_FALSE(finding.detail.empty()) << finding.law;
    }
    return names;
  }
  sema::CheckedProgram program = plain_program();
  ir::Program ir;
};

TEST_F(VerifyTest, APlainProgramKeepsAllLaws) {
  const Report report = report_of(Defect::None);
  EXPECT_TRUE(report.all_hold());
  EXPECT_EQ(report.findings.size(), 8u);
  for (const Finding& finding : report.findings) EXPECT_EQ(finding.cut, "") << finding.law;
}

TEST_F(VerifyTest, LawsEndInTheMidstOfAnInputIfTheBudgetIsLongOver) {
  const Report report = report_of(Defect::None, 0, 0);
  EXPECT_TRUE(report.all_hold());
  EXPECT_EQ(report.findings.size(), 8u);
  for (const Finding& finding : report.findings) {
    EXPECT_NE(finding.law, "");
    EXPECT_EQ(finding.cut, "a part of an input") << finding.law;
  }
}

TEST_F(VerifyTest, EachLawSeesItsOwnDefect) {
  EXPECT_EQ(broken_by(Defect::DecodesToNan), "round_trip ");
  EXPECT_EQ(broken_by(Defect::PassesItsBound), "size_bound ");
  EXPECT_EQ(broken_by(Defect::DiffersOnOthers), "threads vector_widths devices ");
  EXPECT_EQ(broken_by(Defect::DiffersOnRanks), "ranks ");
  EXPECT_EQ(broken_by(Defect::HidesNan), "non_finite ");
  EXPECT_EQ(broken_by(Defect::NanChangesStates), "non_finite ");
  EXPECT_EQ(broken_by(Defect::WritesBeforeRefusing), "hostile_payloads ");
  EXPECT_EQ(broken_by(Defect::DecodeChangesStates), "hostile_payloads ");
}

TEST_F(VerifyTest, NaNIsCountedByInputsAndIsFarFromAnything) {
  sema::Claim claim{sema::ClaimKind::AbsoluteError, "absolute_error(1)", {}, {}, 0};
  claim.numbers[0] = program.info.exprs->const_int(1);
  program.claims = {claim};
  const Report report = report_of(Defect::DecodesToNan);
  ASSERT_EQ(report.findings.size(), 10u);
  EXPECT_FALSE(report.findings[0].holds);
  EXPECT_EQ(report.findings[0].figure, 14);  // seven families at two sizes
  EXPECT_EQ(report.findings[8].law, "absolute_error");
  EXPECT_FALSE(report.findings[8].holds);
  EXPECT_TRUE(report_of(Defect::None).all_hold());
}

TEST_F(VerifyTest, ACallThatFailsIsAFinding) {
  const Report report = report_of(Defect::FailsAtSeven);
  EXPECT_FALSE(report.findings[0].holds);
  EXPECT_EQ(report.findings[0].detail, "normal, 7 elements: no sevens");
  ASSERT_TRUE(report.findings[0].counterexample);
  EXPECT_EQ(report.findings[0].counterexample->inputs[0].values.size(), 7u);
}

TEST_F(VerifyTest, WithoutTimeEachLawIsTriedOnSomethingAndSaysSo) {
  const Report report = report_of(Defect::None, 0);
  EXPECT_EQ(report.findings.size(), 8u);
  EXPECT_EQ(report.findings[0].cut, "1 of 56 inputs");
  EXPECT_EQ(report.findings[7].cut, "1 of 10000 payloads");
}

TEST_F(VerifyTest, WhatIsNotClaimedIsNamed) {
  const Report report = report_of(Defect::None, 0);
  EXPECT_EQ(report.not_claimed.size(), sema::all_claims().size() - 1);  // `local` is no law
  EXPECT_EQ(report.not_claimed[0], "unbiased");
}

}  // namespace
}  // namespace cinch::verify
