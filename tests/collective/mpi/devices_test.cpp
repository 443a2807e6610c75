// Ranks that compute on a GPU and exchange from its memory. The emulated GPU's memory is also the
// host's, so that every MPI takes it.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/collective/mpi/rank.h"
#include "tests/collective/support/forwarding_transport.h"
#include "tests/environment.h"
#include "tests/unit/runtime/collective/transport_checks.h"

namespace cinch::testing {
namespace {

using rt::CudaAware;
using rt::ExchangeKind;

constexpr ExchangeKind kOfMessages[] = {ExchangeKind::Send, ExchangeKind::Receive,
                                        ExchangeKind::AllGather, ExchangeKind::AllToAll};
constexpr ExchangeKind kOfTheHost[] = {ExchangeKind::AllReduce, ExchangeKind::ReduceScatter,
                                       ExchangeKind::Broadcast};

CountedGpu& gpu() {
  return CountedGpu::of_process();
}

// Moves exchanges of host memory to device memory, if the transport takes them there. A stream
// writes their inputs, perhaps after they were started.
class OnGpu : public ForwardingTransport {
 public:
  explicit OnGpu(rt::Transport& inner)
      : ForwardingTransport(inner), memory_(*rt::GpuMemory::allocate(gpu().device(), kBytes)) {
    EXPECT_EQ(driver().stream_create(&stream_, rt::kGpuStreamNonBlocking), 0);
    EXPECT_TRUE(lend({part(kBytes), gpu().device(), &gpu().turns()}));
    end_ = 0;
  }
  ~OnGpu() override {
    take_back(lent());
    driver().stream_destroy(stream_);
  }
  std::uint64_t num_on_device() const { return num_on_device_; }

  rt::Result<rt::Ticket> start(const rt::Exchange& exchange) override {
    if (!takes_device_memory(exchange.kind)) return ForwardingTransport::start(exchange);
    ++num_on_device_;
    rt::Exchange moved = exchange;
    moved.place = rt::MemoryPlace::Device;
    moved.after = stream_;
    const auto input = part(exchange.input.size());
    moved.input = input;
    moved.output = part(exchange.output.size());
    driver().fill(address_of(moved.output), 0xee, moved.output.size(), stream_);
    driver().copy_to_device(address_of(input), exchange.input.data(), input.size(), stream_);
    const auto ticket = ForwardingTransport::start(moved);
    if (ticket) under_way_.push_back({ticket->index, exchange, moved.output});
    return ticket;
  }

  rt::Result<bool> test(rt::Ticket ticket) override {
    auto is_over = ForwardingTransport::test(ticket);
    if (!is_over || !*is_over) return is_over;
    const auto found = std::ranges::find(under_way_, ticket.index, &Moved::ticket);
    if (found == under_way_.end()) return is_over;
    const rt::Exchange& exchange = found->exchange;
    if (exchange.kind != ExchangeKind::Send) {
      EXPECT_TRUE(gpu().device()->read(exchange.output, address_of(found->output), stream_));
    }
    under_way_.erase(found);
    if (under_way_.empty()) end_ = 0;
    return is_over;
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{1} << 25;
  struct Moved {
    std::uint32_t ticket = 0;
    rt::Exchange exchange;
    std::span<std::uint8_t> output;
  };
  static const rt::GpuDriver& driver() { return gpu().device()->driver(); }
  static rt::GpuAddress address_of(std::span<const std::uint8_t> bytes) {
    return reinterpret_cast<rt::GpuAddress>(bytes.data());
  }
  std::span<std::uint8_t> lent() const {
    return {reinterpret_cast<std::uint8_t*>(memory_.address()), kBytes};  // NOLINT
  }
  std::span<std::uint8_t> part(std::size_t size) {
    constexpr std::size_t kAlign = 256;
    const auto made = lent().subspan(end_, size);
    end_ += (size + kAlign - 1) / kAlign * kAlign;
    return made;
  }

  rt::GpuMemory memory_;
  rt::GpuStream stream_ = nullptr;
  std::size_t end_ = 0;
  std::vector<Moved> under_way_;
  std::uint64_t num_on_device_ = 0;
};

TEST(MpiDevices, TakeMessagesWhereTheyAreTold) {
  for (const CudaAware aware : {CudaAware::Yes, CudaAware::No}) {
    const auto transport = rt::open_transport({.cuda_aware = aware});
    for (const ExchangeKind kind : kOfMessages) {
      EXPECT_EQ(transport->takes_device_memory(kind), aware == CudaAware::Yes);
    }
    for (const ExchangeKind kind : kOfTheHost) EXPECT_FALSE(transport->takes_device_memory(kind));
    const auto memory = rt::GpuMemory::allocate(gpu().device(), 100);
    ASSERT_TRUE(memory);
    std::span<std::uint8_t> bytes(reinterpret_cast<std::uint8_t*>(memory->address()),  // NOLINT
                                  100);
    EXPECT_EQ(transport->lend({bytes, gpu().device()}), aware == CudaAware::Yes);
    transport->take_back(bytes);
    // The loan has ended.
    rt::Exchange none{ExchangeKind::AllGather};
    const std::vector<rt::ByteRange> parts(transport->world());
    none.received = parts;
    none.place = rt::MemoryPlace::Device;
    EXPECT_FALSE(transport->start(none));
  }
}

// As this machine's library says, whatever that is.
TEST(MpiDevices, AskTheLibrary) {
  const auto transport = rt::open_transport();
  const bool takes = transport->takes_device_memory(ExchangeKind::Send);
  for (const ExchangeKind kind : kOfMessages) {
    EXPECT_EQ(transport->takes_device_memory(kind), takes);
  }
  for (const ExchangeKind kind : kOfTheHost) EXPECT_FALSE(transport->takes_device_memory(kind));
}

TEST(MpiDevices, ExchangeEverythingInDeviceMemory) {
  for (const std::uint64_t most_bytes : {std::uint64_t{1} << 30, std::uint64_t{1001}}) {
    const auto transport =
        rt::open_transport({.most_bytes = most_bytes, .cuda_aware = CudaAware::Yes});
    OnGpu on_gpu(*transport);
    rt::check_everything(on_gpu);
    EXPECT_GT(on_gpu.num_on_device(), 0U);
  }
}

// `each`: every how many ranks one is on a device.
SyncCase on_devices(const std::string& program, std::string_view plan, const rt::Transport& own,
                    std::uint32_t each, std::int64_t elements) {
  SyncCase subject = subject_of(program, plan, own.world(), elements);
  subject.devices.resize(own.world());
  if (own.rank() % each == 0) {
    subject.devices[own.rank()] =
        gpu().sync_device(program.empty() ? std::vector<std::string>{} : std::vector{program});
  }
  return subject;
}

TEST(MpiDevices, PlansGiveWhatTheOracleGives) {
  const auto transport = rt::open_transport({.is_exact = true, .cuda_aware = CudaAware::Yes});
  std::uint32_t number = 0;
  for (const std::string program : {"", "onebit", "topk(ratio: 0.1)", "terngrad_shared"}) {
    for (const std::string_view plan : rt::plan_names()) {
      ++number;
      // Every rank emulates a device of its own.
      if (!is_long_run() && number % 3 != transport->world() % 3) continue;
      const std::uint32_t each = 1 + number % 3 / 2;
      check_steps(on_devices(program, plan, *transport, each, 5001), *transport,
                  program + ", " + std::string(plan) + ", every " + std::to_string(each));
      if (HasFatalFailure()) return;
    }
  }
}

// Bytes between host and device, in a step that is not the first.
std::uint64_t copied_in_a_step(CudaAware aware, std::string_view plan, std::int64_t elements) {
  const auto transport = rt::open_transport({.cuda_aware = aware});
  const SyncCase subject = on_devices("", plan, *transport, 1, elements);
  auto session = rt::SyncSession::open(sync_options(subject, transport->rank()), *transport);
  EXPECT_TRUE(session);
  std::uint64_t before = 0;
  for (std::uint64_t step = 0; session && step < 2; ++step) {
    before = CountedGpu::num_copied_bytes();
    Tensors update;
    const auto gradients = make_gradients(*subject.plan, transport->rank(), step);
    EXPECT_TRUE(step_on(**session, gradients, update, step));
  }
  return CountedGpu::num_copied_bytes() - before;
}

// Only the gradient goes to the device and the update comes back; otherwise messages are copied,
// too.
TEST(MpiDevices, MessagesStayOnTheDevice) {
  if (rt::open_transport()->world() == 1) GTEST_SKIP() << "one rank";
  constexpr std::int64_t kElements = 60001;
  constexpr std::uint64_t kTensors = 8 * (kElements + 7 + 40), kTables = 60000;
  for (const std::string_view plan : {"two_shot", "ring", "ps"}) {
    const std::uint64_t on_device = copied_in_a_step(CudaAware::Yes, plan, kElements);
    EXPECT_GE(on_device, kTensors) << plan;
    EXPECT_LE(on_device, kTensors + kTables) << plan;
    const std::uint64_t staged = copied_in_a_step(CudaAware::No, plan, kElements);
    EXPECT_GE(staged, kTensors + 4 * kElements) << plan;
  }
}

// Passes its data to the library, and then sleeps: messages go on when it wakes.
class Sleeper : public ForwardingTransport {
 public:
  Sleeper(rt::Transport& inner, std::chrono::milliseconds nap)
      : ForwardingTransport(inner), nap_(nap) {}
  rt::Result<rt::Ticket> start(const rt::Exchange& exchange) override {
    is_armed_ = is_armed_ || exchange.place == rt::MemoryPlace::Device;
    return ForwardingTransport::start(exchange);
  }
  rt::Result<bool> test(rt::Ticket ticket) override {
    auto is_over = ForwardingTransport::test(ticket);
    if (!is_armed_ || has_slept_) return is_over;
    has_slept_ = true;
    std::this_thread::sleep_for(nap_);
    return is_over;
  }

 private:
  std::chrono::milliseconds nap_;
  bool is_armed_ = false, has_slept_ = false;
};

// Rank 1 sleeps until the others have given up, have waited in vain for it to hear of that, and
// have closed their sessions: its later messages must then not reach freed memory.
TEST(MpiDevices, MessagesMayComeAfterTheSessionHasGone) {
  constexpr std::chrono::milliseconds kNap{5000}, kTimeout{1000};
  auto transport = rt::open_transport({.cuda_aware = CudaAware::Yes});
  if (transport->world() == 1) GTEST_SKIP() << "one rank";
  const bool sleeps = transport->rank() == 1;
  {
    rt::PlanRequest request;
    request.plan = "two_shot";
    request.world = transport->world();
    request.tensors = {{"large", 1000001, 1, rt::kDense}};
    SyncCase subject = make_sync_case(nullptr, request);
    subject.devices.resize(transport->world(), gpu().sync_device({}));
    if (!sleeps) subject.timeout = kTimeout;
    Sleeper sleeper(*transport, sleeps ? kNap : std::chrono::milliseconds(0));
    rt::check_messages(*transport, 1);  // all have come this far
    auto session = rt::SyncSession::open(sync_options(subject, transport->rank()), sleeper);
    ASSERT_TRUE(session) << session.error().message;
    Tensors update;
    const auto gradients = make_gradients(*subject.plan, transport->rank(), 0);
    EXPECT_FALSE(step_on(**session, gradients, update, 0));
  }
  transport.reset();
  transport = rt::open_transport({.is_exact = true, .cuda_aware = CudaAware::Yes});
  check_steps(on_devices("onebit", "two_shot", *transport, 1, 5001), *transport,
              "after a rank that slept");
  EXPECT_EQ(gpu().num_lost_bytes(), 0U);
}

}  // namespace
}  // namespace cinch::testing
