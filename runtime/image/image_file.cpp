// Image files. Bytes are little endian because every target of ours is; a big-endian host does not
// compile.
#include "runtime/image/image_file.h"

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/core/files/file_bytes.h"
#include "runtime/core/hash.h"
#include "runtime/core/json.h"
#include "runtime/image/validate.h"

namespace cinch::rt {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr char kMagic[8] = {'C', 'I', 'N', 'C', 'H', 'I', 'M', 'G'};
constexpr std::size_t kBlobAlignment = 16;

struct Preamble {
  char magic[8];
  std::uint32_t version, zero;
  std::uint64_t file_bytes, json_bytes;
  std::uint64_t hash_low, hash_high;
};
static_assert(sizeof(Preamble) == 48);

std::size_t align_blob(std::size_t offset) {
  return (offset + kBlobAlignment - 1) / kBlobAlignment * kBlobAlignment;
}

void append_blob(std::vector<std::uint8_t>& out, std::span<const std::uint8_t> blob) {
  out.resize(align_blob(out.size()), 0);
  out.insert(out.end(), blob.begin(), blob.end());
}

tl::unexpected<Error> corrupt(std::string what) {
  return fail(ErrorKind::CorruptFile, "image file: " + std::move(what));
}

Result<Preamble> checked_preamble(std::span<const std::uint8_t> bytes) {
  auto preamble =
      read_preamble(bytes, kMagic, kImageFormatVersion, &Preamble::file_bytes, "image file");
  CINCH_TRY(preamble);
  if (preamble->zero != 0) return corrupt("reserved bytes are not zero");
  const Hash128 hash = hash128(bytes.data() + sizeof(Preamble), bytes.size() - sizeof(Preamble));
  if (hash != Hash128{preamble->hash_low, preamble->hash_high}) return corrupt("checksum differs");
  if (preamble->json_bytes > bytes.size() - sizeof(Preamble)) return corrupt("JSON beyond its end");
  return preamble;
}

// Takes blobs from the file in order.
class BlobReader {
 public:
  BlobReader(std::span<const std::uint8_t> bytes, std::size_t offset)
      : bytes_(bytes), offset_(offset) {}

  Status take(const nlohmann::json& size, std::vector<std::uint8_t>& out) {
    if (!size.is_number_unsigned()) return corrupt("size of a blob is not a number");
    const auto size_bytes = size.get<std::uint64_t>();
    const std::size_t begin = align_blob(offset_);
    if (begin > bytes_.size() || size_bytes > bytes_.size() - begin) return corrupt("cut short");
    out.assign(bytes_.begin() + begin, bytes_.begin() + begin + size_bytes);
    offset_ = begin + size_bytes;
    return Ok{};
  }
  bool at_end() const { return offset_ == bytes_.size(); }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t offset_;
};

// A carrier of sums is an image within the image; it has none itself.
Status read_carrier(const nlohmann::json& json, BlobReader& reader, ProgramImage& image) {
  const auto size = json.find("carrier_bytes");
  if (size == json.end()) return Ok{};
  std::vector<std::uint8_t> bytes;
  CINCH_TRY(reader.take(*size, bytes));
  auto carrier = read_image(bytes);
  CINCH_TRY(carrier);
  if (carrier->carrier != nullptr) return corrupt("its carrier has a carrier");
  image.carrier = std::make_shared<const ProgramImage>(std::move(*carrier));
  return Ok{};
}

Status read_blobs(const nlohmann::json& json, BlobReader reader, ProgramImage& image) {
  const auto sizes = json.find("blob_bytes");
  if (sizes == json.end() || !sizes->is_array() || sizes->empty())
    return corrupt("there is no list of blobs");
  image.constants.resize(sizes->size() - 1);
  for (std::size_t i = 0; i < sizes->size(); ++i) {
    auto& blob = i < image.constants.size() ? image.constants[i] : image.binary;
    CINCH_TRY(reader.take((*sizes)[i], blob));
  }
  CINCH_TRY(read_carrier(json, reader, image));
  if (!reader.at_end()) return corrupt("bytes after its last part");
  return Ok{};
}

}  // namespace

std::vector<std::uint8_t> write_image(const ProgramImage& image) {
  nlohmann::json json = image_to_json(image);
  nlohmann::json& sizes = json["blob_bytes"] = nlohmann::json::array();
  for (const auto& constant : image.constants) sizes.push_back(constant.size());
  sizes.push_back(image.binary.size());
  std::vector<std::uint8_t> carrier;
  if (image.carrier != nullptr) {
    carrier = write_image(*image.carrier);
    json["carrier_bytes"] = carrier.size();
  }
  // Names in a source may contain any bytes: those that are not UTF-8 are replaced, without an
  // exception.
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);

  std::vector<std::uint8_t> out(sizeof(Preamble), 0);
  out.insert(out.end(), text.begin(), text.end());
  for (const auto& constant : image.constants) append_blob(out, constant);
  append_blob(out, image.binary);
  if (image.carrier != nullptr) append_blob(out, carrier);

  Preamble preamble{};
  std::memcpy(preamble.magic, kMagic, sizeof kMagic);
  preamble.version = kImageFormatVersion;
  preamble.file_bytes = out.size();
  preamble.json_bytes = text.size();
  const Hash128 hash = hash128(out.data() + sizeof preamble, out.size() - sizeof preamble);
  preamble.hash_low = hash.low;
  preamble.hash_high = hash.high;
  std::memcpy(out.data(), &preamble, sizeof preamble);
  return out;
}

Result<ProgramImage> read_image(std::span<const std::uint8_t> bytes) {
  const auto preamble = TRY(checked_preamble(bytes));
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + sizeof(Preamble);
  JsonTree tree;
  if (!tree.parse({text, preamble.json_bytes}) || !tree.root().is_object()) {
    return corrupt("metadata is not a JSON object");
  }
  const nlohmann::json& json = tree.root();
  auto image = image_from_json(json);
  if (!image) return image;
  BlobReader blobs(bytes, sizeof(Preamble) + preamble.json_bytes);
  CINCH_TRY(read_blobs(json, blobs, *image));
  CINCH_TRY(validate_image(*image));
  return image;
}

Status save_image(const ProgramImage& image, const std::filesystem::path& path) {
  return write_file_bytes(path, write_image(image));
}

Result<ProgramImage> load_image(const std::filesystem::path& path) {
  const auto bytes = TRY(read_file_bytes(
      path, {.magic = {kMagic, sizeof kMagic}, .size_at = offsetof(Preamble, file_bytes)}));
  return read_image(bytes);
}

}  // namespace cinch::rt
