"""Writes words.txt, a text with the white space and line ends that Python knows, and words.json, what the word-level
language model of pytorch/examples (data.py, Dictionary and Corpus.tokenize) reads from it."""
import json

text = (" \n = Robert = \n \n the cat sat \n = = Early life = = \nthe\tdog\x1csat\x0bdown\r\n\n\u3000the\u00a0cat\u2003\u00fcber\r"
        "  two  spaces \n = A = B = \nno end the")
vocabulary = ["<unk>", "the", "=", "cat", "<eos>", "sat", "\u00fcber", "Robert", "A", "B"]
with open("words.txt", "w", newline="", encoding="utf-8") as f:
    f.write(text)
ids = []
with open("words.txt", encoding="utf-8") as f:
    for line in f:
        for word in line.split() + ["<eos>"]:
            ids.append(vocabulary.index(word) if word in vocabulary else 0)
with open("words.json", "w") as f:
    json.dump({"vocabulary": vocabulary, "ids": ids, "characters": len(text), "bytes": len(text.encode())}, f)
