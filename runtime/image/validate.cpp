// Image validation: one small class walks the tables in order, and the first fault is kept; entries
// are walked by validate_steps.cpp. The pool of formulas itself was checked when it was read or
// built.
#include "runtime/image/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>

#include "runtime/core/params.h"
#include "runtime/image/describe.h"
#include "runtime/image/gpu_abi.h"

namespace cinch::rt {
namespace {

using Counts = ImageChecks::Counts;

constexpr std::int64_t kCountBytes = 4;
constexpr std::size_t kMaxSymbolLength = 255;

bool is_symbol(const std::string& name) {
  return !name.empty() && name.size() <= kMaxSymbolLength &&
         std::ranges::all_of(
             name, [](unsigned char c) { return c < 0x80 && (std::isalnum(c) != 0 || c == '_'); });
}

// May a parameter of this element type have this type in formulas? A float as an integer may not
// fit.
bool can_enter_as(HostType type, DType dtype) {
  return type != HostType::Int || !is_float(dtype);
}

class TableChecks {
 public:
  TableChecks(const ProgramImage& image, ImageChecks& checks)
      : image_(image), info_(image.info), checks_(checks) {}

  void run() {
    check_lengths();
    if (checks_.has_fault()) return;
    check_info();
    for (std::size_t i = 0; i < image_.buffers.size(); ++i) check_buffer(i);
    for (std::size_t i = 0; i < image_.size_exprs.size(); ++i) {
      checks_.check_formula(image_.size_exprs[i], fmt::format("size {}", i));
    }
    if (is_gpu_image(image_)) check_gpu();
    for (std::size_t i = 0; i < image_.kernels.size(); ++i) check_kernel(i);
  }

 private:
  void require(bool condition, const std::string& place, const char* what) {
    checks_.require(condition, place, what);
  }

  // Limits the number of parts, so that checks of each part, or of each pair, end soon.
  void check_lengths() {
    for (const std::size_t length :
         {image_.buffers.size(), image_.kernels.size(), image_.size_exprs.size(),
          image_.messages.size(), image_.constants.size(), info_.params.size(), info_.sizes.size(),
          info_.states.size(), info_.counts.size(), info_.wire.fields.size()}) {
      require(length <= kMaxImageParts, "tables", "too many parts");
    }
    require(info_.exprs->num_nodes() <= kMaxImageFormulas, "tables", "too many formulas");
  }

  void check_type(const ArrayType& type, const std::string& place, Counts counts) {
    require(type.rank <= 2, place, "more than two dimensions");
    for (int i = 0; i < type.rank && i < 2; ++i) checks_.check_int(type.dims[i], place, counts);
  }

  void check_info() {
    for (const ParamInfo& param : info_.params) {
      require(is_value_of(param.dtype, param.default_value), "parameter " + param.name,
              "a default that is not a value of its type");
    }
    for (const SizeInfo& size : info_.sizes) {
      checks_.check_int(size.value, "size " + size.name, Counts::Any);
    }
    for (const StateInfo& state : info_.states) {
      check_type(state.type, "state " + state.name, Counts::None);
      require(!state.is_input || state.type.dtype == kF32, "input " + state.name,
              "elements of another type than f32");
    }
    require(info_.wire.counts.size() <= info_.counts.size(), "wire",
            "more counts than the program");
    for (const auto* counts : {&info_.counts, &info_.wire.counts}) {
      for (const CountInfo& count : *counts) {
        checks_.check_int(count.bound, "count " + count.name);
      }
    }
    for (const FieldInfo& field : info_.wire.fields) check_field(field);
  }

  void check_field(const FieldInfo& field) {
    const std::string place = "field " + field.name;
    check_type(field.type, place, Counts::OfWire);
    if (field.index_limit) checks_.check_int(*field.index_limit, place);
  }

  // How many role_index values a role has.
  std::size_t role_limit(BufferRole role) const {
    switch (role) {
      case BufferRole::Gradient:
      case BufferRole::Output:
        return 1;
      case BufferRole::Field:
        return info_.wire.fields.size();
      case BufferRole::Count:
        return info_.counts.size();
      case BufferRole::State:
      case BufferRole::StateNext:
      case BufferRole::StateInPlace:
        return info_.states.size();
      case BufferRole::Constant:
        return image_.constants.size();
      case BufferRole::Workspace:
        break;
    }
    return SIZE_MAX;
  }

  // The element type that the role requires; nothing if the program chooses it.
  std::optional<DType> dtype_of_role(const BufferInfo& buffer) const {
    switch (buffer.role) {
      case BufferRole::Gradient:
      case BufferRole::Output:
        return kF32;
      case BufferRole::Field:
        return info_.wire.fields[buffer.role_index].type.dtype;
      case BufferRole::Count:
        return kU32;
      case BufferRole::State:
      case BufferRole::StateNext:
      case BufferRole::StateInPlace:
        return info_.states[buffer.role_index].type.dtype;
      default:
        return std::nullopt;
    }
  }

  void check_buffer(std::size_t index) {
    const BufferInfo& buffer = image_.buffers[index];
    const std::string place = fmt::format("buffer {} ({})", index, buffer.name);
    require(buffer.storage_bits >= std::max<int>(buffer.dtype.bits, 1) && buffer.storage_bits <= 64,
            place, "bits per element");
    checks_.check_int(buffer.num_elems, place);
    checks_.check_int(buffer.size_bytes, place);
    require(buffer.role_index < role_limit(buffer.role), place, "role index out of range");
    if (!checks_.has_fault()) check_role(buffer, place);
  }

  void check_role(const BufferInfo& buffer, const std::string& place) {
    const BufferRole role = buffer.role;
    const std::uint32_t index = buffer.role_index;
    if (role == BufferRole::Workspace) return;
    if (role == BufferRole::Constant) {
      const auto bytes = static_cast<std::int64_t>(image_.constants[index].size());
      return require(checks_.is_number(buffer.size_bytes, bytes), place,
                     "a size other than its constant's");
    }
    const auto dtype = dtype_of_role(buffer);
    const std::string held = fmt::format("{} {}", names_of(role)[static_cast<int>(role)], index);
    if (dtype && (buffer.dtype != *dtype || buffer.storage_bits != dtype->bits)) {
      checks_.fault(fmt::format("{}: {} in {} bits, but {} is {}", place, dtype_name(buffer.dtype),
                                buffer.storage_bits, held, dtype_name(*dtype)));
    }
    require(role != BufferRole::Count || checks_.is_number(buffer.size_bytes, kCountBytes), place,
            "a count of another size");
    // A state that changes in place has no second buffer.
    const bool is_second = role == BufferRole::StateInPlace
                               ? has(BufferRole::State, index) || has(BufferRole::StateNext, index)
                               : has(BufferRole::StateInPlace, index);
    const bool is_written = role == BufferRole::StateNext || role == BufferRole::StateInPlace;
    require(!is_written || !info_.states[index].is_input, place, "an input that is written");
    const bool is_new = roles_.insert({role, index}).second;
    if (!is_new || (is_state(role) && is_second)) {
      checks_.fault(fmt::format("{}: {} has a buffer already", place, held));
    }
  }

  bool has(BufferRole role, std::size_t index) const {
    return roles_.contains({role, static_cast<std::uint32_t>(index)});
  }

  void check_kernel(std::size_t index) {
    const KernelInfo& kernel = image_.kernels[index];
    const std::string place = fmt::format("kernel {} ({})", index, kernel.symbol);
    require(is_symbol(kernel.symbol), place, "no symbol");
    check_function(kernel, place);
    require(kernel.group_multiple >= 1, place, "group multiple of zero");
    checks_.check_int(kernel.num_groups, place + " groups");
    if (is_gpu_image(image_)) check_launch(kernel.cuda, place);
    for (const HostExprId bytes : {kernel.bytes_read, kernel.bytes_written}) {
      if (bytes.is_valid()) checks_.check_int(bytes, place + " bytes");
    }
    const std::uint64_t tile = std::uint64_t{kernel.group_elems} * kernel.group_multiple;
    const bool has_tiles = tile >= 1 && tile <= kMostTiledElems;
    require(kernel.tiled.empty() || has_tiles, place, "groups of too many elements");
  }

  // On a GPU, kernels that do the same are one function, which is always launched in the same way.
  void check_function(const KernelInfo& kernel, const std::string& place) {
    const auto [first, is_new] = functions_.emplace(kernel.symbol, &kernel);
    const auto shape = [](const CudaLaunch& launch) {
      return std::tuple(launch.block_threads, launch.groups_per_block, launch.is_single_block,
                        launch.resident_blocks, launch.shared_bytes, launch.waves);
    };
    const bool is_same = is_gpu_image(image_) && shape(first->second->cuda) == shape(kernel.cuda);
    require(is_new || is_same, place, "a symbol twice");
  }

  void check_threads(std::uint32_t threads, const std::string& place) {
    require(threads % 32 == 0 && threads >= 32 && threads <= 1024, place, "threads of a block");
  }

  void check_gpu() {
    const std::string place = kGpuStepsSymbol;
    check_threads(image_.gpu_steps_threads, place);
    require(image_.gpu_steps_shared_bytes <= kMaxGpuSharedBytes, place, "shared memory of a block");
    // The driver does not get the length: a binary that is not an object file must end with a zero.
    const auto& binary = image_.binary;
    require(has_object(image_) || (!binary.empty() && binary.back() == 0), "binary",
            "neither an object nor a text with its end");
    check_gpu_buffers();
  }

  // Tables on a GPU have an entry for each of these.
  void check_gpu_buffers() {
    const auto all = [](std::size_t count, const auto& holds) {
      for (std::size_t i = 0; i < count; ++i) {
        if (!holds(i)) return false;
      }
      return true;
    };
    const auto is_present = [&](EntryKind kind) {
      return image_.entries[static_cast<std::size_t>(kind)].present;
    };
    // A program that decodes has a finish; by default it divides the sum by the number of ranks.
    const bool has_update = is_present(EntryKind::Decode) || is_present(EntryKind::Sync);
    const bool has_gradient = has_update || is_present(EntryKind::Encode);
    require(!has_gradient || has(BufferRole::Gradient, 0), "buffers", "no gradient");
    require(!has_update || has(BufferRole::Output, 0), "buffers", "no output");
    require(all(info_.wire.fields.size(), [&](std::size_t i) { return has(BufferRole::Field, i); }),
            "buffers", "a field has none");
    require(all(info_.counts.size(), [&](std::size_t i) { return has(BufferRole::Count, i); }),
            "buffers", "a count has none");
    const auto has_state = [&](std::size_t i) {
      return has(BufferRole::StateInPlace, i) ||
             (has(BufferRole::State, i) &&
              (info_.states[i].is_input || has(BufferRole::StateNext, i)));
    };
    require(all(info_.states.size(), has_state), "buffers", "a state has none");
  }

  // Every kernel is also a step.
  void check_launch(const CudaLaunch& launch, const std::string& place) {
    check_threads(launch.block_threads, place);
    require(launch.shared_bytes <= image_.gpu_steps_shared_bytes, place,
            "shared memory of a block");
    require(launch.groups_per_block >= 1 && launch.groups_per_block <= UINT32_MAX, place,
            "groups of a block");
    require(launch.resident_blocks >= 1 && launch.resident_blocks <= UINT16_MAX, place,
            "blocks of a multiprocessor");
    require(launch.waves <= UINT16_MAX, place, "waves of blocks");
    require(!launch.is_foldable || launch.is_single_block, place, "a fold before many blocks");
  }

  const ProgramImage& image_;
  const ProgramInfo& info_;
  ImageChecks& checks_;
  std::map<std::string_view, const KernelInfo*> functions_;
  std::set<std::pair<BufferRole, std::uint32_t>> roles_;
};

}  // namespace

ImageChecks::ImageChecks(const ProgramImage& image) : info_(image.info) {
  // Unused formulas may refer to missing parameters or counts: the compiler's pool goes into the
  // image unchanged. Arguments come before their users.
  const HostExprPool& pool = *info_.exprs;
  leaves_.reserve(pool.num_nodes());
  for (std::size_t i = 0; i < pool.num_nodes(); ++i) {
    const HostExprNode& node = pool.node(HostExprId(i));
    Leaves leaves = leaves_of(node);
    for (const HostExprId arg : node.args) {
      if (!arg.is_valid()) continue;
      leaves.are_there = leaves.are_there && leaves_[arg.index()].are_there;
      leaves.are_of_wire = leaves.are_of_wire && leaves_[arg.index()].are_of_wire;
    }
    leaves_.push_back(leaves);
  }
}

ImageChecks::Leaves ImageChecks::leaves_of(const HostExprNode& node) const {
  if (node.op == HostOp::Param) {
    return {node.payload < info_.params.size() &&
            can_enter_as(node.type, info_.params[node.payload].dtype)};
  }
  if (node.op == HostOp::Count) {
    return {node.payload < info_.counts.size(), node.payload < info_.wire.counts.size()};
  }
  return {};
}

void ImageChecks::fault(std::string text) {
  if (fault_.empty()) fault_ = std::move(text);
}

void ImageChecks::require(bool condition, const std::string& place, const char* what) {
  if (!condition) fault(place + ": " + what);
}

bool ImageChecks::check_formula(HostExprId id, const std::string& place, Counts counts) {
  const HostExprPool& pool = *info_.exprs;
  if (!id.is_valid() || id.index() >= pool.num_nodes()) {
    fault(place + ": no such formula");
    return false;
  }
  require(leaves_[id.index()].are_there, place, "no such parameter or count");
  require(counts != Counts::None || !pool.has_count(id), place, "a formula that holds a count");
  require(counts != Counts::OfWire || leaves_[id.index()].are_of_wire, place,
          "a count that is not of the wire");
  return true;
}

void ImageChecks::check_int(HostExprId id, const std::string& place, Counts counts) {
  if (!check_formula(id, place, counts)) return;
  require(info_.exprs->type(id) == HostType::Int, place, "not an integer formula");
}

bool ImageChecks::is_number(HostExprId id, std::int64_t value) const {
  const HostExprPool& pool = *info_.exprs;
  return id.is_valid() && id.index() < pool.num_nodes() && pool.is_const(id) &&
         pool.const_value(id) == HostValue::from_int(value);
}

bool is_gpu_image(const ProgramImage& image) {
  return image.target.starts_with("cuda:");
}

bool has_object(const ProgramImage& image) {
  constexpr std::uint8_t kElf[] = {0x7f, 'E', 'L', 'F'};
  return image.binary.size() >= sizeof kElf &&
         std::ranges::equal(std::span(image.binary).first(sizeof kElf), kElf);
}

Status validate_image(const ProgramImage& image) {
  ImageChecks checks(image);
  TableChecks(image, checks).run();
  if (!checks.has_fault()) check_entries(image, checks);
  if (checks.has_fault()) return fail(ErrorKind::CorruptFile, "image: " + checks.first_fault());
  return Ok{};
}

}  // namespace cinch::rt
