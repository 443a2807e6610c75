// The sockets at which UCX listens. UCX does not tell which they are.
#pragma once
#include <dirent.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// Sockets of this process that accept connections.
inline std::set<int> listening_files() {
  std::set<int> found;
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return found;
  while (const dirent* const entry = ::readdir(folder)) {  // NOLINT(concurrency-mt-unsafe)
    const int file = std::atoi(entry->d_name);  // NOLINT(cert-err34-c): names are numbers
    int accepts = 0;
    socklen_t size = sizeof accepts;
    if (::getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size) == 0 && accepts != 0) {
      found.insert(file);
    }
  }
  ::closedir(folder);
  return found;
}

// The two bytes of its port, in network order; empty if it has no port.
inline std::string port_of(int file) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(file, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  in_port_t port = 0;
  if (address.ss_family == AF_INET) port = reinterpret_cast<sockaddr_in*>(&address)->sin_port;
  if (address.ss_family == AF_INET6) port = reinterpret_cast<sockaddr_in6*>(&address)->sin6_port;
  return port == 0 ? std::string() : std::string(reinterpret_cast<const char*>(&port), sizeof port);
}

// UCX's own sockets are new (not in `before`), and the worker's address contains their ports;
// another thread may have opened another socket at the same time.
inline std::vector<int> listeners_in(std::string_view address, const std::set<int>& before) {
  std::vector<int> found;
  for (const int file : listening_files()) {
    const std::string port = port_of(file);
    const bool is_own =
        !before.contains(file) && !port.empty() && address.find(port) != std::string_view::npos;
    if (is_own) found.push_back(file);
  }
  return found;
}

// Attaches a filter that rejects everything: UCX 1.13 does not survive closed sockets.
inline void refuse_connections(int file) {
  sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog filter{1, &nothing};
  ::setsockopt(file, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}
