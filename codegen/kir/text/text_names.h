// Spellings that printer and parser of the text form share.
#pragma once
#include <array>
#include <string_view>

#include "runtime/image/image.h"

namespace cinch::kir {

inline constexpr std::array<std::string_view, 9> kRoleNames = {
    "gradient",   "output",         "field",    "count",    "state",
    "state_next", "state_in_place", "constant", "workspace"};
inline constexpr std::array<std::string_view, rt::kNumEntries> kEntryNames = {
    "init", "encode", "decode", "decode_add", "finish", "sync"};
inline constexpr std::array<std::string_view, 9> kCollectiveNames = {
    "no_collective", "all_reduce",   "all_gather",         "all_to_all",          "reduce_scatter",
    "broadcast",     "send_receive", "all_gather_counted", "send_receive_counted"};
inline constexpr std::array<std::string_view, 5> kReductionNames = {"none", "sum", "mean", "min",
                                                                    "max"};
inline constexpr std::array<std::string_view, 4> kFieldSumNames = {"none", "sum", "min", "max"};
inline constexpr std::array<std::string_view, 3> kGroupKindNames = {"tile", "row", "single"};
inline constexpr std::array<std::string_view, 2> kKernelRoleNames = {"sweep", "finish"};
inline constexpr std::array<std::string_view, 4> kHostTypeNames = {"int", "f32", "f64", "bool"};

}  // namespace cinch::kir
