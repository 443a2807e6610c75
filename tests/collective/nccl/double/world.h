// A world of the fake, in which its ranks' calls meet. Calls that do not match never end.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

#include "runtime/transports/nccl/nccl_abi.h"

namespace cinch::nccl_double {

struct Call {
  enum class Kind : std::uint8_t {
    AllReduce,
    Broadcast,
    Reduce,
    AllGather,
    ReduceScatter,
    Send,
    Receive
  };
  Kind kind = Kind::AllReduce;
  const std::uint8_t* input = nullptr;  // the real address of the bytes
  std::uint8_t* output = nullptr;
  std::size_t count = 0;
  rt::NcclType type = rt::NcclType::Uint8;
  rt::NcclOperation operation = rt::NcclOperation::Sum;
  int peer = 0;  // or root
  int fault = 0;

  bool is_message() const { return kind == Kind::Send || kind == Kind::Receive; }
};

std::size_t type_bytes(rt::NcclType type);

class World {
 public:
  explicit World(int size) : devices_(static_cast<std::size_t>(size), -1) {}

  /// TwiceTheDevice: another rank has the device already; -1 never counts.
  enum class Joined : std::uint8_t { Yes, TwiceTheRank, TwiceTheDevice, OtherSize };
  Joined join(int rank, int size, int device, bool may_share_devices);
  bool is_complete() const;
  bool is_broken() const;
  void wait_until_complete() const;

  /// Connects ranks by the first message between them, as NCCL does: returns when all peers want
  /// that, too, or the rank has given up. False: it has.
  bool connect(int rank, const std::vector<Call>& calls, const bool& has_given_up);

  /// Meets the other ranks in all calls of one group. Returns when all are done, or the rank has
  /// given up.
  void run(int rank, const std::vector<Call>& calls, const bool& has_given_up);
  /// Sets the flag; unfinished calls of the rank never end.
  void give_up(bool& has_given_up);

  /// Sets, for all worlds, a function that is called with each written range. Null: none.
  static void on_write(void (*note)(void*, std::size_t));

  /// Removes the rank's communicator. `waits`: waits for those of all ranks that have joined.
  void leave(int rank, bool waits);

 private:
  struct Meeting {
    std::vector<const Call*> calls;  // by rank; for messages: sender, receiver
    std::size_t num_come = 0;
    bool is_done = false;
  };
  using Key = std::tuple<int, int, std::uint64_t>;  // sender and receiver, or -1; number
  Key key_of(int rank, const Call& call);
  std::shared_ptr<Meeting> come(int rank, const Call& call);
  static bool do_match(const Meeting& meeting);
  static void perform(const Meeting& meeting);
  static void note_writes(const Meeting& meeting);

  mutable std::mutex mutex_;
  mutable std::condition_variable moved_;
  std::vector<int> devices_;                          // by rank; -1: has not joined
  std::set<std::pair<int, int>> wanted_connections_;  // by rank and peer
  std::set<int> left_;
  bool is_broken_ = false;
  std::map<Key, std::shared_ptr<Meeting>> meetings_;
  std::map<std::tuple<int, int, int>, std::uint64_t> numbers_;  // by rank and direction
};

}  // namespace cinch::nccl_double
