// A program text that contains every op kind at least once, shared by the IR's tests.
#pragma once

#include <string_view>

namespace cinch::ir {

inline constexpr std::string_view kAllOps = R"(name="all"
source="all.cinch"
doc="Every op.\nTwo lines, \"quoted\"."
constants[0] {name="bits", value=4}
params[0] {name="ratio", dtype=f32, default=0.001, range {low=0, high=1, low_open}}
params[1] {name="count", dtype=u32, default=3, range {low=1}}
params[2] {name="odd name", dtype=f64, default=-1e-08}
sizes[0] {name="k", value=clamp(int(ceil(f64(n) * ratio)), 1, n)}
sizes[1] {name="twice", value=2 * k}
counts[0] {name="m", bound=n}
counts[1] {name="kept", bound=twice}
states[0] {name="velocity", type=[f32; n]}
states[1] {name="step_count", type=i64}
wire {
  counts[0] {name="m", bound=n}
  fields[0] {name="index", type=[u32; m], sum=none, ascending, index_limit=n}
  fields[1] {name="value", type=[f32; m], sum=none}
  fields[2] {name="code", type=[u3; k], sum=sum}
}
decode_draws
decode_world
decode_step
has_finish
is_finish_linear
aggregation=sum_to_test
externs[0] {name="nearest", params=(f32, bool), result=u8, work=7, source="CINCH_LANG_FN u8 call(f32 x, bool y) {\n  return y;\n}\n"}
table 0: [f32; 4] = (-1, -0.5, 0.5, inf)
table 1: [i7; 2, 2] = (-64, 63, 0, 1)
init {
  %0: f32 = const_scalar {value=0}
  %1: [f32; n] = fill %0
  yield
  results output(%1)
}
init {
  %0: i64 = const_scalar {value=-9}
  yield
  results output(%0)
}
encode {
  %0.g: [f32; n] = gradient
  %1.velocity: [f32; n] = state {index=0}
  %2: i64 = state {index=1}
  %3: f32 = param {index=0}
  %4: [f32; n] = map.mul %0, %3
  %5: [f32; n] = map.add %4, %1
  %6: [f32; n] = map.abs %5
  %7: [bool; n] = map.ge %6, %3
  %8: [u32; m], %9: u32 = nonzero %7 {index=0}
  %10: [u32; kept], %11: u32 = nonzero %7 {index=1, limit=twice}
  %12: [f32; m] = gather %5, %8
  %13: [u32; k] = top_k %6 {size=k, axis=all}
  check_index %13 {below=n, text="index"}
  check_unique %13 {cells=n, text="index"}
  check_host {holds=le(k, n), text="k exceeds n"}
  %14: f32 = kth_largest %6 {size=k, axis=all}
  %15: [u32; n] = argsort %6 {axis=all, descending}
  %16: f32 = const_scalar {value=0}
  %17: f32 = reduce %6, %16 {axis=all, combiner=add}
  %18: f32 = reduce %6, %16, %7 {axis=all, combiner=max}
  %19: u32 = const_scalar {value=0}
  %20: [u32; n] = iota
  %21: f32, %22: u32 = reduce %6, %20, %16, %19 {axis=all, combiner=region} (%23: f32, %24: u32, %25: f32, %26: u32) {
    %27: bool = map.ge %23, %25
    %28: f32 = map.select %27, %23, %25
    %29: u32 = map.select %27, %24, %26
    yield %28, %29
  }
  %30: [f32; n] = scan %6, %16 {axis=all, exclusive, combiner=add}
  %31: [f32; 4] = const_array {index=0}
  %32: [i7; 2, 2] = const_array {index=1}
  %33: [f32; k] = gather %5, %13
  %34: [f32; n] = scatter %5, %13, %33
  %35: [f32; n] = scatter_add %13, %33
  %36: [u32; 16] = histogram %20
  %37: [u32; 16] = histogram %20, %7
  %38: [f32; n] = random {site=3}
  %39: [u32; n] = random_bits {site=1, shared}
  %40: [f32; n] = normal %2 {site=4}
  %41: [u32; k] = random_index {below=n, site=5}
  %42: [f32; n] = stochastic_round %6 {site=6}
  %43: [f32; k] = gather %42, %41
  %44: [u3; k] = convert %43
  %45: [u32; n] = bitcast %6
  %46: [f32; ceil_div(n, 8), 8] = chunk %0
  %47: [f32; ceil_div(n, 8), 8] = hadamard %46
  %48: [f32; 8, ceil_div(n, 8)] = transpose %47
  %49: [f32; 8, 8] = matmul %48, %47
  %50: [f32; 8, 8] = orthonormalize %49
  %51: [u32; 8, 8] = argsort %50 {axis=1}
  %52: [f32; 8, 8] = gather_along %50, %51 {axis=1}
  %53: [f32; 64] = reshape %52
  %54: [f32; 10] = slice %53 {begin=3}
  %55: [f32; 74] = concat %53, %54 {axis=all}
  %56: [f32; n] = unchunk %46
  %57: [u8; ceil_div(3 * k, 8)] = pack %44 {width=3}
  %58: [u3; k] = unpack %57 {width=3}
  %59: bool = map.lt %17, %18
  check %59 {text="sum below max"}
  %60: f32 = if_else %59 () {
    %61: f32 = map.add %17, %18
    yield %61
  } () {
    yield %17
  }
  %62: f32 = for_loop %60 {begin=0, end=k} (%63: i64, %64: f32) {
    %65: f32 = convert %63
    %66: f32 = map.fma %64, %65, %60
    yield %66
  }
  %67: f32, %68: i64 = while_loop %62, %2 {at_most=20} (%69: f32, %70: i64) {
    %71: bool = map.gt %69, %16
    yield %71
  } (%72: f32, %73: i64) {
    %74: f32 = map.sub %72, %3
    yield %74, %73
  }
  %75: i64 = host_size {size=k}
  %76: u32 = count_value {index=1}
  %77: [f32; ceil_div(n, 8), 8] = butterflies %46
  %78: [f32; ceil_div(n, 8), 8] = keep %77
  %79: [u8; n] = call_extern %6, %7 {index=0}
  %80: [f32; n] = scatter_reduce.min %13, %33
  %81: [f32; n] = scatter_reduce.max %13, %33 {in_rows}
  %82: [u32; ceil_div(n, 8), 8] = bitcast %46
  %83: [u32; ceil_div(n, 8), 8] = mark_largest %82, %76
  %84: [u32; ceil_div(n, 8), 3] = list_marked %83 {size=3}
  yield
  results fields(%8, %12, %44) counts(%9) states(%34, %75)
}
decode {
  %0: [u32; m] = field {index=0}
  %1: [f32; m] = field {index=1}
  %2: f32 = const_scalar {value=0}
  %3: [f32; n] = fill %2
  %4: [f32; n] = scatter %3, %0, %1
  yield
  results output(%4)
}
finish {
  %0: [f32; n] = gradient
  %1: [f32; n] = state {index=0}
  %2: i64 = state {index=1}
  %3: f32 = host_size {size=world}
  %4: [f32; n] = map.div %0, %3
  yield
  results output(%4) states(%1, %2)
}
sync {
  %0: [f32; n] = gradient
  %1: [f32; n] = state {index=0}
  %2: i64 = state {index=1}
  %3: [f32; n] = all_reduce %0 {mean, combiner=add}
  %4: [f32; world, n] = all_gather %3
  %5: [f32; world, n] = all_to_all %4
  %6: [f32; n] = reduce_scatter %5 {combiner=max}
  %7: [f32; n] = broadcast %6 {index=0}
  %8: [f32; n] = reshape %7 {proved}
  %9: u32 = host_size {size=worker}
  %10: [f32; n] = send_receive %8, %9 {text="sent"}
  %11: u32 = host_size {size=n}
  %12: [f32; world * n], %13: u32 = all_gather_counted %10, %11
  %14: [f32; n], %15: u32 = send_receive_counted %10, %9, %11 {text="sent"}
  %16: [f32; n] = broadcast_from %14, %9 {text="said"}
  %17: [f32; world, n] = all_to_all %4 {group=world, stride=1}
  yield
  results output(%16) states(%1, %2)
}
)";

}  // namespace cinch::ir
