// Printing ProgramInfo and constant tables.
#include "compiler/ir/text/head.h"

#include <fmt/format.h>

#include <bit>

#include "compiler/ir/text/text.h"

namespace cinch::ir {
namespace {

std::string name_text(const std::string& name) {
  return is_plain_name(name) ? name : quote(name);
}

std::string print_range(const rt::ParamRange& range) {
  const auto side = [](const std::optional<double>& x) {
    return x ? fmt::format("{}", *x) : std::string("none");
  };
  return fmt::format(" in {}{}, {}{}", range.low_open ? '(' : '[', side(range.low),
                     side(range.high), range.high_open ? ')' : ']');
}

std::string param_line(const rt::ParamInfo& param) {
  return fmt::format("param {}: {} = {}{}\n", name_text(param.name), dtype_name(param.dtype),
                     param.default_value, param.range ? print_range(*param.range) : "");
}

std::string extern_line(const rt::ExternInfo& function) {
  std::string types;
  for (const DType param : function.params) {
    types += (types.empty() ? "" : ", ") + dtype_name(param);
  }
  return fmt::format("extern {}({}) -> {} work {} {}\n", name_text(function.name), types,
                     dtype_name(function.result), function.work, quote(function.source));
}

std::string wire_block(const rt::ProgramInfo& info, const HostPrinter& host) {
  constexpr const char* kSums[] = {"", " by sum", " by min", " by max"};
  std::string text = fmt::format("wire counts {} {{\n", info.wire.counts.size());
  for (const rt::FieldInfo& field : info.wire.fields) {
    text += fmt::format("  {}: {}{}{}", name_text(field.name), print_type(host, field.type),
                        kSums[static_cast<int>(field.sum)], field.ascending ? " ascending" : "");
    if (field.index_limit) text += " below " + host.print(*field.index_limit);
    if (!field.packing.empty()) text += " packs " + quote(field.packing);
    text += '\n';
  }
  return text + "}\n";
}

std::string flag_lines(const rt::ProgramInfo& info) {
  std::string text;
  if (info.is_matrix) text += "flag matrix\n";
  if (info.decode_draws) text += "flag decode_draws\n";
  if (info.decode_world) text += "flag decode_world\n";
  if (info.decode_step) text += "flag decode_step\n";
  if (info.has_finish) text += "flag has_finish\n";
  if (info.is_finish_linear) text += "flag linear_finish\n";
  if (info.is_local) text += "flag is_local\n";
  if (info.has_sync) text += "flag has_sync\n";
  constexpr const char* kNames[] = {"gather", "sum_proved", "sum_to_test"};
  return text + fmt::format("aggregation {}\n", kNames[static_cast<int>(info.aggregation)]);
}

std::string table_line(const Program& program, const HostPrinter& host, std::size_t index) {
  const Table& table = program.tables[index];
  std::string text = fmt::format("table {}: {} = (", index, print_type(host, table.type));
  for (std::size_t i = 0; i < table.bits.size(); ++i) {
    text += (i ? ", " : "") + print_value(table.type.dtype, table.bits[i]);
  }
  return text + ")\n";
}

}  // namespace

std::string print_value(DType dtype, std::uint64_t bits) {
  if (!is_float(dtype)) {
    return is_unsigned_int(dtype) ? fmt::format("{}", bits)
                                  : fmt::format("{}", static_cast<std::int64_t>(bits));
  }
  const double value = std::bit_cast<double>(bits);
  return value == value ? fmt::format("{}", value) : "nan";
}

std::string print_info(const Program& program) {
  const rt::ProgramInfo& info = program.info;
  const HostPrinter host(info);
  std::string text = "program " + quote(info.name) + "\n";
  if (!info.source.empty()) text += "source " + quote(info.source) + "\n";
  if (!info.doc.empty()) text += "doc " + quote(info.doc) + "\n";
  for (const auto& constant : info.constants) {
    text += fmt::format("constant {} = {}\n", name_text(constant.name), constant.value);
  }
  for (const auto& param : info.params) text += param_line(param);
  HostPrinter earlier(info, 0);
  for (const auto& size : info.sizes) {
    text += fmt::format("size {} = {}\n", name_text(size.name), earlier.print(size.value));
    earlier.name_size(size);
  }
  for (const auto& count : info.counts) {
    text += fmt::format("count {} <= {}\n", name_text(count.name), host.print(count.bound));
  }
  for (const auto& state : info.states) {
    text += fmt::format("state {}: {}\n", name_text(state.name), print_type(host, state.type));
  }
  for (const auto& function : info.externs) text += extern_line(function);
  if (!info.wire.fields.empty() || !info.wire.counts.empty()) text += wire_block(info, host);
  text += flag_lines(info);
  for (std::size_t i = 0; i < program.tables.size(); ++i) text += table_line(program, host, i);
  return text;
}

}  // namespace cinch::ir
