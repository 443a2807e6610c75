// The language's own functions (exp, log, Philox, conversions, …): one source for the interpreter,
// CPU kernels, CUDA kernels and the emulator, with the same bits in all of them.
//
// Ways in:
//  - Host C++ includes this file; functions are cinch::lang::exp(float) and so on.
//  - Emitted CPU kernels embed source_text() (embed.h), which is these parts joined: the parts
//    include nothing and call no library. Vectors are ext_vector_type(W) of float, double, u32,
//    i32, u64, i64 (lang::Vec<float, 16>); the same templates take them and give bits equal to the
//    scalars', lane by lane. Masks are what comparisons give: lanes of 0 and -1.
//  - Emitted CUDA kernels embed the same text; there only scalars exist.
//
// Compiler options that the bits need: -ffp-contract=off and no fast math under Clang;
// --fmad=false under NVRTC (whose other defaults keep subnormals and round division and square
// root correctly). Integers are i32, u32, i64, u64 (`long long`); narrow floats travel as u16 or
// u8. An instruction set that has rounding, f16 or fma instructions uses them; the bits are the
// same without (CINCH_LANG_PORTABLE_ONLY leaves them aside, for tests).
#pragma once

// The order is the order of dependence.
// clang-format off
#include "runtime/core/lang/base.h"
#include "runtime/core/lang/rounding.h"
#include "runtime/core/lang/arithmetic.h"
#include "runtime/core/lang/convert.h"
#include "runtime/core/lang/exp_log.h"
#include "runtime/core/lang/pow.h"
#include "runtime/core/lang/trig.h"
#include "runtime/core/lang/random.h"
#include "runtime/core/lang/random_runs.h"
// clang-format on
