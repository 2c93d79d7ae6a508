"""Trains small tokenizers of each kind on tokenizers.txt, which has what is hard, and writes NAME.json and the tokens that
Hugging Face tokenizers makes of that text, with their places in it (tokenizers.json)."""
import json

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

text = ("\n = Robert Boulter = \n \n Robert Boulter is an English film , television and theatre actor . He had a guest @-@ starring role "
        "in the television series The Bill in 2000 .\n = = Career = = \n\n It's na\u00efve caf\u00e9 \u2014 don't we'll 12345 3.14 I've\t\ttabs  double   spaces\n\n\n"
        "\u65e5\u672c\u8a9e \u30c6\u30b9\u30c8 \U0001f44d\U0001f3fd emoji \u1e9e\u00df \ufb01 \u00c5ngstr\u00f6m e\u0301 x\u00a0y \u2212 1 \u0130stanbul a_b $5 <tag> \u200d\u0000 \u0300 end\r\n"
        "hellohellohello <|end|> aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b\n"
        " = Second = \n The the THE . \n")
lines = text.splitlines(True)
with open("tokenizers.txt", "w", encoding="utf-8", newline="") as f:
    f.write(text)

GPT4 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
byte_level = dict(special_tokens=["<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
made = {}

t = Tokenizer(models.BPE())
t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=330, **byte_level))
made["gpt2"] = t

t = Tokenizer(models.BPE(ignore_merges=True))
t.normalizer = normalizers.NFC()
t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(GPT4), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)])
t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=330, **byte_level))
made["llama3"] = t

t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
t.normalizer = normalizers.BertNormalizer(lowercase=True)
t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
t.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=130, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False))
made["bert"] = t

t = Tokenizer(models.WordLevel(unk_token="<unk>"))
t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True)])
t.train_from_iterator(lines, trainers.WordLevelTrainer(vocab_size=40, special_tokens=["<unk>"], show_progress=False))
made["level"] = t

out = {}
for name, t in made.items():
    with open(name + ".json", "w", encoding="utf-8") as f:
        json.dump(json.loads(t.to_str()), f, ensure_ascii=False, separators=(",", ":"))
    e = Tokenizer.from_file(name + ".json").encode(text, add_special_tokens=False)
    out[name] = {"ids": e.ids, "ends": [b for _, b in e.offsets], "size": t.get_vocab_size()}
with open("tokenizers.json", "w") as f:
    json.dump(out, f, separators=(",", ":"))
