// A world of the double: where its ranks' calls meet. Calls that do not match never end.
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
  const std::uint8_t* input = nullptr;  // where the bytes really are
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

  /// The device that another rank has, or -1: none of that.
  enum class Joined : std::uint8_t { Yes, TwiceTheRank, TwiceTheDevice, OtherSize };
  Joined join(int rank, int size, int device, bool may_share_devices);
  bool is_complete() const;
  bool is_broken() const;
  void wait_until_complete() const;

  /// As NCCL connects ranks by the first message between them: returns when all peers want that,
  /// too, or the rank has given up. False: it has.
  bool connect(int rank, const std::vector<Call>& calls, const bool& has_given_up);

  /// Meets the other ranks in all calls, which are those of one group. Returns when all are done,
  /// or the rank has given up.
  void run(int rank, const std::vector<Call>& calls, const bool& has_given_up);
  /// Sets the flag; calls of the rank that have not ended never do.
  void give_up(bool& has_given_up);

  /// Of all worlds: called with what has been written. Null: nothing is.
  static void on_write(void (*note)(void*, std::size_t));

  /// The rank's communicator goes. Waits for those of all that have joined, if it is to.
  void leave(int rank, bool waits);

 private:
  struct Meeting {
    std::vector<const Call*> calls;  // by rank; of messages: sender, receiver
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
  std::map<std::tuple<int, int, int>, std::uint64_t> numbers_;  // by rank and way
};

}  // namespace cinch::nccl_double
