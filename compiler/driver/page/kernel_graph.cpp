#include "compiler/driver/page/pages.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/explain.h"
#include "compiler/driver/report/text.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

constexpr double kGraphWidth = 920, kArrayWidth = 150, kArrayHeight = 36, kBetweenArrays = 12;
constexpr double kKernelLeft = 315, kKernelWidth = 290, kBetweenKernels = 22;
constexpr double kLine = 16, kPort = 18, kPadding = 10;
constexpr std::size_t kKernelCharacters = 42, kArrayCharacters = 20;

struct GraphStream {
  std::int64_t buffer = 0;
  std::string name, kind;
  std::int64_t most = 0, least = 0;
};

struct GraphKernel {
  std::string title;
  std::vector<std::string> lines;
  std::vector<GraphStream> reads, writes;
  double top = 0, height = 0;
};

struct GraphArray {
  std::string name, kind;
  std::vector<double> touches;  // heights at which lines end
  double top = 0;
};

// Skips scalars that sweeps pass to one another.
std::vector<GraphStream> streams_of(const json& list) {
  constexpr std::int64_t kScalarBytes = 64;
  std::vector<GraphStream> streams;
  for (const json& each : list) {
    if (each["kind"] == "workspace" && each["most"] <= kScalarBytes) continue;
    streams.push_back({each["buffer"], each["name"], each["kind"], each["most"], each["least"]});
  }
  return streams;
}

void join(std::vector<GraphStream>& to, const std::vector<GraphStream>& streams) {
  for (const GraphStream& stream : streams) {
    const auto known = std::ranges::find(to, stream.buffer, &GraphStream::buffer);
    if (known == to.end()) {
      to.push_back(stream);
    } else {
      known->most += stream.most;
      known->least += stream.least;
    }
  }
}

GraphKernel kernel_box(const json& kernel) {
  const bool is_in_loop = kernel["in_loop"].get<bool>();
  const char* when = kernel["in_branch"].get<bool>()
                         ? is_in_loop ? " (if asked for, in a loop)" : " (if the data asks for it)"
                     : is_in_loop ? " (in a loop)"
                                  : "";
  std::vector<std::string> lines;
  std::istringstream whole(wrapped(work_in_words(kernel["does"]), 0, kKernelCharacters));
  for (std::string line; std::getline(whole, line);) lines.push_back(line);
  return {"sweep " + kernel["number"].dump() + when, std::move(lines), streams_of(kernel["reads"]),
          streams_of(kernel["writes"])};
}

// Kernels that are not sweeps share one box after the sweeps.
std::vector<GraphKernel> kernel_boxes(const json& kernels) {
  std::vector<GraphKernel> boxes;
  GraphKernel small;
  std::int64_t num_small = 0;
  for (const json& kernel : kernels) {
    if (!kernel["number"].is_null()) {
      boxes.push_back(kernel_box(kernel));
      continue;
    }
    ++num_small;
    join(small.reads, streams_of(kernel["reads"]));
    join(small.writes, streams_of(kernel["writes"]));
  }
  // Arrays that only these kernels use are of no interest to readers.
  const auto is_of_sweeps = [&](const GraphStream& stream) {
    return std::ranges::any_of(boxes, [&](const GraphKernel& box) {
      const auto has = [&](const std::vector<GraphStream>& streams) {
        return std::ranges::find(streams, stream.buffer, &GraphStream::buffer) != streams.end();
      };
      return has(box.reads) || has(box.writes);
    });
  };
  for (auto* streams : {&small.reads, &small.writes}) {
    std::erase_if(*streams, [&](const GraphStream& stream) {
      return stream.kind == "workspace" && !is_of_sweeps(stream);
    });
  }
  if (num_small > 0) {
    small.title = counted(num_small, "small kernel");
    small.lines = {"join what sweeps left"};
    boxes.push_back(std::move(small));
  }
  return boxes;
}

// The key of each buffer: its kernels and its name. Buffers with one key are drawn as one.
using GraphKeys = std::map<std::int64_t, std::string>;

GraphKeys keys_of(const std::vector<GraphKernel>& kernels) {
  GraphKeys keys;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    for (const auto* streams : {&kernels[i].reads, &kernels[i].writes}) {
      for (const GraphStream& stream : *streams) {
        std::string& key =
            keys.try_emplace(stream.buffer, stream.name + "/" + stream.kind).first->second;
        key += fmt::format("/{}{}", i, streams == &kernels[i].reads ? 'r' : 'w');
      }
    }
  }
  return keys;
}

// Arrays with one name that the same kernels use are drawn as one: "partial ×4".
void join_alike(std::vector<GraphKernel>& kernels) {
  const GraphKeys keys = keys_of(kernels);
  std::map<std::string, std::vector<std::int64_t>> by_key;
  for (const auto& [buffer, key] : keys) by_key[key].push_back(buffer);
  for (GraphKernel& kernel : kernels) {
    for (auto* streams : {&kernel.reads, &kernel.writes}) {
      std::vector<GraphStream> joined;
      for (GraphStream stream : *streams) {
        const auto& alike = by_key.at(keys.at(stream.buffer));
        stream.buffer = alike.front();
        if (alike.size() > 1) stream.name += fmt::format(" ×{}", alike.size());
        join(joined, {stream});
      }
      *streams = std::move(joined);
    }
  }
}

// Thicker for more bytes, by their logarithm.
double stream_width(const GraphStream& stream) {
  return std::clamp(std::log10(static_cast<double>(stream.most) + 1) - 2, 0.7, 7.0);
}

// Arrays that a kernel writes are on the right, all others on the left.
class Graph {
 public:
  explicit Graph(const json& kernels) : kernels_(kernel_boxes(kernels)), drawing_(kGraphWidth) {
    join_alike(kernels_);
    for (const GraphKernel& kernel : kernels_) {
      for (const GraphStream& stream : kernel.writes) right_[stream.buffer] = array_of(stream);
    }
    for (const GraphKernel& kernel : kernels_) {
      for (const GraphStream& stream : kernel.reads) {
        if (!right_.contains(stream.buffer)) left_[stream.buffer] = array_of(stream);
      }
    }
  }

  std::string draw(std::string_view label) {
    place_kernels();
    for (const GraphKernel& kernel : kernels_) {
      each_line(kernel, [](const GraphStream&, GraphArray& array, double at, bool) {
        array.touches.push_back(at);
      });
    }
    const double bottom = std::max({place(left_), place(right_), kernels_end_});
    for (const GraphKernel& kernel : kernels_) draw_streams(kernel);
    for (const GraphKernel& kernel : kernels_) draw_labels(kernel);
    for (const GraphKernel& kernel : kernels_) draw_kernel(kernel);
    for (const auto& [buffer, array] : left_) draw_array(array, 1);
    for (const auto& [buffer, array] : right_) draw_array(array, kGraphWidth - kArrayWidth - 1);
    return drawing_.done(bottom + 2, label);
  }

 private:
  using Arrays = std::map<std::int64_t, GraphArray>;

  static GraphArray array_of(const GraphStream& stream) {
    return {stream.name, stream.kind, {}, 0};
  }

  void place_kernels() {
    double at = 1;
    for (GraphKernel& kernel : kernels_) {
      std::size_t on_left = 0;
      for (const GraphStream& stream : kernel.reads) on_left += left_.contains(stream.buffer);
      const auto on_right =
          static_cast<double>(kernel.reads.size() + kernel.writes.size() - on_left);
      const double ports = std::max(static_cast<double>(on_left), on_right);
      const double text = kLine * static_cast<double>(1 + kernel.lines.size());
      kernel.top = at;
      kernel.height = kPadding + std::max(text, kPort * ports) + kPadding / 2;
      at += kernel.height + kBetweenKernels;
    }
    kernels_end_ = at - kBetweenKernels;
  }

  // Calls `visit` with each line's stream, its array, its height at the kernel, and whether it is
  // read.
  template <typename Visit>
  void each_line(const GraphKernel& kernel, const Visit& visit) {
    double left = kernel.top + kPadding + kPort / 2, right = left;
    for (const GraphStream& stream : kernel.reads) {
      const bool is_left = left_.contains(stream.buffer);
      double& at = is_left ? left : right;
      visit(stream, is_left ? left_[stream.buffer] : right_[stream.buffer], at, true);
      at += kPort;
    }
    for (const GraphStream& stream : kernel.writes) {
      visit(stream, right_[stream.buffer], right, false);
      right += kPort;
    }
  }

  // Places arrays near their kernels, in the order of the first kernel, without overlaps. Returns
  // where the last ends.
  static double place(Arrays& arrays) {
    std::vector<GraphArray*> order;
    for (auto& [buffer, array] : arrays) order.push_back(&array);
    std::ranges::stable_sort(order, {}, [](const GraphArray* array) { return array->touches[0]; });
    double end = 1;
    for (GraphArray* array : order) {
      array->top = std::max(end, array->touches[0] - kArrayHeight / 2);
      end = array->top + kArrayHeight + kBetweenArrays;
    }
    return end - kBetweenArrays;
  }

  void draw_streams(const GraphKernel& kernel) {
    each_line(kernel, [&](const GraphStream& stream, GraphArray& array, double at, bool is_read) {
      draw_stream(stream, array, at, is_read);
    });
  }

  void draw_stream(const GraphStream& stream, const GraphArray& array, double at, bool is_read) {
    const bool is_left = left_.contains(stream.buffer);
    const double kernel_x = is_left ? kKernelLeft : kKernelLeft + kKernelWidth;
    const double array_x = is_left ? kArrayWidth + 1 : kGraphWidth - kArrayWidth - 1;
    const double array_y = array.top + kArrayHeight / 2;
    const double head = is_left ? -6 : 6;  // of the arrow, opposite to its direction
    const double begin = is_read ? kernel_x + head : kernel_x;
    const double end = is_read ? array_x : array_x - head;
    const double bend = (begin + end) / 2;
    drawing_.path(fmt::format("M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", begin, at,
                              bend, at, bend, array_y, end, array_y),
                  "line", stream_width(stream),
                  fmt::format(R"( data-most="{}" data-least="{}")", stream.most, stream.least));
    drawing_.title(fmt::format("{} {}: {} bytes", is_read ? "reads" : "writes", stream.name,
                               grouped(stream.most)));
    const double tip = is_read ? kernel_x : array_x, tip_y = is_read ? at : array_y;
    const double back = tip + (is_read ? head : -head) * 1.4;
    drawing_.path(fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}V{:.1f}Z", tip, tip_y, back, tip_y - 4.5,
                              tip_y + 4.5),
                  "arrow", 0);
  }

  // Drawn on top of all lines.
  void draw_labels(const GraphKernel& kernel) {
    each_line(kernel, [&](const GraphStream& stream, GraphArray&, double at, bool) {
      const bool is_left = left_.contains(stream.buffer);
      const double x = is_left ? kKernelLeft - 13 : kKernelLeft + kKernelWidth + 13;
      drawing_.text(x, at - 4 - stream_width(stream) / 2,
                    size_text(static_cast<double>(stream.most)),
                    is_left ? Anchor::End : Anchor::Start, "small");
    });
  }

  void draw_kernel(const GraphKernel& kernel) {
    drawing_.rect(kKernelLeft, kernel.top, kKernelWidth, kernel.height, "box", " rx=\"5\"");
    double at = kernel.top + kPadding + 9;
    drawing_.text(kKernelLeft + 12, at, kernel.title, Anchor::Start, "strong");
    for (const std::string& line : kernel.lines) drawing_.text(kKernelLeft + 12, at += kLine, line);
  }

  void draw_array(const GraphArray& array, double left) {
    drawing_.rect(left, array.top, kArrayWidth, kArrayHeight, "box", " rx=\"18\"");
    drawing_.title(array.name);
    const double middle = left + kArrayWidth / 2;
    const bool has_kind = array.kind != array.name;
    drawing_.text(middle, array.top + (has_kind ? 16 : 22),
                  fit_to_width(array.name, kArrayCharacters), Anchor::Middle, "strong");
    if (has_kind) drawing_.text(middle, array.top + 29, array.kind, Anchor::Middle, "soft");
  }

  std::vector<GraphKernel> kernels_;
  double kernels_end_ = 0;
  Arrays left_, right_;
  SvgDrawing drawing_;
};

}  // namespace

std::string kernel_graph(const json& kernels, std::string_view label) {
  return Graph(kernels).draw(label);
}

}  // namespace cinch::driver
