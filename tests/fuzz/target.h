// What every fuzz target defines, by libFuzzer's name: takes one input, aborts where a promise is
// broken, returns 0.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
