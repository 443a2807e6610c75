// Names of the elements of plans.
#include "runtime/plan/plan.h"

#include <fmt/format.h>

namespace cinch::rt {
namespace {

std::string describe_piece(const Plan& plan, const Piece& piece) {
  const PlanTensor& tensor = plan.tensors[piece.tensor];
  if (piece.num_elems == tensor.num_elems()) return tensor.name;
  return fmt::format("{}[{}..{}]", tensor.name, piece.first, piece.first + piece.num_elems);
}

// Names the first piece, and how many others there are.
std::string describe_groups(const Plan& plan, const Task& task) {
  std::string text;
  std::size_t others = 0;
  for (const std::uint32_t group : task.groups) {
    for (const std::uint32_t piece : plan.groups[group].pieces) {
      if (text.empty()) {
        text = describe_piece(plan, plan.pieces[piece]);
      } else {
        ++others;
      }
    }
  }
  if (text.empty()) text = "nothing";
  return others == 0 ? text : fmt::format("{} and {} more", text, others);
}

std::string describe_exchange(const Task& task) {
  std::string text = exchange_kind_name(task.exchange);
  if (task.exchange == ExchangeKind::Send) text += fmt::format(" to {}", task.peer);
  if (task.exchange == ExchangeKind::Receive || task.exchange == ExchangeKind::Broadcast) {
    text += fmt::format(" from {}", task.peer);
  }
  return text + (task.is_sized ? ", sized" : "");
}

}  // namespace

ElementRange updated_part(const PlanTensor& tensor, std::uint32_t rank) {
  if (tensor.part_ends.empty()) return {0, tensor.num_elems()};
  const std::int64_t first = rank == 0 ? 0 : tensor.part_ends[rank - 1];
  return {first, tensor.part_ends[rank] - first};
}

const char* task_kind_name(TaskKind kind) {
  switch (kind) {
    case TaskKind::Clear:
      return "clear";
    case TaskKind::Encode:
      return "encode";
    case TaskKind::Decode:
      return "decode";
    case TaskKind::DecodeAdd:
      return "decode_add";
    case TaskKind::Add:
      return "add";
    case TaskKind::Scale:
      return "scale";
    case TaskKind::Finish:
      return "finish";
    case TaskKind::Spread:
      return "spread";
    case TaskKind::Join:
      return "join";
    case TaskKind::Exchange:
      return "exchange";
    case TaskKind::Part:
      return "part";
    case TaskKind::Synchronise:
      return "synchronise";
  }
  return "task";
}

const char* site_name(Site site) {
  switch (site) {
    case Site::Worker:
      return "worker";
    case Site::Hop:
      return "hop";
    case Site::Owner:
      return "owner";
    case Site::Return:
      return "return";
  }
  return "site";
}

const char* value_name(Value value) {
  switch (value) {
    case Value::Gradient:
      return "gradient";
    case Value::Sum:
      return "sum";
    case Value::Update:
      return "update";
  }
  return "value";
}

std::string describe_piece(const Plan& plan, std::uint32_t piece) {
  const Piece& of = plan.pieces[piece];
  const PlanTensor& tensor = plan.tensors[of.tensor];
  return of.num_elems == tensor.num_elems() ? tensor.name
                                            : fmt::format("{}#{}", tensor.name, of.number);
}

std::string describe_task(const Plan& plan, const Task& task) {
  const std::string of = describe_groups(plan, task);
  if (task.kind == TaskKind::Exchange) return describe_exchange(task) + " of " + of;
  std::string text = task_kind_name(task.kind);
  if (task.kind == TaskKind::Part) text += fmt::format(" {}", task.part);
  if (task.is_dense) text += " f32";
  if (task.kind == TaskKind::Scale) text += fmt::format(" by {}", task.factor);
  if (task.kind == TaskKind::Encode) {
    text += fmt::format(" {}", value_name(task.from));
    if (!task.is_dense) text += fmt::format(" as {}", site_name(task.site));
    const bool is_carried = !task.groups.empty() && plan.groups[task.groups[0]].carries != kNoGroup;
    if (is_carried) text += " by the carrier";
  }
  return text + " of " + of;
}

}  // namespace cinch::rt
