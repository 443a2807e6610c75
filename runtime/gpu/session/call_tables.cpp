// GpuCalls: what the tables of a call say: the caller's memory, sizes, parameters and step; and how
// large payloads get.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/gpu/session/core.h"

namespace cinch::rt {
namespace {

constexpr GpuAddress kPayloadAlignment = 16;

Status check_count(std::size_t given, std::size_t wanted, const char* what) {
  if (given == wanted) return Ok{};
  return fail(ErrorKind::InvalidArgument,
              fmt::format("{} {}, the session has {} tensors", given, what, wanted));
}

}  // namespace

Status GpuCalls::check_address(GpuAddress address, GpuAddress& checked, const char* what,
                               std::size_t tensor) const {
  if (address == checked) return Ok{};
  Status status = device().check_memory(address);
  if (status) {
    checked = address;
  } else {
    status.error().message = fmt::format("{} {}: {}", what, tensor, status.error().message);
  }
  return status;
}

Status GpuCalls::bind_tensors(EntryKind kind, std::span<const GpuAddress> gradients,
                              std::span<const GpuAddress> outputs) {
  const bool is_sum = kind == EntryKind::Finish;
  const auto bind = [&](std::span<const GpuAddress> given, BufferRole role, DType dtype) -> Status {
    CINCH_TRY(check_count(given.size(), num_tensors(), "addresses"));
    for (std::size_t t = 0; t < given.size(); ++t) {
      const auto align = static_cast<GpuAddress>(element_bytes(dtype));
      if (core().facts[t].num_elems() > 0 && (given[t] == 0 || given[t] % align != 0)) {
        return fail(ErrorKind::InvalidArgument,
                    fmt::format("tensor {} at address {:#x}: a multiple of {} is needed", t,
                                given[t], align));
      }
      GpuCallTables& made = core().call_of(kind);
      auto& checked = role == BufferRole::Gradient ? made.checked_gradients : made.checked_outputs;
      if (core().facts[t].num_elems() > 0) {
        CINCH_TRY(check_address(given[t], checked[t], "tensor", t));
      }
      GpuTensorEntry entry = made.table.entry(t);
      const bool goes_through_scratch =
          dtype != kF32 || (kind == EntryKind::DecodeAdd && !has(EntryKind::DecodeAdd));
      if (goes_through_scratch) {
        entry.set_tensor(given[t]);
      } else {
        entry.set_buffer(buffer_of(role), given[t]);
      }
    }
    return Ok{};
  };
  // Of what goes through scratch a table has one place, at first the gradient's.
  if (kind != EntryKind::Encode) {
    const DType dtype = kind == EntryKind::DecodeAdd ? kF32 : core().options.dtype;
    CINCH_TRY(bind(outputs, BufferRole::Output, dtype));
  }
  if (!takes_gradient(kind) && !is_sum) return Ok{};
  return bind(gradients, BufferRole::Gradient, is_sum ? kF32 : core().options.dtype);
}

// Kernels touch no more of a field than its place in the payload has.
Status GpuCalls::check_fields(std::size_t tensor, const HostEnv& at) const {
  for (std::uint32_t i = 0; i < bound_.fields.size(); ++i) {
    const BufferIndex b = buffer_of(BufferRole::Field, i);
    const auto bytes = TRY(buffer_bytes(image(), b, at));
    if (bytes <= bound_.fields[i].size_bytes) continue;
    return fail(ErrorKind::Overflow,
                fmt::format("tensor {}: buffer {} takes {} bytes, there are {}", tensor,
                            image().buffers[b].name, bytes, bound_.fields[i].size_bytes));
  }
  return Ok{};
}

// Where fields lie in the caller's payloads while every count stands for its bound.
Status GpuCalls::bind_payloads(EntryKind kind, std::span<const GpuPayload> payloads,
                               std::uint64_t step) {
  CINCH_TRY(check_count(payloads.size(), num_tensors(), "payloads"));
  core().call_of(kind).payloads.assign(payloads.begin(), payloads.end());
  const bool is_encode = kind == EntryKind::Encode;
  for (std::size_t t = 0; t < payloads.size(); ++t) {
    const GpuPayload& given = payloads[t];
    if (given.address == 0 || given.address % kPayloadAlignment != 0 || given.size_bytes < 0) {
      return fail(ErrorKind::InvalidArgument,
                  fmt::format("payload {} at address {:#x}: a multiple of {} is needed", t,
                              given.address, kPayloadAlignment));
    }
    GpuAddress& checked = core().call_of(kind).checked_payloads[t];
    CINCH_TRY(check_address(given.address, checked, "payload", t));
    const HostEnv at = env(t, step);
    CINCH_TRY(lay_out_payload_bound(info(), at, bound_));
    CINCH_TRY(check_fields(t, at));
    if (is_encode && given.size_bytes < bound_.size_bytes) {
      return fail(ErrorKind::InvalidArgument,
                  fmt::format("payload {} has room for {} bytes, it may take {}", t,
                              given.size_bytes, bound_.size_bytes));
    }
    GpuTensorEntry entry = core().call_of(kind).table.entry(t);
    entry.set_payload(given.address, static_cast<std::uint64_t>(given.size_bytes));
    for (std::uint32_t i = 0; i < bound_.fields.size(); ++i) {
      if (!has_fixed_offset(info(), i) || (!is_encode && !has_fixed_size(info(), i))) continue;
      entry.set_buffer(buffer_of(BufferRole::Field, i),
                       given.address + static_cast<GpuAddress>(bound_.fields[i].offset));
    }
  }
  return Ok{};
}

// ---- sizes and parameters ----

void GpuCalls::note_what_follows_step() {
  const auto follows = [this](HostExprId expr) {
    return info().exprs->depends_on(expr, HostOp::Step);
  };
  sizes_follow_step_ = std::ranges::any_of(image().size_exprs, follows);
  for (const BufferInfo& buffer : image().buffers) {
    sizes_follow_step_ = sizes_follow_step_ || follows(buffer.size_bytes);
  }
  for (const KernelInfo& kernel : image().kernels) {
    sizes_follow_step_ = sizes_follow_step_ || follows(kernel.num_groups);
  }
  for (const FieldInfo& field : info().wire.fields) {
    for (int i = 0; i < field.type.rank; ++i) {
      sizes_follow_step_ = sizes_follow_step_ || follows(field.type.dims[i]);
    }
  }
}

Result<std::int64_t> GpuCalls::rounds_at(const PlannedBound& bound, const HostEnv& at) const {
  auto end = info().exprs->eval_int(bound.end, at);
  if (!end || !bound.begin) return end;
  return info().exprs->eval_int(bound.begin, at).map([&](std::int64_t begin) {
    std::int64_t rounds = 0;
    return __builtin_sub_overflow(*end, begin, &rounds) ? INT64_MAX : rounds;
  });
}

// Parameters beyond the largest: fewer rounds than asked for would be a wrong result.
Status GpuCalls::check_loops(const HostEnv& at, std::size_t tensor) const {
  for (const PlannedBound& bound : core().bounds) {
    const auto rounds = TRY(rounds_at(bound, at));
    if (rounds <= bound.most) continue;
    return fail(ErrorKind::OutOfRange,
                fmt::format("tensor {}: a loop of {} rounds, the session was opened for {}: "
                            "give the largest parameters there",
                            tensor, rounds, bound.most));
  }
  return Ok{};
}

Status GpuCalls::write_sizes(EntryKind kind, std::size_t tensor, std::uint64_t step) {
  GpuTensorEntry entry = core().call_of(kind).table.entry(tensor);
  const HostEnv at = env(tensor, step);
  const HostExprPool& pool = *info().exprs;
  const bool is_empty = core().facts[tensor].num_elems() == 0;
  CINCH_TRY(check_loops(at, tensor));
  for (std::size_t i = 0; i < image().size_exprs.size(); ++i) {
    entry.set_size(i, TRY(pool.eval(image().size_exprs[i], at)).bits);
  }
  for (BufferIndex b = 0; b < image().buffers.size(); ++b) {
    const auto size = TRY(buffer_bytes(image(), b, at));
    if (size > memory_.capacities()[tensor][b]) {
      return fail(
          ErrorKind::OutOfRange,
          fmt::format("tensor {}: {} takes {} bytes, the session was opened for {}: give "
                      "the largest parameters there",
                      tensor, image().buffers[b].name, size, memory_.capacities()[tensor][b]));
    }
    // Of no elements nothing is moved, whatever the formulas say.
    entry.set_bytes(b, is_empty ? 0 : static_cast<std::uint64_t>(size));
  }
  for (std::size_t k = 0; k < image().kernels.size(); ++k) {
    const auto groups = TRY(kernel_groups(image(), k, at));
    entry.set_groups(k, is_empty ? 0 : static_cast<std::uint64_t>(groups));
  }
  const std::vector<std::uint64_t>& words = core().parameters.kernel_words();
  for (std::size_t i = 0; i < words.size(); ++i) entry.set_param(i, words[i]);
  return Ok{};
}

void GpuCalls::write_step(EntryKind kind, std::size_t tensor, std::uint64_t step) {
  GpuTensorEntry entry = core().call_of(kind).table.entry(tensor);
  const PayloadHeader header =
      payload_header(info(), image().fingerprint, core().facts[tensor], core().parameters, step);
  const std::uint64_t said[] = {header.fingerprint[0], header.fingerprint[1], header.decode_hash,
                                static_cast<std::uint64_t>(header.rows),
                                static_cast<std::uint64_t>(header.cols)};
  for (std::size_t i = 0; i < std::size(said); ++i) entry.set_header(i, said[i]);
  const DrawWords draw = draw_words(core().facts[tensor], step);
  for (std::size_t i = 0; i < draw.size(); ++i) entry.set_draw(i, draw[i]);
}

Status GpuCalls::write_facts(EntryKind kind, std::uint64_t step) {
  GpuCallTables& made = core().call_of(kind);
  const bool are_known = made.sizes_version == core().parameters_version &&
                         (!sizes_follow_step_ || made.sizes_step == step);
  made.sizes_version.reset();
  for (std::size_t t = 0; t < num_tensors(); ++t) {
    if (!are_known) {
      CINCH_TRY(write_sizes(kind, t, step));
    }
    write_step(kind, t, step);
  }
  made.sizes_version = core().parameters_version;
  made.sizes_step = step;
  return Ok{};
}

// Are the sizes that follow from the parameter's new value those that there is memory for?
Status GpuCalls::check_parameter(std::string_view name, double value) const {
  for (std::size_t t = 0; t < num_tensors(); ++t) {
    for (BufferIndex b = 0; b < image().buffers.size(); ++b) {
      const auto size = TRY(buffer_bytes(image(), b, env(t, 0)));
      const std::int64_t capacity = memory_.capacities()[t][b];
      if (size <= capacity) continue;
      return fail(ErrorKind::OutOfRange,
                  fmt::format("parameter {} = {}: {} takes {} bytes, the session was opened "
                              "for {}",
                              name, value, image().buffers[b].name, size, capacity));
    }
  }
  for (std::size_t t = 0; t < num_tensors(); ++t) {
    CINCH_TRY(check_loops(env(t, 0), t));
  }
  return Ok{};
}

Status GpuCalls::set_parameter(std::string_view name, double value) {
  const ParameterValues before = core().parameters;
  Status status = core().parameters.set(name, value);
  if (status) status = check_parameter(name, value);
  if (!status) {
    core().parameters = before;
  } else {
    ++core().parameters_version;
    for (GivenInputs& given : core().given) given.note(name);
  }
  return status;
}

Status GpuCalls::lay_out_payload(std::size_t tensor, std::uint64_t step, PayloadLayout& to) const {
  CINCH_TRY(check_step(step));
  return lay_out_payload_bound(info(), env(tensor, step), to);
}

Result<std::int64_t> GpuCalls::payload_bound(std::size_t tensor, std::uint64_t step) {
  CINCH_TRY(lay_out_payload(tensor, step, bound_));
  return bound_.size_bytes;
}

}  // namespace cinch::rt
