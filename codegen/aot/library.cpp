// Prepares and compiles programs of a library in parallel, then joins them. See library.h.
#include "codegen/aot/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

#include "codegen/aot/schedule.h"
#include "codegen/emit/cpu.h"
#include "codegen/jit/compile_program.h"
#include "runtime/c_api/cinch_library.h"
#include "runtime/image/image_file.h"

namespace cinch::codegen {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr const char* kLowestLevel = "x86-64";
constexpr const char* kArm = "aarch64";

// One program for one target: an object, or an image for GPUs.
struct Part {
  std::size_t program = 0, target = 0;
  Bytes bytes;
  std::vector<std::string> kernels;  // for an object: symbols by kernel index
};

CpuCompileOptions without_sanitizer() {
  CpuCompileOptions options{.sanitize_address = false, .optimization_level = 3};
  return options;
}

rt::Result<Bytes> compile_text(const std::string& text, const std::string& arch) {
  KernelSource source{.target = {TargetKind::Cpu, arch}, .text = text};
  return compile_cpu_to_object(source, without_sanitizer());
}

bool needs_nvrtc(const LibraryTarget& to) {
  return to.target.kind == TargetKind::Cuda && to.target.arch != kEmulatedArch;
}

std::size_t num_workers(std::size_t num_parts) {
  return std::min<std::size_t>(std::max(1u, std::thread::hardware_concurrency()), num_parts);
}

// One for each worker; each uses about 200 MB. If one would be enough, none.
std::size_t num_nvrtc_processes(std::size_t num_programs, const LibraryRequest& request) {
  constexpr std::size_t kMaxProcesses = 16;
  const auto num_targets =
      static_cast<std::size_t>(std::ranges::count_if(request.targets, needs_nvrtc));
  const std::size_t count = std::min(num_workers(num_programs * num_targets), kMaxProcesses);
  return count > 1 ? count : 0;
}

class LibraryMaker {
 public:
  LibraryMaker(const LibraryRequest& request, LibraryPrograms& source)
      : request_(request),
        source_(source),
        programs_(source.count()),
        is_prepared_(source.count()),
        nvrtc_(num_nvrtc_processes(source.count(), request)),
        schedule_(source.count(), std::max<std::size_t>(1, nvrtc_.count())) {
    for (std::size_t p = 0; p < programs_.size(); ++p) {
      for (std::size_t t = 0; t < request.targets.size(); ++t) parts_.push_back({p, t, {}, {}});
    }
  }

  rt::Result<Library> make() {
    if (rt::Status status = compile_all(); !status)
      return tl::unexpected<rt::Error>(status.error());
    std::vector<NamedBytes> files;
    rt::Status status = join(kLowestLevel, files);
    const bool has_arm = std::ranges::any_of(
        request_.targets, [](const LibraryTarget& t) { return t.target.arch == kArm; });
    if (status && has_arm) status = join(kArm, files);
    CINCH_TRY(status);
    return Library{std::move(programs_), std::move(files)};
  }

 private:
  const LibraryTarget& target(const Part& part) const { return request_.targets[part.target]; }
  const LibraryProgram& program(const Part& part) const { return programs_[part.program]; }
  bool is_gpu(const Part& part) const { return target(part).target.kind == TargetKind::Cuda; }

  rt::Status compile(Part& part) {
    const LibraryTarget& to = target(part);
    const LibraryProgram& from = program(part);
    if (is_gpu(part)) {
      ImageOptions options{.block_warps = to.block_warps, .is_ptx = to.is_ptx};
      if (nvrtc_.count() > 0) {
        options.compile_cuda = [this](const KernelSource& source, bool is_ptx) {
          return nvrtc_.compile(source, is_ptx);
        };
      }
      auto image = TRY(make_image(from.kernels, to.target, options));
      CINCH_TRY(add_carrier(from, to.target, options, image));
      part.bytes = rt::write_image(image);
      return rt::Ok{};
    }
    const KernelSource source = emit_cpu(from.kernels, {to.target.arch});
    CpuCompileOptions options = without_sanitizer();
    options.symbol_prefix = kernel_prefix(request_.name, from.name, to.target.arch);
    auto object = TRY(compile_cpu_to_object(source, options));
    part.bytes = std::move(object);
    for (const std::string& symbol : source.symbols)
      part.kernels.push_back(options.symbol_prefix + symbol);
    return rt::Ok{};
  }

  // An image with code of its own within the program's image.
  static rt::Status add_carrier(const LibraryProgram& of, const Target& target,
                                const ImageOptions& options, rt::ProgramImage& to) {
    if (!of.carrier) return rt::Ok{};
    auto image = TRY(make_image(*of.carrier, target, options));
    to.carrier = std::make_shared<const rt::ProgramImage>(std::move(image));
    return rt::Ok{};
  }

  void compile_part(std::size_t index) {
    if (rt::Status status = compile(parts_[index]); !status) fail_part(status, nullptr);
    const std::lock_guard lock(mutex_);
    ++num_done_;
    if (request_.progress) request_.progress(num_done_, parts_.size());
  }

  // Prepares a program. Then takes the programs whose turn it is, and releases their parts for
  // compiling.
  void prepare_program(std::size_t index) {
    source_.prepare(index);
    const std::lock_guard lock(mutex_);
    is_prepared_[index] = true;
    while (next_to_take_ < programs_.size() && is_prepared_[next_to_take_]) {
      // If one cannot be taken, later ones are not taken either: none may be skipped.
      const std::size_t taken = std::exchange(next_to_take_, programs_.size());
      programs_[taken] = source_.take(taken);
      next_to_take_ = taken + 1;
      const std::size_t num_targets = request_.targets.size();
      for (std::size_t i = taken * num_targets; i < (taken + 1) * num_targets; ++i) {
        schedule_.add_part({.index = i,
                            .takes_turns = needs_nvrtc(target(parts_[i])),
                            .cost = programs_[taken].kernels.kernels.size()});
      }
    }
  }

  void work() {
    while (const std::optional<Schedule::Task> task = schedule_.next()) {
      try {
        if (task->is_program) {
          prepare_program(task->index);
        } else {
          compile_part(task->index);
        }
      } catch (...) {
        if (task->is_program) {
          fail_program(std::current_exception());
        } else {
          fail_part(rt::Ok{}, std::current_exception());
        }
      }
      schedule_.end(*task);
    }
  }
  // Keeps the first error.
  void fail_part(rt::Status status, std::exception_ptr thrown) {
    schedule_.stop_parts();
    const std::lock_guard lock(mutex_);
    if (!status_ || thrown_) return;
    status_ = std::move(status);
    thrown_ = std::move(thrown);
  }
  void fail_program(std::exception_ptr thrown) {
    schedule_.stop();
    const std::lock_guard lock(mutex_);
    if (!thrown_by_program_) thrown_by_program_ = std::move(thrown);
  }

  rt::Status compile_all() {
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 1; i < num_workers(parts_.size()); ++i)
        threads.emplace_back([this] { work(); });
      work();
    }
    if (thrown_by_program_) std::rethrow_exception(thrown_by_program_);
    if (thrown_) std::rethrow_exception(thrown_);
    return status_;
  }

  // Tables, data and objects of the library for one processor.
  struct Joined {
    std::vector<CompressorTables> tables;
    std::vector<NamedBytes> data, objects;
  };

  rt::Result<Joined> collect(const std::string& arch) const {
    Joined joined;
    for (const LibraryProgram& each : programs_) {
      const std::string symbol = own_symbol(request_.name, "image", each.name);
      rt::ProgramImage image = image_without_code(each.kernels, "cpu:" + arch);
      // Few calls of a step are the carrier's, so it has code for the lowest level alone.
      CINCH_TRY(add_carrier(each, {TargetKind::Cpu, arch}, {}, image));
      joined.data.push_back({symbol, rt::write_image(image)});
      joined.tables.push_back({each.name, symbol, joined.data.back().bytes.size(), {}, {}});
    }
    for (const Part& part : parts_) {
      const bool goes_into =
          is_gpu(part) ? arch != kArm : (target(part).target.arch == kArm) == (arch == kArm);
      if (!goes_into) continue;
      CompressorTables& tables = joined.tables[part.program];
      const LibraryTarget& to = target(part);
      if (!is_gpu(part)) {
        tables.cpu.push_back({to.target.arch, part.kernels});
        joined.objects.push_back(
            {fmt::format("{}-{}.o", program(part).name, to.target.arch), part.bytes});
        continue;
      }
      const std::string symbol =
          own_symbol(request_.name, to.target.arch + (to.is_ptx ? "_ptx" : ""), program(part).name);
      joined.data.push_back({symbol, part.bytes});
      tables.gpu.push_back({to.target.arch, symbol, to.is_ptx, part.bytes.size()});
    }
    return joined;
  }

  rt::Status join(const std::string& arch, std::vector<NamedBytes>& files) const {
    Joined joined = TRY(collect(arch));
    auto tables =
        TRY(compile_text(tables_text(request_.name, request_.made_by, joined.tables), arch));
    auto data = TRY(make_data_object(arch, joined.data));
    joined.objects.push_back({"tables.o", std::move(tables)});
    joined.objects.push_back({"data.o", std::move(data)});
    auto archive = TRY(make_archive(joined.objects));
    const std::string suffix = arch == kArm ? "-aarch64" : "";
    files.push_back({fmt::format("lib{}{}.a", request_.name, suffix), std::move(archive)});
    if (arch == kArm) return rt::Ok{};
    auto shared_part = TRY(compile_text(shared_part_text(request_.name), arch));
    joined.objects.push_back({"shared.o", std::move(shared_part)});
    const std::string file = fmt::format("lib{}.so", request_.name);
    std::vector<std::string> exports = {library_symbol(request_.name), kFindSymbol};
    for (const LibraryProgram& each : programs_)
      exports.push_back(table_symbol(request_.name, each.name));
    auto linked = TRY(link_library(joined.objects, file, exports));
    files.push_back({file, std::move(linked)});
    return rt::Ok{};
  }

  const LibraryRequest& request_;
  LibraryPrograms& source_;
  std::vector<LibraryProgram> programs_;
  std::vector<Part> parts_;
  std::mutex mutex_;  // guards all members below except the schedule
  std::vector<bool> is_prepared_;
  std::size_t next_to_take_ = 0, num_done_ = 0;
  rt::Status status_ = rt::Ok{};
  std::exception_ptr thrown_, thrown_by_program_;
  NvrtcProcesses nvrtc_;  // forked before there are other threads
  Schedule schedule_;
};

}  // namespace

rt::Result<Library> make_library(const LibraryRequest& request, LibraryPrograms& programs) {
  return LibraryMaker(request, programs).make();
}

}  // namespace cinch::codegen
