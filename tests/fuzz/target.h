// The function of every fuzz target, by libFuzzer's name: takes one input, aborts if a promise is
// broken, returns 0. Slow one-time work comes before the first input.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// Not every target has one.
extern "C" __attribute__((weak)) int LLVMFuzzerInitialize(int* num_args, char*** args);
