// Files read whole. Throws ServiceError (File) naming the file and the system's reason.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace cinch::service {

std::string read_text_file(const std::string& path);
std::vector<std::uint8_t> read_binary_file(const std::string& path);

}  // namespace cinch::service
