// Numbers in the form that people read.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cinch::driver {

/// "1000", "25,557,032": groups of three digits if there are five digits or more.
std::string grouped(std::int64_t number);

/// "964 B", "12.3 kB", "4.13 MB": three digits, powers of 1000.
std::string size_text(double bytes);

/// "412 µs", "12.3 ms", "1.50 s": three digits.
std::string time_text(double seconds);

/// "32.0", "1205", "0.0312": three digits, or all digits before the point.
std::string three_digits(double number);

/// "1 sweep", "2 sweeps", "1,048,576 elements".
std::string counted(std::int64_t number, std::string_view what);
/// The same with plain digits: "1 entry", "1048576 entries".
std::string plainly_counted(std::uint64_t number, std::string_view what);

}  // namespace cinch::driver
