"""Makes small tokenizers of all that is supported, with added tokens of each kind, and texts of what is hard: white space,
marks, ligatures, other scripts. Writes the files, the texts and the tokens that Hugging Face tokenizers makes of them:
hard.json. The trainers break ties at random, so each run makes other tokenizers. Made with tokenizers 0.23.3:
python internal/tokenizer/testdata/make_hard.py"""
import json
import os
import random

from tokenizers import AddedToken, Regex, Tokenizer, models, trainers
from tokenizers import normalizers as N
from tokenizers import pre_tokenizers as P

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "tokenizers.txt"), encoding="utf-8", newline="") as f:
    BASE = f.read()
with open(os.path.join(HERE, "..", "pattern", "testdata", "patterns.json"), encoding="utf-8") as f:
    GPT2, LLAMA3, QWEN, CL100K, O200K, DEEPSEEK, CJK, _ = [p["pattern"] for p in json.load(f)[:8]]
SPECIAL = ["<|end|>", "<mask>", " tok", "ing", "<|", "|>", "é", "THE", "the", "a", "  ", "\n\n", "日本"]
RANGES = [(0, 0x250), (0x300, 0x370), (0x1F00, 0x1F20), (0x2000, 0x2070), (0xFB00, 0xFB07), (0x900, 0x950), (0xE01, 0xE40)]
CHARACTERS = list(BASE) + [chr(c) for a, b in RANGES for c in range(a, b)] + list(
    "\U0001f600\U0001f468\u200d\ufe0f\ufdfa\u3131\uac00\u1100\u1161\u05d0\u0627\u0644\U0001d400\U00010400\u2126\u212b\u1e9e\u1680\u2028\u3000\ufeff\ufffd\ue000\uf900\u4e00\U00020000\u180e\u2065\u2460\u216b\u0488\u0903")
random.seed(20261126)


def text():
    out = []
    for _ in range(random.randint(5, 40)):
        r = random.random()
        if r < .3:
            at = random.randrange(len(BASE))
            out.append(BASE[at:at + random.randint(1, 20)])
        elif r < .55:
            out.append(random.choice(SPECIAL))
        elif r < .65:
            out.append(random.choice(" \n\t\u00a0") * random.randint(1, 5))
        else:
            out.append("".join(random.choice(CHARACTERS) for _ in range(random.randint(1, 6))))
    return "".join(out)


def split(pattern, behavior="isolated", invert=False):
    return P.Split(Regex(pattern), behavior, invert)


BYTES = P.ByteLevel(add_prefix_space=False, use_regex=False)
BERT = dict(clean_text=True, handle_chinese_chars=True)
MADE = [
    ("bpe", None, P.ByteLevel(add_prefix_space=False)),
    ("bpe", None, P.ByteLevel(add_prefix_space=True)),
    ("bpe", N.NFC(), P.Sequence([split(LLAMA3), BYTES])),
    ("bpe", None, P.Sequence([split(QWEN, "removed", True), BYTES])),
    ("bpe", N.NFKC(), P.Sequence([split(CL100K), BYTES])),
    ("bpe", None, P.Sequence([split(O200K), BYTES])),
    ("bpe", None, P.Sequence([split(r"\p{N}{1,3}"), split(CJK), split(DEEPSEEK), BYTES])),
    ("bpe", N.Sequence([N.NFD(), N.Lowercase(), N.StripAccents()]), P.Sequence([P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False)])),
    ("wordpiece", N.BertNormalizer(lowercase=True, **BERT), P.BertPreTokenizer()),
    ("wordpiece", N.BertNormalizer(lowercase=False, **BERT), P.BertPreTokenizer()),
    ("wordpiece", N.Sequence([N.NFKD(), N.StripAccents()]), P.WhitespaceSplit()),
    ("words", None, P.Sequence([P.Whitespace(), P.Digits(individual_digits=False)])),
    ("words", N.Lowercase(), P.Split("the", "removed")),
]


def make(k, kind, normalizer, pre):
    if kind == "bpe":
        t = Tokenizer(models.BPE(ignore_merges=k % 2 == 0))
        trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=P.ByteLevel.alphabet(), show_progress=False)
    elif kind == "wordpiece":
        t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=[100, 8][k % 2]))
        trainer = trainers.WordPieceTrainer(vocab_size=160, special_tokens=["[UNK]"], show_progress=False)
    else:
        t = Tokenizer(models.WordLevel(unk_token="<unk>"))
        trainer = trainers.WordLevelTrainer(vocab_size=60, special_tokens=["<unk>"], show_progress=False)
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre
    t.train_from_iterator(BASE.splitlines(True), trainer)
    for s in random.sample(SPECIAL, 6):
        strips = dict(single_word=random.random() < .3, lstrip=random.random() < .4, rstrip=random.random() < .4)
        t.add_tokens([AddedToken(s, normalized=not normalizer and random.random() < .5, special=random.random() < .5, **strips)])
    return Tokenizer.from_str(t.to_str())


os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # tokenizers panics where two tokens take the same white space
out = []
for k, made in enumerate(MADE):
    t = make(k, *made)
    file = json.loads(t.to_str())
    cases = []
    while len(cases) < 12:
        s = text()
        try:
            cases.append({"text": s, "ids": t.encode(s, add_special_tokens=False).ids})
        except BaseException:
            pass
    out.append({"file": file, "cases": cases})
with open(os.path.join(HERE, "hard.json"), "w", encoding="utf-8") as f:
    f.write("[\n" + ",\n".join(json.dumps(o, ensure_ascii=False, separators=(",", ":")) for o in out) + "\n]\n")
