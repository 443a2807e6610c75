// CUDA text compiled for the emulated GPU, and one device with a seed, for tests.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/emulator/gpu.h"
#include "codegen/emulator/module.h"

namespace cinch::emulator {

/// The module of a text with the kernels `kernels`; the test fails if there is none. Texts that
/// this process has compiled before are not compiled again.
const Module* compile(const std::string& text, const std::vector<std::string>& kernels,
                      bool checks = true);

/// Kernel parameters by value: a launch takes pointers to the copies here.
class Params {
 public:
  template <class... T>
  explicit Params(const T&... values) {
    (add(values), ...);
  }
  void** data() {
    pointers_.clear();
    for (auto& bytes : values_) pointers_.push_back(bytes.data());
    return pointers_.data();
  }

 private:
  template <class T>
  void add(const T& value) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
    values_.emplace_back(bytes, bytes + sizeof value);
  }
  std::vector<std::vector<unsigned char>> values_;
  std::vector<void*> pointers_;
};

/// An array on a device. The test fails if it cannot be allocated.
template <class T>
class Array {
 public:
  Array(Gpu& gpu, std::size_t size) : gpu_(gpu), size_(size) {
    const auto memory = gpu.allocate(size * sizeof(T));
    EXPECT_TRUE(memory);
    if (memory) data_ = static_cast<T*>(*memory);
  }
  Array(Gpu& gpu, const std::vector<T>& values) : Array(gpu, values.size()) {
    EXPECT_TRUE(gpu.copy_to(data_, values.data(), values.size() * sizeof(T)));
  }
  T* get() const { return data_; }
  void zero() { EXPECT_TRUE(gpu_.fill(data_, 0, size_ * sizeof(T))); }
  std::vector<T> read() const {
    std::vector<T> values(size_);
    EXPECT_TRUE(gpu_.copy_from(values.data(), data_, size_ * sizeof(T)));
    return values;
  }

 private:
  Gpu& gpu_;
  std::size_t size_;
  T* data_ = nullptr;
};

// Texts with one fault, and the same without it.

/// A kernel `k(int* out, const int* in, unsigned n)`, or with floats. FAULT(…) is only in the
/// faulty twin, RIGHT(…) only in the other. `// here` marks the line of the finding, or several of
/// which the schedule chooses.
struct Planted {
  FindingKind kind = FindingKind::Race;
  std::string text;
  std::uint32_t n = 1024;  // of both arrays; `in` is initialised, `out` is not
  std::uint32_t blocks = 16, block = 64;
  std::size_t shared_bytes = 0;
  std::string says;         // must be part of the finding
  bool zeroes_out = false;  // initialises `out` with zeros
  rt::ErrorKind error = rt::ErrorKind::CheckFailed;
};

/// Runs both twins under 20 schedules: in one exactly this is found, in the other nothing.
void planted(const Planted& planted);

}  // namespace cinch::emulator
