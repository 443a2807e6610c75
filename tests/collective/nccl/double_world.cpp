// Bodies of double_world.h.
#include "tests/collective/nccl/double_world.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <thread>

namespace cinch::testing {
namespace {

template <typename F>
void find_in(void* library, F*& function, const char* name) {
  function = reinterpret_cast<F*>(::dlsym(library, name));
  ASSERT_NE(function, nullptr) << name;
}

}  // namespace

const NcclDouble& NcclDouble::open(const std::string& name) {
  static std::map<std::string, NcclDouble> opened;
  NcclDouble& made = opened[name];
  if (made.driver != nullptr) return made;
  made.file = std::string(NCCL_DOUBLE_FOLDER) + "/lib" + name + ".so";
  void* const library = ::dlopen(made.file.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << ::dlerror();
  NcclDoubleDriverFn* driver = nullptr;
  find_in(library, driver, "nccl_double_driver");
  find_in(library, made.plant, "nccl_double_plant");
  find_in(library, made.sleep, "nccl_double_sleep");
  find_in(library, made.leave_together, "nccl_double_leave_together");
  find_in(library, made.num_registrations, "nccl_double_registrations");
  find_in(library, made.adopt, "nccl_double_adopt");
  find_in(library, made.forget, "nccl_double_forget");
  find_in(library, made.on_write, "nccl_double_on_write");
  find_in(library, made.enqueue, "nccl_double_enqueue");
  find_in(library, made.wrong_uses_, "nccl_double_wrong_uses");
  made.driver = driver();
  return made;
}

std::string NcclDouble::wrong_uses() const {
  std::array<char, 1000> text{};
  wrong_uses_(text.data(), text.size());
  return text.data();
}

std::shared_ptr<const rt::GpuDevice> NcclDouble::device(std::uint32_t rank) const {
  auto device = rt::GpuDevice::open(*driver, static_cast<int>(rank));
  EXPECT_TRUE(device) << device.error().message;
  return *device;
}

void run_nccl_ranks(const NcclDouble& library, std::uint32_t world,
                    const std::function<void(rt::Transport&)>& body, rt::NcclOptions options) {
  options.library = library.file;
  const auto id = rt::make_nccl_id(library.file);
  ASSERT_TRUE(id) << id.error().message;
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank, options]() mutable {
      options.device = library.device(rank);
      const auto transport = rt::open_nccl_transport(*id, rank, world, options);
      ASSERT_TRUE(transport) << transport.error().message;
      body(**transport);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(library.wrong_uses(), "");
}

OnDeviceTransport on_device(rt::Transport& inner, const NcclDouble& library) {
  return {inner, library.device(inner.rank()),
          [&library](rt::GpuStream stream) { library.sleep(stream, 1); }};
}

}  // namespace cinch::testing
