// libFuzzer target: untrusted plans. An input is the text of a plan or, after a zero byte, a list
// of changes to the numbers of a sound plan. All plans are checked. Those that pass can be printed,
// and those that were read survive their own text.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/plan/check_plan.h"
#include "runtime/plan/plan.h"
#include "runtime/planner/planner.h"
#include "tests/fuzz/target.h"

namespace {

using namespace cinch;

rt::Plan build_sound_plan(std::size_t name, std::uint32_t world) {
  const auto bound = [](std::int64_t rows, std::int64_t cols) -> rt::Result<std::uint64_t> {
    return 64 + 2 * static_cast<std::uint64_t>(rows * cols);
  };
  rt::PlanRequest request;
  const auto names = rt::plan_names();
  request.plan = names[name];
  request.world = world;
  request.codecs = {{"cuts", true, false, true, bound}, {"whole", false, false, false, bound}};
  request.tensors = {{"large", 5000, 1, 0}, {"bias", 10, 1, rt::kDense}, {"matrix", 30, 4, 1}};
  request.piece_bytes = 8 << 10;
  request.lengths = rt::LengthPolicy::Exchanged;
  return std::move(*rt::build_plan(request));
}

const rt::Plan& sound_plan(std::size_t name, std::uint32_t world) {
  static std::map<std::pair<std::size_t, std::uint32_t>, rt::Plan> built;
  name %= rt::plan_names().size();
  const auto [at, is_new] = built.try_emplace({name, world});
  if (is_new) at->second = build_sound_plan(name, world);
  return at->second;
}

struct Change {
  std::uint16_t at = 0;
  std::int32_t to = 0;
};

// Sets the n-th number that it comes by, counted around.
class Changer {
 public:
  explicit Changer(const Change& change) : left_(change.at), to_(change.to) {}

  void change(rt::Plan& plan) {
    while (left_ >= 0) {
      const int before = left_;
      all(plan.tensors), all(plan.pieces), all(plan.groups), all(plan.ranks);
      if (left_ == before) return;
    }
  }

 private:
  template <typename T>
  void all(std::vector<T>& list) {
    for (T& each : list) visit(each);
  }
  template <typename Number>
  void number(Number& value) {
    if (left_-- == 0) value = static_cast<Number>(to_);
  }
  template <typename Enum>
  void choice(Enum& value, Enum last) {
    const int count = static_cast<int>(last) + 1;
    if (left_-- == 0) value = static_cast<Enum>((to_ % count + count) % count);
  }
  void visit(std::uint32_t& index) { number(index); }
  void visit(rt::PlanTensor& t) { number(t.rows), number(t.cols), number(t.codec); }
  void visit(rt::Piece& p) { number(p.tensor), number(p.first), number(p.num_elems); }
  void visit(rt::Group& g) { number(g.codec), all(g.pieces); }
  void visit(rt::Slot& s) { number(s.offset), number(s.capacity), number(s.length); }
  void visit(rt::Task& t) {
    choice(t.kind, rt::TaskKind::Synchronise);
    choice(t.from, rt::Value::Update);
    choice(t.to, rt::Value::Update);
    choice(t.exchange, rt::ExchangeKind::Broadcast);
    number(t.peer), number(t.is_sized);
    all(t.groups), all(t.reads), all(t.writes), all(t.after);
  }
  void visit(rt::RankPlan& r) { all(r.slots), all(r.tasks), number(r.wire_bytes); }

  int left_;
  std::int64_t to_;
};

rt::Plan changed_plan(const std::uint8_t* data, std::size_t size) {
  rt::Plan plan = sound_plan(size > 0 ? data[0] : 0, size > 1 ? 1 + data[1] % 4 : 1);
  for (std::size_t at = 2; at + 6 <= size; at += 6) {
    Change change;
    std::memcpy(&change.at, data + at, 2);
    std::memcpy(&change.to, data + at + 2, 4);
    Changer(change).change(plan);
  }
  return plan;
}

void show_if_sound(const rt::Plan& plan) {
  if (!rt::check_plan(plan)) return;
  for (std::uint32_t rank = 0; rank < plan.world(); ++rank) (void)rt::print_plan(plan, rank);
  (void)rt::plan_digest(plan);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 0 && data[0] == 0) {
    show_if_sound(changed_plan(data + 1, size - 1));
    return 0;
  }
  const auto read = rt::plan_from_json({reinterpret_cast<const char*>(data), size});
  if (!read) return 0;
  show_if_sound(*read);
  const std::string text = rt::plan_to_json(*read);
  const auto again = rt::plan_from_json(text);
  if (!again || rt::plan_to_json(*again) != text) std::abort();
  return 0;
}
