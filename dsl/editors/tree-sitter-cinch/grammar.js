// Grammar of Cinch for tree-sitter, after docs/language.md and dsl/syntax/grammar*.cpp.
//
// A line end is a token only where a statement, item or declaration may end; elsewhere it is a blank.
// So lines go on inside `(` and `[`, and after an operator or a comma, without a custom scanner.

const PREC = {
  lambda: -1,
  or: 1,
  and: 2,
  compare: 3,
  bit_or: 4,
  bit_xor: 5,
  bit_and: 6,
  shift: 7,
  add: 8,
  multiply: 9,
  cast: 10,
  prefix: 11,
  suffix: 12,
};

const BINARY = [
  [PREC.or, ['||']],
  [PREC.and, ['&&']],
  [PREC.compare, ['==', '!=', '<', '<=', '>', '>=']],
  [PREC.bit_or, ['|']],
  [PREC.bit_xor, ['^']],
  [PREC.bit_and, ['&']],
  [PREC.shift, ['<<', '>>']],
  [PREC.add, ['+', '-']],
  [PREC.multiply, ['*', '/', '%', '@']],
];

// Takes precedence over a comment, which could otherwise begin with the line end as a blank.
const NEWLINE = token(prec(2, '\n'));
const TERMINATOR = choice(NEWLINE, ';');

// One or more, separated by commas, with an optional last comma.
function commaList(rule) {
  return seq(rule, repeat(seq(',', rule)), optional(','));
}

// Statements, items or declarations, separated by line ends or `;`.
function lines(rule) {
  return seq(
    repeat(';'),
    optional(seq(rule, repeat(seq(repeat1(TERMINATOR), rule)), repeat(TERMINATOR))),
  );
}

module.exports = grammar({
  name: 'cinch',

  extras: $ => [/[\s\uFEFF]/, $.doc_comment, $.line_comment, $.block_comment],
  word: $ => $.identifier,
  conflicts: $ => [
    [$.if_expression],
    [$.interval, $.tuple],
    [$.interval, $.array],
  ],

  rules: {
    source_file: $ => lines($._declaration),

    // ---- declarations

    _declaration: $ => choice($.import, $.constant, $.function, $.extern_function, $.compressor, $.composition),

    import: $ => seq('import', choice(field('file', $.string), field('path', $.path))),
    path: $ => seq($.identifier, repeat(seq('.', $.identifier))),
    constant: $ => seq('const', field('name', $.identifier), '=', field('value', $._expression)),
    function: $ => seq('fn', $._signature, field('body', $.block)),
    extern_function: $ => seq('extern', 'fn', $._signature, 'from', field('header', $.string)),
    _signature: $ =>
      seq(field('name', $.identifier), field('parameters', $.parameters), '->', field('result', $._type)),
    compressor: $ =>
      seq('compressor', field('name', $.identifier), optional(field('parameters', $.parameters)),
        field('body', $.compressor_body)),
    composition: $ =>
      seq('compressor', field('name', $.identifier), optional(field('parameters', $.parameters)), '=',
        field('value', $._expression)),

    parameters: $ => seq('(', optional(commaList($.parameter)), ')'),
    parameter: $ =>
      seq(optional('const'), field('name', $.identifier), optional(seq(':', field('type', $._type))),
        optional(seq('=', field('default', $._expression))), optional(seq('in', field('range', $._range)))),

    _range: $ => choice($.interval, $.range),
    interval: $ =>
      prec.dynamic(1, seq(choice('(', '['), $._expression, ',', $._expression, choice(')', ']'))),
    range: $ => seq($._expression, choice('..', '..='), $._expression),

    // ---- items of compressors

    compressor_body: $ => seq('{', lines($._item), '}'),
    _item: $ => choice($.constant, $.size, $.set, $.state, $.input, $.wire, $.method, $.claims, $.again),

    size: $ => seq('size', field('name', $.identifier), '=', field('value', $._expression)),
    set: $ => seq('set', field('target', $.path), '=', field('value', $._expression)),
    state: $ =>
      seq('state', field('name', $.identifier), ':', field('type', $._type), '=', field('initial', $._expression)),
    input: $ =>
      seq('input', field('name', $.identifier), ':', field('type', $._type),
        optional(seq('in', field('range', $.interval)))),

    wire: $ => seq('wire', choice($.wire_body, seq(field('inner', $.identifier), '.', 'wire'))),
    wire_body: $ => seq('{', optional(commaList(choice($.count, $.field))), '}'),
    count: $ => seq('count', field('name', $.identifier), '<=', field('bound', $._expression)),
    field: $ =>
      seq(
        // `count` is a keyword only before a name.
        field('name', choice($.identifier, alias('count', $.identifier))),
        ':',
        choice(field('type', $._type), seq(field('inner', $.identifier), '.', 'wire')),
        optional($.packing),
        optional(seq('by', choice('sum', 'min', 'max'))),
      ),
    packing: $ =>
      choice(
        seq(choice(seq('elias', optional('ascending')), 'ascending'), 'below', $._expression),
        seq('huffman', '(', field('table', $.identifier), ')'),
      ),

    method: $ =>
      seq(field('name', choice('encode', 'decode', 'finish', 'sync')), field('parameters', $.parameters),
        field('body', $.block)),
    claims: $ => seq('claims', $._expression, repeat(seq(',', $._expression))),
    again: $ => seq('again', optional('shared'), field('carrier', $._expression)),

    // ---- types

    _type: $ => choice($.scalar_type, $.sized_type, $.array_type, $.tuple_type, $.enum_type, $.compressor_type),
    scalar_type: $ => $.identifier,
    sized_type: $ =>
      seq(choice('int', 'uint'), '<', field('width', choice($.identifier, $.integer, $.parenthesized_expression)), '>'),
    array_type: $ =>
      seq('[', field('element', $._type), ';',
        choice('..', seq($._expression, repeat(seq(',', $._expression)))), ']'),
    tuple_type: $ => seq('(', $._type, repeat1(seq(',', $._type)), ')'),
    enum_type: $ => seq('{', commaList($.identifier), '}'),
    compressor_type: $ => 'compressor',

    // ---- statements

    block: $ => seq('{', lines($._statement), '}'),
    _statement: $ =>
      choice($.let, $.for, $.while, $.assert, $.assignment, $._expression),

    let: $ =>
      seq('let', choice(seq(optional('mut'), field('name', $.identifier)), field('names', $.names)), '=',
        field('value', $._expression)),
    names: $ => seq('(', $.identifier, repeat1(seq(',', $.identifier)), ')'),
    assignment: $ =>
      seq(field('target', $._expression), choice('=', '+=', '-=', '*=', '/=', '%=', '&=', '^=', '|='),
        field('value', $._expression)),
    for: $ => seq('for', field('variable', $.identifier), 'in', field('bounds', $._range), field('body', $.block)),
    while: $ =>
      seq('while', field('condition', $._expression), ',', 'at_most', ':', field('limit', $._expression),
        field('body', $.block)),
    assert: $ => seq('assert', field('condition', $._expression), ',', field('message', $.string)),

    // ---- expressions

    _expression: $ =>
      choice(
        $.integer, $.float, $.constant_word, $.identifier, $.parenthesized_expression, $.tuple, $.array,
        $.lambda, $.if_expression, $.block, $.wire_literal, $.bitcast, $.unary, $.binary, $.cast, $.call,
        $.index, $.member,
      ),

    constant_word: $ => choice('true', 'false', 'inf', 'nan', 'pi'),
    parenthesized_expression: $ => seq('(', $._expression, ')'),
    tuple: $ => seq('(', $._expression, repeat1(seq(',', $._expression)), ')'),
    array: $ => seq('[', commaList($._expression), ']'),
    lambda: $ =>
      prec.right(PREC.lambda,
        seq('|', field('parameter', $.identifier), repeat(seq(',', field('parameter', $.identifier))), '|',
          field('body', $._expression))),
    if_expression: $ =>
      seq('if', field('condition', $._expression), field('then', $.block),
        optional(seq(optional(NEWLINE), 'else', field('otherwise', choice($.block, $.if_expression))))),
    wire_literal: $ => seq('wire', '{', optional(commaList($.field_value)), '}'),
    field_value: $ => seq(field('name', $.identifier), optional(seq(':', field('value', $._expression)))),
    bitcast: $ => seq('bitcast', '<', field('type', $._type), '>', '(', field('operand', $._expression), ')'),

    unary: $ => prec(PREC.prefix, seq(choice('-', '!'), field('operand', $._expression))),
    binary: $ =>
      choice(...BINARY.map(([level, operators]) =>
        prec.left(level, seq(field('left', $._expression), field('operator', choice(...operators)),
          field('right', $._expression))))),
    cast: $ => prec.left(PREC.cast, seq(field('operand', $._expression), 'as', field('type', $._type))),

    call: $ => prec(PREC.suffix, seq(field('function', $._expression), field('arguments', $.arguments))),
    arguments: $ => seq('(', optional(commaList($.argument)), ')'),
    argument: $ => seq(optional(seq(field('label', $.identifier), ':')), field('value', $._expression)),
    index: $ => prec(PREC.suffix, seq(field('base', $._expression), '[', commaList($._index), ']')),
    _index: $ => choice($._expression, $.slice),
    slice: $ =>
      choice(
        seq($._expression, choice('..', '..='), optional($._expression)),
        seq(choice('..', '..='), $._expression),
        '..',
      ),
    // Reserved words may be names of fields: `inner.wire`.
    member: $ =>
      prec(PREC.suffix, seq(field('base', $._expression), '.', field('name', choice($.identifier, alias('wire', $.identifier))))),

    // ---- tokens

    identifier: $ => /[A-Za-z_][A-Za-z0-9_]*/,
    integer: $ => /0x[0-9a-fA-F]+|[0-9]+/,
    float: $ => /[0-9]+(\.[0-9]+([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)/,
    string: $ => /"([^"\\\n]|\\[^\n])*"/,
    doc_comment: $ => token(prec(1, /\/\/\/([^\/\n][^\n]*)?/)),
    line_comment: $ => token(prec(0, /\/\/[^\n]*/)),
    block_comment: $ => token(seq('/*', /[^*]*\*+([^/*][^*]*\*+)*/, '/')),
  },
});
