"""Colours for Cinch programs: words as docs/language/files.md and grammar.md list them."""
from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

RESERVED = ("import", "const", "fn", "compressor", "extern", "wire", "let", "mut", "for", "while", "if", "else", "assert", "as")
ITEMS = ("size", "set", "state", "input", "encode", "decode", "finish", "sync", "claims", "count")
FIELDS = ("by", "ascending", "elias", "huffman", "below", "from", "in", "count")


class CinchLexer(RegexLexer):
    name = "Cinch"
    aliases = ["cinch"]
    filenames = ["*.cinch"]

    tokens = {
        "root": [
            # An item begins a line or follows a bracket; the same word may be a name elsewhere.
            (r"(\n\s*|\A|(?<=[{;]) *)(%s)(?=[ (])(?!\s*[-+*/%%&|^]?= )" % "|".join(ITEMS), bygroups(Text.Whitespace, Keyword)),
            (r"\s+", Text.Whitespace),
            (r"//.*", Comment.Single),
            (r"/\*.*?\*/", Comment.Multiline),
            (r'"(?:\\.|[^"\\])*"', String),
            (r"0x[0-9a-fA-F]+", Number.Hex),
            (r"\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+", Number.Float),
            (r"\d+", Number.Integer),
            (r"((?<!\.)\.)([A-Za-z_]\w*)", bygroups(Punctuation, Name)),  # a field, also one of a reserved name: inner.wire
            (words(("true", "false", "inf", "nan", "pi"), suffix=r"\b"), Keyword.Constant),
            (r"(fn|compressor)(\s+)([A-Za-z_]\w*)", bygroups(Keyword, Text.Whitespace, Name.Function)),
            (words(RESERVED, suffix=r"\b"), Keyword),
            (r"(?:%s)(?= )(?! [-+*/%%&|^]?=)" % "|".join(FIELDS), Keyword),
            (r"at_most(?=:)", Keyword),
            (r"(?:bool|bf16|f8e4m3|f8e5m2|f16|f32|f64|u\d+|i\d+|int|uint)\b", Keyword.Type),
            (r"[A-Za-z_]\w*(?=\()", Name.Builtin),
            (r"[A-Za-z_]\w*(?=:[^:])", Name.Attribute),
            (r"[A-Za-z_]\w*", Name),
            (r"[-+*/%@<>=!&|^.]+", Operator),
            (r"[(){}\[\],;:]", Punctuation),
        ]
    }
