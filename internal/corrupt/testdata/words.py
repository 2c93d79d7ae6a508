"""Write words.json: texts that docs/reference.md damages, computed here from its description."""
import json
import pathlib
import re

STEP, MASK = 0x9E3779B97F4A7C15, 2**64 - 1
SHARES = [0.05, 0.1, 0.2, 0.3, 0.5]


def uniforms(seed):
    n = 0
    while True:
        n += 1
        z = (seed + n * STEP) & MASK
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        yield ((z ^ z >> 31) >> 11) / 2**53


def drop_words(text, share, u):
    parts = re.split(r"(\s+)", text)  # words have even places
    for i in range(0, len(parts), 2):
        if parts[i] and next(u) < share:
            parts[i] = ""
            if i + 1 < len(parts):
                parts[i + 1] = re.sub(r"^[^\S\r\n]+", "", parts[i + 1])
    return "".join(parts)


def typos(text, share, u):
    letters = [c for c in text if c.isalpha()]

    def damage(match):
        w = match.group()
        pairs = [i for i in range(len(w) - 1) if w[i].isalpha() and w[i + 1].isalpha()]
        if re.fullmatch(r"<.*>", w) or not pairs or next(u) >= share:
            return w
        i, kind = pairs[int(next(u) * len(pairs))], int(next(u) * 3)
        if kind == 0:
            return w[:i] + w[i + 1] + w[i] + w[i + 2 :]
        if kind == 1:
            return w[:i] + w[i + 1 :]
        return w[:i] + letters[int(next(u) * len(letters))] + w[i + 1 :]

    return re.sub(r"\S+", damage, text)


TEXTS = [
    " The quick brown fox , <unk> years old , jumps\n over the lazy dog .\n\n a b c 1,234 x-ray it's\n",
    "Größe über Straße\r\nслово за слово\tи ещё\nαβγ δ\n  leading and trailing  \n",
    "",
    "oneword",
]
out = [
    {"corruption": f.__name__, "text": t, "severity": s + 1, "seed": seed, "want": f(t, SHARES[s], uniforms(seed))}
    for f in (typos, drop_words)
    for t in TEXTS
    for s in (0, 2, 4)
    for seed in (1, 12345678901234567890)
]
pathlib.Path(__file__).with_name("words.json").write_text(json.dumps(out, ensure_ascii=False, indent=0) + "\n")
