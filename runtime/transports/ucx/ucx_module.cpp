// The sockets at which UCX listens. UCX does not tell which they are.
#include <dirent.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/transports/ucx/ucx_abi.h"

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

// The calls of ucx_abi.h over UCP's active messages: the only file that includes UCX's headers.

namespace {

using Worker = cinch_ucx_worker;

// UCX writes more to its log than its status tells. Keeps the last lines; nothing is printed unless
// the user asks for it.
thread_local std::string last_words;

ucs_log_func_rc_t keep_words(const char* /*file*/, unsigned /*line*/, const char* /*function*/,
                             ucs_log_level_t level, const ucs_log_component_config_t* /*component*/,
                             const char* message, va_list arguments) {
  std::array<char, 512> text{};
  if (level <= UCS_LOG_LEVEL_DIAG) {
    va_list copied;
    va_copy(copied, arguments);
    (void)std::vsnprintf(text.data(), text.size(), message, copied);
    va_end(copied);
    last_words = text.data();
  }
  static const bool kIsPrinted = std::getenv("UCX_LOG_LEVEL") != nullptr;
  return kIsPrinted ? UCS_LOG_FUNC_RC_CONTINUE : UCS_LOG_FUNC_RC_STOP;
}

constexpr std::size_t kMostHeaderBytes = 64;

// An operation of UCX under way. UCX reads the header until it ends.
struct Operation {
  Worker* worker = nullptr;
  std::uint64_t token = 0;
  std::array<std::uint8_t, kMostHeaderBytes> header{};
};

struct Peer {
  Worker* worker = nullptr;
  std::uint32_t number = 0;
  ucp_ep_h endpoint = nullptr;
  bool is_lost = false;
};

// A message that has arrived and that nobody has taken yet: still at its sender (UCX owns its
// descriptor), or its bytes.
struct Kept {
  bool is_used = false;
  void* descriptor = nullptr;
  bool is_at_sender = false;
  std::uint64_t bytes = 0;
};

}  // namespace

struct cinch_ucx_worker {
  cinch_ucx_events events{};
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  ucp_address_t* address = nullptr;
  std::size_t address_bytes = 0;
  int event_file = -1;
  std::vector<int> listeners;        // UCX's files
  ucs_status_ptr_t flush = nullptr;  // under way
  bool is_settled = false, is_closing = false;
  std::vector<Peer> peers;
  std::vector<Operation*> free_operations, all_operations;
  std::vector<Kept> kept;  // by number
  std::vector<std::uint64_t> free_numbers;
};

namespace {

constexpr unsigned kMessage = 0;  // UCP's number of the one kind of active message

Operation* take_operation(Worker& worker, std::uint64_t token) {
  if (worker.free_operations.empty()) {
    worker.all_operations.push_back(new Operation);
    worker.free_operations.push_back(worker.all_operations.back());
  }
  Operation* const taken = worker.free_operations.back();
  worker.free_operations.pop_back();
  taken->worker = &worker;
  taken->token = token;
  return taken;
}

void end_operation(Operation* operation, ucs_status_t status) {
  Worker& worker = *operation->worker;
  const std::uint64_t token = operation->token;
  worker.free_operations.push_back(operation);
  if (!worker.is_closing) worker.events.ended(worker.events.context, token, status);
}

// UCX does not call back about operations that it completed, or rejected, at once.
void note_begun(ucs_status_ptr_t begun, Operation* operation) {
  if (begun == nullptr) return end_operation(operation, UCS_OK);
  if (UCS_PTR_IS_ERR(begun)) end_operation(operation, UCS_PTR_STATUS(begun));
}

ucp_request_param_t operation_param(Operation* operation) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.user_data = operation;
  return param;
}

void receive(Worker& worker, void* descriptor, void* room, std::uint64_t bytes,
             std::uint64_t token) {
  Operation* const operation = take_operation(worker, token);
  ucp_request_param_t param = operation_param(operation);
  param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  param.cb.recv_am = [](void* request, ucs_status_t status, std::size_t /*bytes*/, void* ended) {
    ucp_request_free(request);
    end_operation(static_cast<Operation*>(ended), status);
  };
  note_begun(ucp_am_recv_data_nbx(worker.worker, descriptor, room, bytes, &param), operation);
}

// Takes the message under a number, which is then free again.
Kept release_number(Worker& worker, std::uint64_t number) {
  worker.free_numbers.push_back(number);
  return std::exchange(worker.kept[number], {});
}

ucs_status_t on_arrival(void* argument, const void* header, std::size_t header_bytes, void* data,
                        std::size_t bytes, const ucp_am_recv_param_t* param) {
  Worker& worker = *static_cast<Worker*>(argument);
  const bool is_at_sender = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  if (worker.free_numbers.empty()) {
    worker.free_numbers.push_back(worker.kept.size());
    worker.kept.emplace_back();
  }
  const std::uint64_t number = worker.free_numbers.back();
  worker.free_numbers.pop_back();
  cinch_ucx_arrival arrival{header, header_bytes, bytes, number, nullptr, 0};
  const std::int32_t decision =
      worker.is_closing ? CINCH_UCX_DROP : worker.events.arrived(worker.events.context, &arrival);
  if (decision == CINCH_UCX_KEEP) {
    // UCX may keep nothing of an empty body.
    const bool is_kept = is_at_sender || bytes > 0;
    worker.kept[number] = {true, is_kept ? data : nullptr, is_at_sender, bytes};
    return is_kept ? UCS_INPROGRESS : UCS_OK;
  }
  worker.free_numbers.push_back(number);
  if (decision == CINCH_UCX_DROP) return UCS_OK;
  if (is_at_sender) {
    receive(worker, data, arrival.room, bytes, arrival.token);
    return UCS_INPROGRESS;
  }
  if (bytes > 0) std::memcpy(arrival.room, data, bytes);
  worker.events.ended(worker.events.context, arrival.token, UCS_OK);
  return UCS_OK;
}

void on_lost(void* argument, ucp_ep_h /*endpoint*/, ucs_status_t status) {
  Peer& peer = *static_cast<Peer*>(argument);
  if (std::exchange(peer.is_lost, true) || peer.worker->is_closing) return;
  peer.worker->events.lost(peer.worker->events.context, peer.number, status);
}

// The environment's settings are the user's, and override ours. Settings that this UCX does not
// have are skipped.
void configure(ucp_config_t* config, const cinch_ucx_options& options) {
  const std::array<std::pair<const char*, const char*>, 10> settings = {
      {{"TLS", options.transports},
       {"RNDV_THRESH", options.sends_at_once != 0 ? "inf" : nullptr},
       {"NET_DEVICES", options.devices},
       // Makes shared memory, too, report the end of the other process.
       {"MM_ERROR_HANDLING", "y"},
       {"KEEPALIVE_INTERVAL", "1s"},
       // Fewer system calls for a large message, in parts that stay in the processor's cache
       // between two copies (docs/benchmarks/sync.md).
       {"TCP_TX_SEG_SIZE", "128k"},
       {"TCP_RX_SEG_SIZE", "128k"},
       // UCX 1.13 ends the process if a connection fails whose socket reads messages' memory
       // directly.
       {"ZCOPY_THRESH", "inf"},
       {"TCP_PUT_ENABLE", "n"},
       // Allows worlds of more than 256 ranks.
       {"TCP_MAX_NUM_EPS", "inf"}}};
  for (const auto& [name, value] : settings) {
    if (value == nullptr || std::getenv((std::string("UCX_") + name).c_str()) != nullptr) continue;
    (void)ucp_config_modify(config, name, value);
  }
}

ucs_status_t open_context(Worker& worker, const cinch_ucx_options& options) {
  ucp_config_t* config = nullptr;
  if (const ucs_status_t status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK) {
    return status;
  }
  configure(config, options);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.estimated_num_eps = options.num_peers;
  const ucs_status_t status = ucp_init(&params, config, &worker.context);
  ucp_config_release(config);
  return status;
}

// A flush ends when what was sent to each peer can leave: then all lanes to it are connected.
std::int32_t settle(Worker* worker) {
  if (worker->is_settled) return 1;
  if (worker->flush == nullptr) {
    const ucp_request_param_t param{};
    worker->flush = ucp_worker_flush_nbx(worker->worker, &param);
  }
  const bool is_request = UCS_PTR_IS_PTR(worker->flush);
  const ucs_status_t status =
      is_request ? ucp_request_check_status(worker->flush) : UCS_PTR_STATUS(worker->flush);
  if (status == UCS_INPROGRESS) return 0;
  if (is_request) ucp_request_free(worker->flush);
  worker->flush = nullptr;
  worker->is_settled = status == UCS_OK;
  return worker->is_settled ? 1 : status;
}

void stop_listening(Worker* worker) {
  // Attaches a filter that rejects everything: UCX 1.13 does not survive closed sockets.
  for (const int file : worker->listeners) {
    sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    const sock_fprog filter{1, &nothing};
    ::setsockopt(file, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
  }
}

ucs_status_t open_worker(Worker& worker) {
  const std::set<int> before = listening_files();
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucs_status_t status = ucp_worker_create(worker.context, &params, &worker.worker);
  if (status != UCS_OK) return status;
  status = ucp_worker_get_efd(worker.worker, &worker.event_file);
  if (status != UCS_OK) return status;
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessage;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
  handler.cb = on_arrival;
  handler.arg = &worker;
  status = ucp_worker_set_am_recv_handler(worker.worker, &handler);
  if (status != UCS_OK) return status;
  status = ucp_worker_get_address(worker.worker, &worker.address, &worker.address_bytes);
  if (status == UCS_OK) {
    worker.listeners =
        listeners_in({reinterpret_cast<const char*>(worker.address), worker.address_bytes}, before);
  }
  return status;
}

void disconnect(Worker* worker, std::uint32_t number) {
  Peer& peer = worker->peers[number];
  if (peer.endpoint == nullptr) return;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t closing = ucp_ep_close_nbx(std::exchange(peer.endpoint, nullptr), &param);
  if (!UCS_PTR_IS_PTR(closing)) return;
  while (ucp_request_check_status(closing) == UCS_INPROGRESS) ucp_worker_progress(worker->worker);
  ucp_request_free(closing);
}

void close_worker(Worker* worker) {
  worker->is_closing = true;
  for (const Kept& kept : worker->kept) {
    if (kept.is_used && kept.descriptor != nullptr) {
      ucp_am_data_release(worker->worker, kept.descriptor);
    }
  }
  for (const Peer& peer : worker->peers) disconnect(worker, peer.number);
  if (worker->flush != nullptr) ucp_request_free(worker->flush);
  if (worker->address != nullptr) ucp_worker_release_address(worker->worker, worker->address);
  if (worker->worker != nullptr) ucp_worker_destroy(worker->worker);
  if (worker->context != nullptr) ucp_cleanup(worker->context);
  for (Operation* operation : worker->all_operations) delete operation;
  delete worker;
}

std::int32_t open(const cinch_ucx_options* options, const cinch_ucx_events* events,
                  Worker** opened) {
  static const bool kKeepsWords = (ucs_log_push_handler(keep_words), true);
  (void)kKeepsWords;
  last_words.clear();
  auto* const worker = new Worker;
  worker->events = *events;
  for (std::uint32_t i = 0; i < options->num_peers; ++i) worker->peers.push_back({worker, i});
  ucs_status_t status = open_context(*worker, *options);
  if (status == UCS_OK) status = open_worker(*worker);
  if (status != UCS_OK) {
    close_worker(worker);
    return status;
  }
  *opened = worker;
  return UCS_OK;
}

std::int32_t address(Worker* worker, const void** bytes, std::size_t* num_bytes) {
  *bytes = worker->address;
  *num_bytes = worker->address_bytes;
  return UCS_OK;
}

std::int32_t connect(Worker* worker, std::uint32_t number, const void* address) {
  last_words.clear();
  Peer& peer = worker->peers[number];
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = static_cast<const ucp_address_t*>(address);
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = on_lost;
  params.err_handler.arg = &peer;
  return ucp_ep_create(worker->worker, &params, &peer.endpoint);
}

void send(Worker* worker, std::uint32_t number, const void* header, std::size_t header_bytes,
          const void* body, std::uint64_t bytes, std::uint64_t token) {
  const Peer& peer = worker->peers[number];
  Operation* const operation = take_operation(*worker, token);
  if (peer.endpoint == nullptr || peer.is_lost) {
    return end_operation(operation, UCS_ERR_CONNECTION_RESET);
  }
  if (header_bytes > kMostHeaderBytes) return end_operation(operation, UCS_ERR_INVALID_PARAM);
  std::memcpy(operation->header.data(), header, header_bytes);
  ucp_request_param_t param = operation_param(operation);
  param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  param.cb.send = [](void* request, ucs_status_t status, void* ended) {
    ucp_request_free(request);
    end_operation(static_cast<Operation*>(ended), status);
  };
  note_begun(ucp_am_send_nbx(peer.endpoint, kMessage, operation->header.data(), header_bytes, body,
                             bytes, &param),
             operation);
}

void take(Worker* worker, std::uint64_t number, void* room, std::uint64_t token) {
  const Kept kept = release_number(*worker, number);
  if (kept.is_at_sender) return receive(*worker, kept.descriptor, room, kept.bytes, token);
  if (kept.descriptor != nullptr) {
    std::memcpy(room, kept.descriptor, kept.bytes);
    ucp_am_data_release(worker->worker, kept.descriptor);
  }
  worker->events.ended(worker->events.context, token, UCS_OK);
}

void drop(Worker* worker, std::uint64_t number) {
  const Kept kept = release_number(*worker, number);
  if (kept.descriptor != nullptr) ucp_am_data_release(worker->worker, kept.descriptor);
}

std::int32_t progress(Worker* worker) {
  // A sender without end must not keep the caller busy for ever.
  constexpr int kMostAtOnce = 1000;
  last_words.clear();
  int num_moves = 0;
  while (num_moves < kMostAtOnce && ucp_worker_progress(worker->worker) != 0) ++num_moves;
  return num_moves > 0 ? 1 : 0;
}

void wait(Worker* worker, std::uint64_t most_microseconds) {
  if (ucp_worker_arm(worker->worker) != UCS_OK) return;  // something has arrived since
  pollfd file{worker->event_file, POLLIN, 0};
  const timespec most{static_cast<time_t>(most_microseconds / 1000000),
                      static_cast<long>(most_microseconds % 1000000 * 1000)};
  (void)::ppoll(&file, 1, &most, nullptr);
}

void wake(Worker* worker) {
  (void)ucp_worker_signal(worker->worker);
}

void error_text(std::int32_t error, char* text, std::size_t room) {
  if (room == 0) return;
  std::string message = ucs_status_string(static_cast<ucs_status_t>(error));
  if (!last_words.empty()) message += " (" + last_words + ")";
  text[message.copy(text, room - 1)] = '\0';
}

constexpr cinch_ucx_calls kCalls{open,           close_worker, address, connect,   disconnect,
                                 send,           take,         drop,    progress,  settle,
                                 stop_listening, wait,         wake,    error_text};

}  // namespace

extern "C" __attribute__((visibility("default"))) const cinch_ucx_calls* cinch_ucx_calls_of(
    std::uint32_t version) {
  return version == CINCH_UCX_ABI_VERSION ? &kCalls : nullptr;
}
