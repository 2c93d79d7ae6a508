#!/bin/sh
# Expected: strip_accents removes every combining mark, and BertPreTokenizer divides at every punctuation mark.
# Happens: their tables are of an old Unicode. Of the marks of Unicode 14 (2021), BertNormalizer keeps 384 and StripAccents, of the same
#   package, another number, 260. 104 punctuation marks do not divide. Both hold for marks of African and Asian scripts.
# Versions: tokenizers 0.23.3, Unicode 14 of Python 3.11; a newer Python knows more marks.
# Matters: a port of a tokenizer to another language with a current Unicode gives other tokens, and so other scores, for such text.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages tokenizers==0.23.3
check <<'END'
from seen import seen, versions
import unicodedata
from tokenizers.normalizers import BertNormalizer, StripAccents
from tokenizers.pre_tokenizers import BertPreTokenizer

versions("tokenizers")
print("Unicode of Python:", unicodedata.unidata_version)
marks = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) == "Mn"]
punctuation = [c for c in map(chr, range(0x110000)) if unicodedata.category(c)[0] == "P"]
bert = BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=True, lowercase=False)
kept = [[c for c in marks if n.normalize_str("a" + c) != "a"] for n in (bert, StripAccents())]
seen(f"marks kept of {len(marks)}: BertNormalizer, StripAccents", tuple(map(len, kept)), lambda n: n[0] > 300 and 200 < n[1] < n[0])
seen("one of them", unicodedata.name(kept[0][0]), lambda n: n == "NKO DANTAYALAN")
dividing = [c for c in punctuation if len(BertPreTokenizer().pre_tokenize_str(f"a{c}b")) == 3]
seen(f"punctuation marks that do not divide, of {len(punctuation)}", len(punctuation) - len(dividing), lambda n: n > 80)
END
