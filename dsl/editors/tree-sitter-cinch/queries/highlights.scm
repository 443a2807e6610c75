; Colours for Cinch. The last matching pattern decides.

(identifier) @variable

; ---- comments and literals
(doc_comment) @comment.documentation
[(line_comment) (block_comment)] @comment
(string) @string
(integer) @number
(float) @number
(constant_word) @constant.builtin
((identifier) @constant.builtin
  (#match? @constant.builtin "^(n|r|c|world|worker|step)$"))

; ---- words
["import" "extern" "from"] @keyword.import
["fn"] @keyword.function
["compressor" "const" "size" "set" "state" "input" "wire" "count" "claims" "again" "let" "mut" "by" "in" "sum" "min" "max"
 "elias" "huffman" "ascending" "below" "assert" "as" "bitcast"] @keyword
(method name: _ @keyword.function)
["if" "else"] @keyword.conditional
["for" "while" "at_most"] @keyword.repeat
(compressor_type) @type.builtin

; ---- types
(scalar_type (identifier) @type)
((scalar_type (identifier) @type.builtin)
  (#match? @type.builtin "^(bool|f16|bf16|f32|f64|f8e4m3|f8e5m2|[ui][0-9]+)$"))
["int" "uint"] @type.builtin
(enum_type (identifier) @constant)

; ---- names
(path (identifier) @module)
(constant name: (identifier) @constant)
(function name: (identifier) @function)
(extern_function name: (identifier) @function)
(compressor name: (identifier) @type.definition)
(composition name: (identifier) @type.definition)
(parameter name: (identifier) @variable.parameter)
(lambda parameter: (identifier) @variable.parameter)
(field name: (identifier) @property)
(field_value name: (identifier) @property)
(member name: (identifier) @property)
(argument label: (identifier) @label)
(call function: (identifier) @function.call)
(call function: (member name: (identifier) @function.call))
(claims (identifier) @attribute)
(claims (call function: (identifier) @attribute))

; ---- signs
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ":" ";" "."] @punctuation.delimiter
["=" "+=" "-=" "*=" "/=" "%=" "&=" "^=" "|=" "->" ".." "..=" "||" "&&" "==" "!=" "<" "<=" ">" ">=" "|" "^"
 "&" "<<" ">>" "+" "-" "*" "/" "%" "@" "!"] @operator
