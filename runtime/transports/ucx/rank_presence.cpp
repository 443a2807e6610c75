// Bodies of rank_presence.h.
#include "runtime/transports/ucx/rank_presence.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace cinch::rt {
namespace {

struct flock lock_of(std::uint32_t rank) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

}  // namespace

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

}  // namespace cinch::rt
