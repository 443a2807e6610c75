// Bodies of gpu_list.h.
#include "tests/programs/harness/gpu_list.h"
#include "tests/programs/harness/inputs.h"

#include <cstring>

#include "runtime/call/state_file.h"
#include "runtime/core/check.h"

namespace cinch::testing {

using rt::GpuAddress;
using rt::GpuPayload;

GpuList::GpuList(std::shared_ptr<const rt::GpuProgram> program, rt::GpuSession session)
    : program_(std::move(program)), session_(std::move(session)) {}

std::unique_ptr<GpuList> GpuList::open(const std::shared_ptr<const rt::GpuProgram>& program,
                                       const std::vector<rt::SessionOptions>& tensors,
                                       std::string& error,
                                       const std::optional<rt::GpuTuning>& tuning) {
  rt::GpuSessionOptions options;
  options.tuning = tuning;
  options.world = tensors[0].world;
  options.worker = tensors[0].worker;
  options.seed = tensors[0].seed;
  for (const rt::SessionOptions& tensor : tensors) {
    options.tensors.push_back({tensor.rows, tensor.cols, tensor.tensor, tensor.piece});
  }
  auto session = rt::GpuSession::open(program, options);
  if (session) {
    const auto outcomes = session->collect(nullptr);
    if (!outcomes) {
      error = outcomes.error().message;
      return nullptr;
    }
    return std::unique_ptr<GpuList>(new GpuList(program, std::move(*session)));
  }
  error = session.error().message;
  return nullptr;
}

GpuAddress GpuList::memory(std::size_t size_bytes) {
  // Memory of 0 bytes still needs an address.
  auto made = rt::GpuMemory::allocate(program_->device(), std::max<std::size_t>(size_bytes, 1));
  CINCH_CHECK(made, "no memory on the device");
  return held_.emplace_back(std::move(*made)).address();
}

GpuAddress GpuList::memory_of(const std::vector<float>& values) {
  const std::size_t size_bytes = values.size() * sizeof(float);
  // Callers' tensors lie at any multiple of their elements.
  const std::size_t shift = sizeof(float) * (num_tensors_placed_++ % 4);
  const GpuAddress address = memory(size_bytes + shift) + shift;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
  CINCH_CHECK(program_->device()->write(address, {bytes, size_bytes}, nullptr), "copying");
  return address;
}

std::vector<float> GpuList::floats_at(GpuAddress address, std::size_t num_elems) const {
  std::vector<float> values(num_elems);
  auto* bytes = reinterpret_cast<std::uint8_t*>(values.data());
  const auto status =
      program_->device()->read({bytes, num_elems * sizeof(float)}, address, nullptr);
  CINCH_CHECK(status, status.error().message);
  return values;
}

namespace {

// Collects what a call did. Keeps the error of each tensor, or calls `take` with its number and the
// bytes of its payload. Returns false if the call as a whole failed.
template <typename Take>
bool collect(rt::GpuSession& session, const rt::Status& status, std::vector<StepResult>& results,
             std::optional<rt::Error> StepResult::* error, const Take& take) {
  const auto outcomes =
      status ? session.collect(nullptr) : tl::unexpected<rt::Error>(status.error());
  for (std::size_t t = 0; t < results.size(); ++t) {
    // If an earlier call failed there is nothing to compute with: an empty payload is a corrupt
    // one.
    if (results[t].encode_error || results[t].decode_error) continue;
    if (!outcomes) {
      results[t].*error = outcomes.error();
    } else if (!(*outcomes)[t].status) {
      results[t].*error = (*outcomes)[t].status.error();
    } else {
      take(t, (*outcomes)[t].payload_bytes);
    }
  }
  return outcomes.has_value();
}

}  // namespace

std::vector<StepResult> GpuList::step(const std::vector<std::vector<float>>& gradients,
                                      std::uint64_t step) {
  std::vector<StepResult> results(session_.num_tensors());
  if (encode(gradients, step, results)) {
    decode(step, results);
    if (session_.info().has_finish) finish(step, results);
  }
  read_states(results);
  held_.clear();
  return results;
}

bool GpuList::encode(const std::vector<std::vector<float>>& gradients, std::uint64_t step,
                     std::vector<StepResult>& results) {
  std::vector<GpuAddress> from;
  std::vector<GpuPayload> to;
  for (std::size_t t = 0; t < gradients.size(); ++t) {
    from.push_back(memory_of(gradients[t]));
    const auto bound = session_.payload_bound(t, step);
    CINCH_CHECK(bound, bound.error().message);
    to.push_back({memory(static_cast<std::size_t>(*bound)), *bound});
  }
  for (std::size_t t = 0; t < gradients.size(); ++t) {
    const std::int64_t n = session_.num_elems(t);
    const GpuAddress weights = memory_of(made_up_weights(n));
    const void* const at = reinterpret_cast<void*>(weights);  // NOLINT(performance-no-int-to-ptr)
    CINCH_CHECK(session_.make_up_inputs(t, {at, kF32, n}), "giving inputs");
  }
  const auto status = session_.encode(from, to, step, nullptr);
  return collect(session_, status, results, &StepResult::encode_error,
                 [&](std::size_t t, std::int64_t payload_bytes) {
                   results[t].payload.resize(static_cast<std::size_t>(payload_bytes));
                   const auto read =
                       program_->device()->read(results[t].payload, to[t].address, nullptr);
                   CINCH_CHECK(read, read.error().message);
                 });
}

void GpuList::decode(std::uint64_t step, std::vector<StepResult>& results) {
  std::vector<GpuPayload> from;
  std::vector<GpuAddress> to;
  for (std::size_t t = 0; t < results.size(); ++t) {
    const std::vector<std::uint8_t>& payload = results[t].payload;
    from.push_back({memory(payload.size()), static_cast<std::int64_t>(payload.size())});
    const auto written = program_->device()->write(from[t].address, payload, nullptr);
    CINCH_CHECK(written, written.error().message);
    const auto n = static_cast<std::size_t>(session_.num_elems(t));
    to.push_back(memory_of(std::vector<float>(n, -1234.5f)));
  }
  const auto status = session_.decode(from, to, step, nullptr);
  collect(session_, status, results, &StepResult::decode_error, [&](std::size_t t, std::int64_t) {
    results[t].decoded = floats_at(to[t], static_cast<std::size_t>(session_.num_elems(t)));
  });
}

void GpuList::finish(std::uint64_t step, std::vector<StepResult>& results) {
  std::vector<GpuAddress> from, to;
  for (std::size_t t = 0; t < results.size(); ++t) {
    const auto n = static_cast<std::size_t>(session_.num_elems(t));
    std::vector<float> sum = doubled(results[t].decoded);
    sum.resize(n);
    from.push_back(memory_of(sum));
    to.push_back(memory_of(std::vector<float>(n, -1234.5f)));
  }
  const auto status = session_.finish(from, to, step, nullptr);
  collect(session_, status, results, &StepResult::finish_error, [&](std::size_t t, std::int64_t) {
    results[t].update = floats_at(to[t], static_cast<std::size_t>(session_.num_elems(t)));
  });
}

void GpuList::read_states(std::vector<StepResult>& results) {
  for (std::size_t t = 0; t < results.size(); ++t) {
    const auto states = session_.states(t, nullptr);
    CINCH_CHECK(states, states.error().message);
    results[t].states = *states;
    for (std::size_t i = 0; i < states->size(); ++i) {
      if (session_.info().states[i].is_input) results[t].states[i].clear();
    }
  }
}

}  // namespace cinch::testing
