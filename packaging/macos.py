"""Fails unless a program for macOS on arm64 has a signature that covers all of it: python macos.py PROGRAM

macOS ends other programs at once. The signature is zig's, of nobody in particular ("ad hoc"): a superblob with a code directory,
which has the SHA-256 of each page (mach-o/loader.h, and cs_blobs.h of xnu).
"""

import hashlib
import struct
import sys

with open(sys.argv[1], "rb") as f:
    program = f.read()
at, found = 32, 0
for _ in range(struct.unpack("<I", program[16:20])[0]):
    command, size = struct.unpack("<2I", program[at : at + 8])
    if command == 0x1D:  # LC_CODE_SIGNATURE
        start, length = struct.unpack("<2I", program[at + 8 : at + 16])
        blob = program[start : start + length]
        magic, _, count = struct.unpack(">3I", blob[:12])
        assert magic == 0xFADE0CC0 and start + length == len(program), "no signature at the end"
        for k in range(count):
            directory = blob[struct.unpack(">I", blob[16 + 8 * k : 20 + 8 * k])[0] :]
            if struct.unpack(">I", directory[:4])[0] != 0xFADE0C02:
                continue
            hashes, _, _, pages, limit, width, kind, _, shift = struct.unpack(">5I4B", directory[16:40])
            assert (limit, kind, width, pages) == (start, 2, 32, -(-start >> shift)), "the signature is not of the whole program"
            for page in range(pages):
                is_ = hashlib.sha256(program[page << shift : min((page + 1) << shift, limit)]).digest()
                assert is_ == directory[hashes + 32 * page : hashes + 32 * page + 32], f"page {page} is not what was signed"
            found += 1
    at += size
assert found == 1, f"{found} signatures"
