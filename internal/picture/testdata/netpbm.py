#!/usr/bin/env python3
"""Writes netpbm.json: small PGM and PPM files, and what Pillow 13.0.0 makes of them with convert("RGB") and convert("L").

    python netpbm.py
"""
import base64
import io
import json
import pathlib
import random
import struct

from PIL import Image

r = random.Random(1)
numbers = lambda n, most: [r.randint(0, most) for _ in range(n)]
text = lambda v: " ".join(map(str, v)).encode()
wide = lambda v: b"".join(struct.pack(">H", x) for x in v)
files = {}
for most in 1, 3, 100, 255:
    files[f"P5, {most}"] = b"P5\n5 3\n%d\n" % most + bytes(numbers(15, most))
    files[f"P6, {most}"] = b"P6\n5 3\n%d\n" % most + bytes(numbers(45, most))
for most in 256, 1023, 4095, 65535:
    files[f"P5, {most}"] = b"P5 4 3 %d\n" % most + wide(numbers(11, most) + [37])
    files[f"P6, {most}"] = b"P6 4 3 %d\n" % most + wide(numbers(36, most))
for most in 1, 7, 255, 1000, 65535:
    files[f"P2, {most}"] = b"P2\n4 2\n%d\n" % most + text(numbers(8, most)) + b"\n"
    files[f"P3, {most}"] = b"P3\n2 2\n%d\n" % most + text(numbers(12, most))
files["comments"] = b"P5 # made by hand\n# 9 9\n2 2 # size\n255\n\x00\x80\xff\x40"
files["comments in text"] = b"P2\n2 2\n255\n1 # 5\n 2\n#x\n3 4"
files["a comment that joins words"] = b"P2\n2 1\n255\n1#x\n2 3\n"
files["returns and tabs"] = b"P2\r\n2\t1\r\n255\r\n 17\t\t18 "
files["above white"] = b"P5\n2 1\n100\n\x64\xc8"
files["more bytes"] = b"P5\n1 1\n255\n\x05rest"
out = []
for name, data in files.items():
    image = Image.open(io.BytesIO(data))
    out.append({"name": name, "file": base64.b64encode(data).decode(), "size": image.size, "rgb": list(image.convert("RGB").tobytes()), "grey": list(image.convert("L").tobytes())})
path = pathlib.Path(__file__).resolve().with_suffix(".json")
path.write_text("[\n" + ",\n".join(json.dumps(o) for o in out) + "\n]\n")
