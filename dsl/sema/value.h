// Values of expressions during elaboration, and the names that mean them.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsl/sema/checked.h"
#include "dsl/sema/module_data.h"

namespace cinch::sema {

struct Instance;

/// What is known of an array (or a scalar) of indices.
struct IndexFacts {
  bool unique = false;          // no value occurs twice
  bool ascending = false;       // strictly
  HostExprId limit;             // every value is in [0, limit), where valid
  bool unique_in_rows = false;  // of a matrix: no value occurs twice in a row
  std::uint64_t assumed = 0;    // all of this holds if these assumptions do (IndexFactTracker)
};

enum class ValueKind : std::uint8_t {
  Error,    // a mistake was reported; everything made of it is an error, too, without a report
  Unit,     // no value: a block that ends in a statement
  Host,     // computed on the host. Int, and constant F64: exact numbers that take the type they
            // meet; F32: an f32; Bool
  Table,    // array of exact constants, which take the type of another operand
  Typed,    // an expression of the checked tree
  Payload,  // a payload variable
  Wire,     // a wire literal
  Tuple,    // several values
};

struct Value;

/// How to recompute an exact integer of the checked tree in the type that it needs.
struct Remake {
  std::function<Value(DType)> in_type;
  bool has_quotient = false;    // it is a different number beside floats
  bool holds_data = false;      // recomputing it later could give another number
  bool holds_shift = false;     // also recomputed for `as`
  bool has_fraction = false;    // a constant quotient, a float if nothing decides its type
  bool keeps_low_bits = false;  // a negative number keeps its low bits in an unsigned type
};

struct Value {
  Instance* owner = nullptr;  // Payload, Wire: the instance whose wire it has
  // Typed, is_exact. Without it, the elements are converted.
  std::shared_ptr<const Remake> remake;
  // Host or Table of whole numbers, if some were divided: its value beside floats.
  std::shared_ptr<const Value> quotient;
  // Typed, is_exact, for a choice: the constants that it may be.
  std::vector<HostExprId> chosen;
  std::vector<HostExprId> table;   // Table: constants, row by row
  std::vector<Value> elements;     // Tuple
  std::vector<bool> big_elements;  // Table: `is_big` of each
  HostExprId host;                 // Host
  std::uint32_t table_cols = 0;    // Table: 0 of a vector
  ExprId expr;                     // Typed, Wire
  VarId var;                       // Payload
  // Payload: where its wire begins among the fields and counts of `var`, because it may be a part
  std::uint32_t first_field = 0, first_count = 0;
  Span span;
  Type type;         // Typed
  IndexFacts facts;  // Typed
  ValueKind kind = ValueKind::Error;
  bool is_big = false;            // Host: a literal of 2^63 or more, held as its bits
  bool is_hex = false;            // Host, Table: only hexadecimal literals
  bool is_exact = false;          // Typed: an integer made of loop variables and literals
  std::optional<DType> declared;  // Host: the type a fn's signature gave to this whole number

  bool is_error() const { return kind == ValueKind::Error; }
  bool is_host() const { return kind == ValueKind::Host; }
  bool is_typed() const { return kind == ValueKind::Typed; }
};

/// The value of an expression whose mistake was reported.
Value error_value(Span span);
inline Value error_value(const dsl::Diagnostic& reported) {
  return error_value(reported.span);
}

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

/// What a function returns that has nothing to give: an error value, no value, or false. It is not
/// for functions that return an optional Value.
struct Nothing {
  template <class T>
    requires std::same_as<T, Value> || std::same_as<T, bool> || kIsOptional<T>
  operator T() const {
    return T{};
  }
};

inline bool is_found(const Value& value) {
  return !value.is_error();
}
template <class T>
bool is_found(const std::optional<T>& value) {
  return value.has_value();
}
inline Value found_in(Value value) {
  return value;
}
template <class T>
T found_in(std::optional<T> value) {
  return *std::move(value);  // NOLINT(bugprone-unchecked-optional-access): FOUND asked is_found
}

/// What an expression gives. If that is nothing or an error value, the caller returns Nothing:
/// const auto size = FOUND(size_of(x));
#define FOUND(...)                                                             \
  ({                                                                           \
    auto&& found_value = (__VA_ARGS__);                                        \
    if (!::cinch::sema::is_found(found_value)) return Nothing{};               \
    ::cinch::sema::found_in(std::forward<decltype(found_value)>(found_value)); \
  })

/// A value that the host computes.
Value host_value(HostExprId id, Span span);

inline Type scalar_type(DType dtype) {
  return {dtype, 0, {}};
}
inline Type vector_type(DType dtype, HostExprId size) {
  return {dtype, 1, {size, {}}};
}
inline Type matrix_type(DType dtype, HostExprId rows, HostExprId cols) {
  return {dtype, 2, {rows, cols}};
}

/// Does the number fit in an integer type?
bool fits(std::int64_t number, DType type);

/// Does it contain a literal of 2^63 or more?
bool holds_big(const Value& value);
/// Is it a quotient of whole numbers, or made of one?
bool has_quotient(const Value& value);
/// The quotient of a number of the host, if it has one.
Value as_quotient(const Value& value);
/// Is it the result of a shift, or made of one?
bool holds_shift(const Value& value);
/// Is it an integer whose only type comes from a shift count? Such an integer still takes the type
/// of another operand.
bool is_adaptable(const Value& value);

void add_element(Value& table, HostExprId number, bool is_big);
Value table_element(const Value& table, std::size_t i);
Value table_row(const Value& table, std::size_t row);

enum class SymbolKind : std::uint8_t {
  Value,     // a let, argument, constant, size: `value`
  Variable,  // let mut: `value` is a read of it
  State,     // `index`
  Param,     // run-time parameter `index`, of `value.type.dtype`
  Inner,     // a wrapped compressor
};

struct Symbol {
  SymbolKind kind = SymbolKind::Value;
  Value value;
  Span span;
  std::uint32_t index = 0;
  Instance* inner = nullptr;
  int lambda_depth = 0;        // lambdas open where it was declared
  bool is_let = false;         // a `let`, which could have been `let mut`
  const char* noun = nullptr;  // what it is, if it is not a `let`
  bool is_input = false;       // Param, State: a value that comes with each call
  bool is_word = false;        // a word that a parameter takes
  bool is_ambiguous = false;   // a word with different numbers in several parameters
  HostExprId leaf;   // loop variables: what stands for them in host expressions; Param: the
                     // value that a wrapper sets
  HostExprId given;  // a fixed run-time parameter: what sizes see, not rounded to its type
};

using Scope = std::map<std::string, Symbol, std::less<>>;

/// A parameter that a composition declares and passes on: `ratio` of `compressor x(ratio: f32 =
/// 0.01) = topk(ratio: ratio)`.
struct NamedParam {
  const FileUnit* unit = nullptr;
  const ast::Param* declared = nullptr;
};

/// A compressor of a composition before elaboration: the compressors that it wraps, and its fixed
/// parameters.
struct Spec {
  DeclRef decl;
  const ast::Compressor* node = nullptr;
  std::map<std::string, Constant> fixed;
  std::map<std::string, Span> fixed_spans;
  // By the name in the compressor: the parameters of compositions that pass it on, outermost last.
  std::map<std::string, std::vector<NamedParam>> named;
  std::map<std::string, std::unique_ptr<Spec>> inner;  // by the wrapper's parameter
  // By the name in the compressor: the name that a parameter of the program has from outside.
  // Carriers keep it where such a parameter is passed on to them.
  std::map<std::string, std::string> outside;
  // Tells the compressor's draws from those of the others. A carrier has the number of the
  // compressor for which it stands, so that shared draws are the same in both.
  std::optional<std::uint32_t> number;
  bool is_stand_in = false;
  bool is_of_clause = false;  // named in a clause `again`
  bool is_carrier = false;    // known to carry sums of its own
};

/// The field that tells decode who encoded the payload.
constexpr std::string_view kWorker = "worker";

/// One field of a wire. Its sizes use the placeholders of counts.
struct WireField {
  std::string name;
  Span span = {};
  Type type = {};
  rt::FieldSum sum = rt::FieldSum::None;
  FieldCode code = FieldCode::Plain;
  HostExprId below = {};    // packed: all numbers are below this
  std::uint32_t table = 0;  // Huffman: the field of lengths
};

/// One `count m <= bound`. `placeholder` is a host expression, Count(2^20 and up), for m in types
/// of fields.
struct WireCount {
  std::string name;
  Span span;
  HostExprId placeholder;
  HostExprId bound;
};

/// `part: inner.wire`: all fields and counts of that wire, beginning with these.
struct WirePart {
  std::string name;
  Span span;
  Instance* inner = nullptr;
  std::uint32_t first_field = 0, first_count = 0;
};

/// One compressor of the program under elaboration: the outermost or a wrapped one.
struct Instance {
  const Spec* spec = nullptr;
  std::string prefix;  // "" or "inner."
  std::uint32_t number = 0;
  Scope names;
  std::map<std::string, Instance*> inner;
  const ast::Method* methods[4] = {};
  Span method_spans[4];
  const ast::WireItem* wire_item = nullptr;
  Span again_span;
  bool has_again = false;
  bool is_matrix = false;  // its gradient is [f32; r, c]
  Span gradient_span;
  std::vector<WireField> fields;
  std::vector<WireCount> counts;
  std::vector<WirePart> parts;
  HostExprId elements;  // elements of its gradient: n, or the number that a wrapper sets
  bool has_set_elements = false;
  std::vector<Claim> claims;
  HostExprId rows;  // if valid: it works on each of this many rows
  Span rows_span, elements_span;
  bool has_states = false;
  bool has_worker_field = false;  // the last one: `worker` in decode, declared and filled unasked
  bool encodes_on_ranks = false;  // its encode is inlined in the program's encode
  std::uint32_t own_draws = 0;    // number of draws that are not shared, in the current function

  const FileUnit& unit() const { return *spec->decl.unit; }
  const ast::Module& tree() const { return unit().tree; }
  const std::string& name() const { return spec->node->name.text; }
  const ast::Method* method(ast::MethodKind kind) const {
    return methods[static_cast<std::size_t>(kind)];
  }
  Instance* only_inner() const { return inner.empty() ? nullptr : inner.begin()->second; }
};

}  // namespace cinch::sema
