#include "compiler/driver/library/library.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "compiler/driver/version.h"
#include "compiler/ir/text/text.h"
#include "compiler/service/formula.h"
#include "runtime/core/params.h"
#include "runtime/image/image.h"
#include "runtime/payload/payload.h"

namespace cinch::driver {
namespace {

using nlohmann::json;

json parameters_of(const rt::ProgramInfo& info) {
  json list = json::array();
  for (const rt::ConstantInfo& c : info.constants)
    list.push_back({{"name", c.name}, {"value", c.value}, {"constant", true}});
  for (const rt::ParamInfo& p : info.params) {
    list.push_back({{"name", p.name},
                    {"type", dtype_name(p.dtype)},
                    {"value", p.default_value},
                    {"constant", false},
                    {"range", p.range ? json(rt::range_text(p.dtype, *p.range)) : json()}});
  }
  return list;
}

json states_of(const rt::ProgramInfo& info) {
  json list = json::array();
  for (const rt::StateInfo& s : info.states)
    list.push_back({{"name", s.name}, {"type", ir::print_type(info, s.type)}});
  return list;
}

json payload_of(rt::ProgramInfo& info) {
  json fields = json::array(), counts = json::array();
  for (const rt::FieldInfo& field : info.wire.fields) {
    fields.push_back({{"name", field.name},
                      {"type", ir::print_type(info, field.type)},
                      {"ascending", field.ascending},
                      {"packs", field.packing.empty() ? json() : json(field.packing)}});
  }
  for (const rt::CountInfo& count : info.wire.counts)
    counts.push_back({{"name", count.name}, {"bound", service::formula_text(info, count.bound)}});
  return {{"header_bytes", rt::kPayloadHeaderBytes},
          {"field_alignment", rt::kPayloadFieldAlignment},
          {"bound", service::formula_text(info, service::payload_bound(info))},
          {"counts", counts},
          {"fields", fields}};
}

json compressor_of(const std::string& name, rt::ProgramInfo& info) {
  const std::array<std::uint64_t, 2> print = rt::fingerprint(info);
  json report = {{"name", name},
                 {"doc", info.doc},
                 {"fingerprint", fmt::format("{:016x}{:016x}", print[1], print[0])},
                 {"matrix", info.is_matrix},
                 {"parameters", parameters_of(info)},
                 {"states", states_of(info)}};
  if (info.has_sync) {
    report["aggregation"] = "sync";
    return report;
  }
  report["payload"] = payload_of(info);
  report["aggregation"] = info.aggregation == rt::Aggregation::SumProved   ? "sum"
                          : info.aggregation == rt::Aggregation::SumToTest ? "sum, to test"
                                                                           : "gather";
  return report;
}

}  // namespace

json library_report(const codegen::LibraryRequest& request, codegen::Library& library) {
  json compressors = json::array(), targets = json::array();
  for (codegen::LibraryProgram& each : library.programs)
    compressors.push_back(compressor_of(each.name, each.kernels.info));
  for (const codegen::LibraryTarget& each : request.targets) {
    const bool is_gpu = each.target.kind == codegen::TargetKind::Cuda;
    targets.push_back((is_gpu ? "cuda:" : "cpu:") + each.target.arch + (each.is_ptx ? " ptx" : ""));
  }
  return {{"library", request.name},
          {"cinch", kVersion},
          {"targets", targets},
          {"compressors", compressors}};
}

}  // namespace cinch::driver
