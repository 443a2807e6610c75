// The grammar's actions call TreeBuilder. It adds nodes to a Module, tracks the depth of each,
// folds operators by precedence, and reports what the grammar finds wrong. It knows nothing of
// Spirit.
#pragma once

#include <string_view>
#include <vector>

#include "dsl/syntax/token.h"

namespace cinch::dsl {

/// Operands and the operators between them, before precedence is applied: operands.size() is
/// operators.size() + 1.
struct OperatorChain {
  std::vector<ast::ExprId> operands;
  std::vector<Token> operators;
};

/// One element of a block: a statement or an expression, or neither after an error.
struct BlockElement {
  ast::StmtId stmt;
  ast::ExprId expr;
};

struct BlockDraft {
  Span span;
  std::vector<BlockElement> elements;
};

/// `lhs`, `lhs = rhs` or `lhs += rhs` and its kin.
struct AssignDraft {
  Span span;
  ast::ExprId lhs;
  Token op;
  ast::ExprId rhs;
};

/// Ends the parse after its reason was reported.
struct ParseStopped {};

class TreeBuilder {
 public:
  TreeBuilder(const TokenStream& stream, DiagSink& sink) : stream_(stream), sink_(sink) {}

  // Each adds a node, and throws ParseStopped if the tree gets deeper than ast::kMaxDepth.
  ast::ExprId add_expr(Span span, decltype(ast::Expr::node) node);
  ast::TypeId add_type(Span span, decltype(ast::Type::node) node);
  ast::StmtId add_stmt(ast::Stmt stmt);
  ast::BlockId add_block(const BlockDraft& draft);
  ast::IntervalId add_interval(const ast::Interval& interval);
  ast::ExprId add_literal(const Token& token);
  ast::ExprId add_name(const Token& token);
  ast::ExprId add_chain(const OperatorChain& chain);
  BlockElement add_assign(const AssignDraft& draft);
  ast::ArgId add(ast::Arg node) { return module_.args.add(std::move(node)); }
  ast::ParamId add(ast::Param node) { return module_.params.add(std::move(node)); }
  ast::WireEntryId add(ast::WireEntry node) { return module_.wire_entries.add(std::move(node)); }
  ast::FieldInitId add(ast::FieldInit node) { return module_.field_inits.add(std::move(node)); }
  ast::ItemId add(ast::Item node) { return module_.items.add(std::move(node)); }
  void add_decl(ast::Decl node) { module_.decls.push_back(module_.all_decls.add(std::move(node))); }

  ast::IdRange<ast::ExprId> list(const std::vector<ast::ExprId>& ids) {
    return module_.exprs.add_list(ids);
  }
  ast::IdRange<ast::TypeId> list(const std::vector<ast::TypeId>& ids) {
    return module_.types.add_list(ids);
  }
  ast::IdRange<ast::ArgId> list(const std::vector<ast::ArgId>& ids) {
    return module_.args.add_list(ids);
  }
  ast::IdRange<ast::ParamId> list(const std::vector<ast::ParamId>& ids) {
    return module_.params.add_list(ids);
  }
  ast::IdRange<ast::WireEntryId> list(const std::vector<ast::WireEntryId>& ids) {
    return module_.wire_entries.add_list(ids);
  }
  ast::IdRange<ast::FieldInitId> list(const std::vector<ast::FieldInitId>& ids) {
    return module_.field_inits.add_list(ids);
  }
  ast::IdRange<ast::ItemId> list(const std::vector<ast::ItemId>& ids) {
    return module_.items.add_list(ids);
  }

  Span span_of(ast::ExprId id) const { return module_[id].span; }
  Span span_of(ast::TypeId id) const { return module_[id].span; }
  /// The text of the `///` lines before a token.
  std::string doc_of(const Token& token) const;
  /// The text of a string token without quotes and with escapes resolved.
  static std::string string_value(const Token& token);
  static ast::Name name_of(const Token& token) { return {std::string(token.text), token.span}; }

  /// Reports that `expected` is missing at `found`, unless that place was reported.
  void report_expected(const Token& found, std::string_view expected);
  void report_missing_limit(const Token& while_token);

  /// Track the grammar's own recursion. enter() throws ParseStopped beyond ast::kMaxDepth.
  void enter(const Token& where);
  void leave() { --nesting_; }

  /// The first token of the parsed stream.
  const Token* stream_begin() const { return stream_.tokens.data(); }
  ast::Module take() { return std::move(module_); }

 private:
  [[noreturn]] void stop_too_deep(Span span);
  int checked_depth(Span span, int depth_of_children);
  void check_error_limit();
  std::string foreign_syntax_note(const Token& found, std::string_view expected);
  std::string named_argument_note(const Token& assign) const;
  bool closes_bracket(const Token& token) const;
  bool has_value(ast::ExprId id) const;
  int depth_of(ast::ExprId id) const { return id ? expr_depths_[id.value] : 0; }
  int depth_of(ast::TypeId id) const { return id ? type_depths_[id.value] : 0; }
  int depth_of(ast::BlockId id) const { return id ? block_depths_[id.value] : 0; }
  int depth_of(ast::IntervalId id) const;
  template <class IdType>
  int depth_of_list(ast::IdRange<IdType> range) const;
  int depth_of(ast::ArgId id) const { return depth_of(module_[id].value); }
  int depth_of(ast::FieldInitId id) const { return depth_of(module_[id].value); }
  int depth_below(const decltype(ast::Expr::node)& node) const;
  int depth_below(const decltype(ast::Stmt::node)& node) const;

  const TokenStream& stream_;
  DiagSink& sink_;
  ast::Module module_;
  std::vector<int> expr_depths_;
  std::vector<int> type_depths_;
  std::vector<int> stmt_depths_;
  std::vector<int> block_depths_;
  int nesting_ = 0;
  std::size_t num_errors_ = 0;
  // Where the last foreign word ends that a message explained: it is no unused value then.
  std::uint32_t foreign_end_ = Token::kNone;
};

/// Names of rules that have messages of their own for a failed expectation.
inline constexpr const char* kDeclarationRule = "a declaration";
inline constexpr const char* kItemRule = "an item of a compressor";

}  // namespace cinch::dsl
