// The calls of mpi_abi.h over MPI 3: the one file that includes its header.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <dlfcn.h>
#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/transports/mpi/mpi_abi.h"

struct cinch_mpi_world {
  std::array<MPI_Comm, 2> channels{MPI_COMM_NULL, MPI_COMM_NULL};
  std::vector<MPI_Request> requests;  // under way
  struct Operation {
    std::uint64_t token = 0;
    bool is_cancelled_at_close = false;
  };
  std::vector<Operation> operations;  // by request
  std::vector<cinch_mpi_end> ends;
  std::vector<int> indices;
  std::vector<MPI_Status> statuses;
};

namespace {

using World = cinch_mpi_world;
using Clock = std::chrono::steady_clock;

// State of the process. Worlds live as long as the process: late messages of a freed communicator
// could be taken for those of a new one with the same number.
struct Process {
  bool is_ours = false;  // initialised here
  bool is_faulted = false;
  bool has_left = false;
  std::chrono::milliseconds timeout{0};  // of the last world
  bool has_begun = false;                // to initialise MPI
  std::atomic<bool> has_initialised{false}, is_to_finalize{false}, has_finalized{false};
  int initialise_error = MPI_SUCCESS;
  // The next world. A call that came too early continues in the next call, since all ranks must
  // duplicate in the same order.
  World* next = nullptr;
  std::vector<MPI_Request> duplications;
  std::vector<World*> worlds;
};

Process& process() {
  static auto* const kProcess = new Process;
  return *kProcess;
}

// Repeats until the condition is true or the time is up; returns whether it became true.
template <typename Condition>
bool wait_until(Clock::time_point end, const Condition& is_true) {
  constexpr std::chrono::microseconds kNap{50};
  while (!is_true()) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(kNap);
  }
  return true;
}

// Waits for all ranks first, since MPI_Finalize would wait for them without a limit; some may never
// come.
std::int32_t finalize(Clock::time_point end) {
  MPI_Request all_here = MPI_REQUEST_NULL;
  if (const int error = MPI_Ibarrier(MPI_COMM_WORLD, &all_here); error != MPI_SUCCESS) return error;
  int error = MPI_SUCCESS;
  const bool have_come = wait_until(end, [&] {
    int is_over = 0;
    error = MPI_Test(&all_here, &is_over, MPI_STATUS_IGNORE);
    return error != MPI_SUCCESS || is_over != 0;
  });
  if (!have_come) return CINCH_MPI_NO_END;
  if (error != MPI_SUCCESS) return error;
  process().is_to_finalize = true;
  process().is_to_finalize.notify_one();
  const bool is_over = wait_until(end, [] { return process().has_finalized.load(); });
  return is_over ? MPI_SUCCESS : CINCH_MPI_NO_END;
}

std::int32_t leave(std::int32_t timeout_ms) {
  Process& own = process();
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized != 0 || !own.is_ours || std::exchange(own.has_left, true)) return MPI_SUCCESS;
  return finalize(Clock::now() + std::chrono::milliseconds(timeout_ms));
}

// Exits without MPI_Finalize if other ranks do not arrive: mpirun then ends the rest of the job.
void leave_at_exit() {
  constexpr std::chrono::milliseconds kPatienceAfterFault{2000};
  const auto patience = process().is_faulted ? kPatienceAfterFault : process().timeout;
  (void)leave(static_cast<std::int32_t>(patience.count()));
}

// A thread of its own initialises and finalises MPI, since MPI wants one thread for both. If other
// ranks do not arrive neither call returns, and the thread is abandoned.
void run_process(Process& own) {
  int provided = 0;
  // One thread at a time calls MPI, but not always the same one.
  own.initialise_error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  own.has_initialised = true;
  if (own.initialise_error != MPI_SUCCESS) return;
  own.is_to_finalize.wait(false);
  MPI_Finalize();
  own.has_finalized = true;
}

// If the limit was too short for the others, a later call goes on waiting.
int initialise(Clock::time_point end) {
  Process& own = process();
  int is_initialised = 0, is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized != 0 || own.has_left) return CINCH_MPI_FINALIZED;
  MPI_Initialized(&is_initialised);
  if (own.is_ours || (is_initialised != 0 && !own.has_begun)) return MPI_SUCCESS;
  if (!std::exchange(own.has_begun, true)) std::thread([&own] { run_process(own); }).detach();
  if (!wait_until(end, [&] { return own.has_initialised.load(); })) return CINCH_MPI_NO_START;
  if (own.initialise_error != MPI_SUCCESS) return own.initialise_error;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  own.is_ours = true;
  return MPI_SUCCESS;
}

int begin_next() {
  Process& own = process();
  if (own.next != nullptr) return MPI_SUCCESS;
  own.next = new World;
  own.worlds.push_back(own.next);
  own.duplications.assign(own.next->channels.size(), MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < own.duplications.size(); ++i) {
    const int error = MPI_Comm_idup(MPI_COMM_WORLD, &own.next->channels[i], &own.duplications[i]);
    if (error != MPI_SUCCESS) return error;
  }
  return MPI_SUCCESS;
}

std::int32_t open_world(std::int32_t timeout_ms, World** world, std::int32_t* rank,
                        std::int32_t* size) {
  Process& own = process();
  own.timeout = std::chrono::milliseconds(timeout_ms);
  const Clock::time_point end = Clock::now() + own.timeout;
  int error = initialise(end);
  if (error == MPI_SUCCESS) error = begin_next();
  if (error != MPI_SUCCESS) return error;
  const bool have_come = wait_until(end, [&] {
    int are_over = 0;
    error = MPI_Testall(static_cast<int>(own.duplications.size()), own.duplications.data(),
                        &are_over, MPI_STATUSES_IGNORE);
    return error != MPI_SUCCESS || are_over != 0;
  });
  if (!have_come) return CINCH_MPI_LATE;
  if (error != MPI_SUCCESS) return error;
  *world = std::exchange(own.next, nullptr);
  own.is_faulted = false;  // all ranks are here
  for (MPI_Comm channel : (*world)->channels) MPI_Comm_set_errhandler(channel, MPI_ERRORS_RETURN);
  MPI_Comm_rank((*world)->channels[CINCH_MPI_DATA], rank);
  MPI_Comm_size((*world)->channels[CINCH_MPI_DATA], size);
  static const bool kIsToFinalize = process().is_ours && std::atexit(leave_at_exit) == 0;
  return kIsToFinalize || !process().is_ours ? MPI_SUCCESS : MPI_ERR_OTHER;
}

void close_world(World* world, std::int32_t is_faulted) {
  if (is_faulted != 0) process().is_faulted = true;
  for (std::size_t i = 0; i < world->requests.size(); ++i) {
    if (world->operations[i].is_cancelled_at_close) MPI_Cancel(&world->requests[i]);
  }
}

void error_text(std::int32_t error, char* text, std::size_t room) {
  std::string message(MPI_MAX_ERROR_STRING, '\0');
  int size = 0;
  if (error == CINCH_MPI_LATE) {
    message = "the other ranks have not come";
  } else if (error == CINCH_MPI_FINALIZED) {
    message = "MPI_Finalize was called in this process";
  } else if (error == CINCH_MPI_NO_START) {
    message = "the other ranks have not come to MPI_Init";
  } else if (error == CINCH_MPI_NO_END) {
    message = "the other ranks have not come to MPI_Finalize";
  } else {
    MPI_Error_string(error, message.data(), &size);
    message.resize(static_cast<std::size_t>(size));
  }
  if (room == 0) return;
  text[message.copy(text, room - 1)] = '\0';
}

// Extensions that a library may lack: those of Open MPI and newer MPICH, and that of MPICH.
std::int32_t takes_cuda_memory() {
  if (void* const ask = ::dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"); ask != nullptr) {
    return reinterpret_cast<int (*)()>(ask)();
  }
  constexpr int kCuda = 0;
  void* const ask = ::dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support");
  int is_supported = 0;
  if (ask == nullptr) return 0;
  const int error = reinterpret_cast<int (*)(int, int*)>(ask)(kCuda, &is_supported);
  return error == MPI_SUCCESS ? is_supported : 0;
}

std::int32_t note(World& world, int error, MPI_Request request, const World::Operation& operation) {
  if (error != MPI_SUCCESS) return error;
  world.requests.push_back(request);
  world.operations.push_back(operation);
  return MPI_SUCCESS;
}

std::int32_t send(World* world, std::int32_t channel, const void* bytes, std::int32_t size,
                  std::int32_t to, std::int32_t tag, std::uint64_t token) {
  MPI_Request request = MPI_REQUEST_NULL;
  const auto start = channel == CINCH_MPI_NOTICES ? MPI_Issend : MPI_Isend;
  const int error = start(bytes, size, MPI_BYTE, to, tag,
                          world->channels[static_cast<std::size_t>(channel)], &request);
  return note(*world, error, request, {token});
}

std::int32_t receive(World* world, std::int32_t channel, void* bytes, std::int32_t size,
                     std::int32_t from, std::int32_t tag, std::uint64_t token) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int error = MPI_Irecv(bytes, size, MPI_BYTE, from, tag,
                              world->channels[static_cast<std::size_t>(channel)], &request);
  return note(*world, error, request, {token, channel == CINCH_MPI_DATA});
}

MPI_Datatype type_of(std::int32_t type) {
  const std::array<MPI_Datatype, 10> types{MPI_INT8_T,  MPI_UINT8_T,  MPI_INT16_T, MPI_UINT16_T,
                                           MPI_INT32_T, MPI_UINT32_T, MPI_INT64_T, MPI_UINT64_T,
                                           MPI_FLOAT,   MPI_DOUBLE};
  return types[static_cast<std::size_t>(type)];
}

std::int32_t all_reduce(World* world, const void* input, void* output, std::int32_t count,
                        std::int32_t type, std::int32_t operation, std::uint64_t token) {
  const std::array<MPI_Op, 3> operations{MPI_SUM, MPI_MIN, MPI_MAX};
  MPI_Request request = MPI_REQUEST_NULL;
  const int error = MPI_Iallreduce(input, output, count, type_of(type),
                                   operations[static_cast<std::size_t>(operation)],
                                   world->channels[CINCH_MPI_DATA], &request);
  return note(*world, error, request, {token});
}

std::int32_t broadcast(World* world, void* bytes, std::int32_t size, std::int32_t root,
                       std::uint64_t token) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int error =
      MPI_Ibcast(bytes, size, MPI_BYTE, root, world->channels[CINCH_MPI_DATA], &request);
  return note(*world, error, request, {token});
}

cinch_mpi_end end_of(const World& world, std::size_t which, bool has_error) {
  const MPI_Status& status = world.statuses[which];
  cinch_mpi_end end{world.operations[static_cast<std::size_t>(world.indices[which])].token, 0, 0};
  MPI_Count bytes = 0;
  MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
  end.bytes = bytes == MPI_UNDEFINED ? 0 : static_cast<std::uint64_t>(bytes);
  if (!has_error || status.MPI_ERROR == MPI_SUCCESS) return end;
  int kind = MPI_ERR_OTHER;
  MPI_Error_class(status.MPI_ERROR, &kind);
  end.error = kind == MPI_ERR_TRUNCATE ? CINCH_MPI_TOO_LONG : status.MPI_ERROR;
  return end;
}

std::int32_t progress(World* world, const cinch_mpi_end** ends, std::size_t* num_ends) {
  const std::size_t num = world->requests.size();
  world->ends.clear();
  world->indices.resize(num);
  world->statuses.resize(num);
  int num_over = 0;
  const int error = MPI_Testsome(static_cast<int>(num), world->requests.data(), &num_over,
                                 world->indices.data(), world->statuses.data());
  if (error != MPI_SUCCESS && error != MPI_ERR_IN_STATUS) return error;
  if (num_over == MPI_UNDEFINED) num_over = 0;  // nothing is under way
  for (std::size_t i = 0; i < static_cast<std::size_t>(num_over); ++i) {
    world->ends.push_back(end_of(*world, i, error == MPI_ERR_IN_STATUS));
  }
  if (num_over > 0) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < num; ++i) {
      if (world->requests[i] == MPI_REQUEST_NULL) continue;
      world->requests[kept] = world->requests[i];
      world->operations[kept++] = world->operations[i];
    }
    world->requests.resize(kept);
    world->operations.resize(kept);
  }
  *ends = world->ends.data();
  *num_ends = world->ends.size();
  return MPI_SUCCESS;
}

const cinch_mpi_calls kCalls{open_world, close_world, leave,      error_text, takes_cuda_memory,
                             send,       receive,     all_reduce, broadcast,  progress};

}  // namespace

extern "C" __attribute__((visibility("default"))) const cinch_mpi_calls* cinch_mpi_calls_of(
    std::uint32_t version) {
  return version == CINCH_MPI_ABI_VERSION ? &kCalls : nullptr;
}
