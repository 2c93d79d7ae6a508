"""Splits texts with patterns by Hugging Face tokenizers (Oniguruma), and writes where the pieces end: patterns.json. The
patterns are those of well-known tokenizers, one for each construct, and 400 random ones. Made with tokenizers 0.23.3:
python internal/tokenizer/pattern/testdata/make.py"""
import json
import os
import random

from tokenizers import Regex, pre_tokenizers

CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
KNOWN = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen": CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "o200k": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTION
    + r"?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTION
    + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "deepseek": r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "cjk": "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "kimi": r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+|\s+",
}
SINGLE = [
    r"x*", r"$", r"^", r"a|", r"\s+$", r"\bb", r"\B", r"\A.", r".\z", r"\s\Z", r"\h+", r"\H+", r"\w+", r"\W", r"\d+", r"\D+", r"\p{^L}", r"\P{L}+",
    r"\p{Letter}", r"\p{han}", r"\x41", r"\u0041", r"\x{65e5}", r"[]a]", r"[a\-b]", r"[^a-c]+", r"[a-z&&[^b]]+", r"a{,2}", r"a{2,}", r"a{1,2}?", r"a{2}?",
    r"a{1,2}+", r"a{", r"a{x}", r"(?<=a)b", r"(?<!a)b", r"(?<=ab|A|)c", r"a(?=b)", r"a(?!b)", r"(?>a|ab)c", r"(?<n>a)b", r"b?+b", r"a*?b", r"a+?",
    r"(?i)a|B", r"a(?i)b|c", r"(?i:k)", r"(?i:[s])", r"(?i:a(?-i:b))", r"(?i)\p{Lu}", r"(?i)[^a-b]", r"(a+)+$", r"(a|ab)(c|bcd)?", r"\.", r"\/", r"[\s\S]", r"\u00e9|é",
]
TEXTS = ["ab aa\n1234 A 日本 ß\x0b b- é\u0301_ abc\n", "It's naïve, DON'T we'll 12345 3.14\r\n\r\n  x\t\t ²½ ſK kK", " \u00a0\u2003\u0085 \n\n  end", "aaaaabc ABC abcd\n", ""]

random.seed(4711)
ATOMS = ["a", "b", "c", "A", "é", "1", " ", "\n", ".", r"\s", r"\S", r"\d", r"\w", r"\W", r"\p{L}", r"\P{L}", r"\p{N}", r"\p{Lu}", "[ab]", "[^a]", "[a-c1]", r"[^\s\p{L}]",
         r"\h", "k", "[^\\r\\n\\p{L}\\p{N}]", "[k-s]", "日", "_", "-", "^", "$", r"\b"]
COUNTS = ["", "", "", "", "?", "*", "+", "??", "*?", "+?", "?+", "*+", "++", "{2}", "{1,3}", "{,2}", "{2,}", "{1,2}?", "{1,2}+"]


def sequence(depth):
    return "".join(item(depth) for _ in range(random.randint(1, 3)))


def item(depth):
    if depth and random.random() < .3:
        opening = random.choice(["(", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"])
        inner = "|".join(sequence(depth - 1) for _ in range(random.choice([1, 1, 2])))
        return opening + inner + ")" + ("" if opening[2:3] in ("=", "!", "<") else random.choice(COUNTS))
    atom = random.choice(ATOMS)
    return atom + ("" if atom in ("^", "$", r"\b") else random.choice(COUNTS))


def ends(pattern, text):
    return [end for _, (_, end) in pattern.pre_tokenize_str(text)]


os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # a refused pattern prints a stack
out = []
for expression in list(KNOWN.values()) + SINGLE:
    pattern = pre_tokenizers.Split(Regex(expression), "isolated")
    out.append({"pattern": expression, "texts": [{"text": t, "ends": ends(pattern, t)} for t in TEXTS]})
while len(out) < len(KNOWN) + len(SINGLE) + 400:
    expression = "|".join(sequence(2) for _ in range(random.choice([1, 1, 2])))
    text = "".join(random.choice("aabbcABCké 1 \n日_-s\r\t2é\u0301 ") for _ in range(12))
    try:
        pattern = pre_tokenizers.Split(Regex(expression), "isolated")
        out.append({"pattern": expression, "texts": [{"text": text, "ends": ends(pattern, text)}]})
    except BaseException:
        pass
with open(os.path.join(os.path.dirname(__file__), "patterns.json"), "w", encoding="utf-8") as f:
    f.write("[\n" + ",\n".join(json.dumps(o, ensure_ascii=False, separators=(",", ":")) for o in out) + "\n]\n")
