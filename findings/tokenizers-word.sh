#!/bin/sh
# Expected: the pre-tokenizer Whitespace and a Split with the same pattern \w+ find the same words, which are Python's.
# Happens: they use two regular-expression engines. Split (Oniguruma) counts ² ³ ¹ ¼ ½ ¾ to words, but not ⁴ and ⅓: "m²" is one
#   word and "m⁴" two. Whitespace (Rust) counts neither, but joins words over a zero-width joiner, where Split divides.
# Versions: tokenizers 0.23.3.
# Matters: text that is scored by another program than the one that trained must follow the engine, not the pattern, or tokens differ.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages tokenizers==0.23.3
check <<'END'
from seen import seen, versions
import re
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split, Whitespace

versions("tokenizers")
words = lambda split, text: [word for word, _ in split.pre_tokenize_str(text)]
oniguruma, rust = Split(Regex(r"\w+"), "isolated"), Whitespace()
for text, by_split, by_whitespace in (("m²", 1, 2), ("x½", 1, 2), ("m⁴", 2, 2), ("x⅓", 2, 2), ("a\u200db", 3, 1)):
    got = words(oniguruma, text), words(rust, text)
    seen(f"{ascii(text)}: Split, Whitespace; Python", (*got, re.findall(r"\w+", text)), tuple(map(len, got)) == (by_split, by_whitespace))
END
