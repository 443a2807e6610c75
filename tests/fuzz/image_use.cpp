// Bodies of image_use.h.
#include "tests/fuzz/image_use.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/collective/rank_exchange.h"
#include "runtime/gpu/session/session.h"
#include "runtime/image/validate.h"
#include "runtime/planner/planner.h"
#include "runtime/session/session.h"

namespace cinch::fuzz {
namespace {

// A few elements, not a round number; a matrix has both dimensions.
struct Shape {
  std::int64_t rows, cols;
};
constexpr Shape kShapes[] = {{0, 1}, {1, 1}, {67, 1}, {9, 5}};

constexpr std::uint64_t kStep = 3;
constexpr std::uint32_t kWorld = 2;
constexpr std::size_t kMostBytes = std::size_t{16} << 20;  // of a session

// Loops may take long, and end when they are cancelled. Anything else that does not end is a
// finding.
class Alarm {
 public:
  Alarm() : thread_([this] { run(); }) {}
  ~Alarm() {
    is_over_ = true;
    thread_.join();
  }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  const std::atomic<bool>* arm() {
    rings_ = false;
    begun_ = Clock::now().time_since_epoch().count();
    return &rings_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kPatience = std::chrono::milliseconds(100);

  void run() {
    while (!is_over_) {
      std::this_thread::sleep_for(kPatience / 4);
      const Clock::time_point begun{Clock::duration(begun_)};
      if (Clock::now() - begun > kPatience) rings_ = true;
    }
  }

  std::atomic<bool> rings_ = false, is_over_ = false;
  std::atomic<Clock::rep> begun_ = 0;
  std::thread thread_;
};

const rt::ProgramImage* g_counting = nullptr;

// Replaces every kernel: sets the entry's counts, to values that a kernel may set.
void count_three(const rt::KernelArgs* args, std::uint64_t, std::uint64_t) {
  constexpr std::uint32_t kThree = 3;
  for (std::size_t b = 0; b < g_counting->buffers.size(); ++b) {
    const bool is_count = g_counting->buffers[b].role == rt::BufferRole::Count;
    if (is_count && args->buffers[b] != nullptr) std::memcpy(args->buffers[b], &kThree, 4);
  }
}

std::size_t g_held_bytes = 0;

void* allocate(void*, std::size_t size_bytes, std::size_t alignment, rt::MemoryUse) {
  void* memory = nullptr;
  if (size_bytes > kMostBytes - g_held_bytes) return nullptr;
  if (::posix_memalign(&memory, alignment, size_bytes) != 0) return nullptr;
  g_held_bytes += size_bytes;
  return memory;
}

void release(void*, void* memory, std::size_t size_bytes, rt::MemoryUse) {
  g_held_bytes -= size_bytes;
  std::free(memory);
}

// A rejected call leaves nothing behind.
void check(bool holds) {
  if (!holds) std::abort();
}

// Everything that a call may take without memory of its own is looked at by the sanitizer.
void call_session(rt::Session& session) {
  const auto elems = static_cast<std::size_t>(session.num_elems());
  const std::vector<float> gradient(elems, 1);
  std::vector<float> out(elems);
  const rt::ConstTensorView from{gradient.data(), kF32, session.num_elems()};
  const rt::TensorView to{out.data(), kF32, session.num_elems()};
  (void)session.payload_bound(kStep);
  for (const rt::EntryKind kind : {rt::EntryKind::Encode, rt::EntryKind::Decode,
                                   rt::EntryKind::DecodeAdd, rt::EntryKind::Finish}) {
    (void)session.reserve(kind, kF32, false, kStep);
  }
  const auto payload = session.encode(from, kStep);
  if (payload) {
    const std::vector<std::uint8_t> kept(payload->begin(), payload->end());
    (void)session.decode(kept, to, kStep);
    (void)session.decode_add(kept, out, kStep);
  }
  (void)session.finish(gradient, to, kStep);
  rt::LoneRank alone;
  (void)session.sync(from, to, kStep, alone);
  check(session.take_back().has_value());
  const auto states = session.states_as_bytes();
  check(states && session.set_states(*states).has_value());
}

void use_on_cpu(const rt::ProgramImage& image, Alarm& alarm) {
  const std::vector<rt::KernelFunction> kernels(image.kernels.size(), count_three);
  g_counting = &image;
  const auto program = rt::LoadedProgram::from_functions(image, kernels);
  check(program.has_value());
  static rt::TaskRunner runner(1);
  for (const Shape& shape : kShapes) {
    rt::SessionOptions options{.rows = shape.rows, .cols = shape.cols, .world = kWorld};
    options.runner = &runner;
    options.memory = {nullptr, allocate, release};
    options.poison_memory = true;
    options.cancelled = alarm.arm();
    auto session = rt::Session::open(*program, options);
    if (session) call_session(*session);
  }
  check(g_held_bytes == 0);
}

struct GpuPlaces {
  std::vector<rt::GpuMemory> memory;
  std::vector<rt::GpuAddress> gradients, outputs;
  std::vector<rt::GpuPayload> payloads;
};

rt::Status place(const std::shared_ptr<const rt::GpuDevice>& device, const rt::GpuSession& session,
                 GpuPlaces& places) {
  const auto add = [&](std::int64_t size_bytes) -> rt::Result<rt::GpuAddress> {
    auto made = rt::GpuMemory::allocate(device, static_cast<std::size_t>(size_bytes));
    if (!made) return tl::unexpected<rt::Error>(made.error());
    places.memory.push_back(std::move(*made));
    return places.memory.back().address();
  };
  for (std::size_t t = 0; t < session.num_tensors(); ++t) {
    const auto gradient = add(4 * session.num_elems(t)), output = add(4 * session.num_elems(t));
    const auto bound = session.payload_bound(t, kStep);
    if (!gradient || !output)
      return tl::unexpected<rt::Error>((gradient ? output : gradient).error());
    places.gradients.push_back(*gradient);
    places.outputs.push_back(*output);
    if (!bound) continue;
    const auto payload = add(*bound);
    if (!payload) return tl::unexpected<rt::Error>(payload.error());
    places.payloads.push_back({*payload, *bound});
  }
  return rt::Ok{};
}

void call_gpu_session(const std::shared_ptr<const rt::GpuDevice>& device, rt::GpuSession& session) {
  GpuPlaces places;
  if (!place(device, session, places)) return;
  (void)session.encode(places.gradients, places.payloads, kStep, nullptr);
  (void)session.decode(places.payloads, places.outputs, kStep, nullptr);
  (void)session.decode_add(places.payloads, places.outputs, kStep, nullptr);
  (void)session.finish(places.gradients, places.outputs, kStep, nullptr);
  rt::LoneRank alone;
  const auto view = [&](rt::GpuAddress address) {
    auto* const data = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
    return rt::TensorView(data, kF32, session.num_elems(0));
  };
  (void)session.sync(0, view(places.gradients[0]), view(places.outputs[0]), kStep, alone);
  (void)session.keep_states(nullptr);
  (void)session.take_back_states(nullptr);
  for (std::size_t t = 0; t < session.num_tensors(); ++t) {
    const auto bytes = session.states_as_bytes(t, nullptr);
    if (bytes) check(session.set_states(t, *bytes, nullptr).has_value());
  }
  (void)session.collect(nullptr);
}

void use_on_gpu(const rt::ProgramImage& image) {
  const auto device = rt::GpuDevice::open(fake_gpu_driver(image), 0);
  check(device.has_value());
  const auto program = rt::GpuProgram::load(*device, image);
  check(program.has_value());
  for (const DType dtype : {kF32, kF16}) {
    rt::GpuSessionOptions options;
    for (const Shape& shape : kShapes) options.tensors.push_back({shape.rows, shape.cols});
    options.dtype = dtype;
    options.world = kWorld;
    options.keeps_states = true;
    // Both ways of a call: one launch, and one for each step.
    options.tuning = rt::GpuTuning{};
    if (dtype == kF16) options.tuning->one_launch_elements = options.tuning->fold_elements = 0;
    auto session = rt::GpuSession::open(*program, options);
    if (session) call_gpu_session(*device, *session);
  }
}

// The facts that a plan needs of a program.
void describe(const rt::ProgramImage& image) {
  const rt::CodecFacts facts =
      rt::codec_facts(std::make_shared<const rt::ProgramImage>(image), kWorld, kStep);
  for (const Shape& shape : kShapes) {
    if (facts.bound) (void)facts.bound(shape.rows, shape.cols);
    if (facts.sync_rounds) (void)facts.sync_rounds(shape.rows, shape.cols);
    if (facts.sum_arrays) (void)facts.sum_arrays(shape.rows, shape.cols);
  }
}

}  // namespace

void use_image(const rt::ProgramImage& image) {
  static Alarm alarm;
  describe(image);
  if (rt::is_gpu_image(image)) {
    use_on_gpu(image);
  } else {
    use_on_cpu(image, alarm);
  }
}

}  // namespace cinch::fuzz
