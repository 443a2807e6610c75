#include <fmt/format.h>

#include "runtime/sync/device/device_tasks.h"

namespace cinch::rt {
DeviceTensors::DeviceTensors(const Plan& plan, ComputeDevice& device, DeviceMemory& memory,
                             Options options)
    : plan_(plan),
      device_(device),
      memory_(memory),
      options_(options),
      has_gradient_(plan.pieces.size()),
      checked_(2 * plan.pieces.size()) {}

std::span<float> DeviceTensors::sum_of(std::uint32_t piece) const {
  return {reinterpret_cast<float*>(memory_.sum(piece)), static_cast<std::size_t>(num_elems(piece))};
}

ConstTensorView DeviceTensors::value_of(std::uint32_t piece, Value which,
                                        PieceMemory& memory) const {
  if (which == Value::Gradient) return memory.gradient(piece);
  return which == Value::Sum ? TensorView(sum_of(piece)) : memory.update(piece);
}

Status DeviceTensors::check_user(const void* data, std::size_t which) {
  if (checked_[which] == data) return Ok{};
  Status status = device_.check_memory(data);
  if (status) {
    checked_[which] = data;
  } else {
    const auto piece = static_cast<std::uint32_t>(which / 2);
    status.error().message = describe_piece(plan_, piece) + ": " + status.error().message;
  }
  return status;
}

Result<ConstTensorView> DeviceTensors::source(std::uint32_t piece, Value which,
                                              PieceMemory& memory) {
  if (device_.is_host()) return value_of(piece, which, memory);
  const auto from = TRY(f32_source(piece, which, memory));
  return ConstTensorView(from, kF32, num_elems(piece));
}

Result<const std::uint8_t*> DeviceTensors::f32_source(std::uint32_t piece, Value which,
                                                      PieceMemory& memory) {
  const ConstTensorView view = value_of(piece, which, memory);
  const auto* const data = static_cast<const std::uint8_t*>(view.data);
  if (which == Value::Sum || view.num_elems == 0) return data;
  const bool is_gradient = which == Value::Gradient;
  if (options_.has_tensors) {
    CINCH_TRY(check_user(view.data, 2 * std::size_t{piece} + (is_gradient ? 0 : 1)));
    if (view.dtype == kF32) return data;
  }
  // For an update that was narrowed: its value.
  const bool is_there = is_gradient ? bool{has_gradient_[piece]} : view.dtype == kF32;
  if (!is_there) {
    const bool waits = !is_gradient && !options_.has_tensors;
    CINCH_TRY(waits ? device_.wait() : Status(Ok{}));
    CINCH_TRY(copy_values(piece, view));
    if (is_gradient) has_gradient_[piece] = true;
  }
  return memory_.values(piece);
}

Result<ConstTensorView> DeviceTensors::input(std::uint32_t piece, std::string_view name,
                                             const PieceMemory& memory) {
  const auto given = memory.input(piece, name);
  if (!given) {
    return fail(given.error().kind, describe_piece(plan_, piece) + ": " + given.error().message);
  }
  const ConstTensorView view = *given;
  if (device_.is_host() || view.num_elems == 0) return view;
  if (options_.has_tensors && view.dtype == kF32) return view;  // the session checks its memory
  const auto to = TRY(memory_.input(piece));
  const std::span from(static_cast<const std::uint8_t*>(view.data), byte_count(view));
  ArrayPair pair{to, from.data(), view.num_elems};
  if (!options_.has_tensors) {
    auto* const copied = view.dtype == kF32 ? to : TRY(memory_.halves(piece));
    CINCH_TRY(device_.copy_in(copied, from));
    pair.from = copied;
  }
  if (view.dtype != kF32) CINCH_TRY(device_.widen({&pair, 1}, view.dtype));
  return ConstTensorView(to, kF32, view.num_elems);
}

Status DeviceTensors::copy_values(std::uint32_t piece, ConstTensorView view) {
  const auto values = TRY(memory_.values(piece));
  const std::span from(static_cast<const std::uint8_t*>(view.data), byte_count(view));
  if (view.dtype == kF32) return device_.copy_in(values, from);
  ArrayPair pair{values, from.data(), view.num_elems};
  if (!options_.has_tensors) {
    const auto copied = TRY(memory_.halves(piece));
    CINCH_TRY(device_.copy_in(copied, from));
    pair.from = copied;
  }
  return device_.widen({&pair, 1}, view.dtype);
}

Status DeviceTensors::find_targets(const PieceList& pieces, Value which, PieceMemory& memory,
                                   std::vector<TensorView>& targets) {
  targets.clear();
  for (const std::uint32_t piece : pieces) {
    const auto found = TRY(target(piece, which, memory));
    targets.push_back(found);
  }
  return Ok{};
}

Result<TensorView> DeviceTensors::target(std::uint32_t piece, Value which, PieceMemory& memory) {
  if (which == Value::Sum) return TensorView(sum_of(piece));
  const TensorView view = memory.update(piece);
  if (device_.is_host()) return view;
  if (view.num_elems == 0) return f32_view(static_cast<std::uint8_t*>(view.data), piece);
  if (options_.has_tensors) {
    CINCH_TRY(check_user(view.data, 2 * std::size_t{piece} + 1));
    if (view.dtype == kF32) return view;
  }
  const auto values = TRY(memory_.values(piece));
  return f32_view(values, piece);
}

// Uses nothing that tasks share if the tensors already have their values.
Status DeviceTensors::give_updates(std::span<const std::uint32_t> pieces,
                                   std::span<const TensorView> from, PieceMemory& memory) {
  bool are_there = true;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    are_there = are_there && from[i].data == memory.update(pieces[i]).data;
  }
  if (are_there) return Ok{};
  for (const DType dtype : {kF16, kBF16}) {
    CINCH_TRY(narrow_updates(pieces, from, dtype, memory));
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    CINCH_TRY(give_update(pieces[i], from[i], memory));
  }
  return options_.has_tensors || options_.is_deferred ? Status(Ok{}) : device_.wait();
}

Status DeviceTensors::narrow_updates(std::span<const std::uint32_t> pieces,
                                     std::span<const TensorView> from, DType dtype,
                                     PieceMemory& memory) {
  pairs_.clear();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const TensorView view = memory.update(pieces[i]);
    const bool is_there = view.data == from[i].data || view.num_elems == 0;
    if (is_there || view.dtype != dtype) continue;
    auto* const to = options_.has_tensors ? static_cast<std::uint8_t*>(view.data)
                                          : TRY(memory_.halves(pieces[i]));
    pairs_.push_back({to, static_cast<const std::uint8_t*>(from[i].data), view.num_elems});
  }
  return device_.narrow(pairs_, dtype);
}

Status DeviceTensors::give_update(std::uint32_t piece, const TensorView& from,
                                  PieceMemory& memory) {
  const TensorView view = memory.update(piece);
  const bool is_f32 = view.dtype == kF32;
  const std::size_t bytes = byte_count(view);
  if (bytes == 0) return Ok{};
  if (options_.has_tensors) {
    const bool is_there = !is_f32 || from.data == view.data;
    return is_there ? Status(Ok{}) : device_.copy(view.data, from.data, bytes);
  }
  auto* const copied = is_f32 ? static_cast<std::uint8_t*>(from.data) : TRY(memory_.halves(piece));
  return device_.copy_out({static_cast<std::uint8_t*>(view.data), bytes}, copied);
}

void DeviceList::add(std::uint32_t piece) {
  entries.resize(std::max<std::size_t>(entries.size(), piece + 1), kNoEntry);
  entries[piece] = static_cast<std::uint32_t>(pieces.size());
  pieces.push_back(piece);
}

void DeviceLists::need(const Task& task) {
  for (const std::uint32_t group : task.groups) {
    const std::uint32_t codec = plan_.groups[group].codec;
    const PieceList& pieces = plan_.groups[group].pieces;
    if (codec == kDense || task.is_dense) continue;
    for (const Site site : sites_of(task, device_.info(codec))) {
      for (const std::uint32_t piece : pieces) {
        DeviceList& list =
            lists_[key_of(codec, site, device_.info(codec).has_sync ? piece : pieces[0])];
        if (!list.has(piece)) list.add(piece);
      }
    }
  }
}

Status DeviceLists::open() {
  for (auto& [key, list] : lists_) {
    const auto& [codec, site, first] = key;
    CINCH_TRY(open(codec, site, list));
  }
  return Ok{};
}

Status DeviceLists::open(std::uint32_t codec, Site site, DeviceList& list) {
  std::vector<ListTensor> tensors;
  const bool is_matrix = device_.info(codec).is_matrix;
  for (const std::uint32_t piece : list.pieces) {
    const Piece& of = plan_.pieces[piece];
    const PlanTensor& tensor = plan_.tensors[of.tensor];
    tensors.push_back({is_matrix ? tensor.rows : of.num_elems, is_matrix ? tensor.cols : 1,
                       of.tensor, of.number});
  }
  // A carrier encodes no rank's gradient: at that site it only decodes.
  list.only_decodes = carried_[codec].has_value() && site == Site::Worker;
  // Sites draw differently, unless a program's carrier shall draw what ranks drew for their
  // gradients: then the program draws it for sums of machines, too.
  const bool shares = device_.info(carried_[codec].value_or(codec)).carrier.shares_draws;
  const std::uint64_t seed = shares ? rank_.seed : site_seed(rank_.seed, site);
  ListOptions options{rank_.world, rank_.rank, rank_.machine_ranks, seed};
  options.only_decodes = list.only_decodes;
  options.keeps_states = !list.only_decodes;
  auto sessions = device_.open(codec, options, tensors);
  if (!sessions) return named(tl::unexpected<ListError>(sessions.error()), list.pieces);
  list.sessions = std::move(*sessions);
  list.bounds.resize(list.pieces.size());
  list.has_inputs.resize(list.pieces.size());
  return device_.is_host() ? Status(Ok{}) : collect(list);
}

ListCall DeviceLists::call_on(const DeviceList& list, const PieceList& pieces, std::uint64_t step) {
  which_.clear();
  for (const std::uint32_t piece : pieces) which_.push_back(list.entry_of(piece));
  return {step, which_};
}

Status DeviceLists::named(const ListStatus& status, const PieceList& pieces) const {
  if (status) return Ok{};
  Error error = status.error().error;
  if (status.error().place < pieces.size()) {
    error.message = describe_piece(plan_, pieces[status.error().place]) + ": " + error.message;
  }
  return tl::unexpected<Error>(std::move(error));
}

Status DeviceLists::collect(DeviceList& list) {
  list.begun.clear();
  outcomes_ = TRY(list.sessions->collect());
  for (std::size_t i = 0; i < outcomes_.size(); ++i) {
    if (outcomes_[i].status) continue;
    return named(tl::unexpected<ListError>(ListError{outcomes_[i].status.error(), i}), list.pieces);
  }
  return Ok{};
}

Status DeviceLists::check(DeviceList& list, const Task& task, bool is_deferred) {
  if (device_.is_host()) return Ok{};
  if (!is_deferred) return collect(list);
  if (std::ranges::find(list.begun, &task) == list.begun.end()) list.begun.push_back(&task);
  return Ok{};
}

Status DeviceLists::check(const Task& task, Site site, bool is_deferred) {
  return for_each(task, site, [&](DeviceList& list, const PieceList& /*pieces*/, std::size_t) {
    return check(list, task, is_deferred);
  });
}

Status DeviceLists::collect_begun() {
  Status status = Ok{};
  for (auto& [key, list] : lists_) {
    if (list.begun.empty()) continue;
    if (Status own = collect_begun(list); status && !own) status = own;
  }
  return status;
}

// The device does not tell which of several tasks failed.
Status DeviceLists::collect_begun(DeviceList& list) {
  std::vector<std::string> names;
  for (const Task* task : list.begun) {
    std::string name = describe_task(plan_, *task);
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  Status status = collect(list);
  if (!status) {
    Error& error = status.error();
    error.message = fmt::format("{}: {}", fmt::join(names, " or "), error.message);
  }
  return status;
}

}  // namespace cinch::rt
