// The sub-commands. Each does its work, prints, and returns its exit code. They may throw
// CommandError and InternalError.
#pragma once
#include "compiler/driver/options.h"
#include "compiler/driver/process/files.h"

namespace cinch::driver {

ExitCode run_check(const CheckOptions& options);
ExitCode run_format(const FormatOptions& options);
ExitCode run_explain(const ExplainOptions& options);
ExitCode run_run(const RunOptions& options);
ExitCode run_eval(const EvalOptions& options);
ExitCode run_encode(const RunOptions& options);
ExitCode run_decode(const RunOptions& options);
ExitCode run_build(const BuildOptions& options);
// A library that links like any other: `cinch build` without --emit.
ExitCode build_library(const BuildOptions& options);
ExitCode run_opt(const OptOptions& options);
ExitCode run_list(const ListOptions& options);
ExitCode run_doctor(const DoctorOptions& options);
ExitCode run_lsp(const LspOptions& options);
ExitCode run_report(const SurveyOptions& options);
ExitCode run_bench(const BenchOptions& options);
ExitCode run_tune(const TuneOptions& options);
ExitCode run_verify(const VerifyOptions& options);
ExitCode run_cache_show(const CacheOptions& options);
ExitCode run_cache_clear(const CacheOptions& options);
ExitCode run_cache_pack(const CacheOptions& options);
ExitCode run_cache_warm(const CacheOptions& options);
ExitCode run_cache_improve(const CacheOptions& options);
ExitCode run_probe(const ProbeCommandOptions& options);
ExitCode run_plan(const PlanCommandOptions& options);
ExitCode run_simulate(const SimulateCommandOptions& options);
// `cinch plan --vary`: a value of one parameter for each tensor.
ExitCode plan_values(const PlanCommandOptions& options);
ExitCode run_sync_command(const SyncCommandOptions& options);

}  // namespace cinch::driver
