// Numbers as people read them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cinch::driver {

/// "1000", "25,557,032": groups of three digits from five digits on.
std::string grouped(std::int64_t number);

/// "964 B", "12.3 kB", "4.13 MB": three digits, powers of 1000.
std::string size_text(double bytes);

/// "412 µs", "12.3 ms", "1.50 s": three digits.
std::string time_text(double seconds);

/// "32.0", "1205", "0.0312": three digits, or all before the point.
std::string three_digits(double number);

/// "1 sweep", "2 sweeps", "1,048,576 elements".
std::string counted(std::int64_t number, std::string_view what);
/// The same with plain digits: "1 entry", "1048576 entries".
std::string plainly_counted(std::uint64_t number, std::string_view what);

}  // namespace cinch::driver
