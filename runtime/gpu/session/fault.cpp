// Faults that kernels report, as errors; see calls.h.
#include "runtime/gpu/session/calls.h"

#include <fmt/format.h>

#include "runtime/image/gpu_abi.h"

namespace cinch::rt {
namespace {

Status payload_fault(const ProgramInfo& info, PayloadFault fault, std::size_t part) {
  const auto name_of = [&](const auto& list) {
    return part < list.size() ? list[part].name : std::to_string(part);
  };
  const auto corrupt = [](std::string what) {
    return fail(ErrorKind::CorruptPayload, "payload on the device: " + std::move(what));
  };
  const auto in_field = [&](const char* what) {
    return corrupt(fmt::format("field {}: {}", name_of(info.wire.fields), what));
  };
  switch (fault) {
    case kFaultMagic:
      return corrupt("no magic at its start");
    case kFaultVersion:
      return fail(ErrorKind::VersionMismatch, "payload on the device: another format version");
    case kFaultFlags:
      return corrupt("unknown flags");
    case kFaultLength:
      return corrupt("its length is not what its header, shape and counts make");
    case kFaultFingerprint:
      return corrupt("its fingerprint is not that of " + info.name + " with its constants");
    case kFaultShape:
      return corrupt("a tensor of another shape");
    case kFaultDecodeHash:
      return corrupt("decode hash: another parameter, step, seed or number of ranks");
    case kFaultCount:
      return corrupt(fmt::format("count {} is above its bound", name_of(info.wire.counts)));
    case kFaultCheckWord:
      return corrupt("check word: its header or a count was changed");
    case kFaultPadding:
      return in_field("bytes before it are not zero");
    case kFaultLastBits:
      return in_field("bits behind its last element are not zero");
    case kFaultIndexLimit:
      return in_field("an index is not below its limit");
    case kFaultIndexOrder:
      return in_field("indices do not ascend");
  }
  return fail(ErrorKind::Internal, "a payload fault of an unknown kind");
}

}  // namespace

Status gpu_fault(const ProgramImage& image, std::uint32_t failed) {
  if (failed == 0) return Ok{};
  if ((failed & kPayloadFaultBit) != 0) {
    const std::uint32_t word = failed & ~kPayloadFaultBit;
    return payload_fault(image.info, static_cast<PayloadFault>(word & 0xff), word >> 8);
  }
  if ((failed & kRankFaultBit) != 0) return fail(ErrorKind::CheckFailed, "another rank failed");
  if ((failed & kConditionBit) != 0) {
    const Status named = gpu_fault(image, failed & ~kConditionBit);
    return fail(named.error().kind, "this does not hold: " + named.error().message);
  }
  if (failed > image.messages.size()) {
    return fail(ErrorKind::Internal, "a kernel failed with a number that stands for no message");
  }
  return fail(ErrorKind::CheckFailed, image.messages[failed - 1]);
}

}  // namespace cinch::rt
