// A codec over the IR's interpreter: the oracle, with the same payloads. For tests (run
// --interpret).
#include <algorithm>
#include <cmath>
#include <limits>

#include "codegen/jit/library.h"
#include "compiler/driver/codecs/codec.h"
#include "compiler/driver/process/files.h"
#include "compiler/interp/interp.h"
#include "runtime/call/parameters.h"
#include "runtime/call/payload_assembly.h"
#include "runtime/call/state_file.h"
#include "runtime/core/check.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/image/image.h"
#include "runtime/payload/payload.h"

namespace cinch::driver {
namespace {

// Gathers all ranks' arrays for every collective of the interpreter.
class MeetingOverRanks : public interp::Meeting {
 public:
  MeetingOverRanks(rt::RankExchange& ranks, std::uint32_t world) : ranks_(ranks), world_(world) {}

  std::vector<interp::Array> meet(std::size_t, interp::Array array) override {
    const std::size_t elements = array.bits.size();
    std::vector<std::uint64_t> gathered(elements * world_);
    const auto all = ranks_.exchange(
        {{.kind = rt::CollectiveKind::AllGather}, kU64, bytes_of(array.bits), bytes_of(gathered)});
    is_over_ = !all || *all != rt::RankStatus::Good;
    if (is_over_) return {};
    std::vector<interp::Array> ranks(world_, array);
    for (std::size_t w = 0; w < world_; ++w) {
      const auto begin = gathered.begin() + static_cast<std::ptrdiff_t>(w * elements);
      ranks[w].bits.assign(begin, begin + static_cast<std::ptrdiff_t>(elements));
    }
    return ranks;
  }
  bool is_over() const { return is_over_; }

 private:
  static std::span<std::uint8_t> bytes_of(std::vector<std::uint64_t>& words) {
    return {reinterpret_cast<std::uint8_t*>(words.data()), words.size() * sizeof(std::uint64_t)};
  }

  rt::RankExchange& ranks_;
  std::uint32_t world_;
  bool is_over_ = false;
};

class InterpreterCodec : public Codec {
 public:
  InterpreterCodec(std::shared_ptr<const ir::Program> program, const RunOptions& options,
                   Shape shape, std::uint32_t worker, std::uint32_t world)
      : program_(std::move(program)),
        parameters_(program_->info),
        given_(program_->info, options, shape) {
    inputs_.rows = shape.rows;
    inputs_.cols = shape.cols;
    inputs_.draw.seed = options.seed;
    inputs_.worker = worker;
    inputs_.world = world;
    inputs_.machine_ranks = options.machine_ranks;
    inputs_.call_extern = codegen::call_extern;
    states_ = value_or_throw(interp::initial_states(*program_, inputs_));
  }

  std::vector<std::uint8_t> encode(rt::ConstTensorView gradient, std::uint64_t step) override {
    rt::EncodedFields encoded;
    if (inputs_.rows * inputs_.cols == 0) {
      // Nothing runs, so that programs need not handle tensors without elements.
      encoded.counts.assign(program_->info.wire.counts.size(), 0);
      return value_or_throw(rt::assemble_payload(context(step), encoded));
    }
    const interp::Outputs out =
        value_or_throw(interp::run(*program_, ir::FunctionKind::Encode, inputs_of(gradient, step)));
    states_ = out.states;
    encoded.non_finite = out.non_finite;
    encoded.counts.assign(out.counts.begin(), out.counts.end());
    std::vector<std::vector<std::uint8_t>> fields;
    fields.reserve(out.fields.size());
    for (const interp::Array& field : out.fields) {
      fields.push_back(rt::pack_elements(field.dtype, field.bits));
    }
    encoded.fields.assign(fields.begin(), fields.end());
    return value_or_throw(rt::assemble_payload(context(step), encoded));
  }

  void decode(std::span<const std::uint8_t> payload, std::span<float> out,
              std::uint64_t step) override {
    const rt::PayloadContext own = context(step);
    const rt::PayloadExpectation expected{&program_->info, own.fingerprint, own.decode_hash,
                                          own.env};
    const rt::PayloadView view = value_or_throw(rt::read_payload(payload, expected));
    interp::Inputs inputs = inputs_at(step);
    inputs.is_non_finite = view.header.is_non_finite();
    inputs.counts.assign(view.counts.begin(), view.counts.end());
    for (std::size_t i = 0; i < view.fields.size(); ++i) {
      inputs.fields.push_back(field_of(i, view.fields[i], own.env, inputs.counts));
    }
    if (out.empty()) return;
    take_output(value_or_throw(interp::run(*program_, ir::FunctionKind::Decode, inputs)), out);
  }

  void finish(std::span<float> sum, std::uint64_t step) override {
    if (program_->find(ir::FunctionKind::Finish) == nullptr) {
      for (float& x : sum) x /= static_cast<float>(inputs_.world);
      return;
    }
    const interp::Outputs out = value_or_throw(interp::run(
        *program_, ir::FunctionKind::Finish, inputs_of(rt::ConstTensorView(sum), step)));
    states_ = out.states;
    take_output(out, sum);
  }

  void sync(rt::ConstTensorView gradient, std::span<float> update, std::uint64_t step,
            rt::RankExchange& ranks) override {
    if (update.empty()) return;
    const interp::Inputs inputs = inputs_of(gradient, step);
    const bool is_finite =
        std::ranges::all_of(inputs.gradient, [](float x) { return std::isfinite(x); });
    if (value_or_throw(ranks.agree(is_finite ? rt::RankStatus::Good : rt::RankStatus::NonFinite)) !=
        rt::RankStatus::Good) {
      std::ranges::fill(update, std::numeric_limits<float>::quiet_NaN());
      return;
    }
    MeetingOverRanks meeting(ranks, inputs.world);
    const auto out = interp::run(*program_, ir::FunctionKind::Sync, inputs, &meeting);
    const rt::RankStatus own = out ? rt::RankStatus::Good : rt::RankStatus::Failed;
    const auto all = meeting.is_over() ? own : value_or_throw(ranks.agree(own));
    value_or_throw(out);
    if (all != rt::RankStatus::Good) {
      value_or_throw(rt::Status(rt::fail(rt::ErrorKind::CheckFailed, "another rank failed")));
    }
    states_ = out->states;
    take_output(*out, update);
  }

  std::int64_t payload_bound(std::uint64_t step) override {
    return value_or_throw(rt::payload_bound_layout(program_->info, context(step).env)).size_bytes;
  }
  void load_states(const std::string&) override { refuse_states(); }
  void save_states(const std::string&) override { refuse_states(); }
  std::vector<std::uint8_t> states_as_bytes() override {
    std::vector<std::vector<std::uint8_t>> packed;
    packed.reserve(states_.size());
    for (const interp::Array& state : states_) {
      packed.push_back(rt::pack_elements(state.dtype, state.bits));
    }
    return rt::write_states({rt::fingerprint(program_->info), inputs_.rows, inputs_.cols},
                            rt::state_views(program_->info, packed));
  }

 private:
  [[noreturn]] static void refuse_states() { throw UsageError("--interpret keeps no state files"); }

  interp::Inputs inputs_at(std::uint64_t step) const {
    interp::Inputs inputs = inputs_;
    inputs.draw.step = step;
    inputs.states = states_;
    return inputs;
  }
  interp::Inputs inputs_of(rt::ConstTensorView gradient, std::uint64_t step) const {
    interp::Inputs inputs = inputs_at(step);
    given_.set(inputs, step);
    inputs.gradient = to_f32(gradient);
    return inputs;
  }

  rt::PayloadContext context(std::uint64_t step) const {
    rt::PayloadContext context{.info = &program_->info,
                               .fingerprint = rt::fingerprint(program_->info)};
    context.env.n = inputs_.rows * inputs_.cols;
    context.env.rows = inputs_.rows;
    context.env.cols = inputs_.cols;
    context.env.world = inputs_.world;
    context.env.worker = inputs_.worker;
    context.env.step = static_cast<std::int64_t>(step);
    context.env.params = parameters_.host_values();
    const rt::DecodeFacts facts{parameters_.given_words(), inputs_.world, inputs_.draw.seed, step};
    context.decode_hash = rt::decode_hash(program_->info, facts);
    return context;
  }

  interp::Array field_of(std::size_t index, std::span<const std::uint8_t> bytes, HostEnv env,
                         std::span<const std::int64_t> counts) const {
    const rt::ArrayType& type = program_->info.wire.fields[index].type;
    env.counts = counts;
    interp::Array array{type.dtype, type.rank, {1, 1}, {}};
    for (int d = 0; d < type.rank; ++d) {
      array.dims[d] = value_or_throw(program_->info.exprs->eval_int(type.dims[d], env));
    }
    array.bits = rt::unpack_elements(type.dtype, bytes, array.size());
    // The interpreter keeps signed integers extended to 64 bits.
    const int unused = is_signed_int(type.dtype) ? 64 - type.dtype.bits : 0;
    for (std::uint64_t& x : array.bits) {
      if (unused > 0)
        x = static_cast<std::uint64_t>(static_cast<std::int64_t>(x << unused) >> unused);
    }
    return array;
  }

  static void take_output(const interp::Outputs& out, std::span<float> to) {
    CINCH_CHECK(out.output, "a run without an output");
    const std::vector<float> values = interp::to_floats(*out.output);
    std::copy(values.begin(), values.end(), to.begin());
  }

  std::shared_ptr<const ir::Program> program_;
  rt::ParameterValues parameters_;
  InputSource given_;
  interp::Inputs inputs_;  // the same for every call
  std::vector<interp::Array> states_;
};

}  // namespace

std::unique_ptr<Codec> open_interpreter_codec(std::shared_ptr<const ir::Program> program,
                                              const RunOptions& options, Shape shape,
                                              std::uint32_t worker, std::uint32_t world) {
  return std::make_unique<InterpreterCodec>(std::move(program), options, shape, worker, world);
}

}  // namespace cinch::driver
