// libFuzzer target: ranks that send anything to one that opens a session with them and takes a
// step. The first byte is the number of correct exchanges, in which others send what this rank
// sends; the second byte chooses the plan.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "runtime/planner/planner.h"
#include "runtime/sync/step_tensors.h"
#include "runtime/sync/sync_session.h"
#include "tests/fuzz/target.h"

namespace {

using namespace cinch::rt;

constexpr std::uint32_t kWorld = 3, kRank = 1;

class StrangeRanks : public Transport {
 public:
  StrangeRanks(std::span<const std::uint8_t> says, std::size_t num_right)
      : says_(says), num_right_(num_right) {}

  std::string_view name() const override { return "strange"; }
  std::uint32_t rank() const override { return kRank; }
  std::uint32_t world() const override { return kWorld; }
  bool sums_in_rank_order() const override { return true; }
  Result<Ticket> start(const Exchange& exchange) override {
    if (auto status = check_exchange(exchange, *this); !status) {
      return tl::unexpected<Error>(status.error());
    }
    const bool is_right = num_started_++ < num_right_;
    if (exchange.kind != ExchangeKind::AllGather && exchange.kind != ExchangeKind::AllToAll) {
      say(exchange.output);
      return Ticket{};
    }
    for (std::uint32_t from = 0; from < kWorld; ++from) {
      const ByteRange& part = exchange.received[from];
      const auto place = exchange.output.subspan(part.offset, part.size);
      const bool is_echo = (from == kRank || is_right) && exchange.input.size() == place.size();
      if (!is_echo) {
        say(place);
      } else if (!place.empty()) {
        std::memmove(place.data(), exchange.input.data(), place.size());
      }
    }
    return Ticket{};
  }
  Result<bool> test(Ticket) override { return true; }
  std::vector<std::uint32_t> awaited_ranks(Ticket) const override { return {}; }
  void pause(std::chrono::microseconds) override {}
  void abandon(const Error&) override {}
  std::uint64_t sent_bytes() const override { return 0; }
  std::uint64_t num_moves() const override { return 0; }

 private:
  // Bytes of the input, repeated.
  void say(std::span<std::uint8_t> to) {
    for (std::uint8_t& byte : to) byte = says_.empty() ? 0 : says_[next_++ % says_.size()];
  }

  std::span<const std::uint8_t> says_;
  std::size_t num_right_, next_ = 0, num_started_ = 0;
};

std::shared_ptr<const Plan> dense_plan(std::size_t name) {
  PlanRequest request;
  const auto names = plan_names();
  request.plan = names[name % names.size()];
  request.world = kWorld;
  request.tensors = {{"large", 300, 1, kDense}, {"none", 0, 1, kDense}};
  return std::make_shared<const Plan>(std::move(*build_plan(request)));
}

void take_step(StrangeRanks& ranks, std::size_t plan) {
  SyncOptions options;
  options.plan = dense_plan(plan);
  options.threads = 1;
  options.timeout = std::chrono::milliseconds(50);
  const auto session = SyncSession::open(options, ranks);
  if (!session) return;
  std::vector<float> gradient(300, 1), update(300);
  const ConstTensorView gradients[] = {{gradient.data(), cinch::kF32, 300}, {}};
  const TensorView updates[] = {{update.data(), cinch::kF32, 300}, {}};
  (void)(*session)->step(gradients, updates, 7);
  (void)(*session)->save_states();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::span<const std::uint8_t> says(data + 2, size - 2);
  StrangeRanks ranks(says, 0);
  const auto status =
      agree_on({{"seed", "1"}, {"tensor", "fc of 3 x 4"}}, ranks, std::chrono::milliseconds(50));
  // Two other ranks; each sends at most this much.
  constexpr std::size_t kMost = 1000;
  if (!status && status.error().message.size() > kMost) std::abort();
  StrangeRanks others(says, data[0]);
  take_step(others, data[1]);
  return 0;
}
