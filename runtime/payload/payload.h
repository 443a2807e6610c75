// Payloads to the byte: header, counts, fields (docs/payload.md). Computes layouts from a program's
// wire, writes payloads, and reads untrusted bytes.
//
//    0  4 bytes "CNCH"         4  u32 format version
//    8  u32 flags (bit 0: non-finite)   12  u32 check word over header and counts
//   16  16 bytes fingerprint  32  u64 decode hash
//   40  u64 rows              48  u64 columns       56  u64 bytes of the whole payload
//   64  counts, u32 each; then fields in declaration order, each at a multiple of 16; zero bytes
//   between.
// The payload of a tensor of no elements is the header alone.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/program_info.h"
#include "runtime/core/sizes/host_value.h"
#include "runtime/payload/frame.h"

namespace cinch::rt {

inline constexpr std::int64_t kPayloadHeaderBytes = 64;
inline constexpr std::size_t kPayloadCheckOffset = 12;
inline constexpr std::size_t kPayloadSizeOffset = 56;
inline constexpr std::int64_t kPayloadFieldAlignment = 16;

struct PayloadHeader {
  std::uint32_t flags = 0;
  std::array<std::uint64_t, 2> fingerprint{};
  std::uint64_t decode_hash = 0;
  std::int64_t rows = 0, cols = 0;
  std::int64_t payload_bytes = 0;

  bool is_non_finite() const { return (flags & kPayloadNonFinite) != 0; }
};

/// The place of one field: bytes from the payload's start.
struct FieldPlace {
  std::int64_t offset = 0;
  std::int64_t size_bytes = 0;
  std::int64_t num_elems = 0;
  /// For a matrix its columns, else num_elems.
  std::int64_t row_elems = 0;
};

struct PayloadLayout {
  std::vector<FieldPlace> fields;    // empty if there are no elements
  std::vector<std::int64_t> counts;  // the counts of this layout
  std::int64_t size_bytes = kPayloadHeaderBytes;
};

/// Makes the layout for these counts (one per wire count), in the memory that `layout` has. Errors:
/// Overflow, InvalidArgument (a formula needs something that env lacks).
Status lay_out_payload(const ProgramInfo& info, const HostEnv& env,
                       std::span<const std::uint32_t> counts, PayloadLayout& layout);
/// Makes the layout with every count at its bound: the offsets while a program runs, and the
/// largest size of a payload.
Status lay_out_payload_bound(const ProgramInfo& info, const HostEnv& env, PayloadLayout& layout);
/// The same as new layouts.
Result<PayloadLayout> payload_layout(const ProgramInfo& info, const HostEnv& env,
                                     std::span<const std::uint32_t> counts);
Result<PayloadLayout> payload_bound_layout(const ProgramInfo& info, const HostEnv& env);
/// The largest size of a payload in the step of `env` or a later one. Errors: as above.
Result<std::int64_t> payload_bound_over_steps(const ProgramInfo& info, const HostEnv& env);
/// Are the sizes of the wire the same in all steps, apart from its counts?
bool has_steady_wire(const ProgramInfo& info);
/// Do counts change neither where field `index` begins nor its length?
bool has_fixed_offset(const ProgramInfo& info, std::size_t index);
bool has_fixed_size(const ProgramInfo& info, std::size_t index);
/// The bounds of the wire's counts, each within 32 bits. Errors: as above.
Status payload_count_bounds(const ProgramInfo& info, const HostEnv& env,
                            std::vector<std::int64_t>& bounds);

/// What `decode` depends on besides the payload, for a hash: parameters (as kernels see them);
/// world and step if a size of the wire or a named size uses them; seed, step, tensor and piece if
/// decode draws.
struct DecodeFacts {
  std::span<const std::uint64_t> params;
  std::uint64_t world = 1, seed = 0, step = 0;
  std::uint32_t tensor = 0, piece = 0;
};
std::uint64_t decode_hash(const ProgramInfo& info, const DecodeFacts& facts);

/// The check word of a payload with this many counts: over the header without the word itself, then
/// the counts. Without it, a changed flag or count could decode to something else.
std::uint32_t payload_check_word(std::span<const std::uint8_t> bytes, std::size_t num_counts);

/// Writes header, counts and the zero bytes between them and the fields; leaves the fields' own
/// bytes. `bytes` has layout.size_bytes bytes; header.payload_bytes is set from the layout.
void write_payload_frame(std::span<std::uint8_t> bytes, PayloadHeader header,
                         std::span<const std::uint32_t> counts, const PayloadLayout& layout);

/// What a reader knows of the payload it expects.
struct PayloadExpectation {
  const ProgramInfo* info = nullptr;
  std::array<std::uint64_t, 2> fingerprint{};
  std::uint64_t decode_hash = 0;
  HostEnv env;  // n, rows, cols, world, step, params; its counts are not read
};

/// A parsed payload: views into its bytes.
struct PayloadView {
  PayloadHeader header;
  std::vector<std::uint32_t> counts;
  std::vector<std::span<const std::uint8_t>> fields;  // empty if there are no elements
  PayloadLayout layout;
};

/// Reads the header alone, for people. Checks only magic, version, flags and length. Errors: those
/// of read_payload.
Result<PayloadHeader> read_payload_header(std::span<const std::uint8_t> bytes);

/// Checks everything before it returns anything: magic, version, flags, fingerprint, decode hash,
/// shape, length, each count against its bound, the check word, zero bytes between fields and after
/// the last bits, ascending rows of fields, indices below their limits. Counts of a non-finite
/// payload must be 0. Errors: CorruptPayload (names the field and what was found), VersionMismatch,
/// Overflow.
Result<PayloadView> read_payload(std::span<const std::uint8_t> bytes,
                                 const PayloadExpectation& expected);
/// The same in the memory that `view` has; after an error its contents are meaningless.
Status read_payload(std::span<const std::uint8_t> bytes, const PayloadExpectation& expected,
                    PayloadView& view);

/// Reads the bytes of a payload. If the file is not a payload, reads only enough to show that.
/// Errors: Io.
Result<std::vector<std::uint8_t>> read_payload_file(const std::filesystem::path& path);

}  // namespace cinch::rt
