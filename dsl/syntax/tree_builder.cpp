// Adds nodes for the grammar's actions, tracks depths, folds operators by precedence, and reports
// mistakes.
#include "dsl/syntax/tree_builder.h"

#include <algorithm>
#include <charconv>

#include "dsl/diag/foreign_words.h"
#include "dsl/syntax/syntax.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::dsl {

namespace {

template <class... Fns>
struct Overloaded : Fns... {
  using Fns::operator()...;
};
template <class... Fns>
Overloaded(Fns...) -> Overloaded<Fns...>;

// The text is always an operator's. Its spelling leads to the table of operators.
ast::BinaryOp binary_op(std::string_view text) {
  constexpr int kNumOps = static_cast<int>(ast::BinaryOp::Or) + 1;
  int idx = 0;
  while (idx + 1 < kNumOps && spelling(static_cast<ast::BinaryOp>(idx)) != text) ++idx;
  return static_cast<ast::BinaryOp>(idx);
}

ast::LiteralKind literal_kind(TokenKind kind) {
  switch (kind) {
    case TokenKind::Float:
      return ast::LiteralKind::Float;
    case TokenKind::KwTrue:
      return ast::LiteralKind::True;
    case TokenKind::KwFalse:
      return ast::LiteralKind::False;
    case TokenKind::KwInf:
      return ast::LiteralKind::Inf;
    case TokenKind::KwNan:
      return ast::LiteralKind::Nan;
    case TokenKind::KwPi:
      return ast::LiteralKind::Pi;
    default:
      return ast::LiteralKind::Integer;
  }
}

}  // namespace

// ---- nodes

ast::ExprId TreeBuilder::add_expr(Span span, decltype(ast::Expr::node) node) {
  expr_depths_.push_back(checked_depth(span, depth_below(node)));
  return module_.exprs.add({span, std::move(node)});
}

ast::TypeId TreeBuilder::add_type(Span span, decltype(ast::Type::node) node) {
  const int below =
      std::visit(Overloaded{[&](const ast::ScalarType& t) { return depth_of(t.width); },
                            [&](const ast::ArrayType& t) {
                              return std::max(depth_of(t.element), depth_of_list(t.dims));
                            },
                            [&](const ast::TupleType& t) { return depth_of_list(t.elements); },
                            [](const ast::EnumType&) { return 0; },
                            [](const ast::CompressorType&) { return 0; }},
                 node);
  type_depths_.push_back(checked_depth(span, below));
  return module_.types.add({span, std::move(node)});
}

ast::StmtId TreeBuilder::add_stmt(ast::Stmt stmt) {
  stmt_depths_.push_back(checked_depth(stmt.span, depth_below(stmt.node)));
  return module_.stmts.add(std::move(stmt));
}

ast::IntervalId TreeBuilder::add_interval(const ast::Interval& interval) {
  return module_.intervals.add(interval);
}

ast::ExprId TreeBuilder::add_literal(const Token& token) {
  ast::Literal literal{literal_kind(token.kind), 0, 0, std::string(token.text)};
  std::string_view digits = token.text;
  if (token.kind == TokenKind::Integer) {
    const bool is_hex = digits.starts_with("0x");
    if (is_hex) digits.remove_prefix(2);
    std::from_chars(digits.data(), digits.data() + digits.size(), literal.integer,
                    is_hex ? 16 : 10);
  } else if (token.kind == TokenKind::Float) {
    // from_chars stores nothing for numbers below the smallest double, whose nearest double is 0.
    std::from_chars(digits.data(), digits.data() + digits.size(), literal.number);
  }
  return add_expr(token.span, std::move(literal));
}

ast::ExprId TreeBuilder::add_name(const Token& token) {
  return add_expr(token.span, ast::NameRef{name_of(token)});
}

ast::ExprId TreeBuilder::add_chain(const OperatorChain& chain) {
  std::vector<ast::ExprId> operands{chain.operands.front()};
  std::vector<Token> pending;
  const auto fold = [&] {
    const Token op = pending.back();
    pending.pop_back();
    const ast::ExprId rhs = operands.back();
    operands.pop_back();
    const ast::ExprId lhs = operands.back();
    const Span span = join(span_of(lhs), span_of(rhs));
    operands.back() = add_expr(span, ast::Binary{binary_op(op.text), op.span, lhs, rhs});
  };
  for (std::size_t i = 0; i < chain.operators.size(); ++i) {
    const int level = precedence(binary_op(chain.operators[i].text));
    while (!pending.empty() && precedence(binary_op(pending.back().text)) >= level) fold();
    pending.push_back(chain.operators[i]);
    operands.push_back(chain.operands[i + 1]);
  }
  while (!pending.empty()) fold();
  return operands.front();
}

BlockElement TreeBuilder::add_assign(const AssignDraft& draft) {
  if (!draft.rhs) return {{}, draft.lhs};
  ast::Assign made{{}, {}, draft.rhs, draft.op.kind != TokenKind::Assign, ast::BinaryOp::Add};
  if (made.is_update) made.op = binary_op(draft.op.text.substr(0, draft.op.text.size() - 1));
  const auto& target = module_[draft.lhs].node;
  const auto* index = std::get_if<ast::Index>(&target);
  if (index) made.indices = index->indices;
  const auto* name = std::get_if<ast::NameRef>(index ? &module_[index->base].node : &target);
  if (name) {
    made.target = name->name;
    return {add_stmt({draft.span, std::move(made)}), {}};
  }
  sink_.report<DiagKind::CannotAssign>(span_of(draft.lhs));
  check_error_limit();
  return {};
}

// ---- blocks

bool TreeBuilder::has_value(ast::ExprId id) const {
  const auto& node = module_[id].node;
  if (const auto* block = std::get_if<ast::BlockExpr>(&node)) {
    return module_[block->block].value.has_value();
  }
  const auto* choice = std::get_if<ast::If>(&node);
  if (!choice) return true;
  return choice->otherwise && module_[choice->then].value && has_value(choice->otherwise);
}

ast::BlockId TreeBuilder::add_block(const BlockDraft& draft) {
  ast::Block block{draft.span, {}, {}};
  std::vector<ast::StmtId> stmts;
  int below = 0;
  for (const BlockElement& element : draft.elements) {
    const bool is_last = &element == &draft.elements.back();
    ast::StmtId stmt = element.stmt;
    if (element.expr) {
      const auto& node = module_[element.expr].node;
      const bool may_stand =
          std::holds_alternative<ast::If>(node) || std::holds_alternative<ast::BlockExpr>(node);
      if (is_last && has_value(element.expr)) {
        block.value = element.expr;
        below = std::max(below, depth_of(element.expr));
      } else if (may_stand) {
        stmt = add_stmt({span_of(element.expr), ast::ExprStmt{element.expr}});
      } else if (foreign_end_ != span_of(element.expr).end) {
        auto& diag = sink_.report<DiagKind::UnusedExpression>(span_of(element.expr));
        if (std::holds_alternative<ast::Unary>(module_[element.expr].node)) {
          diag.note("a line that begins with an operator does not continue the line before it");
        }
        check_error_limit();
      }
    }
    if (!stmt) continue;
    stmts.push_back(stmt);
    below = std::max(below, stmt_depths_[stmt.value]);
  }
  block.stmts = module_.stmts.add_list(stmts);
  block_depths_.push_back(checked_depth(draft.span, below));
  return module_.blocks.add(block);
}

// ---- depth

int TreeBuilder::depth_of(ast::IntervalId id) const {
  return std::max(depth_of(module_[id].lo), depth_of(module_[id].hi));
}

template <class IdType>
int TreeBuilder::depth_of_list(ast::IdRange<IdType> range) const {
  int depth = 0;
  for (const IdType id : module_.list(range)) depth = std::max(depth, depth_of(id));
  return depth;
}

int TreeBuilder::depth_below(const decltype(ast::Expr::node)& node) const {
  return std::visit(
      Overloaded{
          [](const ast::ErrorExpr&) { return 0; }, [](const ast::Literal&) { return 0; },
          [](const ast::NameRef&) { return 0; },
          [&](const ast::FieldRef& e) { return depth_of(e.base); },
          [&](const ast::Call& e) { return std::max(depth_of(e.callee), depth_of_list(e.args)); },
          [&](const ast::Bitcast& e) { return std::max(depth_of(e.type), depth_of(e.operand)); },
          [&](const ast::Index& e) { return std::max(depth_of(e.base), depth_of_list(e.indices)); },
          [&](const ast::Range& e) { return std::max(depth_of(e.lo), depth_of(e.hi)); },
          [&](const ast::Unary& e) { return depth_of(e.operand); },
          [&](const ast::Binary& e) { return std::max(depth_of(e.lhs), depth_of(e.rhs)); },
          [&](const ast::Cast& e) { return std::max(depth_of(e.operand), depth_of(e.type)); },
          [&](const ast::Lambda& e) { return depth_of(e.body); },
          [&](const ast::ArrayLiteral& e) { return depth_of_list(e.elements); },
          [&](const ast::Tuple& e) { return depth_of_list(e.elements); },
          [&](const ast::WireLiteral& e) { return depth_of_list(e.fields); },
          [&](const ast::If& e) {
            return std::max({depth_of(e.condition), depth_of(e.then), depth_of(e.otherwise)});
          },
          [&](const ast::BlockExpr& e) { return depth_of(e.block); },
          [&](const ast::Paren& e) { return depth_of(e.inner); }},
      node);
}

int TreeBuilder::depth_below(const decltype(ast::Stmt::node)& node) const {
  return std::visit(
      Overloaded{[&](const ast::Let& s) { return depth_of(s.value); },
                 [&](const ast::LetTuple& s) { return depth_of(s.value); },
                 [&](const ast::Assign& s) {
                   return std::max(depth_of_list(s.indices), depth_of(s.value));
                 },
                 [&](const ast::For& s) { return std::max(depth_of(s.bounds), depth_of(s.body)); },
                 [&](const ast::While& s) {
                   return std::max({depth_of(s.condition), depth_of(s.limit), depth_of(s.body)});
                 },
                 [&](const ast::Assert& s) { return depth_of(s.condition); },
                 [&](const ast::ExprStmt& s) { return depth_of(s.expr); }},
      node);
}

int TreeBuilder::checked_depth(Span span, int depth_of_children) {
  if (depth_of_children >= ast::kMaxDepth) stop_too_deep(span);
  return depth_of_children + 1;
}

void TreeBuilder::enter(const Token& where) {
  if (++nesting_ > ast::kMaxDepth) stop_too_deep(where.span);
}

void TreeBuilder::stop_too_deep(Span span) {
  // Brackets that are too deep were reported when they were paired.
  const auto is_too_deep = [](const Diagnostic& d) { return d.kind == DiagKind::TooDeep; };
  if (std::none_of(sink_.all().begin(), sink_.all().end(), is_too_deep)) {
    sink_.report<DiagKind::TooDeep>(span, ast::kMaxDepth);
  }
  throw ParseStopped{};
}

// ---- texts and reports

std::string TreeBuilder::doc_of(const Token& token) const {
  return token.doc == Token::kNone ? std::string() : stream_.docs[token.doc];
}

std::string TreeBuilder::string_value(const Token& token) {
  std::string value;
  for (std::size_t i = 1; i + 1 < token.text.size(); ++i) {
    char c = token.text[i];
    if (c == '\\') {
      c = token.text[++i];
      if (c == 'n') c = '\n';
      if (c == 't') c = '\t';
    }
    value += c;
  }
  return value;
}

// What is written here instead of a sign or word of Python; "" for other mistakes.
std::string TreeBuilder::foreign_syntax_note(const Token& found, std::string_view expected) {
  const auto note = [](std::string_view word) { return foreign_note(ForeignPlace::Syntax, word); };
  if (&found == stream_begin()) return note(found.text);
  const Token& last = (&found)[-1];
  const bool is_last = found.kind == TokenKind::EndOfFile;
  const bool is_entry = expected.starts_with("`,` or ");
  if (found.kind == TokenKind::Star && last.kind == TokenKind::Star) return note("**");
  if (found.kind == TokenKind::Dot && !is_last && (&found)[1].kind == TokenKind::Integer)
    return note(".5");
  if (found.kind == TokenKind::Assign && is_entry && last.kind == TokenKind::Name)
    return named_argument_note(found);
  if (found.kind == TokenKind::Colon) {
    if (last.kind == TokenKind::LBracket || expected == "`,` or `]`") return note("[:]");
    const bool is_let = &last != stream_begin() && ((&last)[-1].kind == TokenKind::KwLet ||
                                                    (&last)[-1].kind == TokenKind::KwMut);
    if (is_let) return note("let:");
    if (expected.starts_with("a block")) return note("if:");
  }
  if (expected.starts_with("`..`")) return note("range");
  if (last.kind == TokenKind::Name) {
    std::string of_last = note(last.text);
    if (of_last.empty()) of_last = foreign_note(ForeignPlace::Name, last.text);
    if (!of_last.empty()) {
      foreign_end_ = last.span.end;
      return of_last;
    }
  }
  return note(found.text);
}

// `axis: 0` for `axis=0`.
std::string TreeBuilder::named_argument_note(const Token& assign) const {
  const Token& name = (&assign)[-1];
  const Token* end = &assign + 1;
  while (end->kind != TokenKind::Comma && end->kind != TokenKind::End &&
         end->kind != TokenKind::EndOfFile && !closes_bracket(*end)) {
    end = end->partner == Token::kNone ? end + 1 : stream_begin() + end->partner + 1;
  }
  // Another name, such as `axis` for `dim`. Parameters of compressors may have the others.
  std::string of_name = foreign_note(ForeignPlace::Argument, name.text);
  if (of_name.find(": ") != std::string::npos) return of_name;
  if (end == &assign + 1) return "";
  const char* const begin = assign.text.data() + assign.text.size();
  const std::string_view last = end[-1].text;
  std::string value(begin, static_cast<std::size_t>(last.data() + last.size() - begin));
  value.erase(0, value.find_first_not_of(' '));
  return foreign_note(ForeignPlace::Syntax, "name=", std::string(name.text) + ": " + value);
}

bool TreeBuilder::closes_bracket(const Token& token) const {
  return token.partner != Token::kNone && stream_begin() + token.partner < &token;
}

// Collects one mistake more than parse() passes on, which tells parse() that there were too many.
void TreeBuilder::check_error_limit() {
  if (++num_errors_ > kMaxSyntaxErrors) throw ParseStopped{};
}

void TreeBuilder::report_expected(const Token& found, std::string_view expected) {
  static const std::vector<std::string_view> kDeclarations{"import", "const", "fn", "extern",
                                                           "compressor"};
  static const std::vector<std::string_view> kItems{"const",  "size", "set",    "state",
                                                    "input",  "wire", "encode", "decode",
                                                    "finish", "sync", "claims", "again"};
  if (found.is_reported) return;
  const std::string foreign = foreign_syntax_note(found, expected);
  const auto explained = [&](Diagnostic& diag) -> Diagnostic& {
    return foreign.empty() ? diag : diag.note(foreign);
  };
  if (found.kind == TokenKind::RBrace && found.starts_line && &found != stream_begin()) {
    // A token that is missing before a `}` on the next line is reported at the end of this line.
    const Span last = (&found)[-1].span;
    sink_.report<DiagKind::Expected>(Span{last.file, last.end, last.end}, expected,
                                     "the end of the line");
  } else if (expected == kDeclarationRule) {
    explained(sink_.report<DiagKind::UnknownDeclaration>(found.span, describe(found)))
        .suggest(found.span, std::string(nearest_name(found.text, kDeclarations)));
  } else if (expected == kItemRule) {
    explained(sink_.report<DiagKind::UnknownItem>(found.span, describe(found)))
        .suggest(found.span, std::string(nearest_name(found.text, kItems)));
  } else {
    explained(sink_.report<DiagKind::Expected>(found.span, expected, describe(found)));
  }
  check_error_limit();
}

void TreeBuilder::report_missing_limit(const Token& while_token) {
  sink_.report<DiagKind::LoopWithoutLimit>(while_token.span);
  check_error_limit();
}

}  // namespace cinch::dsl
