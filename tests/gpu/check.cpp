// gpu_check: sessions on a GPU against sessions on the CPU, bit for bit, from images alone: no
// compiler is linked or needed. For every program of a folder (NAME.gpu.image beside
// NAME.cpu.image, as prepare.py makes them): edge sizes alone and as one list, three element types,
// several seeds, steps with states between them, replays of a captured graph.
//
//   gpu_check FOLDER [--device cuda|emulated] [--only NAME,…] [--quick] [--huge]
//
// --quick: few sizes and steps, for a run under compute-sanitizer or an emulator. --huge: one
// tensor of 2^31 + 5 elements through the programs whose memory allows it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>

#include "codegen/emulator/driver.h"
#include "runtime/gpu/session.h"
#include "runtime/image/image_file.h"
#include "runtime/session/session.h"
#include "tests/programs/harness/gpu_list.h"
#include "tests/programs/harness/gradients.h"

namespace cinch::testing {
namespace {

namespace fs = std::filesystem;

struct Options {
  fs::path folder;
  std::string device = "cuda";
  std::vector<std::string> only;
  bool quick = false, huge = false;
};

struct Programs {
  std::string name;
  std::shared_ptr<const rt::LoadedProgram> cpu;
  std::shared_ptr<const rt::GpuProgram> gpu;
};

std::vector<std::int64_t> edge_sizes(bool is_quick) {
  if (is_quick) return {0, 1, 33, 1025, 5000};
  return {0, 1, 2, 31, 32, 33, 1023, 1024, 1025, 5000, 65535, 65537, 100003, (1 << 20) + 3};
}

rt::SessionOptions cpu_options(std::int64_t n, std::uint64_t seed, std::uint32_t number) {
  rt::SessionOptions options;
  options.rows = n;
  options.seed = seed;
  options.tensor = number;
  return options;
}

// A matrix program takes its gradient as rows; a vector program as one row of elements.
void shape(rt::SessionOptions& options, bool is_matrix) {
  if (!is_matrix || options.rows < 64) return;
  options.cols = 64;
  options.rows /= 64;
}

StepResult without_messages(StepResult result, bool is_empty) {
  for (auto* error : {&result.encode_error, &result.decode_error, &result.finish_error}) {
    if (*error) (*error)->message.clear();
  }
  if (is_empty) result.states.clear();
  return result;
}

// A list of tensors through both devices.
std::string check_list(const Programs& program, const std::vector<std::int64_t>& sizes,
                       std::uint64_t seed, std::uint64_t steps) {
  std::vector<rt::SessionOptions> options;
  std::vector<rt::Session> sessions;
  for (const std::int64_t n : sizes) {
    options.push_back(cpu_options(n, seed, static_cast<std::uint32_t>(options.size())));
    shape(options.back(), program.cpu->info().is_matrix);
    auto session = rt::Session::open(program.cpu, options.back());
    if (!session) return "CPU: " + session.error().message;
    sessions.push_back(std::move(*session));
  }
  std::string error;
  const auto list = GpuList::open(program.gpu, options, error);
  if (!list) return "GPU: " + error;
  for (std::uint64_t step = 0; step < steps; ++step) {
    std::vector<std::vector<float>> gradients;
    for (const rt::SessionOptions& one : options) {
      const auto kind = kAllDataKinds[(step + gradients.size()) % std::size(kAllDataKinds)];
      gradients.push_back(make_gradient(kind, one.rows * one.cols, seed + 17 * step));
    }
    const std::vector<StepResult> found = list->step(gradients, step);
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      const bool is_empty = gradients[t].empty();
      const StepResult expected =
          without_messages(run_step(sessions[t], gradients[t], step), is_empty);
      const std::string difference = compare(expected, without_messages(found[t], is_empty));
      if (difference.empty()) continue;
      return fmt::format("{} elements, seed {}, step {}: {}", sizes[t], seed, step, difference);
    }
  }
  return {};
}

// Device memory for one tensor of a type, and back.
class Memory {
 public:
  explicit Memory(std::shared_ptr<const rt::GpuDevice> device) : device_(std::move(device)) {}
  rt::GpuAddress hold(const void* bytes, std::size_t size_bytes) {
    auto made = rt::GpuMemory::allocate(device_, std::max<std::size_t>(size_bytes, 1));
    if (!made) throw std::runtime_error(made.error().message);
    const rt::GpuAddress at = held_.emplace_back(std::move(*made)).address();
    if (bytes != nullptr) write(at, bytes, size_bytes);
    return at;
  }
  void write(rt::GpuAddress at, const void* bytes, std::size_t size_bytes) const {
    const auto status =
        device_->write(at, {static_cast<const std::uint8_t*>(bytes), size_bytes}, nullptr);
    if (!status) throw std::runtime_error(status.error().message);
  }
  std::vector<std::uint8_t> read(rt::GpuAddress at, std::size_t size_bytes) const {
    std::vector<std::uint8_t> bytes(size_bytes);
    const auto status = device_->read(bytes, at, nullptr);
    if (!status) throw std::runtime_error(status.error().message);
    return bytes;
  }

 private:
  std::shared_ptr<const rt::GpuDevice> device_;
  std::vector<rt::GpuMemory> held_;
};

// One tensor of f16 or bf16: payload and decoded tensor.
std::string check_type(const Programs& program, std::int64_t n, DType dtype) {
  rt::SessionOptions options = cpu_options(n, 3, 0);
  shape(options, program.cpu->info().is_matrix);
  auto cpu = rt::Session::open(program.cpu, options);
  if (!cpu) return "CPU: " + cpu.error().message;
  rt::GpuSessionOptions on_gpu;
  on_gpu.dtype = dtype;
  on_gpu.seed = 3;
  on_gpu.tensors = {{options.rows, options.cols, 0, 0}};
  auto gpu = rt::GpuSession::open(program.gpu, on_gpu);
  if (!gpu) return "GPU: " + gpu.error().message;
  // The high halves of f32 are bf16 and, taken as f16, numbers too; infinities are masked away.
  std::vector<std::uint16_t> values;
  for (const float x : make_gradient(DataKind::Normal, cpu->num_elems(), 5)) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    values.push_back(static_cast<std::uint16_t>((bits >> 16) & 0xbfff));
  }
  Memory memory(program.gpu->device());
  const rt::GpuAddress from = memory.hold(values.data(), 2 * values.size());
  const std::int64_t bound = *gpu->payload_bound(0);
  const rt::GpuPayload to{memory.hold(nullptr, static_cast<std::size_t>(bound)), bound};
  const auto expected = cpu->encode({values.data(), dtype, cpu->num_elems()}, 1);
  if (!gpu->encode({&from, 1}, {&to, 1}, 1, nullptr)) return "encode on the GPU";
  const auto outcome = gpu->collect(nullptr);
  if (!outcome) return outcome.error().message;
  if (expected.has_value() != (*outcome)[0].status.has_value()) return "one device fails to encode";
  if (!expected) return {};
  const std::vector<std::uint8_t> payload(expected->begin(), expected->end());
  if (static_cast<std::size_t>((*outcome)[0].payload_bytes) != payload.size() ||
      memory.read(to.address, payload.size()) != payload) {
    return "payloads differ";
  }
  std::vector<std::uint16_t> decoded(values.size());
  const rt::GpuAddress out = memory.hold(nullptr, 2 * values.size());
  if (!cpu->decode(payload, {decoded.data(), dtype, cpu->num_elems()}, 1)) return "decode";
  if (!gpu->decode({&to, 1}, {&out, 1}, 1, nullptr)) return "decode on the GPU";
  const std::vector<std::uint8_t> found = memory.read(out, 2 * values.size());
  const bool is_same = std::memcmp(found.data(), decoded.data(), found.size()) == 0;
  return is_same ? std::string() : "decoded tensors differ";
}

// A graph of encode and decode, replayed over steps.
std::string check_graph(const Programs& program, std::int64_t n, std::uint64_t steps) {
  rt::SessionOptions options = cpu_options(n, 3, 0);
  shape(options, program.cpu->info().is_matrix);
  auto cpu = rt::Session::open(program.cpu, options);
  rt::GpuSessionOptions on_gpu;
  on_gpu.seed = 3;
  on_gpu.tensors = {{options.rows, options.cols, 0, 0}};
  auto gpu = rt::GpuSession::open(program.gpu, on_gpu);
  if (!cpu || !gpu) return "open";
  const rt::GpuDriver& driver = program.gpu->device()->driver();
  const rt::GpuDevice::Scope scope(*program.gpu->device());
  rt::GpuStream stream = nullptr;
  if (driver.stream_create(&stream, 1) != 0) return "no stream";
  const auto elems = static_cast<std::size_t>(cpu->num_elems());
  Memory memory(program.gpu->device());
  std::vector<float> values = make_gradient(DataKind::Normal, cpu->num_elems(), 1);
  const rt::GpuAddress from = memory.hold(values.data(), 4 * elems);
  const rt::GpuAddress out = memory.hold(nullptr, 4 * elems);
  const std::int64_t bound = *gpu->payload_bound(0);
  const rt::GpuPayload to{memory.hold(nullptr, static_cast<std::size_t>(bound)), bound};
  const auto call = [&] {
    return gpu->encode({&from, 1}, {&to, 1}, 0, stream) &&
           gpu->decode({&to, 1}, {&out, 1}, 0, stream);
  };
  if (!call() || driver.stream_synchronize(stream) != 0) return "first call";
  if (!cpu->encode(values, 0)) return {};
  rt::GpuGraph graph = nullptr;
  rt::GpuGraphExec exec = nullptr;
  if (driver.capture_begin(stream, 0) != 0 || !call() || driver.capture_end(stream, &graph) != 0 ||
      driver.graph_instantiate(&exec, graph, 0) != 0) {
    return "capture";
  }
  for (std::uint64_t step = 1; step < steps; ++step) {
    values = make_gradient(DataKind::Normal, cpu->num_elems(), step + 1);
    memory.write(from, values.data(), 4 * elems);
    if (!gpu->prepare(rt::EntryKind::Encode, step, stream) ||
        !gpu->prepare(rt::EntryKind::Decode, step, stream) ||
        driver.graph_launch(exec, stream) != 0) {
      return "replay";
    }
    const auto outcome = gpu->collect(stream);
    if (!outcome || !(*outcome)[0].status) return fmt::format("replay of step {}", step);
    const auto expected = cpu->encode(values, step);
    const std::vector<std::uint8_t> payload(expected->begin(), expected->end());
    if (memory.read(to.address, payload.size()) != payload) {
      return fmt::format("replay of step {}: payloads differ", step);
    }
    std::vector<float> decoded(elems);
    if (!cpu->decode(payload, decoded, step)) return "decode";
    const std::vector<std::uint8_t> found = memory.read(out, 4 * elems);
    if (std::memcmp(found.data(), decoded.data(), found.size()) != 0) {
      return fmt::format("replay of step {}: decoded tensors differ", step);
    }
  }
  driver.graph_exec_destroy(exec);
  driver.graph_destroy(graph);
  driver.stream_destroy(stream);
  return {};
}

std::string check_huge(const Programs& program) {
  return check_list(program, {(std::int64_t{1} << 31) + 5}, 3, 1);
}

std::string check(const Programs& program, const Options& options) {
  if (options.huge) return check_huge(program);
  const std::vector<std::int64_t> sizes = edge_sizes(options.quick);
  const std::uint64_t steps = options.quick ? 2 : 10;
  const std::uint64_t seeds = options.quick ? 1 : 3;
  std::string error;
  for (std::uint64_t seed = 1; seed <= seeds && error.empty(); ++seed) {
    error = check_list(program, sizes, seed, steps);
  }
  for (const std::int64_t n : sizes) {
    if (error.empty() && !options.quick) error = check_list(program, {n}, 7, 2);
  }
  for (const DType dtype : {kF16, kBF16}) {
    for (const std::int64_t n : {std::int64_t{1}, std::int64_t{1025}, sizes.back()}) {
      if (error.empty()) error = check_type(program, n, dtype);
      if (!error.empty()) return fmt::format("{}: {}", dtype_name(dtype), error);
    }
  }
  if (error.empty()) error = check_graph(program, sizes.back(), steps);
  return error;
}

std::optional<Options> parse(std::span<char* const> args) {
  Options options;
  for (std::size_t i = 1; i < args.size(); ++i) {
    const std::string_view arg = args[i];
    const bool has_value = i + 1 < args.size();
    if (arg == "--quick") {
      options.quick = true;
    } else if (arg == "--huge") {
      options.huge = true;
    } else if (arg == "--device" && has_value) {
      options.device = args[++i];
    } else if (arg == "--only" && has_value) {
      const std::string names = args[++i];
      for (std::size_t begin = 0; begin <= names.size();) {
        const std::size_t end = std::min(names.find(',', begin), names.size());
        options.only.push_back(names.substr(begin, end - begin));
        begin = end + 1;
      }
    } else if (options.folder.empty() && !arg.starts_with("-")) {
      options.folder = arg;
    } else {
      return std::nullopt;
    }
  }
  if (options.folder.empty()) return std::nullopt;
  return options;
}

std::shared_ptr<const rt::GpuDevice> open_device(const Options& options) {
  const rt::GpuDriver* driver = nullptr;
  if (options.device == "emulated") {
    driver = &emulator::start_driver({.memory_bytes = std::size_t{1} << 32});
  } else {
    const auto opened = rt::open_cuda_driver();
    if (!opened) throw std::runtime_error(opened.error().message);
    driver = *opened;
  }
  auto device = rt::GpuDevice::open(*driver);
  if (!device) throw std::runtime_error(device.error().message);
  return *device;
}

Programs load(const fs::path& gpu_image, const std::shared_ptr<const rt::GpuDevice>& device) {
  Programs programs;
  programs.name = gpu_image.stem().stem().string();
  auto on_gpu = rt::load_image(gpu_image);
  if (!on_gpu) throw std::runtime_error(on_gpu.error().message);
  auto on_cpu = rt::load_image(gpu_image.parent_path() / (programs.name + ".cpu.image"));
  if (!on_cpu) throw std::runtime_error(on_cpu.error().message);
  const auto gpu = rt::GpuProgram::load(device, std::move(*on_gpu));
  if (!gpu) throw std::runtime_error(programs.name + ": " + gpu.error().message);
  const auto cpu = rt::LoadedProgram::load(std::move(*on_cpu));
  if (!cpu) throw std::runtime_error(programs.name + ": " + cpu.error().message);
  programs.gpu = *gpu;
  programs.cpu = *cpu;
  return programs;
}

int run(const Options& options) {
  const auto device = open_device(options);
  fmt::print("{} ({})\n", device->name(), device->arch());
  std::vector<fs::path> images;
  for (const fs::directory_entry& entry : fs::directory_iterator(options.folder)) {
    if (entry.path().string().ends_with(".gpu.image")) images.push_back(entry.path());
  }
  std::ranges::sort(images);
  int failed = 0, passed = 0;
  for (const fs::path& image : images) {
    const std::string name = image.stem().stem().string();
    const bool is_wanted =
        options.only.empty() || std::ranges::find(options.only, name) != options.only.end();
    if (!is_wanted) continue;
    const std::string error = check(load(image, device), options);
    fmt::print("{} {}{}\n", error.empty() ? "same bits" : "DIFFERS", name,
               error.empty() ? "" : ": " + error);
    std::fflush(stdout);
    ++(error.empty() ? passed : failed);
  }
  fmt::print("{} programs the same, {} not\n", passed, failed);
  return failed > 0 || passed == 0 ? 1 : 0;
}

}  // namespace
}  // namespace cinch::testing

int main(int argc, char** argv) {
  const auto options = cinch::testing::parse({argv, static_cast<std::size_t>(argc)});
  if (!options) {
    fmt::print(stderr,
               "gpu_check FOLDER [--device cuda|emulated] [--only NAME,...] [--quick] "
               "[--huge]\n");
    return 2;
  }
  try {
    return cinch::testing::run(*options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_check: {}\n", error.what());
    return 3;
  }
}
