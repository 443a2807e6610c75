// Names of the elements of plans.
#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include <bit>
#include <stdexcept>

#include "runtime/core/hash.h"
#include "runtime/core/json.h"
#include "runtime/plan/plan.h"

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
  static constexpr const char* kNames[] = {
      "clear",  "encode", "decode",   "decode_add", "add",         "scale", "finish",
      "spread", "join",   "exchange", "part",       "synchronise", "fetch", "deliver"};
  return name_in(kNames, kind, "task");
}

const char* lane_name(Lane lane) {
  static constexpr const char* kNames[] = {"compute", "network", "CPUs", "copies out", "copies in"};
  return name_in(kNames, lane, "lane");
}

bool is_on_cpus(const Plan& plan, std::uint32_t group) {
  const auto& pieces = plan.groups[group].pieces;
  return !pieces.empty() && plan.tensors[plan.pieces[pieces.front()].tensor].on_cpus;
}

const char* site_name(Site site) {
  static constexpr const char* kNames[] = {"worker", "hop", "owner", "return"};
  return name_in(kNames, site, "site");
}

const char* value_name(Value value) {
  static constexpr const char* kNames[] = {"gradient", "sum", "update"};
  return name_in(kNames, value, "value");
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

// Enums are written by name, so that a file outlives their order.

namespace {

using nlohmann::json;

constexpr int kFormat = 3;

template <typename Enum>
using Namer = const char* (*)(Enum);

template <typename Enum>
Enum find_enum(const json& name, Enum last, Namer<Enum> namer) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (name == namer(static_cast<Enum>(i))) return static_cast<Enum>(i);
  }
  throw std::invalid_argument("no such name: " + name.dump());
}

const char* reduction_name(RankReduction reduction) {
  static constexpr const char* kNames[] = {"none", "sum", "mean", "min", "max"};
  return name_in(kNames, reduction, "reduction");
}

json index_json(std::uint32_t index, std::uint32_t none) {
  return index == none ? json() : json(index);
}

std::uint32_t index_of(const json& from, const char* key, std::uint32_t none) {
  return from.at(key).is_null() ? none : whole_number<std::uint32_t>(from, key);
}

std::vector<std::uint32_t> indices_of(const json& from, const char* key) {
  std::vector<std::uint32_t> indices;
  for (const json& value : from.at(key).get_ref<const json::array_t&>()) {
    indices.push_back(to_whole_number<std::uint32_t>(value, key));
  }
  return indices;
}

json to_json(const PlanTensor& tensor) {
  json written = {{"name", tensor.name},
                  {"rows", tensor.rows},
                  {"cols", tensor.cols},
                  {"codec", index_json(tensor.codec, kDense)},
                  {"priority", tensor.priority}};
  if (!tensor.part_ends.empty()) written["part_ends"] = tensor.part_ends;
  if (!tensor.plan.empty()) written["plan"] = tensor.plan;
  if (tensor.on_cpus) written["on_cpus"] = true;
  return written;
}

json to_json(const Piece& piece) {
  return {{"tensor", piece.tensor},
          {"number", piece.number},
          {"first", piece.first},
          {"num_elems", piece.num_elems},
          {"bound_bytes", piece.bound_bytes},
          {"carried_bytes", piece.carried_bytes}};
}

json to_json(const Group& group) {
  return {{"codec", index_json(group.codec, kDense)},
          {"pieces", group.pieces},
          {"carries", index_json(group.carries, kNoGroup)},
          {"bundle", group.bundle}};
}

json to_json(const Slot& slot) {
  return {{"offset", slot.offset},
          {"capacity", slot.capacity},
          {"length", index_json(slot.length, kNoSlot)}};
}

json to_json(const Task& task) {
  json written = {{"kind", task_kind_name(task.kind)},
                  {"groups", task.groups},
                  {"site", site_name(task.site)},
                  {"from", value_name(task.from)},
                  {"to", value_name(task.to)},
                  {"reads", task.reads},
                  {"writes", task.writes},
                  {"after", task.after},
                  {"round", task.round},
                  {"is_dense", task.is_dense}};
  if (task.on_cpus) written["on_cpus"] = true;
  if (task.kind == TaskKind::Part) written["part"] = task.part;
  if (task.kind == TaskKind::Scale) written["factor"] = task.factor;
  if (task.kind == TaskKind::Exchange || task.kind == TaskKind::Part) {
    written["exchange"] = exchange_kind_name(task.exchange);
    written["peer"] = task.peer;
    written["reduction"] = reduction_name(task.reduction);
    written["dtype"] = dtype_name(task.dtype);
    written["is_sized"] = task.is_sized;
  }
  return written;
}

json to_json(const RankPlan& rank);

template <typename T>
json list_json(const std::vector<T>& all) {
  json list = json::array();
  for (const T& each : all) list.push_back(to_json(each));
  return list;
}

json to_json(const RankPlan& rank) {
  return {{"wire_bytes", rank.wire_bytes},
          {"slots", list_json(rank.slots)},
          {"tasks", list_json(rank.tasks)}};
}

void read(const json& from, PlanTensor& to) {
  to = {from.at("name"), whole_number<std::int64_t>(from, "rows"),
        whole_number<std::int64_t>(from, "cols"), index_of(from, "codec", kDense),
        from.contains("priority") ? whole_number<std::int32_t>(from, "priority") : 0};
  if (from.contains("plan")) from.at("plan").get_to(to.plan);
  to.on_cpus = from.value("on_cpus", false);
  if (!from.contains("part_ends")) return;
  for (const json& end : from.at("part_ends").get_ref<const json::array_t&>()) {
    to.part_ends.push_back(to_whole_number<std::int64_t>(end, "part_ends"));
  }
}

void read(const json& from, Piece& to) {
  to = {whole_number<std::uint32_t>(from, "tensor"),
        whole_number<std::uint32_t>(from, "number"),
        whole_number<std::int64_t>(from, "first"),
        whole_number<std::int64_t>(from, "num_elems"),
        whole_number<std::uint64_t>(from, "bound_bytes"),
        whole_number<std::uint64_t>(from, "carried_bytes")};
}

void read(const json& from, Group& to) {
  to.codec = index_of(from, "codec", kDense);
  to.pieces = indices_of(from, "pieces");
  to.carries = index_of(from, "carries", kNoGroup);
  to.bundle = whole_number<std::uint32_t>(from, "bundle");
}

void read(const json& from, Slot& to) {
  to = {whole_number<std::uint64_t>(from, "offset"), whole_number<std::uint64_t>(from, "capacity"),
        index_of(from, "length", kNoSlot)};
}

void read(const json& from, Task& to) {
  to.kind = find_enum(from.at("kind"), TaskKind::Deliver, task_kind_name);
  to.groups = indices_of(from, "groups");
  to.site = find_enum(from.at("site"), Site::Return, site_name);
  to.from = find_enum(from.at("from"), Value::Update, value_name);
  to.to = find_enum(from.at("to"), Value::Update, value_name);
  to.reads = indices_of(from, "reads");
  to.writes = indices_of(from, "writes");
  to.after = indices_of(from, "after");
  to.round = whole_number<std::uint32_t>(from, "round");
  to.is_dense = from.at("is_dense");
  to.on_cpus = from.value("on_cpus", false);
  if (to.kind == TaskKind::Part) to.part = whole_number<std::uint32_t>(from, "part");
  if (to.kind == TaskKind::Scale) to.factor = from.at("factor").get<float>();
  if (to.kind != TaskKind::Exchange && to.kind != TaskKind::Part) return;
  to.exchange = find_enum(from.at("exchange"), ExchangeKind::Broadcast, exchange_kind_name);
  to.peer = whole_number<std::uint32_t>(from, "peer");
  to.reduction = find_enum(from.at("reduction"), RankReduction::Max, reduction_name);
  const auto dtype = parse_dtype(from.at("dtype").get<std::string>());
  if (!dtype) throw std::invalid_argument("no such type: " + from.at("dtype").dump());
  to.dtype = *dtype;
  to.is_sized = from.at("is_sized");
}

void read(const json& from, RankPlan& to);

template <typename T>
void read(const json& from, std::vector<T>& to) {
  for (const json& each : from.get_ref<const json::array_t&>()) read(each, to.emplace_back());
}

void read(const json& from, RankPlan& to) {
  to.wire_bytes = whole_number<std::uint64_t>(from, "wire_bytes");
  read(from.at("slots"), to.slots);
  read(from.at("tasks"), to.tasks);
}

std::string print_list(const char* head, const std::vector<std::uint32_t>& numbers) {
  return numbers.empty() ? "" : fmt::format("  {} {}", head, fmt::join(numbers, " "));
}

}  // namespace

std::string plan_to_json(const Plan& plan) {
  const json written = {{"format", kFormat},
                        {"name", plan.name},
                        {"tensors", list_json(plan.tensors)},
                        {"pieces", list_json(plan.pieces)},
                        {"groups", list_json(plan.groups)},
                        {"ranks", list_json(plan.ranks)}};
  return written.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Plan> plan_from_json(std::string_view text) {
  try {
    const json from = parse_user_json(text);
    if (from.at("format") != kFormat) {
      return fail(ErrorKind::VersionMismatch,
                  fmt::format("a plan of format {}, not {}", from.at("format").dump(), kFormat));
    }
    Plan plan;
    plan.name = from.at("name");
    read(from.at("tensors"), plan.tensors);
    read(from.at("pieces"), plan.pieces);
    read(from.at("groups"), plan.groups);
    read(from.at("ranks"), plan.ranks);
    return plan;
  } catch (const std::exception& error) {
    return fail(ErrorKind::CorruptFile, std::string("plan: ") + error.what());
  }
}

std::string print_plan(const Plan& plan, std::uint32_t rank) {
  const RankPlan& own = plan.ranks.at(rank);
  std::string text = fmt::format("plan {}, rank {} of {}: {} tasks, {} bytes of wire\n", plan.name,
                                 rank, plan.world(), own.tasks.size(), own.wire_bytes);
  for (std::size_t i = 0; i < own.tasks.size(); ++i) {
    const Task& task = own.tasks[i];
    text += fmt::format("{:>5}  {}{}{}{}\n", i, describe_task(plan, task),
                        print_list("reads", task.reads), print_list("writes", task.writes),
                        print_list("after", task.after));
  }
  return text;
}

// Digests of plans.

namespace {

class PlanHasher {
 public:
  void add(const Plan& plan) {
    hasher_.add(plan.name);
    add_all(plan.tensors);
    add_all(plan.pieces);
    add_all(plan.groups);
    add_numbers(plan.ranks.size());
    if (!plan.ranks.empty()) add(plan.ranks[0]);
  }
  std::uint64_t finish() const { return hasher_.finish64(); }

 private:
  template <typename... Numbers>
  void add_numbers(Numbers... numbers) {
    (hasher_.add(static_cast<std::uint64_t>(numbers)), ...);
  }
  template <typename T>
  void add_all(const std::vector<T>& all) {
    add_numbers(all.size());
    for (const T& each : all) add(each);
  }
  void add(std::uint32_t index) { add_numbers(index); }
  void add(const PlanTensor& tensor) {
    hasher_.add(tensor.name);
    add_numbers(tensor.rows, tensor.cols, tensor.codec, tensor.priority, tensor.part_ends.size());
    for (const std::int64_t end : tensor.part_ends) add_numbers(end);
    if (!tensor.plan.empty()) hasher_.add(tensor.plan);
    if (tensor.on_cpus) add_numbers(1);
  }
  void add(const Piece& piece) {
    add_numbers(piece.tensor, piece.number, piece.first, piece.num_elems, piece.bound_bytes,
                piece.carried_bytes);
  }
  void add(const Group& group) {
    add_numbers(group.codec, group.carries, group.bundle);
    add_all(group.pieces);
  }
  void add(const Slot& slot) { add_numbers(slot.offset, slot.capacity, slot.length); }
  void add(const Task& task) {
    add_numbers(task.kind, task.site, task.from, task.to, task.is_dense, task.exchange, task.peer,
                task.reduction, task.dtype.kind, task.dtype.bits, task.is_sized, task.part,
                task.round, std::bit_cast<std::uint32_t>(task.factor));
    add_all(task.groups);
    add_all(task.reads);
    add_all(task.writes);
    add_all(task.after);
  }
  void add(const RankPlan& rank) {
    add_all(rank.slots);
    add_all(rank.tasks);
    add_numbers(rank.wire_bytes);
  }

  Hasher hasher_;
};

}  // namespace

std::uint64_t plan_digest(const Plan& plan) {
  PlanHasher hasher;
  hasher.add(plan);
  return hasher.finish();
}

std::string plan_of_sums(const Plan& plan) {
  if (std::ranges::all_of(plan.tensors, &std::string::empty, &PlanTensor::plan)) return plan.name;
  Hasher hasher;
  for (const PlanTensor& tensor : plan.tensors) hasher.add(tensor.name).add(tensor.plan);
  return fmt::format("{} {:016x}", plan.name, hasher.finish64());
}

}  // namespace cinch::rt
