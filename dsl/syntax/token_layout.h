// From raw tokens to the stream that the grammar reads: see lay_out().
#pragma once

#include "dsl/syntax/token.h"

namespace cinch::dsl {

/// Settles what a grammar of tokens cannot see, in one sweep over the raw tokens:
///   - `<` `>` around a width (`int<b>`) or the type of `bitcast` become AngleOpen, AngleClose
///   (`>>`, `>=` are cut);
///   - brackets are paired; one that is never closed is reported where it was opened and gets a
///   closing token
///     marked is_reported, so that the grammar sees balanced brackets;
///   - after the word `in`, `(` or `[` with a comma inside opens an interval and may be closed by
///   either;
///   - line ends and `;` that end statements become End (never two in a row); all others vanish.
/// Line ends count where the innermost bracket is `{` or none, except after `{ = -> : ,` and
/// operators and before `}` and `else`.
TokenStream lay_out(TokenStream raw, DiagSink& sink);

}  // namespace cinch::dsl
