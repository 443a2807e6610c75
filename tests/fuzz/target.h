// What every fuzz target defines, by libFuzzer's name: takes one input, aborts where a promise is
// broken, returns 0. What takes long and is done once goes before the first input.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// Not every target has one.
extern "C" __attribute__((weak)) int LLVMFuzzerInitialize(int* num_args, char*** args);
