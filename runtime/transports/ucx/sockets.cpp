#include "runtime/transports/ucx/sockets.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <thread>

namespace cinch::rt {
namespace {

using FoundAddresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<FoundAddresses> find_addresses(const NetAddress& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("no address of {}: {}", address.host, ::gai_strerror(error)));
  }
  return FoundAddresses(found, &::freeaddrinfo);
}

std::string error_text(int error) {
  return std::strerror(error);  // NOLINT(concurrency-mt-unsafe): glibc's is per thread
}

template <typename Visit>
void visit_interfaces(const Visit& visit) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) visit(*each);
  ::freeifaddrs(all);
}

bool are_same_host(const sockaddr* a, const sockaddr* b) {
  if (a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(b)->sin_addr.s_addr;
  }
  return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(b)->sin6_addr, sizeof(in6_addr)) == 0;
}

bool is_of_interface(const sockaddr* address, const std::string& interface) {
  bool is_found = false;
  visit_interfaces([&](const ifaddrs& each) {
    is_found = is_found || (interface == each.ifa_name && each.ifa_addr != nullptr &&
                            are_same_host(each.ifa_addr, address));
  });
  return is_found;
}

// Makes the socket use the interface, if it has an address of the family. Otherwise the caller has
// reported an error already.
void bind_to_interface(const OwnedFile& file, int family, const std::string& interface) {
  bool is_bound = false;
  visit_interfaces([&](const ifaddrs& each) {
    if (is_bound || interface != each.ifa_name || each.ifa_addr == nullptr ||
        each.ifa_addr->sa_family != family) {
      return;
    }
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    is_bound = ::bind(file.number(), each.ifa_addr, size) == 0;
  });
}

OwnedFile make_socket(int family) {
  OwnedFile file(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1;
  if (file.is_open()) ::setsockopt(file.number(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return file;
}

// Tries once; returns 0 or the error.
int try_connect(OwnedFile& file, const addrinfo& address, SocketClock::time_point end) {
  if (::connect(file.number(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_to_write(file, end)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(file.number(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

bool wait_for_events(const OwnedFile& file, short events, SocketClock::time_point end) {
  for (;;) {
    pollfd polled{file.number(), events, 0};
    const int ready = ::poll(&polled, 1, milliseconds_until(end));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

Result<std::size_t> moved(ssize_t size, const char* what) {
  if (size >= 0) return static_cast<std::size_t>(size);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return std::size_t{0};
  return fail(ErrorKind::Cancelled, fmt::format("{}: {}", what, error_text(errno)), errno);
}

}  // namespace

OwnedFile::~OwnedFile() {
  close();
}

void OwnedFile::close() {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

std::string NetAddress::text() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<NetAddress> parse_net_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  NetAddress address;
  const auto wrong = [&] {
    return fail(ErrorKind::InvalidArgument, fmt::format("'{}' is not an address: HOST:PORT", text));
  };
  if (colon == std::string::npos || colon == 0) return wrong();
  address.host = text.substr(0, colon);
  if (address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  } else if (address.host.find(':') != std::string::npos) {
    return wrong();
  }
  const char* const begin = text.data() + colon + 1;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(begin, end, address.port);
  if (error != std::errc() || stopped != end || address.port == 0 || address.host.empty()) {
    return wrong();
  }
  return address;
}

Status check_interface(const std::string& name) {
  std::set<std::string> names;
  bool is_up = false;
  visit_interfaces([&](const ifaddrs& each) {
    names.insert(each.ifa_name);
    is_up = is_up || (name == each.ifa_name && (each.ifa_flags & IFF_UP) != 0);
  });
  if (is_up) return Ok{};
  if (names.contains(name)) {
    return fail(ErrorKind::InvalidArgument, fmt::format("the interface {} is down", name));
  }
  return fail(ErrorKind::InvalidArgument,
              fmt::format("there is no interface {}; there are {}", name, fmt::join(names, ", ")));
}

Result<OwnedFile> listen_at(const NetAddress& address, const std::string& interface) {
  const auto found = TRY(find_addresses(address));
  const addrinfo& first = *found;
  if (!interface.empty() && !is_of_interface(first.ai_addr, interface)) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("{} is not an address of the interface {}", address.host, interface));
  }
  OwnedFile file = make_socket(first.ai_family);
  const int yes = 1;
  if (file.is_open()) ::setsockopt(file.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (!file.is_open() || ::bind(file.number(), first.ai_addr, first.ai_addrlen) != 0 ||
      ::listen(file.number(), SOMAXCONN) != 0) {
    const int error = errno;
    return fail(ErrorKind::Io,
                fmt::format("cannot listen at {}: {}", address.text(), error_text(error)), error);
  }
  return file;
}

Result<OwnedFile> connect_to(const NetAddress& address, const std::string& interface,
                             SocketClock::time_point end) {
  constexpr std::chrono::milliseconds kNap{20};
  const auto found = TRY(find_addresses(address));
  int error = ETIMEDOUT;
  do {
    for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
      OwnedFile file = make_socket(each->ai_family);
      if (!file.is_open()) continue;
      if (!interface.empty()) bind_to_interface(file, each->ai_family, interface);
      error = try_connect(file, *each, end);
      if (error == 0) return file;
    }
    std::this_thread::sleep_for(kNap);
  } while (SocketClock::now() < end);
  return fail(ErrorKind::TimedOut,
              fmt::format("nobody answers at {}: {}", address.text(), error_text(error)), error);
}

OwnedFile accept_one(const OwnedFile& listener, std::string& peer) {
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  OwnedFile file(::accept4(listener.number(), reinterpret_cast<sockaddr*>(&from), &size,
                           SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!file.is_open()) return file;
  char host[NI_MAXHOST] = "somewhere";
  (void)::getnameinfo(reinterpret_cast<sockaddr*>(&from), size, host, sizeof host, nullptr, 0,
                      NI_NUMERICHOST);
  peer = host;
  const int yes = 1;
  ::setsockopt(file.number(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return file;
}

Result<std::size_t> send_some(const OwnedFile& file, std::span<const std::uint8_t> bytes) {
  return moved(::send(file.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL), "sending");
}

Result<std::size_t> receive_some(const OwnedFile& file, std::span<std::uint8_t> room) {
  const ssize_t size = ::recv(file.number(), room.data(), room.size(), 0);
  if (size == 0) return fail(ErrorKind::Cancelled, "the connection was closed");
  return moved(size, "receiving");
}

bool wait_to_read(const OwnedFile& file, SocketClock::time_point end) {
  return wait_for_events(file, POLLIN, end);
}

bool wait_to_write(const OwnedFile& file, SocketClock::time_point end) {
  return wait_for_events(file, POLLOUT, end);
}

int milliseconds_until(SocketClock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - SocketClock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000000));
}

}  // namespace cinch::rt
