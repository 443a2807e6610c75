// Nodes as messages of protobuf. The wire format is small enough to be written here: a field is its
// number and wire type as a varint, and then a varint, or a length and as many bytes.
#include <fmt/format.h>

#include <string_view>

#include "runtime/planner/export/export_nodes.h"
#include "runtime/planner/export/export_plan.h"

namespace cinch::rt {
namespace {

constexpr ExportFormat kChakra{.units_per_second = 1e6, .has_collectives = true};

// Of version 0.0.4: numbers of fields, and values of NodeType and CollectiveCommType.
constexpr std::string_view kChakraVersion = "0.0.4";
enum ChakraField : std::uint8_t {
  kMetadataVersion = 1,
  kNodeId = 1,
  kNodeName = 2,
  kNodeType = 3,
  kNodeDataDeps = 5,
  kNodeDurationMicros = 7,
  kNodeAttr = 10,
  kAttrName = 1,
  kAttrInt32 = 7,
  kAttrInt64 = 9,
  kAttrBool = 27
};

std::uint64_t chakra_type_of(ExportNode::Kind kind) {
  switch (kind) {
    case ExportNode::Kind::Calc:
      return 4;
    case ExportNode::Kind::Send:
      return 5;
    case ExportNode::Kind::Receive:
      return 6;
    case ExportNode::Kind::Collective:
      break;
  }
  return 7;
}

std::uint64_t comm_type_of(ExchangeKind kind) {
  switch (kind) {
    case ExchangeKind::AllGather:
      return 2;
    case ExchangeKind::Broadcast:
      return 5;
    case ExchangeKind::AllToAll:
      return 6;
    case ExchangeKind::ReduceScatter:
      return 7;
    default:
      return 0;  // ALL_REDUCE
  }
}

// At least the bytes of a node that waits for nothing, and of one entry of what it waits for.
constexpr std::uint64_t kChakraNode = 256, kChakraWait = 5;
constexpr std::uint64_t kChakraHead = 16;

class ProtoMessage {
 public:
  void add_number(ChakraField field, std::uint64_t value) {
    append_key(field, 0);
    append_varint(value);
  }
  void add_bytes(ChakraField field, std::string_view bytes) {
    append_key(field, 2);
    append_varint(bytes.size());
    bytes_ += bytes;
  }
  void add_packed(ChakraField field, const std::vector<std::uint32_t>& values) {
    ProtoMessage packed;
    for (const std::uint32_t value : values) packed.append_varint(value);
    if (!values.empty()) add_bytes(field, packed.bytes_);
  }
  // An AttributeProto. A member of its oneof is written even if it is 0: that says which it is.
  void add_attribute(std::string_view name, ChakraField value_field, std::uint64_t value) {
    ProtoMessage attribute;
    attribute.add_bytes(kAttrName, name);
    attribute.add_number(value_field, value);
    add_bytes(kNodeAttr, attribute.bytes_);
  }
  // Appends the message behind its length.
  void write_to(std::vector<std::uint8_t>& file) const {
    ProtoMessage length;
    length.append_varint(bytes_.size());
    file.insert(file.end(), length.bytes_.begin(), length.bytes_.end());
    file.insert(file.end(), bytes_.begin(), bytes_.end());
  }

 private:
  void append_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void append_key(ChakraField field, std::uint32_t wire_type) {
    append_varint(std::uint64_t{field} << 3 | wire_type);
  }
  std::string bytes_;
};

class ChakraNode {
 public:
  ChakraNode(const Plan& plan, std::uint32_t rank, bool is_on_device)
      : plan_(plan), rank_(rank), is_on_device_(is_on_device) {}

  ProtoMessage message_of(std::uint64_t id, const ExportNode& node) const {
    const Task& task = plan_.ranks[rank_].tasks[node.task];
    ProtoMessage message;
    message.add_number(kNodeId, id);
    message.add_bytes(kNodeName, node.is_backward ? "backward" : name_of(node.task));
    message.add_number(kNodeType, chakra_type_of(node.kind));
    message.add_packed(kNodeDataDeps, node.after);
    if (node.kind == ExportNode::Kind::Calc) {
      message.add_number(kNodeDurationMicros, node.duration);
    }
    message.add_attribute("is_cpu_op", kAttrBool, is_cpu_op(node) ? 1 : 0);
    if (node.kind == ExportNode::Kind::Calc) return message;
    message.add_attribute("comm_size", kAttrInt64, node.bytes);
    if (node.kind == ExportNode::Kind::Collective) {
      message.add_attribute("comm_type", kAttrInt64, comm_type_of(task.exchange));
      if (task.exchange != ExchangeKind::Broadcast) return message;
      message.add_attribute("comm_src", kAttrInt32, task.peer);
      return message;
    }
    const bool sends = node.kind == ExportNode::Kind::Send;
    message.add_attribute("comm_src", kAttrInt32, sends ? rank_ : node.peer);
    message.add_attribute("comm_dst", kAttrInt32, sends ? node.peer : rank_);
    message.add_attribute("comm_tag", kAttrInt32, node.tag);
    return message;
  }

 private:
  std::string name_of(std::uint32_t task) const {
    const Task& of = plan_.ranks[rank_].tasks[task];
    const bool is_exchange = of.kind == TaskKind::Exchange;
    return fmt::format("{} {}", task,
                       is_exchange ? exchange_kind_name(of.exchange) : task_kind_name(of.kind));
  }
  // Simulators run one CPU node and one GPU node of a rank at a time. So the backward pass of a
  // rank that encodes on CPUs counts as a GPU's, and does not wait for encoding.
  bool is_cpu_op(const ExportNode& node) const {
    if (node.is_backward || node.lane == Lane::Network) return false;
    return !is_on_device_ || node.lane != Lane::Compute;
  }

  const Plan& plan_;
  const std::uint32_t rank_;
  const bool is_on_device_;
};

}  // namespace

std::uint64_t chakra_bytes(const Plan& plan, std::uint32_t rank) {
  const NodeCounts most = most_nodes(plan, rank, kChakra);
  return kChakraHead + most.nodes * kChakraNode + most.waits * kChakraWait;
}

Result<std::vector<std::uint8_t>> chakra_of(const Plan& plan, std::uint32_t rank,
                                            const CostInputs& inputs, std::uint64_t most_bytes) {
  if (rank >= plan.world()) {
    return invalid(fmt::format("rank {} of {}", rank, plan.world()));
  }
  CINCH_TRY(check_room("Chakra file", chakra_bytes(plan, rank), most_bytes));
  const std::vector<ExportNode> nodes = TRY(export_nodes(plan, rank, inputs, kChakra));
  std::vector<std::uint8_t> file;
  ProtoMessage metadata;
  metadata.add_bytes(kMetadataVersion, kChakraVersion);
  metadata.write_to(file);
  const ChakraNode writer(plan, rank, inputs.is_on_device);
  for (std::size_t i = 0; i < nodes.size(); ++i) writer.message_of(i, nodes[i]).write_to(file);
  return file;
}

}  // namespace cinch::rt
