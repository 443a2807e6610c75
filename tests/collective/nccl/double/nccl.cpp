// NCCL's functions over a World. Uses that NCCL would answer with an error, or not survive, are
// noted as wrong.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "tests/collective/nccl/double/control.h"
#include "tests/collective/nccl/double/device.h"
#include "tests/collective/nccl/double/world.h"

using cinch::nccl_double::Call;
using cinch::nccl_double::Stream;
using cinch::nccl_double::World;
using cinch::rt::GpuStream;
using cinch::rt::NcclCode;
using cinch::rt::NcclComm;
using cinch::rt::NcclConfig;
using cinch::rt::NcclOperation;
using cinch::rt::NcclType;
using cinch::rt::NcclUniqueId;

namespace {

// What a stream's thread shares with the communicator, which may be destroyed by then.
struct Work {
  std::mutex mutex;
  std::condition_variable moved;
  std::shared_ptr<World> world;
  int rank = 0;
  bool has_given_up = false;  // guarded by the world's mutex
  std::uint64_t num_given = 0, num_done = 0;
  bool is_connecting = false;  // a thread is inside the end of a group
  NcclCode error = cinch::rt::kNcclSuccess;
};

struct Launch {
  std::vector<Call> calls;
  Stream stream;
};

}  // namespace

struct cinch::rt::NcclCommObject {
  std::shared_ptr<Work> work = std::make_shared<Work>();
  int world = 0, rank = 0, device = 0;
  bool blocks = true, was_ready = false;
  int num_looks = 0;  // until it is no longer in progress
  bool is_finalized = false;
  Launch launch;
  std::thread::id group_thread;
  std::set<void*> handles;
};

namespace {

constexpr int kLooks = 2;

struct Fault {
  int fault = kDoubleNoFault;
  std::uint64_t calls_left = 0;
};

struct State {
  std::mutex mutex;
  std::uint64_t num_ids = 0, num_registrations = 0;
  std::map<std::string, std::shared_ptr<World>> worlds;  // by id
  std::set<NcclComm> comms;
  bool leaves_together = false;
  Fault faults[kDoubleDevices];
  std::vector<std::string> wrong_uses;
};

State& state() {
  static auto* const kState = new State;
  return *kState;
}

thread_local std::string t_last_error;
thread_local int t_group_depth = 0;
thread_local std::vector<std::pair<NcclComm, Launch>> t_group;

NcclCode refused(NcclCode code, const std::string& text) {
  t_last_error = text;
  return code;
}

NcclCode wrong_use(NcclCode code, const std::string& text) {
  const std::lock_guard lock(state().mutex);
  state().wrong_uses.push_back(text);
  return refused(code, text);
}

bool is_alive(NcclComm comm) {
  const std::lock_guard lock(state().mutex);
  return state().comms.contains(comm);
}

void leave(NcclComm comm) {
  bool waits = false;
  {
    const std::lock_guard lock(state().mutex);
    waits = state().leaves_together;
  }
  comm->work->world->leave(comm->rank, waits);
}

void forget(NcclComm comm) {
  const std::lock_guard lock(state().mutex);
  state().comms.erase(comm);
  delete comm;
}

// The work of one launch, on the thread of its stream; launches of a communicator take turns.
void run_launch(const std::shared_ptr<Work>& work, std::uint64_t turn,
                const std::vector<Call>& calls) {
  {
    std::unique_lock lock(work->mutex);
    work->moved.wait(lock, [&] { return work->num_done == turn; });
    for (const Call& call : calls) {
      if (call.fault == kDoubleFailsLater) work->error = cinch::rt::kNcclRemoteError;
    }
  }
  work->world->run(work->rank, calls, work->has_given_up);
  const std::lock_guard lock(work->mutex);
  ++work->num_done;
  work->moved.notify_all();
}

void put_on_stream(NcclComm comm) {
  Launch launch = std::exchange(comm->launch, {});
  if (launch.calls.empty()) return;
  cinch::nccl_double::enqueue(launch.stream,
                              [work = comm->work, turn = comm->work->num_given++,
                               calls = std::move(launch.calls)] { run_launch(work, turn, calls); });
}

// Does it accept calls? A non-blocking communicator must be polled until it does.
NcclCode readiness(NcclComm comm) {
  const std::lock_guard lock(comm->work->mutex);
  if (comm->work->error != cinch::rt::kNcclSuccess) return comm->work->error;
  if (comm->work->world->is_broken()) return cinch::rt::kNcclInvalidUsage;
  return comm->num_looks > 0 || !comm->was_ready ? cinch::rt::kNcclInProgress
                                                 : cinch::rt::kNcclSuccess;
}

NcclCode check_comm(NcclComm comm, const char* what) {
  if (!is_alive(comm)) {
    return wrong_use(cinch::rt::kNcclInvalidArgument,
                     std::string(what) + " on a communicator that is none");
  }
  const NcclCode code = readiness(comm);
  if (code != cinch::rt::kNcclInProgress) return code;
  return wrong_use(cinch::rt::kNcclInvalidArgument,
                   std::string(what) + " while the communicator is in progress");
}

int planted_fault(int device) {
  const std::lock_guard lock(state().mutex);
  Fault& fault = state().faults[device];
  if (fault.fault == kDoubleNoFault || fault.calls_left-- > 0) return kDoubleNoFault;
  return std::exchange(fault.fault, kDoubleNoFault);
}

void set_connecting(Work& work, bool is_connecting) {
  const std::lock_guard lock(work.mutex);
  work.is_connecting = is_connecting;
}

NcclCode end_group() {
  NcclCode result = cinch::rt::kNcclSuccess;
  for (auto& [comm, launch] : t_group) {
    comm->group_thread = {};
    comm->launch = std::move(launch);
    if (comm->blocks) {
      const std::shared_ptr<Work> work = comm->work;
      const std::vector<Call> calls = comm->launch.calls;
      set_connecting(*work, true);
      const bool is_connected = work->world->connect(comm->rank, calls, work->has_given_up);
      set_connecting(*work, false);
      if (!is_connected) {
        result = refused(cinch::rt::kNcclInternalError, "aborted");  // the communicator is gone
        continue;
      }
      put_on_stream(comm);
    } else {
      comm->num_looks = kLooks;
      result = cinch::rt::kNcclInProgress;
    }
  }
  t_group.clear();
  return result;
}

NcclCode add_call(NcclComm comm, Call call, const void* input, std::size_t input_count,
                  void* output, std::size_t output_count, GpuStream stream) {
  if (const NcclCode code = check_comm(comm, "an exchange"); code != 0) return code;
  if (comm->group_thread != std::thread::id{} && comm->group_thread != std::this_thread::get_id()) {
    return wrong_use(cinch::rt::kNcclInvalidUsage, "two threads use a communicator in groups");
  }
  if (call.peer < 0 || call.peer >= comm->world) {
    return wrong_use(cinch::rt::kNcclInvalidArgument, "no such peer or root");
  }
  constexpr int kFirstWithMeans = 21000;
  if (NCCL_DOUBLE_VERSION < kFirstWithMeans && call.operation == NcclOperation::Average) {
    return wrong_use(cinch::rt::kNcclInvalidArgument, "an operation that this version lacks");
  }
  const std::size_t width = cinch::nccl_double::type_bytes(call.type);
  const Stream on = cinch::nccl_double::find_stream(stream);
  call.input = cinch::nccl_double::memory_at(input, input_count * width, comm->device);
  call.output = cinch::nccl_double::memory_at(output, output_count * width, comm->device);
  if ((input_count > 0 && call.input == nullptr) || (output_count > 0 && call.output == nullptr)) {
    return wrong_use(cinch::rt::kNcclInvalidArgument, "memory that is not the device's");
  }
  if (on == nullptr || on->device != comm->device) {
    return wrong_use(cinch::rt::kNcclInvalidArgument, "a stream of another device, or none");
  }
  call.fault = planted_fault(comm->device);
  if (call.fault == kDoubleFails) {
    return refused(cinch::rt::kNcclSystemError, "planted by a test");
  }
  auto found = t_group.begin();
  while (found != t_group.end() && found->first != comm) ++found;
  if (found == t_group.end()) found = t_group.insert(found, {comm, Launch{{}, on}});
  if (found->second.stream != on) {
    return wrong_use(cinch::rt::kNcclInvalidUsage, "two streams in one group");
  }
  found->second.calls.push_back(call);
  comm->group_thread = std::this_thread::get_id();
  return t_group_depth > 0 ? cinch::rt::kNcclSuccess : end_group();
}

NcclCode join_world(NcclComm* made, int size, const NcclUniqueId& id, int rank, bool blocks) {
  const int device = cinch::nccl_double::current_device();
  if (device < 0) return wrong_use(cinch::rt::kNcclUnhandledCudaError, "no context is current");
  if (rank < 0 || rank >= size) return wrong_use(cinch::rt::kNcclInvalidArgument, "no such rank");
  auto comm = std::make_unique<cinch::rt::NcclCommObject>();
  {
    const std::lock_guard lock(state().mutex);
    const auto found = state().worlds.find(std::string(id.bytes, sizeof id.bytes));
    if (found == state().worlds.end()) {
      return refused(cinch::rt::kNcclInvalidArgument, "an id of no library");
    }
    if (found->second == nullptr) found->second = std::make_shared<World>(size);
    comm->work->world = found->second;
    state().comms.insert(comm.get());
  }
  const bool may_share =
      NCCL_DOUBLE_VERSION >= 23000 && std::getenv("NCCL_MULTI_RANK_GPU_ENABLE") != nullptr;
  comm->world = size;
  comm->rank = comm->work->rank = rank;
  comm->device = device;
  comm->blocks = blocks;
  *made = comm.release();
  const auto joined = (*made)->work->world->join(rank, size, device, may_share);
  if (joined == World::Joined::TwiceTheDevice) {
    return refused(cinch::rt::kNcclInvalidUsage, "Duplicate GPU detected");
  }
  if (joined != World::Joined::Yes) {
    return wrong_use(cinch::rt::kNcclInvalidArgument, "ranks that are no world");
  }
  if (!blocks) return cinch::rt::kNcclInProgress;
  (*made)->work->world->wait_until_complete();
  (*made)->was_ready = true;
  return readiness(*made);
}

}  // namespace

// The names are NCCL's. NOLINTBEGIN(readability-identifier-naming)
#pragma GCC visibility push(default)
extern "C" {

NcclCode ncclGetVersion(int* version) {
  *version = NCCL_DOUBLE_VERSION;
  return cinch::rt::kNcclSuccess;
}

NcclCode ncclGetUniqueId(NcclUniqueId* id) {
  const std::lock_guard lock(state().mutex);
  *id = {};
  std::snprintf(id->bytes, sizeof id->bytes, "world %llu",
                static_cast<unsigned long long>(++state().num_ids));
  state().worlds[std::string(id->bytes, sizeof id->bytes)] = nullptr;
  return cinch::rt::kNcclSuccess;
}

const char* ncclGetErrorString(NcclCode code) {
  switch (code) {
    case cinch::rt::kNcclSuccess:
      return "no error";
    case cinch::rt::kNcclSystemError:
      return "unhandled system error";
    case cinch::rt::kNcclInvalidUsage:
      return "invalid usage";
    case cinch::rt::kNcclRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "invalid argument";
  }
}

NcclCode ncclCommInitRank(NcclComm* comm, int size, NcclUniqueId id, int rank) {
  return join_world(comm, size, id, rank, true);
}

NcclCode ncclCommGetAsyncError(NcclComm comm, NcclCode* error) {
  if (!is_alive(comm)) {
    return wrong_use(cinch::rt::kNcclInvalidArgument, "asking a communicator that is none");
  }
  if (!comm->was_ready && comm->work->world->is_complete()) comm->was_ready = true;
  if (comm->num_looks > 0) {
    --comm->num_looks;
    if (comm->num_looks == 0) put_on_stream(comm);
  }
  *error = readiness(comm);
  return cinch::rt::kNcclSuccess;
}

NcclCode ncclCommAbort(NcclComm comm) {
  if (!is_alive(comm)) {
    return wrong_use(cinch::rt::kNcclInvalidArgument, "abort of a communicator that is none");
  }
  bool is_connecting = false;
  {
    const std::lock_guard lock(comm->work->mutex);
    is_connecting = comm->work->is_connecting;
  }
  if (is_connecting) {
    wrong_use(cinch::rt::kNcclInvalidUsage, "abort while another thread is in a call");
  }
  comm->work->world->give_up(comm->work->has_given_up);
  cinch::nccl_double::wait_for_device(comm->device);  // to free memory
  leave(comm);
  forget(comm);
  return cinch::rt::kNcclSuccess;
}

NcclCode ncclCommDestroy(NcclComm comm) {
  if (const NcclCode code = check_comm(comm, "destroy"); code != 0) return code;
  NcclCode result = cinch::rt::kNcclSuccess;
  {
    const std::lock_guard lock(comm->work->mutex);
    if (comm->work->num_done != comm->work->num_given) result = cinch::rt::kNcclInvalidUsage;
  }
  if (result != 0) return wrong_use(result, "destroy with work under way");
  if (!comm->handles.empty()) wrong_use(result, "destroy with memory registered");
  if (!comm->blocks && !comm->is_finalized) wrong_use(result, "destroy without finalize");
  leave(comm);
  forget(comm);
  return result;
}

NcclCode ncclCommCount(NcclComm comm, int* count) {
  if (const NcclCode code = check_comm(comm, "count"); code != 0) return code;
  *count = comm->world;
  return cinch::rt::kNcclSuccess;
}

NcclCode ncclCommUserRank(NcclComm comm, int* rank) {
  if (const NcclCode code = check_comm(comm, "rank"); code != 0) return code;
  *rank = comm->rank;
  return cinch::rt::kNcclSuccess;
}

NcclCode ncclCommCuDevice(NcclComm comm, int* device) {
  if (const NcclCode code = check_comm(comm, "device"); code != 0) return code;
  *device = comm->device;
  return cinch::rt::kNcclSuccess;
}

NcclCode ncclGroupStart() {
  ++t_group_depth;
  return cinch::rt::kNcclSuccess;
}

NcclCode ncclGroupEnd() {
  if (t_group_depth == 0) {
    return wrong_use(cinch::rt::kNcclInvalidUsage, "the end of no group");
  }
  return --t_group_depth > 0 ? cinch::rt::kNcclSuccess : end_group();
}

NcclCode ncclAllReduce(const void* input, void* output, std::size_t count, NcclType type,
                       NcclOperation operation, NcclComm comm, GpuStream stream) {
  Call call{Call::Kind::AllReduce};
  call.count = count;
  call.type = type;
  call.operation = operation;
  return add_call(comm, call, input, count, output, count, stream);
}

NcclCode ncclBroadcast(const void* input, void* output, std::size_t count, NcclType type, int root,
                       NcclComm comm, GpuStream stream) {
  Call call{Call::Kind::Broadcast};
  call.count = count;
  call.type = type;
  call.peer = root;
  return add_call(comm, call, input, count, output, count, stream);
}

NcclCode ncclReduce(const void* input, void* output, std::size_t count, NcclType type,
                    NcclOperation operation, int root, NcclComm comm, GpuStream stream) {
  Call call{Call::Kind::Reduce};
  call.count = count;
  call.type = type;
  call.operation = operation;
  call.peer = root;
  const bool is_root = is_alive(comm) && comm->rank == root;
  return add_call(comm, call, input, count, output, is_root ? count : 0, stream);
}

NcclCode ncclAllGather(const void* input, void* output, std::size_t count, NcclType type,
                       NcclComm comm, GpuStream stream) {
  Call call{Call::Kind::AllGather};
  call.count = count;
  call.type = type;
  const auto world = static_cast<std::size_t>(is_alive(comm) ? comm->world : 0);
  return add_call(comm, call, input, count, output, world * count, stream);
}

NcclCode ncclReduceScatter(const void* input, void* output, std::size_t count, NcclType type,
                           NcclOperation operation, NcclComm comm, GpuStream stream) {
  Call call{Call::Kind::ReduceScatter};
  call.count = count;
  call.type = type;
  call.operation = operation;
  const auto world = static_cast<std::size_t>(is_alive(comm) ? comm->world : 0);
  return add_call(comm, call, input, world * count, output, count, stream);
}

NcclCode ncclSend(const void* input, std::size_t count, NcclType type, int peer, NcclComm comm,
                  GpuStream stream) {
  Call call{Call::Kind::Send};
  call.count = count;
  call.type = type;
  call.peer = peer;
  return add_call(comm, call, input, count, nullptr, 0, stream);
}

NcclCode ncclRecv(void* output, std::size_t count, NcclType type, int peer, NcclComm comm,
                  GpuStream stream) {
  Call call{Call::Kind::Receive};
  call.count = count;
  call.type = type;
  call.peer = peer;
  return add_call(comm, call, nullptr, 0, output, count, stream);
}

#if NCCL_DOUBLE_VERSION >= 21300
const char* ncclGetLastError(NcclComm) {
  return t_last_error.c_str();
}
#endif

#if NCCL_DOUBLE_VERSION >= 21400
NcclCode ncclCommInitRankConfig(NcclComm* comm, int size, NcclUniqueId id, int rank,
                                NcclConfig* config) {
  if (config == nullptr || config->magic != cinch::rt::kNcclMagic) {
    return wrong_use(cinch::rt::kNcclInvalidArgument, "a config that is none");
  }
  return join_world(comm, size, id, rank, config->blocking != 0);
}

NcclCode ncclCommFinalize(NcclComm comm) {
  if (const NcclCode code = check_comm(comm, "finalize"); code != 0) return code;
  comm->is_finalized = true;
  if (comm->blocks) return cinch::rt::kNcclSuccess;
  comm->num_looks = kLooks;
  return cinch::rt::kNcclInProgress;
}
#endif

#if NCCL_DOUBLE_VERSION >= 21900
NcclCode ncclCommRegister(NcclComm comm, void* memory, std::size_t size_bytes, void** handle) {
  if (const NcclCode code = check_comm(comm, "register"); code != 0) return code;
  if (cinch::nccl_double::memory_at(memory, size_bytes, comm->device) == nullptr) {
    return wrong_use(cinch::rt::kNcclInvalidArgument, "registering what is not the device's");
  }
  const std::lock_guard lock(state().mutex);
  *handle = reinterpret_cast<void*>(++state().num_registrations);  // NOLINT
  comm->handles.insert(*handle);
  return cinch::rt::kNcclSuccess;
}

NcclCode ncclCommDeregister(NcclComm comm, void* handle) {
  if (const NcclCode code = check_comm(comm, "deregister"); code != 0) return code;
  if (comm->handles.erase(handle) == 1) return cinch::rt::kNcclSuccess;
  return wrong_use(cinch::rt::kNcclInvalidArgument, "deregistering a handle that is none");
}
#endif

void nccl_double_plant(int device, int fault, std::uint64_t call) {
  const std::lock_guard lock(state().mutex);
  state().faults[device] = {fault, call};
}

std::size_t nccl_double_wrong_uses(char* text, std::size_t room) {
  const std::lock_guard lock(state().mutex);
  std::string all;
  for (const std::string& each : state().wrong_uses) all += each + "\n";
  const std::size_t count = state().wrong_uses.size();
  state().wrong_uses.clear();
  if (room > 0) text[all.copy(text, room - 1)] = '\0';
  return count;
}

void nccl_double_leave_together(bool waits) {
  const std::lock_guard lock(state().mutex);
  state().leaves_together = waits;
}

void nccl_double_on_write(void (*note)(void*, std::size_t)) {
  cinch::nccl_double::World::on_write(note);
}

std::uint64_t nccl_double_registrations() {
  const std::lock_guard lock(state().mutex);
  return state().num_registrations;
}
}
#pragma GCC visibility pop
// NOLINTEND(readability-identifier-naming)
