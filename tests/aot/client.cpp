// The same client over cinch.hpp:  client GRADIENT.f32 PAYLOAD OUTPUT.f32  with dgc of a linked
// library.
#include <cstddef>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <vector>

#include "compressors.hpp"

namespace {

template <typename T>
void write(const char* path, std::span<const T> values) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size_bytes()));
}

int run(char** argv) {
  std::ifstream file(argv[1], std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const auto* first = reinterpret_cast<const float*>(bytes.data());
  const std::vector<float> gradient(first, first + bytes.size() / sizeof(float));
  std::vector<float> output(gradient.size());

  cinch::Session session(compressors::dgc(), {gradient.size()});
  const std::vector<std::byte> payload = session.encode(0, gradient);
  session.decode(0, payload, output);
  write<std::byte>(argv[2], payload);
  write<float>(argv[3], output);
  // An error has a message and a kind.
  try {
    session.set("ratio", -1);
  } catch (const cinch::Error& error) {
    return error.status() == CINCH_OUT_OF_RANGE ? 0 : 3;
  }
  return 4;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return argc == 4 ? run(argv) : 2;
  } catch (const std::exception& error) {
    std::cout << error.what() << "\n";
    return 1;
  }
}
