// Fingerprint: hashes one text of everything that fixes a payload's meaning.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/core/hash.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/image/better_code.h"
#include "runtime/image/image_file.h"

namespace cinch::rt {
namespace {

class Fingerprinter {
 public:
  explicit Fingerprinter(const ProgramInfo& info) : info_(info) {}

  std::array<std::uint64_t, 2> run() {
    hasher_.add(info_.name).add(std::uint64_t{info_.is_matrix});
    hasher_.add(info_.constants.size());
    for (const ConstantInfo& constant : info_.constants) {
      hasher_.add(constant.name).add(std::bit_cast<std::uint64_t>(constant.value));
    }
    hasher_.add(info_.wire.counts.size());
    for (const CountInfo& count : info_.wire.counts) {
      hasher_.add(count.name).add(formula(count.bound));
    }
    hasher_.add(info_.wire.fields.size());
    for (const FieldInfo& field : info_.wire.fields) add_field(field);
    for (const ExternInfo& function : info_.externs) {
      hasher_.add(function.name).add(function.digest[0]).add(function.digest[1]);
    }
    const Hash128 hash = hasher_.finish128();
    return {hash.low, hash.high};
  }

 private:
  void add_field(const FieldInfo& field) {
    hasher_.add(field.name).add(dtype_name(field.type.dtype)).add(std::uint64_t{field.type.rank});
    for (int i = 0; i < field.type.rank; ++i) hasher_.add(formula(field.type.dims[i]));
    hasher_.add(static_cast<std::uint64_t>(field.sum)).add(std::uint64_t{field.ascending});
    hasher_.add(field.index_limit ? formula(*field.index_limit) : std::string());
    if (!field.packing.empty()) hasher_.add(field.packing);
  }

  std::string formula(HostExprId id) const {
    return info_.exprs->print(
        id, [this](std::uint32_t i) { return info_.params[i].name; },
        [this](std::uint32_t i) { return info_.counts[i].name; });
  }

  const ProgramInfo& info_;
  Hasher hasher_;
};

}  // namespace

std::array<std::uint64_t, 2> fingerprint(const ProgramInfo& info) {
  return Fingerprinter(info).run();
}

Result<RankGroups> rank_groups(const ProgramImage& image, HostExprId size, HostExprId stride,
                               const HostEnv& env) {
  if (!size.is_valid()) return RankGroups{};
  const auto members = TRY(image.info.exprs->eval_int(size, env));
  const auto apart = TRY(image.info.exprs->eval_int(stride, env));
  const bool are_numbers = members >= 1 && apart >= 1 && members <= env.world && apart <= env.world;
  if (!are_numbers || env.world % (members * apart) != 0) {
    return fail(ErrorKind::CheckFailed,
                fmt::format("{}: groups of {} ranks, {} apart, do not have all of {} ranks",
                            image.info.name, members, apart, env.world));
  }
  return RankGroups{static_cast<std::uint32_t>(members), static_cast<std::uint32_t>(apart)};
}

Result<std::int64_t> buffer_bytes(const ProgramImage& image, BufferIndex index,
                                  const HostEnv& env) {
  const BufferInfo& buffer = image.buffers[index];
  auto bytes = image.info.exprs->eval_int(buffer.size_bytes, env);
  if (!bytes) return bytes;
  const bool is_tensor = buffer.role == BufferRole::Gradient || buffer.role == BufferRole::Output;
  const auto f32_bytes = static_cast<std::int64_t>(sizeof(float)) * env.n;
  const std::int64_t most = is_tensor ? f32_bytes : kMaxBufferBytes;
  if (*bytes <= most) return std::max<std::int64_t>(*bytes, 0);
  return fail(ErrorKind::Overflow,
              fmt::format("buffer {}: a size of {} bytes, at most {} are possible", buffer.name,
                          *bytes, most));
}

Result<std::int64_t> kernel_groups(const ProgramImage& image, std::size_t kernel,
                                   const HostEnv& env) {
  auto groups = image.info.exprs->eval_int(image.kernels[kernel].num_groups, env);
  if (!groups) return groups;
  if (*groups <= kMaxGroups) return std::max<std::int64_t>(*groups, 0);
  return fail(ErrorKind::Overflow, fmt::format("kernel {}: {} groups, at most {} are possible",
                                               image.kernels[kernel].symbol, *groups, kMaxGroups));
}

// Body of better_code.h.

namespace {

using std::chrono::milliseconds;

// A look opens a file. Compiling takes some tenths of a second if the machine has a processor to
// spare, and much longer if it has none.
constexpr milliseconds kFirstLook{100}, kLongestPause{5000};
constexpr int kPauseShare = 4;  // of the time since the search began
constexpr std::chrono::minutes kGivesUpAfter{30};

// Do the images differ in their code only? Bound values of parameters do not count: callers take
// them from the image that they have.
bool is_same_program(const ProgramImage& a, ProgramImage b) {
  if (a.fingerprint != b.fingerprint) return false;
  ProgramImage without_code = a;
  without_code.carrier = b.carrier = nullptr;
  without_code.binary.clear();
  b.binary.clear();
  b.info = a.info;
  return write_image(without_code) == write_image(b);
}

}  // namespace

BetterCodeSearch::BetterCodeSearch(FindBetterCode find)
    : find_(std::move(find)), begin_(Clock::now()), next_look_(begin_ + kFirstLook) {}

std::optional<ProgramImage> BetterCodeSearch::look(const ProgramImage& image) {
  if (!find_) return std::nullopt;
  const auto now = Clock::now();
  if (now < next_look_) return std::nullopt;
  const auto pause = std::chrono::duration_cast<milliseconds>((now - begin_) / kPauseShare);
  next_look_ = now + std::clamp(pause, kFirstLook, kLongestPause);
  std::optional<ProgramImage> better = find_();
  if (!better && now - begin_ < kGivesUpAfter) return std::nullopt;
  find_ = nullptr;
  if (better && !is_same_program(image, *better)) return std::nullopt;
  return better;
}

}  // namespace cinch::rt
