// libFuzzer target: image files. The bytes follow a corrected preamble, so that the checksum does
// not hide the reader from the fuzzer. An image that is read must be written and read again, and a
// host may do anything with its tables (image_use.h). An input: u32 bytes of JSON, the JSON, and
// the rest of the file. Inputs are mutated as JSON, so that most of them are JSON.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/image/image_file.h"
#include "tests/fuzz/image_use.h"
#include "tests/fuzz/target.h"

namespace {

using nlohmann::json;

constexpr std::size_t kPreamble = 48, kLengthBytes = 4;

struct ImageInput {
  std::size_t json_bytes = 0;
  std::vector<std::uint8_t> rest;  // JSON and blobs
};

ImageInput split(const std::uint8_t* data, std::size_t size) {
  std::uint32_t length = 0;
  std::memcpy(&length, data, kLengthBytes);
  const std::size_t rest = size - kLengthBytes;
  return {length % (rest + 1), {data + kLengthBytes, data + size}};
}

std::vector<std::uint8_t> seal(const ImageInput& input) {
  std::vector<std::uint8_t> file(kPreamble, 0);
  file.insert(file.end(), input.rest.begin(), input.rest.end());
  const std::uint64_t sizes[2] = {file.size(), input.json_bytes};
  const std::uint32_t version = cinch::rt::kImageFormatVersion;
  const cinch::Hash128 hash = cinch::hash128(file.data() + kPreamble, file.size() - kPreamble);
  std::memcpy(file.data(), "CINCHIMG", 8);
  std::memcpy(file.data() + 8, &version, 4);
  std::memcpy(file.data() + 16, sizes, 16);
  std::memcpy(file.data() + 32, &hash.low, 8);
  std::memcpy(file.data() + 40, &hash.high, 8);
  return file;
}

// Changes one place of a tree, mostly to the value of another place with the same name, so that the
// result is still an image.
class TreeChange {
 public:
  TreeChange(json& root, unsigned seed) : root_(root), random_(seed) {}

  void run() {
    collect(root_, "");
    const Place& place = places_[draw(places_.size())];
    switch (draw(10)) {
      case 0:
        *place.value = json(*places_[draw(places_.size())].value);
        return;
      case 1:
        return change_list(*place.value);
      case 2:
        return change_text(*place.value);
      case 3:
      case 4:
      case 5:
        return change_number(*place.value);
      default:
        return take_from_namesake(place);
    }
  }

 private:
  struct Place {
    json* value;
    std::string name;
  };

  void collect(json& value, const std::string& name) {
    places_.push_back({&value, name});
    if (value.is_array()) {
      for (json& child : value) collect(child, name);
    } else if (value.is_object()) {
      for (auto& [key, child] : value.items()) collect(child, key);
    }
  }

  std::size_t draw(std::size_t limit) { return random_() % std::max<std::size_t>(limit, 1); }

  void take_from_namesake(const Place& place) {
    std::vector<const json*> others;
    for (const Place& other : places_) {
      const bool is_like = other.name == place.name && other.value->type() == place.value->type();
      if (is_like && *other.value != *place.value) others.push_back(other.value);
    }
    if (!others.empty()) *place.value = json(*others[draw(others.size())]);
  }

  void change_list(json& value) {
    if (!value.is_array() || value.empty()) return change_number(value);
    const std::size_t at = draw(value.size());
    if (draw(2) == 0) {
      value.erase(at);
    } else {
      value.push_back(json(value[at]));
    }
  }

  void change_text(json& value) {
    if (!value.is_string()) return change_number(value);
    static const char* const kTexts[] = {"",    "u3",    "i64",    "f16", "select",  "mul",
                                         "sub", "count", "inf",    "nan", "0x1p+80", "world",
                                         "r",   "step",  "cuda:x", "cast"};
    value = kTexts[draw(std::size(kTexts))];
  }

  void change_number(json& value) {
    if (value.is_boolean()) {
      value = !value.get<bool>();
      return;
    }
    static constexpr std::uint64_t kNumbers[] = {0,
                                                 1,
                                                 2,
                                                 7,
                                                 31,
                                                 64,
                                                 255,
                                                 65536,
                                                 std::uint64_t{1} << 31,
                                                 UINT32_MAX,
                                                 std::uint64_t{1} << 48,
                                                 static_cast<std::uint64_t>(INT64_MAX),
                                                 std::uint64_t{1} << 63,
                                                 UINT64_MAX};
    if (value.is_number_unsigned() && draw(2) == 0) {
      value = value.get<std::uint64_t>() + draw(9) - 4;
    } else {
      value = kNumbers[draw(std::size(kNumbers))];
    }
  }

  json& root_;
  std::mt19937 random_;
  std::vector<Place> places_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)cinch::rt::read_image({data, size});
  if (size < kLengthBytes) return 0;
  const auto image = cinch::rt::read_image(seal(split(data, size)));
  if (!image) return 0;
  const auto again = cinch::rt::read_image(cinch::rt::write_image(*image));
  if (!again) std::abort();
  cinch::fuzz::use_image(*image);
  return 0;
}

// libFuzzer's name.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  if (size < kLengthBytes) return size;
  const ImageInput input = split(data, size);
  const auto text = input.rest.begin();
  const auto json_end = text + static_cast<std::ptrdiff_t>(input.json_bytes);
  json tree = json::parse(text, json_end, nullptr, false);
  if (tree.is_discarded() || !tree.is_structured()) return size;
  for (unsigned i = 0; i <= seed % 7 / 5; ++i) TreeChange(tree, seed + i).run();
  const std::string changed = tree.dump(-1, ' ', false, json::error_handler_t::replace);
  // Blobs begin at multiples of 16 of the file.
  const auto aligned = [](std::size_t bytes) { return (bytes + 15) / 16 * 16; };
  std::vector<std::uint8_t> out(kLengthBytes);
  const auto length = static_cast<std::uint32_t>(changed.size());
  std::memcpy(out.data(), &length, kLengthBytes);
  out.insert(out.end(), changed.begin(), changed.end());
  out.resize(kLengthBytes + aligned(changed.size()), 0);
  const std::size_t blobs = std::min(aligned(input.json_bytes), input.rest.size());
  out.insert(out.end(), text + static_cast<std::ptrdiff_t>(blobs), input.rest.end());
  if (out.size() > max_size) return size;
  std::memcpy(data, out.data(), out.size());
  return out.size();
}
