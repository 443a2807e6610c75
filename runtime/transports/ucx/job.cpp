#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runtime/core/hash.h"
#include "runtime/transports/ucx/ucx_links.h"

namespace cinch::rt {
namespace {

constexpr std::size_t kMostMachineBytes = 1024;
constexpr const char* kSharedMemoryFolder = "/dev/shm";

// Identifies the machine's boot, the user, and the namespaces that processes must share.
std::string own_machine() {
  std::string machine;
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::getline(boot, machine);
  for (const char* name : {"pid", "ipc", "net", "user"}) {
    std::error_code error;
    const auto link = std::filesystem::read_symlink(fmt::format("/proc/self/ns/{}", name), error);
    machine += "," + link.string();
  }
  machine += fmt::format(",{}", ::geteuid());
  return machine.substr(0, kMostMachineBytes);
}

struct flock lock_of(std::uint32_t rank) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

}  // namespace

Part part_of(const Result<std::vector<std::uint8_t>>& own) {
  if (own) {
    Part part{0};
    part.insert(part.end(), own->begin(), own->end());
    return part;
  }
  Part part{static_cast<std::uint8_t>(1 + static_cast<int>(own.error().kind))};
  const std::string text = own.error().message.substr(0, kMostMachineBytes);
  part.insert(part.end(), text.begin(), text.end());
  return part;
}

Result<std::vector<std::uint8_t>> read_part(std::span<const std::uint8_t> part) {
  if (part.empty() || part[0] > 1 + static_cast<int>(ErrorKind::Internal)) {
    return fail(ErrorKind::CorruptPayload, "what it says is corrupt");
  }
  const auto rest = part.subspan(1);
  if (part[0] == 0) return std::vector<std::uint8_t>(rest.begin(), rest.end());
  return fail(static_cast<ErrorKind>(part[0] - 1), std::string(rest.begin(), rest.end()));
}

Result<std::vector<std::vector<std::uint8_t>>> share(Rendezvous& rendezvous,
                                                     const Result<std::vector<std::uint8_t>>& own) {
  const auto parts = rendezvous.gather(part_of(own));
  // A rank's own error is more useful than the error that it could not be sent to the others.
  if (!parts) return tl::unexpected<Error>(own ? parts.error() : own.error());
  std::vector<std::vector<std::uint8_t>> all;
  all.reserve(parts->size());
  for (std::uint32_t rank = 0; rank < parts->size(); ++rank) {
    auto said = read_part((*parts)[rank]);
    if (!said) {
      return fail(said.error().kind, fmt::format("rank {}: {}", rank, said.error().message));
    }
    all.push_back(std::move(*said));
  }
  return all;
}

RankCard own_card() {
  struct statvfs folder{};
  const bool is_known = ::statvfs(kSharedMemoryFolder, &folder) == 0;
  const std::uint64_t shared_bytes =
      is_known ? std::uint64_t{folder.f_bavail} * folder.f_frsize : 0;
  return {kUcxMessagesVersion, random_digest(), shared_bytes, own_machine()};
}

std::vector<std::uint8_t> bytes_of(const RankCard& card) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(12 + sizeof card.nonce + card.machine.size());
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(card.version >> (8 * i)));
  bytes.insert(bytes.end(), card.nonce.begin(), card.nonce.end());
  for (int i = 0; i < 8; ++i) {
    bytes.push_back(static_cast<std::uint8_t>(card.shared_bytes >> (8 * i)));
  }
  bytes.insert(bytes.end(), card.machine.begin(), card.machine.end());
  return bytes;
}

std::optional<RankCard> read_card(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kHead = 4 + sizeof(Digest) + 8;
  if (bytes.size() < kHead || bytes.size() > kHead + kMostMachineBytes) return std::nullopt;
  RankCard card;
  for (std::size_t i = 0; i < 4; ++i) card.version |= std::uint32_t{bytes[i]} << (8 * i);
  std::ranges::copy(bytes.subspan(4, sizeof(Digest)), card.nonce.begin());
  for (std::size_t i = 0; i < 8; ++i) {
    card.shared_bytes |= std::uint64_t{bytes[4 + sizeof(Digest) + i]} << (8 * i);
  }
  const auto machine = bytes.subspan(kHead);
  card.machine.assign(machine.begin(), machine.end());
  return card;
}

Result<Job> job_of(const std::vector<std::vector<std::uint8_t>>& cards, const std::string& secret) {
  Job job{true, ~std::uint64_t{0}, {}};
  HashedText text("cinch: job");
  std::string first;
  for (std::uint32_t rank = 0; rank < cards.size(); ++rank) {
    const auto card = read_card(cards[rank]);
    if (!card) {
      return fail(ErrorKind::CorruptPayload,
                  fmt::format("what rank {} says of itself is corrupt", rank));
    }
    if (card->version != kUcxMessagesVersion) {
      return fail(ErrorKind::VersionMismatch,
                  fmt::format("rank {} sends messages of version {}, not {}", rank, card->version,
                              kUcxMessagesVersion));
    }
    if (rank == 0) first = card->machine;
    job.is_one_machine = job.is_one_machine && card->machine == first;
    job.shared_bytes = std::min(job.shared_bytes, card->shared_bytes);
    text.add(std::span<const std::uint8_t>(cards[rank]));
  }
  job.key = keyed_hash(secret, text);
  return job;
}

std::unique_ptr<RankPresence> RankPresence::open(const Digest& job_key, std::uint32_t rank,
                                                 std::uint32_t world) {
  const Digest name = keyed_hash(job_key, HashedText("cinch: presence"));
  std::string path =
      fmt::format("/dev/shm/cinch-{:02x}", fmt::join(name.begin(), name.begin() + 16, ""));
  OwnedFile file(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  struct flock lock = lock_of(rank);
  // Of this open file, not of the process: ranks may be threads.
  if (!file.is_open() || ::fcntl(file.number(), F_OFD_SETLK, &lock) != 0) return nullptr;
  return std::unique_ptr<RankPresence>(new RankPresence(std::move(path), std::move(file), world));
}

bool RankPresence::has_ended(std::uint32_t rank) {
  struct flock lock = lock_of(rank);
  if (::fcntl(file_.number(), F_OFD_GETLK, &lock) != 0) return false;
  const bool is_here = lock.l_type != F_UNLCK;
  if (is_here) was_seen_[rank] = true;
  return was_seen_[rank] && !is_here;
}

void RankPresence::forget_name() {
  if (!name_.empty()) (void)::unlink(name_.c_str());
  name_.clear();
}

SipKey direction_key(const Digest& job_key, std::uint32_t from, std::uint32_t to) {
  return sip_key(keyed_hash(job_key, HashedText("cinch: messages").add(from).add(to)));
}

std::uint64_t hash_of(const SipKey& key, const MessageHeader& header) {
  constexpr std::size_t kHashed = sizeof(MessageHeader) - sizeof header.hash;
  return sip_hash(key, {reinterpret_cast<const std::uint8_t*>(&header), kHashed});
}

std::uint64_t body_hash(const SipKey& key, std::uint64_t number,
                        std::span<const std::uint8_t> body) {
  const auto sip = [&key](const auto& words) {
    return sip_hash(key, {reinterpret_cast<const std::uint8_t*>(words.data()), sizeof words});
  };
  const std::uint64_t seed = sip(std::array{number});
  return sip(std::array{number, hash64(body.data(), body.size(), seed)});
}

std::optional<MessageHeader> read_header(std::span<const std::uint8_t> bytes,
                                         std::span<const SipKey> keys) {
  MessageHeader header;
  if (bytes.size() != sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.from >= keys.size() || header.hash != hash_of(keys[header.from], header)) {
    return std::nullopt;
  }
  return header;
}

bool SeenNumbers::add(std::uint64_t number) {
  constexpr std::uint64_t kWindow = 64;
  if (number >= end_) {
    const std::uint64_t more = number + 1 - end_;
    seen_ = more < kWindow ? seen_ << more | 1 : 1;
    end_ = number + 1;
    return true;
  }
  const std::uint64_t age = end_ - 1 - number;
  if (age >= kWindow || (seen_ >> age & 1) != 0) return false;
  seen_ |= std::uint64_t{1} << age;
  return true;
}

}  // namespace cinch::rt
