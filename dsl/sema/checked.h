// The checked tree of one compressor. Names are resolved and constant parameters are bound.
// Functions, captures of lambdas and wrapped compressors are inlined. Every expression has a type
// and a size, and every silent conversion is explicit. Nodes are in flat vectors and have typed
// ids. Lowering still turns mutable variables and states into SSA, lambdas over elements into maps,
// and operators into operators of the IR.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsl/sema/builtins.h"
#include "dsl/sema/claims.h"
#include "dsl/source/source.h"
#include "runtime/core/ids.h"
#include "runtime/core/numbers/scalar_eval.h"
#include "runtime/core/program_info.h"

namespace cinch::sema {

using dsl::Span;

using ExprId = Id<struct CheckedExprTag>;
using StmtId = Id<struct CheckedStmtTag>;
using VarId = Id<struct CheckedVarTag>;
using Type = rt::ArrayType;
using dsl::Span;

enum class ExprKind : std::uint8_t {
  Literal,   // bits: f64 bits for floats, i64 bits for integers and bool; the type is final (no
             // exact numbers are left)
  Table,     // array literal [a, b, c] of literals: args are scalar exprs of the element type
  HostSize,  // `size`: a host expression (n, sizes, world, step, worker, constant expressions of
             // them) as a scalar of the type
  Param,     // index into ProgramInfo::params
  Var,       // var: a let, a lambda parameter, a loop variable (i64), an inlined fn's argument
  State,     // index into ProgramInfo::states: its current value (assignments so far are seen)
  Gradient,  // the input of encode, finish or sync of the *outermost* body (inlined inner bodies
             // use Var)
  Field,     // index: field of the payload var `var` (decode's own payload, or that of an inlined
             // inner.encode)
  Scalar,    // scalar_op over args, shapes broadcast; args already have the operand type
  Convert,   // `as`, or a silent widening: to the type's dtype
  Bitcast,
  CallExtern,  // index: entry of ProgramInfo::externs; args have its parameters' types, and their
               // shapes broadcast
  Builtin,     // builtin over args (by the row's parameter order; absent optional args have invalid
               // ids) and attributes
  Index,       // args[0][args[1]]: scalar index or 1-D index array; rows of a matrix. size, where
               // valid: the index holds places of column numbers, which are below it
  Slice,       // args[0][size .. size2): host expressions, or (args[1], args[2]) scalars when not
               // host-computable
  Lambda,      // only as an argument of a builtin: params, body in args[0]
  Block,       // stmts, then value in args[0] (absent: unit)
  If,          // args: condition (bool scalar), then, else (else may be absent for unit)
  WireLiteral,  // args: one per wire field, in declaration order; the value of encode's block (or
                // of an inlined encode)
};

// Which of several values at one place a scatter keeps. Only: indices do not repeat.
enum class Keep : std::uint8_t { Only, First, Last };

struct Expr {
  ExprKind kind;
  Type type;  // meaningless for unit blocks and WireLiteral
  Span span;
  std::vector<ExprId> args;
  std::vector<StmtId> stmts;  // Block
  std::vector<VarId> params;  // Lambda
  ScalarOp scalar_op = ScalarOp::add;
  BuiltinId builtin{};
  std::uint64_t bits = 0;  // Literal
  // Param, State, Field, CallExtern. Builtin nonzero/filter: entry of ProgramInfo::counts that its
  // result has. A shared draw: the inlined method that numbers it, from 1.
  std::uint32_t index = 0;
  VarId var;  // Var, Field
  // HostSize, Slice. Builtin: its size argument (k of top_k, m of random, size of scatter, limit,
  // bins, bits of pack). random_index: its `size:`. unpack takes the width from the result type.
  HostExprId size, size2;
  // Collectives of groups: how many ranks a group has, and how far apart their numbers are.
  // Invalid: all ranks.
  HostExprId group, stride;
  std::optional<DType> travels_in;  // allreduce, reduce_scatter: `in:`
  // Attributes of Builtin
  std::int8_t axis = -1;  // -1: none
  bool exclusive = false, descending = false, shared = false;
  bool is_mean = false;    // allreduce: the sum divided by world (scalar_op is add); else scalar_op
                           // add, min or max
  Keep keep = Keep::Only;  // scatter
  std::optional<std::uint32_t> stream;  // `stream: i`, as 2^31 + i; replaces site
  // Identifies a random draw: instance << 16 | number of the call site. Call sites count in source
  // order per compressor instance, separately for shared draws, and start again in each inlined
  // method. Lowering adds the draws of loops. finish counts from 0x8000, state inits from 0xc000.
  // An encode inlined in finish counts the draws that it shares only there from kOwnerSites.
  std::uint32_t site = 0;
  // Facts that make checks of stores and gathers unnecessary
  bool proved_unique = false;     // Builtin scatter, scatter_add etc.: indices do not repeat
  bool proved_in_bounds = false;  // Index, scatter: indices below the size
};

// Arguments of Builtin expressions. Sizes of results are in Expr::type, never among the args.
//   map: arrays (or scalars) …, Lambda last
//   reduce: x, init, Lambda, [where]
//   sum prod mean var std min max argmax argmin any all count norm*: x, [where]
//   dot: x, y, [where]
//   scan: x, init, Lambda
//   cumsum cummax: x (axis, exclusive: attributes)
//   filter: x, where
//   nonzero: mask (limit: `size`; count entry: `index`)
//   sort argsort: x
//   sort_by_key: keys, values
//   top_k kth_largest: x (k: `size`)
//   median quantile, of the rows of a matrix: x, where (q: `size`, an f64)
//   searchsorted: sorted, x (side: `keep`, first is left)
//   histogram: x, [where]
//   fill: v
//   len reshape transpose chunk unchunk orthonormalize hadamard: x
//   pack: x (bits: `size`, a constant)
//   unpack: x (bits: those of the result's dtype)
//   concat: x, y, … (axis 1: matrices, side by side)
//   slice: x (begin: `size`), or x, begin if the host cannot compute it
//   scatter scatter_add …: v, at
//   matmul: a, b
//   iota random random_bits normal: none
//   random_index: none (`size:` argument: `size`)
//   stochastic_round: x
//   collectives: x (root of broadcast: `index`, or a second operand if it is not constant; receiver
//   of sendrecv: a second operand; for counted
//     arrays, `index` is the count entry of the result and `size` its most)

enum class StmtKind : std::uint8_t {
  Let,            // var = expr
  Assign,         // var = expr (mutable)
  AssignState,    // state `index` = expr
  AssignIndexed,  // var or state (is_state): target[expr2] = expr; same proofs as scatter in
                  // proved_*; is_by_element: expr2 numbers the elements of a matrix, row by row
  For,            // var from size to size2 (host) : body block in expr
  While,          // cond expr2, at_most size, body block in expr
  Expr,           // an expression for its statements (if, block)
  Assert,         // expr2 (bool scalar), text
  LetPayload,     // var (a payload variable) = expr, an inlined inner.encode: a Block ending in
                  // WireLiteral
  CheckHost,  // size (Bool host expression) must hold before launch; text says what (unproved equal
              // sizes, k <= n …)
};

struct Stmt {
  StmtKind kind;
  Span span;
  VarId var;
  // AssignState, AssignIndexed with is_state. For, While: how many methods were inlined before;
  // those with larger numbers are inlined within the loop.
  std::uint32_t index = 0;
  bool is_state = false, is_by_element = false;
  ExprId expr, expr2;
  HostExprId size, size2;
  std::string text;
  bool proved_unique = false, proved_in_bounds = false;
};

inline constexpr std::uint32_t kOwnerSites = 0xa000;
inline constexpr std::uint32_t kNoCount = 0xffffffffu;

struct Var {
  std::string name;
  Type type;
  bool is_mutable = false;
  bool is_payload = false;        // then wire/field_types describe its Field
  std::vector<Type> field_types;  // payload vars: types in this body's counts
  // payload vars: ProgramInfo::counts entry of each wire count; kNoCount if encode filled it with
  // an array whose size the host knows
  std::vector<std::uint32_t> field_counts;
  std::vector<HostExprId> count_sizes;  // payload vars: each wire count as a host expression
  Span span;
};

// How a field's numbers are packed into words; see docs/payload.md.
enum class FieldCode : std::uint8_t {
  Plain,           // not packed: elements of the field's type
  Ascending,       // Rice codes of the gaps between ascending indices
  Elias,           // Elias delta codes
  EliasAscending,  // Elias delta codes of the gaps
  Huffman,         // canonical codes of lengths that another field holds
};
constexpr bool ascends(FieldCode code) {
  return code == FieldCode::Ascending || code == FieldCode::EliasAscending;
}

// A wire field as the program sees it. If it is packed, ProgramInfo's field of the same number
// holds words, and `words` is the wire's count of them.
struct CheckedField {
  Type type;
  FieldCode code = FieldCode::Plain;
  HostExprId below;       // packed: all numbers are below this
  HostExprId most;        // packed: the most numbers, as a size without counts
  HostExprId most_unary;  // packed, not Huffman: the most bits of the unary parts of all codes
  std::uint32_t words = 0;
  std::uint32_t table = 0;  // Huffman: the field of lengths
};

// One body. Encode ends in a WireLiteral (through blocks); decode, finish and sync end in an array.
struct Body {
  ExprId root;     // a Block
  VarId payload;   // decode: its payload variable
  VarId gradient;  // encode, finish, sync: unused if the body reads Gradient directly
};

struct CheckedProgram {
  rt::ProgramInfo info;
  std::vector<Expr> exprs;
  std::vector<Stmt> stmts;
  std::vector<Var> vars;
  std::vector<CheckedField> fields;  // one for each field of the wire
  std::optional<Body> encode, decode, finish, sync;
  std::vector<ExprId>
      state_inits;  // one per ProgramInfo::states; in terms of constants, sizes and shared draws
  std::vector<Claim> claims;  // of the outermost compressor
  // One per ProgramInfo::params: its value if nobody binds it; none if somebody must.
  std::vector<std::optional<double>> declared_defaults;
  // The text of info.carrier if nobody binds anything.
  std::string declared_carrier;
  Span name_span;
};

}  // namespace cinch::sema
