// Collects the report of `cinch explain`.
#include "compiler/driver/report/explain.h"

#include <algorithm>
#include <set>

#include "codegen/jit/compile_program.h"
#include "codegen/kir/compute_type.h"
#include "codegen/kir/cost.h"
#include "compiler/analysis/forced_sweeps.h"
#include "compiler/analysis/proofs.h"
#include "compiler/driver/codecs/codec.h"
#include "compiler/driver/process/files.h"
#include "compiler/ir/ops.h"
#include "compiler/ir/rewriter.h"
#include "compiler/ir/text/text.h"
#include "compiler/service/library_list.h"
#include "runtime/call/joins.h"
#include "runtime/call/parameters.h"
#include "runtime/core/ids.h"
#include "runtime/core/params.h"
#include "runtime/exec/narrow_tensor.h"
#include "runtime/payload/payload.h"

namespace cinch::driver {
namespace {

using nlohmann::json;

const char* sum_name(rt::FieldSum sum) {
  static constexpr const char* kNames[] = {"none", "sum", "min", "max"};
  return name_in(kNames, sum, "none");
}

std::string aggregation_text(rt::Aggregation aggregation) {
  switch (aggregation) {
    case rt::Aggregation::SumProved:
      return "field by field, then one decode (proved)";
    case rt::Aggregation::SumToTest:
      return "field by field, then one decode (declared: to be tested)";
    case rt::Aggregation::Gather:
      break;
  }
  return "no: every rank's payload is decoded";
}

// The word for the value; null for numbers.
json word_of_value(const rt::ParamInfo& param) {
  if (param.dtype == kBool) return param.default_value != 0 ? "true" : "false";
  const double value = param.default_value;
  const bool is_named = value >= 0 && value < static_cast<double>(param.words.size());
  return is_named ? json(param.words[static_cast<std::size_t>(value)]) : json();
}

class Report {
 public:
  Report(const ExplainInputs& inputs, const ExplainOptions& options)
      : inputs_(inputs),
        lowered_(inputs.lowered),
        program_(inputs.program),
        kernels_(inputs.kernels),
        info_(inputs.kernels.info),
        parameters_(info_) {
    env_.n = options.elements;
    if (env_.n < 0 || env_.n > std::int64_t{UINT32_MAX}) {
      throw UsageError("--elements: a tensor has fewer than 2^32 elements");
    }
    env_.cols = info_.is_matrix ? matrix_columns(env_.n, options.columns) : 1;
    env_.rows = env_.n / env_.cols;
    env_.params = parameters_.host_values();
  }

  json whole() {
    json report = {{"compressor", info_.name}, {"elements", env_.n}, {"doc", info_.doc}};
    report["summary"] = service::doc_section(info_.doc, "");
    report["claims"] = json::array();
    for (const sema::Claim& claim : inputs_.checked.claims) report["claims"].push_back(claim.text);
    report["carrier"] = service::carrier_json(info_.carrier);
    report["carries_sums"] = service::carrier_text(info_);
    if (info_.is_matrix) report["columns"] = env_.cols;
    report["parameters"] = parameters();
    report["sizes"] = sizes();
    report["inputs"] = inputs();
    report["states"] = states();
    report["checks"] = checks();
    report["safety"] = safety();
    if (info_.has_sync) {
      report["collectives"] = collectives();
    } else {
      report["payload"] = payload();
      const bool is_narrow =
          info_.aggregation != rt::Aggregation::Gather && rt::has_narrow_fields(info_);
      report["aggregation"] =
          aggregation_text(info_.aggregation) +
          (is_narrow ? "; the sum of all ranks may be beyond a field's type where the mean is not"
                     : "");
      if (info_.has_finish) report["finish_is_linear"] = info_.is_finish_linear;
    }
    for (std::size_t i = 0; i < rt::kNumEntries; ++i) {
      const auto kind = static_cast<rt::EntryKind>(i);
      if (kernels_.entries[i].present && kind != rt::EntryKind::Init) {
        report[kir::entry_name(kind)] = entry(kind);
      }
    }
    const HostExprId workspace = workspace_bytes();
    report["workspace"] = text(workspace);
    report["workspace_bytes"] = value(workspace);
    report["narrow_copies"] = narrow_copies();
    report["fusion"] = {{"apart", apart_list(kernels_, inputs_.apart, env_, inputs_.sources)},
                        {"steps", inputs_.steps}};
    return report;
  }

 private:
  std::string text(HostExprId id) { return service::formula_text(info_, id); }
  std::int64_t value(HostExprId id) {
    return value_or_throw(info_.exprs->eval_int(info_.exprs->upper_bound(id), env_));
  }

  json parameters() {
    json list = json::array();
    for (const rt::ConstantInfo& c : info_.constants) {
      list.push_back({{"name", c.name}, {"value", c.value}, {"constant", true}});
    }
    for (const rt::ParamInfo& p : info_.params) {
      if (p.is_input) continue;
      const json range = p.range ? json(rt::range_text(p.dtype, *p.range)) : json();
      list.push_back({{"name", p.name},
                      {"value", p.default_value},
                      {"word", word_of_value(p)},
                      {"constant", false},
                      {"range", range}});
    }
    return list;
  }

  // Named sizes, at their bounds if they contain counts.
  json sizes() {
    json list = json::array();
    for (const rt::SizeInfo& size : info_.sizes) {
      list.push_back(
          {{"name", size.name}, {"formula", text(size.value)}, {"value", value(size.value)}});
    }
    return list;
  }

  json payload() {
    const rt::PayloadLayout layout = value_or_throw(rt::payload_bound_layout(info_, env_));
    json fields = json::array();
    for (std::size_t i = 0; i < info_.wire.fields.size(); ++i) {
      const rt::FieldInfo& field = info_.wire.fields[i];
      const rt::FieldPlace place = i < layout.fields.size() ? layout.fields[i] : rt::FieldPlace{};
      fields.push_back({{"name", field.name},
                        {"type", ir::print_type(info_, field.type)},
                        {"offset", place.offset},
                        {"bytes", place.size_bytes},
                        {"ascending", field.ascending},
                        {"packs", field.packing.empty() ? json() : json(field.packing)},
                        {"by", field.sum == rt::FieldSum::None ? json() : sum_name(field.sum)}});
    }
    json counts = json::array();
    for (const rt::CountInfo& count : info_.wire.counts) {
      counts.push_back(
          {{"name", count.name}, {"bound", text(count.bound)}, {"most", value(count.bound)}});
    }
    const std::vector<std::uint32_t> none(info_.wire.counts.size());
    const std::int64_t least = value_or_throw(rt::payload_layout(info_, env_, none)).size_bytes;
    const auto ratio = [&](std::int64_t bytes) {
      return env_.n == 0 ? json()
                         : json(4.0 * static_cast<double>(env_.n) / static_cast<double>(bytes));
    };
    return {{"header_bytes", rt::kPayloadHeaderBytes},
            {"bound", text(service::payload_bound(info_))},
            {"bound_bytes", layout.size_bytes},
            {"least_bytes", least},
            {"ratio", ratio(layout.size_bytes)},
            {"ratio_most", ratio(least)},
            {"counts", counts},
            {"fields", fields}};
  }

  // The sweeps that the algorithm forces (compiler/analysis/forced_sweeps.h).
  analysis::ForcedSweeps floor(rt::EntryKind kind) const {
    analysis::FloorRequest request;
    request.function = kind == rt::EntryKind::Encode   ? ir::FunctionKind::Encode
                       : kind == rt::EntryKind::Finish ? ir::FunctionKind::Finish
                       : kind == rt::EntryKind::Sync   ? ir::FunctionKind::Sync
                                                       : ir::FunctionKind::Decode;
    request.adds_output = kind == rt::EntryKind::DecodeAdd;
    request.env = env_;
    return value_or_throw(analysis::find_forced_sweeps(lowered_, request));
  }

  json entry(rt::EntryKind kind) {
    const kir::EntryStructure structure = kir::entry_structure(kernels_, kind);
    const kir::EntryBytes bytes = kir::entry_bytes(kernels_, kind);
    const analysis::ForcedSweeps floor_sweeps = floor(kind);
    const analysis::SweepBytes floor_bytes = floor_sweeps.bytes();
    const auto per_element = [&](std::int64_t total) {
      return env_.n == 0 ? 0.0 : static_cast<double>(total) / static_cast<double>(env_.n);
    };
    EntryKernels of_entry(kernels_, kind, env_);
    return {{"kernels", structure.sweeps},
            {"finishes", structure.finishes},
            {"sweeps_least", of_entry.sweeps(false)},
            {"sweeps_most", of_entry.sweeps(true)},
            {"bytes_read", value(bytes.read)},
            {"bytes_written", value(bytes.written)},
            {"bytes_read_least", value(bytes.least_read)},
            {"bytes_written_least", value(bytes.least_written)},
            {"read_per_element", per_element(value(bytes.read))},
            {"written_per_element", per_element(value(bytes.written))},
            {"read_per_element_least", per_element(value(bytes.least_read))},
            {"written_per_element_least", per_element(value(bytes.least_written))},
            {"floor_read_per_element", per_element(floor_bytes.read)},
            {"floor_written_per_element", per_element(floor_bytes.written)},
            {"floor_sweeps", floor_sweeps.sweeps.size()},
            {"random_words_per_element", per_element(floor_sweeps.random_words)},
            {"kernel_list", of_entry.list()},
            {"move_list", of_entry.moves()}};
  }

  // What calls on f16 and bf16 take beside on a CPU: an f32 copy of the tensor, or of parts of it
  // for each thread.
  json narrow_copies() {
    const rt::ProgramImage image = codegen::image_without_code(kernels_, "cpu");
    const std::int64_t whole = 4 * env_.n;
    json list = json::array();
    const auto add = [&](rt::EntryKind kind, rt::BufferRole role) {
      if (!kernels_.entries[static_cast<std::size_t>(kind)].present) return;
      const bool is_sync = kind == rt::EntryKind::Sync;
      const bool may_have_parts = kind == rt::EntryKind::Encode || kind == rt::EntryKind::Decode;
      const bool has_parts =
          may_have_parts &&
          rt::find_tiled(image, kind, role, env_).value_or(rt::kNoIndex) != rt::kNoIndex;
      list.push_back(
          {{"call", kir::entry_name(kind)},
           {"bytes", has_parts ? std::min(rt::kPartBytes, whole) : (is_sync ? 2 : 1) * whole},
           {"is_for_each_thread", has_parts}});
    };
    add(rt::EntryKind::Encode, rt::BufferRole::Gradient);
    add(rt::EntryKind::Decode, rt::BufferRole::Output);
    add(rt::EntryKind::Finish, rt::BufferRole::Output);
    add(rt::EntryKind::Sync, rt::BufferRole::Gradient);
    return list;
  }

  HostExprId workspace_bytes() {
    HostExprPool& pool = *info_.exprs;
    HostExprId total = pool.const_int(0);
    for (const rt::BufferInfo& buffer : kernels_.buffers) {
      if (buffer.role != rt::BufferRole::Workspace) continue;
      total = pool.add(total, pool.upper_bound(buffer.size_bytes));
    }
    return total;
  }

  json inputs() {
    json list = json::array();
    for (const rt::ParamInfo& p : info_.params) {
      if (!p.is_input) continue;
      const std::string range = p.range ? " in " + rt::range_text(p.dtype, *p.range) : "";
      list.push_back({{"name", p.name}, {"type", dtype_name(p.dtype) + range}});
    }
    for (const rt::StateInfo& state : info_.states) {
      if (state.is_input)
        list.push_back({{"name", state.name}, {"type", ir::print_type(info_, state.type)}});
    }
    return list;
  }

  json states() {
    json list = json::array();
    for (std::uint32_t i = 0; i < info_.states.size(); ++i) {
      const rt::StateInfo& state = info_.states[i];
      if (state.is_input) continue;
      std::int64_t elements = 1;
      for (int d = 0; d < state.type.rank; ++d) elements *= value(state.type.dims[d]);
      const bool is_in_place =
          std::ranges::any_of(kernels_.buffers, [&](const rt::BufferInfo& buffer) {
            return buffer.role == rt::BufferRole::StateInPlace && buffer.role_index == i;
          });
      list.push_back({{"name", state.name},
                      {"type", ir::print_type(info_, state.type)},
                      {"bytes", packed_bytes(state.type.dtype, elements)},
                      {"in_place", is_in_place}});
    }
    return list;
  }

  // The collectives of a `sync` body, in the order of its text.
  json collectives() {
    json list = json::array();
    const ir::Function& sync = *program_.find(ir::FunctionKind::Sync);
    const ir::Function& as_written = *lowered_.find(ir::FunctionKind::Sync);
    std::vector<const ir::Op*> before;
    for (const ir::Op* op : collectives_of(sync)) {
      const rt::ArrayType& sent = sync.values[op->operands.at(0).index()].type;
      const ir::Op* written = written_collective(*op, before);
      before.push_back(op);
      const rt::ArrayType& type =
          written == nullptr ? sent : as_written.values[written->operands.at(0).index()].type;
      list.push_back({{"name", ir::op_info(op->kind).name},
                      {"type", ir::print_type(info_, type)},
                      {"bytes", sent_bytes(sent, 1)}});
      const bool has_counts = std::any_of(sent.dims, sent.dims + sent.rank, [&](HostExprId dim) {
        return info_.exprs->has_count(dim);
      });
      if (has_counts) list.back()["is_most"] = true;
      // For 64-bit integers the words have the same type, so the sizes are compared, too.
      const bool is_packed = type.dtype != sent.dtype || sent_bytes(type, 1) != sent_bytes(sent, 1);
      if (is_packed) list.back()["packed"] = packed(type, sent);
    }
    return list;
  }

  static std::vector<const ir::Op*> collectives_of(const ir::Function& function) {
    std::vector<const ir::Op*> found;
    ir::walk(function, [&](ir::OpId id, ir::RegionId) {
      const ir::Op& op = function.ops[id.index()];
      if (ir::is_collective(op.kind)) found.push_back(&op);
    });
    return found;
  }

  // The collective in the text: of several at one place, the one with the same number before it.
  const ir::Op* written_collective(const ir::Op& op,
                                   const std::vector<const ir::Op*>& before) const {
    const auto is_same = [&](const ir::Op* other) {
      return other->kind == op.kind && other->span == op.span;
    };
    auto skipped = std::ranges::count_if(before, is_same);
    const ir::Op* last = nullptr;
    for (const ir::Op* written : collectives_of(*lowered_.find(ir::FunctionKind::Sync))) {
      if (!is_same(written)) continue;
      last = written;
      if (skipped-- == 0) break;
    }
    return last;
  }

  // Bytes of the elements in memory, at least a whole byte each.
  std::int64_t sent_bytes(const rt::ArrayType& type, std::int64_t world) {
    HostEnv env = env_;
    env.world = world;
    std::int64_t elements = 1;
    for (int d = 0; d < type.rank; ++d) {
      elements *=
          value_or_throw(info_.exprs->eval_int(info_.exprs->upper_bound(type.dims[d]), env));
    }
    return elements * (kir::whole_element_bits(type.dtype) / 8);
  }

  // A sum over more ranks needs more bits.
  json packed(const rt::ArrayType& type, const rt::ArrayType& sent) {
    json list = json::array();
    for (const std::int64_t world : {2, 4, 8}) {
      const std::int64_t bytes = sent_bytes(sent, world);
      const auto elements = sent_bytes(type, world) / (kir::whole_element_bits(type.dtype) / 8);
      const double bits =
          elements == 0 ? 0 : 8 * static_cast<double>(bytes) / static_cast<double>(elements);
      list.push_back({{"ranks", world}, {"bytes", bytes}, {"bits_per_element", bits}});
    }
    return list;
  }

  // Checks that run because they could not be proved.
  json checks() {
    std::set<std::string> texts;
    for (const ir::Function& function : program_.functions) {
      for (const ir::Op& op : function.ops) {
        if (ir::op_info(op.kind).effect != ir::Effect::Check) continue;
        const bool is_host = op.kind == ir::OpKind::check_host;
        texts.insert((is_host ? "before launch: " : "on the device: ") + op.attrs.text);
      }
    }
    return texts;
  }

  // Every access, store and loop of the program in its text, and what makes it safe.
  json safety() {
    json list = json::array();
    for (const analysis::SafetyFact& fact : analysis::find_safety(lowered_)) {
      list.push_back({{"in", ir::function_kind_name(fact.function)},
                      {"what", fact.what},
                      {"property", analysis::safety_kind_name(fact.kind)},
                      {"how", analysis::safety_way_name(fact.way)}});
    }
    return list;
  }

  const ExplainInputs& inputs_;
  const ir::Program& lowered_;
  const ir::Program& program_;
  kir::KernelProgram& kernels_;
  rt::ProgramInfo& info_;
  rt::ParameterValues parameters_;
  HostEnv env_;
};

}  // namespace

json explain_report(const ExplainInputs& inputs, const ExplainOptions& options) {
  return Report(inputs, options).whole();
}

}  // namespace cinch::driver
