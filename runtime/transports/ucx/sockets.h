// Non-blocking TCP sockets, and the network interfaces of this machine.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "runtime/core/error.h"

namespace cinch::rt {

using SocketClock = std::chrono::steady_clock;

/// A file descriptor that is closed with its owner.
class OwnedFile {
 public:
  explicit OwnedFile(int number = -1) : number_(number) {}
  OwnedFile(OwnedFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OwnedFile& operator=(OwnedFile&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~OwnedFile();

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void close();

 private:
  int number_;
};

struct NetAddress {
  std::string host;
  std::uint16_t port = 0;
  std::string text() const;
};
/// Parses "HOST:PORT", "[::1]:PORT". Errors: InvalidArgument.
Result<NetAddress> parse_net_address(const std::string& text);

/// Checks that the interface exists and is up. Errors: InvalidArgument, which lists the interfaces
/// that are up.
Status check_interface(const std::string& name);

/// Listens. `interface`: the host's address must belong to it; empty: any. Errors: InvalidArgument,
/// Io.
Result<OwnedFile> listen_at(const NetAddress& address, const std::string& interface);
/// Connects; tries until somebody listens, or until `end`. `interface`: the socket uses an address
/// of it, if it has one of the host's family. Errors: TimedOut, InvalidArgument (no such host).
Result<OwnedFile> connect_to(const NetAddress& address, const std::string& interface,
                             SocketClock::time_point end);
/// Accepts a connection. The result is not open if nobody waits. `peer` gets the address of the
/// other side.
OwnedFile accept_one(const OwnedFile& listener, std::string& peer);

/// Returns how many bytes were sent or received; 0 if none can be now. Errors: Cancelled (the other
/// side closed the connection, or it was reset).
Result<std::size_t> send_some(const OwnedFile& file, std::span<const std::uint8_t> bytes);
Result<std::size_t> receive_some(const OwnedFile& file, std::span<std::uint8_t> room);

/// Waits until the file is readable (or writable); false after `end`.
bool wait_to_read(const OwnedFile& file, SocketClock::time_point end);
bool wait_to_write(const OwnedFile& file, SocketClock::time_point end);
/// For poll: not negative, rounded up.
int milliseconds_until(SocketClock::time_point end);

}  // namespace cinch::rt
