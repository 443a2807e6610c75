// Data-parallel training through a library that `cinch build` made: a network of two layers learns
// handwritten digits on four ranks, which are threads here. Each rank compresses its gradient, all
// ranks decode what all sent, and take the mean.
//
//   trainer DIGITS.u8          rows of 64 pixels (0 … 16) and a label
//
// Prints a line per compressor: bytes sent per rank and step, loss and accuracy on what was not
// trained on, and the loss beside that of exact gradients.
#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "compressors.hpp"

namespace {

constexpr std::size_t kRanks = 4, kPixels = 64, kHidden = 48, kClasses = 10;
constexpr std::size_t kFirst = kPixels * kHidden, kBias1 = kHidden, kSecond = kHidden * kClasses;
constexpr std::size_t kWeights = kFirst + kBias1 + kSecond + kClasses;
constexpr std::size_t kSteps = 600, kBatch = 32;  // of each rank
constexpr float kRate = 0.1F;

struct Digits {
  std::vector<float> pixels;  // [n, 64], 0 … 1
  std::vector<int> labels;
  std::size_t size() const { return labels.size(); }
};

Digits read_digits(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  constexpr float kBrightest = 16;
  Digits digits;
  for (std::size_t row = 0; row + kPixels < bytes.size(); row += kPixels + 1) {
    for (std::size_t i = 0; i < kPixels; ++i)
      digits.pixels.push_back(static_cast<float>(bytes[row + i]) / kBrightest);
    digits.labels.push_back(bytes[row + kPixels]);
  }
  return digits;
}

std::vector<float> first_weights() {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 0.12F);
  std::vector<float> weights(kWeights);
  for (std::size_t i = 0; i < kFirst; ++i) weights[i] = normal(random);
  for (std::size_t i = 0; i < kSecond; ++i) weights[kFirst + kBias1 + i] = normal(random);
  return weights;
}

// Loss of one digit; adds its gradient, times `share`, where there is room for it.
float learn(std::span<const float> weights, const float* pixels, int label, float share,
            std::span<float> gradient, int* guess = nullptr) {
  const float *first = weights.data(), *bias1 = first + kFirst, *second = bias1 + kBias1,
              *bias2 = second + kSecond;
  float hidden[kHidden], out[kClasses];
  for (std::size_t h = 0; h < kHidden; ++h) {
    float sum = bias1[h];
    for (std::size_t i = 0; i < kPixels; ++i) sum += pixels[i] * first[i * kHidden + h];
    hidden[h] = std::max(sum, 0.0F);
  }
  for (std::size_t c = 0; c < kClasses; ++c) {
    out[c] = bias2[c];
    for (std::size_t h = 0; h < kHidden; ++h) out[c] += hidden[h] * second[h * kClasses + c];
  }
  if (guess != nullptr) *guess = static_cast<int>(std::max_element(out, out + kClasses) - out);
  const float largest = *std::max_element(out, out + kClasses);
  float sum = 0;
  for (float& value : out) sum += value = std::exp(value - largest);
  const float loss = -std::log(out[label] / sum);
  if (gradient.empty()) return loss;
  for (std::size_t c = 0; c < kClasses; ++c)
    out[c] = share * (out[c] / sum - (static_cast<int>(c) == label ? 1.0F : 0.0F));
  float *to_first = gradient.data(), *to_bias1 = to_first + kFirst, *to_second = to_bias1 + kBias1,
        *to_bias2 = to_second + kSecond;
  for (std::size_t c = 0; c < kClasses; ++c) to_bias2[c] += out[c];
  for (std::size_t h = 0; h < kHidden; ++h) {
    float back = 0;
    for (std::size_t c = 0; c < kClasses; ++c) {
      to_second[h * kClasses + c] += hidden[h] * out[c];
      back += second[h * kClasses + c] * out[c];
    }
    if (hidden[h] <= 0) continue;
    to_bias1[h] += back;
    for (std::size_t i = 0; i < kPixels; ++i) to_first[i * kHidden + h] += back * pixels[i];
  }
  return loss;
}

struct Outcome {
  double bytes_per_step = 0, loss = 0, accuracy = 0;
};

// The last fifth is not trained on.
std::size_t num_trained(const Digits& digits) {
  return digits.size() * 4 / 5;
}

void judge(const Digits& digits, std::span<const float> weights, Outcome& outcome) {
  std::size_t right = 0;
  for (std::size_t i = num_trained(digits); i < digits.size(); ++i) {
    int guess = 0;
    outcome.loss += learn(weights, &digits.pixels[i * kPixels], digits.labels[i], 0, {}, &guess);
    right += guess == digits.labels[i] ? 1 : 0;
  }
  const auto count = static_cast<double>(digits.size() - num_trained(digits));
  outcome.loss /= count;
  outcome.accuracy = static_cast<double>(right) / count;
}

// What ranks share: a payload of each, and where all of them wait for all.
struct World {
  std::vector<std::vector<std::byte>> payloads{kRanks};
  std::vector<std::vector<float>> exact{kRanks};
  std::barrier<> all_sent{kRanks}, all_read{kRanks};
};

void train_rank(const Digits& digits, const cinch::Program* program, std::size_t rank, World& world,
                std::vector<float>& weights, Outcome& outcome) {
  cinch_session_options options{};
  options.world = kRanks;
  options.worker = static_cast<std::uint32_t>(rank);
  options.threads = 1;
  std::unique_ptr<cinch::Session> session;
  if (program != nullptr)
    session = std::make_unique<cinch::Session>(
        *program, std::vector<std::int64_t>{static_cast<std::int64_t>(kWeights)}, options);
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::uniform_int_distribution<std::size_t> draw(0, num_trained(digits) / kRanks - 1);
  std::vector<float> gradient(kWeights), sum(kWeights);
  for (std::size_t step = 0; step < kSteps; ++step) {
    std::fill(gradient.begin(), gradient.end(), 0.0F);
    for (std::size_t i = 0; i < kBatch; ++i) {
      const std::size_t digit = draw(random) * kRanks + rank;
      learn(weights, &digits.pixels[digit * kPixels], digits.labels[digit], 1.0F / kBatch,
            gradient);
    }
    if (session) world.payloads[rank] = session->encode(step, gradient);
    world.exact[rank] = gradient;
    world.all_sent.arrive_and_wait();
    std::fill(sum.begin(), sum.end(), 0.0F);
    for (std::size_t r = 0; r < kRanks; ++r) {
      if (session) {
        session->decode_add(step, world.payloads[r], sum);
      } else {
        for (std::size_t i = 0; i < kWeights; ++i) sum[i] += world.exact[r][i];
      }
    }
    for (std::size_t i = 0; i < kWeights; ++i) weights[i] -= kRate / kRanks * sum[i];
    const std::size_t sent = session ? world.payloads[rank].size() : kWeights * sizeof(float);
    if (rank == 0) outcome.bytes_per_step += static_cast<double>(sent) / kSteps;
    world.all_read.arrive_and_wait();
  }
}

Outcome train(const Digits& digits, const cinch::Program* program) {
  World world;
  Outcome outcome;
  std::vector<std::vector<float>> weights(kRanks, first_weights());
  {
    std::vector<std::jthread> ranks;
    for (std::size_t r = 0; r < kRanks; ++r)
      ranks.emplace_back([&, r] { train_rank(digits, program, r, world, weights[r], outcome); });
  }
  judge(digits, weights[0], outcome);
  for (const std::vector<float>& other : weights) {
    if (other != weights[0]) throw std::runtime_error("the ranks have come to different weights");
  }
  return outcome;
}

void print(const char* name, const Outcome& outcome, const Outcome& exact) {
  std::printf("%-10s %8.0f B a step  loss %.4f  accuracy %.3f  loss beside exact %+.2f %%\n", name,
              outcome.bytes_per_step, outcome.loss, outcome.accuracy,
              100 * (outcome.loss / exact.loss - 1));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw std::invalid_argument("trainer DIGITS.u8");
    const Digits digits = read_digits(argv[1]);
    if (digits.size() == 0) throw std::invalid_argument("no digits there");
    const Outcome exact = train(digits, nullptr);
    print("exact", exact, exact);
    for (std::size_t i = 0; i < compressors_library.num_compressors; ++i) {
      const cinch_compressor& compressor = *compressors_library.compressors[i];
      const cinch::Program program = cinch::Program::open(compressor);
      print(compressor.name, train(digits, &program), exact);
    }
    return 0;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
