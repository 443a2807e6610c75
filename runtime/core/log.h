// Lines for the log of the program that uses Cinch: what is no error, but what its user should
// know. Silent unless the program asks for them.
#pragma once
#include <functional>
#include <string>

namespace cinch::rt {

/// Takes lines in place of what took them before; null: nobody does. From any thread. A line that
/// another thread tells meanwhile may still come.
void set_log(std::function<void(const std::string& line)> takes_lines);
/// Tells a line on this thread. Whoever calls this holds no lock, since the program may call Cinch
/// again.
void tell_log(const std::string& line);

}  // namespace cinch::rt
