// The program under construction: typed values by name, statements, fields. Productions
// (productions.cpp) extend it.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/programs/generator/generator.h"

namespace cinch::testing {

enum class Elem : std::uint8_t { F32, F64, I32, U32, I64, U64, Bool };
// `w` is the program's number of columns.
enum class Shape : std::uint8_t {
  Scalar,
  Vector,   // [n]
  Matrix,   // [rows, w]
  Rows,     // [rows, 1]
  Columns,  // [1, w]
  Bins,     // [24]
  Counted,  // [m], from the mask `keep`
};

struct TypedValue {
  std::string name;
  Elem elem = Elem::F32;
  Shape shape = Shape::Vector;
  std::string maker;        // the production or operator that made it
  bool is_mutable = false;  // `let mut` or a state
};

const char* elem_name(Elem elem);
bool is_float(Elem elem);

class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::uint64_t seed);

  // ---- randomness ----
  std::uint64_t random(std::uint64_t below);
  bool chance(int percent) { return random(100) < static_cast<std::uint64_t>(percent); }
  template <typename T>
  const T& choose(const std::vector<T>& list) {
    return list[random(list.size())];
  }
  Elem any_number() {
    return choose(
        std::vector{Elem::F32, Elem::F32, Elem::F64, Elem::I32, Elem::U32, Elem::I64, Elem::U64});
  }
  Elem any_float() { return chance(75) ? Elem::F32 : Elem::F64; }
  Elem any_int() { return choose(std::vector{Elem::I32, Elem::U32, Elem::I64, Elem::U64}); }
  Shape any_shape() {
    if (chance(8)) return choose(std::vector{Shape::Columns, Shape::Bins, Shape::Counted});
    return choose(
        std::vector{Shape::Vector, Shape::Vector, Shape::Matrix, Shape::Scalar, Shape::Rows});
  }
  /// Elements of a row of a matrix.
  int width() const { return width_; }

  // ---- values ----
  /// The name of a value of this type; makes one from others if there is none.
  std::string pick(Elem elem, Shape shape);
  /// Adds `let NAME = expression` and returns the name.
  std::string let(const std::string& expression, Elem elem, Shape shape);
  /// Registers a name that another statement defines.
  void define(std::string name, Elem elem, Shape shape, bool is_mutable = false);
  /// A value that can be assigned to: an existing one, or a new copy of one.
  std::string pick_mutable(Elem elem, Shape shape);
  /// `NAME = expression`; this production then counts as the maker of NAME.
  void assign(const std::string& name, const std::string& expression);
  /// Notes that a statement has changed NAME.
  void changed(const std::string& name);
  std::string fresh(const char* prefix) { return prefix + std::to_string(next_++); }
  void statement(const std::string& line) {
    lines_.push_back(std::string(2 * blocks_.size(), ' ') + line);
  }
  /// Opens a block; names made in it are known only in it. `header` opens it, or continues with
  /// another branch.
  void open_block(const std::string& header);
  void next_block(const std::string& header);
  void close_block();
  std::size_t num_blocks() const { return blocks_.size(); }
  /// The first vector: the gradient, or the one with which decode begins.
  const std::string& base() const { return base_; }
  /// In `decode`, which sees no states and whose draws are shared by all ranks.
  bool is_decode() const { return is_decode_; }
  /// Adds some productions that are allowed anywhere.
  void add_productions(std::uint64_t count);
  void declare(const std::string& item) { items_.push_back(item); }
  void top_level(const std::string& text) { top_.push_back(text); }
  void use(const std::string& name) { ++uses_[name]; }
  /// From now on, picked values are read, and made values made, by this production.
  void begin(const std::string& production);
  /// Makes pick choose values of this production first.
  void prefer(const std::string& maker) { preferred_maker_ = maker; }
  /// Adds a field with its entry in the wire's literal and a term that decode adds.
  void add_wire(const std::string& field, const std::string& literal, const std::string& term);
  /// Makes sure that `encode` has the counted mask `keep` and the shape Counted.
  void need_count();
  /// Wraps the program once more: "error_feedback($, decay: 0.5)", where `$` is the wrapped
  /// program.
  void wrap(const std::string& wrapper) { wrappers_.push_back(wrapper); }
  void add_finish() { has_finish_ = true; }

  /// The whole text; adds fields for the last computed values, and a decode that reads all fields.
  std::string text(const std::string& name);
  const std::map<std::string, int>& uses() const { return uses_; }
  const Neighbours& neighbours() const { return neighbours_; }

 private:
  std::string make(Elem elem, Shape shape);
  std::string any_vector();
  std::string make_vector(Elem elem);
  std::string made(const std::string& op, const std::string& expression, Elem elem, Shape shape);
  std::string picked(const TypedValue& value);
  std::string dims_of(Shape shape) const;
  void add_fields();
  std::string encode_text() const;
  std::string decode_text();
  void add_to_decode();
  void forget_values_of_block();
  std::string finish_text();
  void add_field(const TypedValue& value);
  std::string field_type(Elem elem, const std::string& dims);

  std::uint64_t state_;
  int next_ = 0;
  int width_ = 16;
  bool has_count_ = false, has_wire_count_ = false, has_finish_ = false, is_decode_ = false;
  std::string base_ = "g";
  std::vector<std::set<std::string>> blocks_;  // names known before each open one
  std::string production_, preferred_maker_;
  std::vector<std::string> wrappers_;
  std::vector<TypedValue> values_;
  std::vector<std::string> lines_, items_, top_;
  std::vector<std::string> wire_, literal_, decode_;
  std::map<std::string, int> uses_;
  Neighbours neighbours_;
};

/// One entry of the table: the operators that it uses, and the function that adds them to a
/// program.
struct Production {
  std::string name;
  void (*emit)(ProgramBuilder& b, const std::string& name);
  bool is_of_encode = false;  // declares a state or a field, or changes the compressor
  bool is_odd = false;        // of odd_productions.cpp
};
const std::vector<Production>& productions();
/// Forms that other productions also write: form_productions.cpp.
void add_form_productions(std::vector<Production>& table);
/// Forms that nobody would write: odd_productions.cpp.
void add_odd_productions(std::vector<Production>& table);

// Parts of odd productions: mixtures, indices, numbers that are known late, values that are known
// at once.

/// An expression of the type of x from x and y.
std::string mixed(ProgramBuilder& b, Elem elem, const std::string& x, const std::string& y);

/// A reduction of reductions: a number that is known many kernels later than `x`.
std::string late_number(ProgramBuilder& b, const std::string& x);

/// A value that is known at once, whatever else the program waits for.
std::string early_vector(ProgramBuilder& b, Elem elem);

/// Unique indices, as many as `dims` says.
struct Index {
  std::string name, dims;
};
Index unique_index(ProgramBuilder& b);

/// Values that may be stored at an index: as many as indices, or one.
std::string values_for(ProgramBuilder& b, const Index& index, Elem elem);

}  // namespace cinch::testing
