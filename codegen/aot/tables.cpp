#include "codegen/aot/texts.h"

#include <fmt/format.h>

#include <cstddef>

#include "runtime/c_api/cinch_library.h"

namespace cinch::codegen {
namespace {

// Mirrors cinch_library.h; layout_checks compares.
constexpr const char* kTypes = R"(using u64 = unsigned long;
using u32 = unsigned;
using Kernel = void (*)(const void*, u64, u64);
struct CpuCode { const char* level; const Kernel* kernels; u64 num_kernels; };
struct GpuCode { const char* arch; int is_ptx; const unsigned char* image; u64 image_size; };
struct Compressor {
  u32 library_version, struct_size;
  const char* name;
  const unsigned char* image;
  u64 image_size;
  const CpuCode* cpu;
  u64 num_cpu;
  const GpuCode* gpu;
  u64 num_gpu;
};
struct Library {
  u32 library_version, struct_size;
  const char* name;
  const char* made_by;
  const Compressor* const* compressors;
  u64 num_compressors;
};
)";

void layout_checks(std::string& text) {
  const auto check = [&](const char* type, const char* member, std::size_t offset) {
    text += fmt::format("static_assert(__builtin_offsetof({}, {}) == {});\n", type, member, offset);
  };
  check("CpuCode", "num_kernels", offsetof(cinch_cpu_code, num_kernels));
  check("GpuCode", "is_ptx", offsetof(cinch_gpu_code, is_ptx));
  check("GpuCode", "image_size", offsetof(cinch_gpu_code, image_size));
  check("Compressor", "name", offsetof(cinch_compressor, name));
  check("Compressor", "image", offsetof(cinch_compressor, image));
  check("Compressor", "cpu", offsetof(cinch_compressor, cpu));
  check("Compressor", "gpu", offsetof(cinch_compressor, gpu));
  check("Compressor", "num_gpu", offsetof(cinch_compressor, num_gpu));
  check("Library", "name", offsetof(cinch_library, name));
  check("Library", "num_compressors", offsetof(cinch_library, num_compressors));
  text += fmt::format("static_assert(sizeof(Compressor) == {} && sizeof(Library) == {});\n",
                      sizeof(cinch_compressor), sizeof(cinch_library));
}

void declarations(std::string& text, const CompressorTables& of) {
  const auto image = [&](const std::string& symbol) {
    text += fmt::format("extern const unsigned char {}[];\n", symbol);
  };
  image(of.image_symbol);
  for (const GpuTable& gpu : of.gpu) image(gpu.image_symbol);
  for (const CpuTable& cpu : of.cpu) {
    for (const std::string& kernel : cpu.kernels)
      text += fmt::format("void {}(const void*, u64, u64);\n", kernel);
  }
}

// An array, or null if it is empty.
std::string array(std::string& text, const std::string& type, const std::string& name,
                  const std::vector<std::string>& items) {
  if (items.empty()) return "nullptr";
  text += fmt::format("static const {} {}[] = {{", type, name);
  for (const std::string& item : items) text += "\n  " + item + ",";
  text += "\n};\n";
  return name;
}

void compressor(std::string& text, const std::string& library, const CompressorTables& of) {
  std::vector<std::string> cpu, gpu;
  for (std::size_t i = 0; i < of.cpu.size(); ++i) {
    const std::string kernels =
        array(text, "Kernel", fmt::format("{}_kernels_{}", of.name, i), of.cpu[i].kernels);
    cpu.push_back(
        fmt::format("{{\"{}\", {}, {}}}", of.cpu[i].level, kernels, of.cpu[i].kernels.size()));
  }
  for (const GpuTable& each : of.gpu) {
    gpu.push_back(fmt::format("{{\"{}\", {}, {}, {}}}", each.arch, each.is_ptx ? 1 : 0,
                              each.image_symbol, each.image_size));
  }
  const std::string cpu_array = array(text, "CpuCode", of.name + "_cpu", cpu);
  const std::string gpu_array = array(text, "GpuCode", of.name + "_gpu", gpu);
  text += fmt::format(
      "extern \"C\" __attribute__((visibility(\"default\"))) const Compressor {} = {{\n"
      "  {}, sizeof(Compressor), \"{}\", {}, {}, {}, {}, {}, {}}};\n",
      table_symbol(library, of.name), CINCH_LIBRARY_VERSION, of.name, of.image_symbol,
      of.image_size, cpu_array, cpu.size(), gpu_array, gpu.size());
}

}  // namespace

std::string tables_text(const std::string& library, const std::string& made_by,
                        const std::vector<CompressorTables>& compressors) {
  std::string text = kTypes;
  layout_checks(text);
  text += "extern \"C\" {\n";
  for (const CompressorTables& each : compressors) declarations(text, each);
  text += "}\n";
  std::vector<std::string> tables;
  for (const CompressorTables& each : compressors) {
    compressor(text, library, each);
    tables.push_back("&" + table_symbol(library, each.name));
  }
  const std::string list = array(text, "Compressor* const", "all", tables);
  text += fmt::format(
      "extern \"C\" __attribute__((visibility(\"default\"))) const Library {} = {{\n"
      "  {}, sizeof(Library), \"{}\", \"{}\", {}, {}}};\n",
      library_symbol(library), CINCH_LIBRARY_VERSION, library, made_by, list, tables.size());
  return text;
}

std::string shared_part_text(const std::string& library) {
  return fmt::format(R"(extern "C" {{
extern const int {0};
__attribute__((visibility("default"))) const void* {1}() {{ return &{0}; }}
__attribute__((no_builtin)) void* memset(void* to, int value, unsigned long size) {{
  auto* bytes = static_cast<unsigned char*>(to);
  for (unsigned long i = 0; i < size; ++i) bytes[i] = (unsigned char)value;
  return to;
}}
__attribute__((no_builtin)) void* memcpy(void* to, const void* from, unsigned long size) {{
  auto* bytes = static_cast<unsigned char*>(to);
  const auto* source = static_cast<const unsigned char*>(from);
  for (unsigned long i = 0; i < size; ++i) bytes[i] = source[i];
  return to;
}}
}}
)",
                     library_symbol(library), kFindSymbol);
}

}  // namespace cinch::codegen
