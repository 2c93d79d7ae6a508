"""Small files in every format, mode and orientation, and what Pillow makes of them. Writes pillow.json.gz.

Run: python pillow.py (Pillow 13.0.0 with libtiff 4.7.2, NumPy 2)

Each case has a name, the file, and for three ways to treat its orientation the size, and hashes of convert("RGB") and
convert("L"): pillow (PIL.Image.open), apply (PIL.ImageOps.exif_transpose) and ignore (a file without the tag). The last two
are absent where they equal the first. numbers is
the hash of numpy.asarray for modes that masks have. A case without results is one that Pillow refuses.
"""
import gzip, hashlib, io, json, struct, warnings, zlib
import numpy as np
from PIL import Image, ImageOps, PngImagePlugin, TiffImagePlugin

warnings.simplefilter("ignore")
r = np.random.default_rng(0)
H, W = 6, 11
cases = []
hash8 = lambda b: hashlib.sha256(b).hexdigest()[:6]


def seen(image):
    out = {"size": list(image.size)}
    for mode in ("RGB", "L"):
        out[mode] = hash8((image if image.mode == mode else image.convert(mode)).tobytes())
    return out


def add(name, data, untagged=None):
    """One case. untagged is the same file without its orientation, if it has one."""
    case = {"name": name, "file": data.hex()}
    try:
        image = Image.open(io.BytesIO(data))
        image.load()
        case["pillow"], case["mode"] = seen(image), image.mode
        if image.mode in ("1", "P", "L", "I;16", "I;16B"):
            case["numbers"] = hash8(np.asarray(image).astype("<i4").tobytes())
        case["apply"] = seen(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))
        case["ignore"] = seen(Image.open(io.BytesIO(untagged or data)))
        for key in ("apply", "ignore"):
            if case[key] == case["pillow"]:
                del case[key]
        # Whether a tag turns the picture: a person is told about those.
        fresh = Image.open(io.BytesIO(data))
        if fresh.format != "TIFF":
            fresh.load()
        tag = fresh.getexif().get(274)
        if isinstance(tag, int) and 2 <= tag <= 8:
            case["tag"] = tag
    except Exception as e:
        for key in ("pillow", "apply", "ignore"):
            case.pop(key, None)
        case["refused"] = f"{type(e).__name__}: {e}"[:60]
    cases.append(case)
    return case


def tiff(bits, data, photo=1, samples=1, compression=1, order="<", strips=None, extra=(), values=None):
    """A TIFF file of one page, written tag by tag. data is one strip, or strips is a list of them."""
    strips = strips or [data]
    e = [(256, 3, [W]), (257, 3, [H]), (258, 3, [bits] * (samples if values is None else values)), (259, 3, [compression]), (262, 3, [photo]), (273, 4, None),
         (277, 3, [samples]), (278, 4, [H]), (279, 4, [len(s) for s in strips]), *extra]
    e = [x for x in e if x[2] != []]
    at = 8 + 2 + 12 * len(e) + 4
    blobs, entries = b"", []
    code = {1: "B", 2: "B", 3: "H", 4: "I", 6: "b", 7: "B", 8: "h", 9: "i", 16: "Q"}
    starts = sum((struct.calcsize(code[t]) * len(v) + 1) // 2 * 2 for _, t, v in e if v is not None and struct.calcsize(code[t]) * len(v) > 4)
    starts += 4 * len(strips) if len(strips) > 1 else 0
    places = [at + starts + sum(len(s) for s in strips[:i]) for i in range(len(strips))]
    for tag, kind, v in sorted(e, key=lambda x: x[0]):
        v = places if v is None else v
        b = struct.pack(order + code[kind] * len(v), *v)
        if len(b) > 4:
            entries.append(struct.pack(order + "HHII", tag, kind, len(v), at + len(blobs)))
            blobs += b + b"\0" * (len(b) % 2)
        else:
            entries.append(struct.pack(order + "HHI", tag, kind, len(v)) + b.ljust(4, b"\0"))
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, len(entries))
    return head + b"".join(entries) + b"\0\0\0\0" + blobs + b"".join(strips)


reverse = lambda b: bytes(int(f"{x:08b}"[::-1], 2) for x in b)
packed = lambda a, bits: np.packbits(((a[..., None] >> np.arange(bits)[::-1]) & 1).reshape(len(a), -1).astype(np.uint8), axis=1).tobytes()
grid = np.add.outer(np.arange(H) * 7, np.arange(W) * 3)
one = ((grid // 5) % 3 == 0)
one[1, 2:9] = True
grey = (grid * 3 % 256).astype(np.uint8)
rgb = np.stack([grey, grey.T.reshape(H, W), 255 - grey // 2], 2).astype(np.uint8)
rgba = np.concatenate([rgb, (grid * 5 % 256).astype(np.uint8)[..., None]], 2)


def compressions(name, bits, raw, photo, fills=(1, 2), **k):
    # LZW has its own bit order; FillOrder 2 turns the bytes of the file.
    for compression, data in ((1, raw), (8, zlib.compress(raw)), (32773, b"".join(struct.pack("B", len(c) - 1) + c for c in [raw[i:i + 100] for i in range(0, len(raw), 100)]))):
        for fill in fills:
            add(f"tiff {name} photometric {photo} compression {compression} fill {fill}",
                tiff(bits, data if fill == 1 else reverse(data), photo, compression=compression, extra=[(266, 3, [fill])] + k.get("extra", []), **{a: b for a, b in k.items() if a != "extra"}))


# Facsimile: what Pillow (libtiff) writes, with both photometrics, both orders of bits, and the options of group 3.
for name, number, options in (("raw", 1, 0), ("ccitt", 2, 0), ("group3", 3, 0), ("group3", 3, 4), ("group3", 3, 1), ("group3", 3, 5), ("group4", 4, 0)):
    for photo in (0, 1):
        for fill in (1, 2):
            tags = TiffImagePlugin.ImageFileDirectory_v2()
            tags[262], tags[266] = photo, 1
            if options:
                tags[292] = options
            b = io.BytesIO()
            Image.fromarray(one).save(b, "TIFF", compression={"ccitt": "tiff_ccitt"}.get(name, name), tiffinfo=tags)
            image = Image.open(b)
            at, n = image.tag_v2[273][0], image.tag_v2[279][0]
            strip = b.getvalue()[at:at + n]
            extra = [(266, 3, [fill])] + ([(292, 4, [options])] if number == 3 else [])
            add(f"tiff {name} options {options} photometric {photo} fill {fill}", tiff(1, strip if fill == 1 else reverse(strip), photo, compression=number, extra=extra))
            if fill == 1 and number == 4:
                add(f"tiff {name} photometric {photo} big-endian", tiff(1, strip, photo, compression=number, order=">"))
                add(f"tiff {name} photometric {photo} without BitsPerSample", tiff(1, strip, photo, compression=number, values=0))
                for o in range(2, 9):
                    add(f"tiff {name} photometric {photo} orientation {o}", tiff(1, strip, photo, compression=number, extra=[(274, 3, [o])]), tiff(1, strip, photo, compression=number))
# Two strips of facsimile.
for photo in (0, 1):
    parts = []
    for half in (one[:3], one[3:]):
        b = io.BytesIO()
        Image.fromarray(half).save(b, "TIFF", compression="group4", tiffinfo={262: photo})
        image = Image.open(b)
        parts.append(b.getvalue()[image.tag_v2[273][0]:][:image.tag_v2[279][0]])
    add(f"tiff group4 of two strips photometric {photo}", tiff(1, b"", photo, compression=4, strips=parts).replace(struct.pack("<HHII", 278, 4, 1, H), struct.pack("<HHII", 278, 4, 1, 3)))
# Grey levels and palettes of all depths.
for bits in (1, 2, 4, 8, 12, 16):
    a = one.astype(int) if bits == 1 else (grid * (1 << bits) // 128 % (1 << bits)).astype(int)
    raw = packed(a, bits) if bits != 16 else a.astype("<u2").tobytes()
    for photo in (0, 1):
        compressions(f"{bits} bits", bits, raw, photo, (1, 2) if bits in (1, 8, 16) else (1,))
    if bits == 16:
        for photo in (0, 1):
            add(f"tiff 16 bits big-endian photometric {photo}", tiff(16, a.astype(">u2").tobytes(), photo, order=">"))
        add("tiff 16 bits dark", tiff(16, (a // 400).astype("<u2").tobytes(), 1))
    if bits <= 8:
        for name, scale in (("", 257), (" of 8 bits", 1)) if bits in (1, 8) else (("", 257),):
            table = [int(v) * scale for v in (np.arange(3 << bits) * 37 % 256)]
            compressions(f"palette of {bits} bits{name}", bits, raw, 3, (1, 2) if bits == 8 and scale > 1 else (1,), extra=[(320, 3, table)])
add("tiff palette of 8 bits, short", tiff(8, grey.tobytes(), 3, extra=[(320, 3, [9 * 257, 8 * 257, 7 * 257] * 100)]))
# Samples, planes, alpha, formats of samples, predictors.
add("tiff rgb", tiff(8, rgb.tobytes(), 2, 3))
add("tiff rgb fill 2", tiff(8, reverse(rgb.tobytes()), 2, 3, extra=[(266, 3, [2])]))
add("tiff rgb big-endian", tiff(8, rgb.tobytes(), 2, 3, order=">"))
add("tiff rgb of 16 bits", tiff(16, (rgb.astype("<u2") * 250).astype("<u2").tobytes(), 2, 3))
add("tiff rgb with one BitsPerSample", tiff(8, rgb.tobytes(), 2, 3, values=1))
add("tiff grey with three samples and one BitsPerSample", tiff(8, rgb.tobytes(), 1, 3, values=1))
add("tiff grey with two samples and one BitsPerSample", tiff(8, rgba[..., :2].tobytes(), 1, 2, values=1))
add("tiff palette with two samples and one BitsPerSample", tiff(8, rgba[..., :2].tobytes(), 3, 2, values=1, extra=[(320, 3, [int(v) * 257 for v in np.arange(768) % 256])]))
add("tiff planes", tiff(8, b"", 2, 3, strips=[rgb[..., c].tobytes() for c in range(3)], extra=[(284, 3, [2])]))
add("tiff planes of one sample", tiff(8, grey.tobytes(), 1, extra=[(284, 3, [2])]))
for kind in (0, 1, 2):
    add(f"tiff rgba extra {kind}", tiff(8, rgba.tobytes(), 2, 4, extra=[(338, 3, [kind])]))
    add(f"tiff rgba of 16 bits extra {kind}", tiff(16, (rgba.astype("<u2") * 257).astype("<u2").tobytes(), 2, 4, extra=[(338, 3, [kind])]))
    add(f"tiff grey alpha extra {kind}", tiff(8, rgba[..., 2:].tobytes(), 1, 2, extra=[(338, 3, [kind])]))
add("tiff four samples without extra", tiff(8, rgba.tobytes(), 2, 4))
add("tiff cmyk", tiff(8, rgba.tobytes(), 5, 4))
add("tiff ycbcr", tiff(8, rgb.tobytes(), 6, 3, extra=[(530, 3, [1, 1])]))
add("tiff lab", tiff(8, rgb.tobytes(), 8, 3))
add("tiff transparency mask", tiff(1, packed(one.astype(int), 1), 4))
add("tiff photometric 2 with one sample", tiff(8, grey.tobytes(), 2))
for kind in (1, 2, 3, 4):
    for bits in (8, 16, 32):
        add(f"tiff {bits} bits sample format {kind}", tiff(bits, (grey.astype(f"<u{bits // 8}") if kind != 3 or bits != 32 else grey.astype("<f4")).tobytes(), 1, extra=[(339, 3, [kind])]))
deltas = lambda a: (np.diff(a.astype(np.int64), axis=1, prepend=0) % (1 << 8 * a.dtype.itemsize)).astype(a.dtype)
for predictor in (2, 3):
    for name, a, samples, photo in (("grey", grey, 1, 1), ("rgb", rgb, 3, 2), ("16 bits", (grid * 200).astype("<u2"), 1, 1), ("white is zero", grey, 1, 0)):
        for compression in (1, 8, 32773):
            raw = (deltas(a) if predictor == 2 and compression == 8 else a).tobytes()
            data = zlib.compress(raw) if compression == 8 else raw if compression == 1 else b"".join(struct.pack("B", len(c) - 1) + c for c in [raw[i:i + 100] for i in range(0, len(raw), 100)])
            add(f"tiff {name} predictor {predictor} compression {compression}", tiff(8 * a.dtype.itemsize, data, photo, samples, compression, extra=[(317, 3, [predictor])]))
big = np.pad(rgb, ((0, 16 - H), (0, 16 - W), (0, 0)), mode="edge")
for predictor in (1, 2):
    tile = zlib.compress((deltas(big) if predictor == 2 else big).tobytes())
    data = tiff(8, tile, 2, 3, 8, extra=[(317, 3, [predictor]), (322, 3, [16]), (323, 3, [16])])
    for old, new in ((273, 324), (279, 325)):  # strips become tiles, and the tags must be in order
        head, body = data[:10], data[10:]
        n = struct.unpack("<H", data[8:10])[0]
        entries = sorted([struct.pack("<H", new) + x[2:] if x[:2] == struct.pack("<H", old) else x for x in [body[12 * i:12 * i + 12] for i in range(n)]], key=lambda x: struct.unpack("<H", x[:2])[0])
        data = head + b"".join(entries) + body[12 * n:]
    add(f"tiff tile predictor {predictor}", data)
b = io.BytesIO()
Image.fromarray(rgb).save(b, "TIFF", save_all=True, append_images=[Image.fromarray(255 - rgb)])
add("tiff of two pages", b.getvalue())
b = io.BytesIO()
Image.fromarray(rgb).save(b, "TIFF", big_tiff=True)
add("tiff big", b.getvalue())
for kind in ("jpeg", "tiff_lzw", "zstd", "lzma", "tiff_deflate", "tiff_adobe_deflate"):
    b = io.BytesIO()
    Image.fromarray(rgb).save(b, "TIFF", compression=kind)
    add(f"tiff {kind}", b.getvalue())
# Orientation of TIFF, with the types that the tag may have.
for o in range(0, 10):
    add(f"tiff rgb orientation {o}", tiff(8, rgb.tobytes(), 2, 3, extra=[(274, 3, [o])]), tiff(8, rgb.tobytes(), 2, 3))
    add(f"tiff grey orientation {o} big-endian", tiff(8, grey.tobytes(), 1, order=">", extra=[(274, 3, [o])]), tiff(8, grey.tobytes(), 1))
for kind in (1, 4, 6, 7, 8, 9):
    add(f"tiff orientation 6 of type {kind}", tiff(8, rgb.tobytes(), 2, 3, extra=[(274, kind, [6])]), tiff(8, rgb.tobytes(), 2, 3))
add("tiff two orientations", tiff(8, rgb.tobytes(), 2, 3, extra=[(274, 3, [6, 3])]), tiff(8, rgb.tobytes(), 2, 3))
xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
xmp2 = xmp.replace(b'tiff:Orientation="6"/>', b"><tiff:Orientation>3</tiff:Orientation></rdf:Description>")
add("tiff xmp", tiff(8, rgb.tobytes(), 2, 3, extra=[(700, 1, list(xmp))]), tiff(8, rgb.tobytes(), 2, 3))

# Exif of JPEG, PNG and WebP.
entry = lambda order, tag, kind, count, value: struct.pack(order + "HHI", tag, kind, count) + value
def exif(order, o, kind=3, count=1, before=0, more=b""):
    value = {1: "B", 2: "B", 3: "H", 4: "I", 6: "b", 7: "B", 8: "h", 9: "i"}[kind]
    e = [entry(order, 256 + i, 3, 1, struct.pack(order + "HH", 9, 0)) for i in range(before)] + [entry(order, 274, kind, count, struct.pack(order + value, o).ljust(4, b"\0"))]
    return (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, len(e)) + b"".join(e) + b"\0\0\0\0" + more


def saved(a, kind, **k):
    b = io.BytesIO()
    (a if isinstance(a, Image.Image) else Image.fromarray(a)).save(b, kind, **k)
    return b.getvalue()


segment = lambda marker, body: struct.pack(">BBH", 255, marker, len(body) + 2) + body
chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
jpeg, png = saved(rgb, "JPEG", quality=90), saved(rgb, "PNG")
webp, lossy = saved(rgb, "WEBP", lossless=True), saved(rgb, "WEBP", quality=80)
in_jpeg = lambda *parts: jpeg[:2] + b"".join(parts) + jpeg[2:]
in_png = lambda *parts: png[:33] + b"".join(parts) + png[33:]
def in_webp(of, *parts):
    w = of[12:]
    body = b"VP8X" + struct.pack("<IB3x", 10, 8 | 4) + (W - 1).to_bytes(3, "little") + (H - 1).to_bytes(3, "little") + w
    for kind, x in parts:
        body += kind + struct.pack("<I", len(x)) + x + b"\0" * (len(x) % 2)
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body


app1 = lambda e: segment(0xE1, b"Exif\0\0" + e)
for o in range(0, 10):
    for order in "<>" if 2 <= o <= 8 else "<":
        e = exif(order, o, before=o % 3)
        add(f"jpeg {o} {order}", in_jpeg(app1(e)), jpeg)
        add(f"png {o} {order}", in_png(chunk(b"eXIf", e)), png)
        add(f"webp {o} {order}", in_webp(webp, (b"EXIF", e)), webp)
        if order == "<" and o % 3 == 0:
            add(f"webp lossy {o}", in_webp(lossy, (b"EXIF", b"Exif\0\0" + e)), lossy)
raw = lambda e: b"\nexif\n%8d\n" % (len(e) + 6) + (b"Exif\0\0" + e).hex().encode() + b"\n"
e6, e3, e8 = exif("<", 6), exif(">", 3), exif("<", 8)
for name, data, plain in (
    ("png text", in_png(chunk(b"tEXt", b"Raw profile type exif\0" + raw(e6))), png),
    ("png packed text", in_png(chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(raw(e6)))), png),
    ("png exif behind the pixels", png[:-12] + chunk(b"eXIf", e6) + png[-12:], png),
    ("png two exif", in_png(chunk(b"eXIf", e6), chunk(b"eXIf", e3)), png),
    ("png xmp", in_png(chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp)), png),
    ("png packed xmp", in_png(chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(xmp2))), png),
    ("png exif and xmp", in_png(chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp), chunk(b"eXIf", e3)), png),
    ("jpeg xmp", in_jpeg(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp)), jpeg),
    ("jpeg xmp element", in_jpeg(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp2)), jpeg),
    ("jpeg exif and xmp", in_jpeg(app1(e8), segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp)), jpeg),
    ("jpeg two exif", in_jpeg(app1(e8), app1(e3)), jpeg),
    ("jpeg exif in two segments", in_jpeg(app1(e8[:20]), app1(e8[20:])), jpeg),
    ("jpeg exif before the scan", jpeg[:jpeg.index(b"\xff\xda")] + app1(e6) + jpeg[jpeg.index(b"\xff\xda"):], jpeg),
    ("jpeg other segments first", in_jpeg(segment(0xE1, b"other"), segment(0xFE, b"Exif\0\0" + e3), app1(e6)), jpeg),
    ("webp xmp", in_webp(webp, (b"XMP ", xmp)), webp),
    ("webp exif behind others", in_webp(webp, (b"ABCD", b"odd"), (b"EXIF", e6)), webp),
):
    add(name, data, plain)
for kind in (1, 2, 4, 6, 7, 8, 9):
    add(f"jpeg exif of type {kind} >", in_jpeg(app1(exif(">", 6, kind))), jpeg)
# Modes with an orientation.
for name, image, kinds in (
    ("L", Image.fromarray(grey), ("JPEG", "PNG")), ("1", Image.fromarray(one), ("PNG",)), ("P", Image.fromarray(rgb).quantize(16), ("PNG",)),
    ("LA", Image.fromarray(rgba).convert("LA"), ("PNG",)), ("RGBA", Image.fromarray(rgba), ("PNG", "WEBP")), ("CMYK", Image.fromarray(rgb).convert("CMYK"), ("JPEG",)),
    ("I;16", Image.fromarray((grid * 5).astype(np.uint16)), ("PNG",)), ("YCbCr", Image.fromarray(rgb).convert("YCbCr"), ("JPEG",)),
):
    for kind in kinds:
        more = {"lossless": True} if kind == "WEBP" else {}
        plain = saved(image, kind, **more)
        add(f"{kind.lower()} mode {name}", plain)
        for o in (5, 8):
            add(f"{kind.lower()} mode {name} orientation {o}", saved(image, kind, exif=exif(">", o), **more) if kind != "JPEG" else plain[:2] + app1(exif(">", o)) + plain[2:], plain)
for name, image, kind in (("gif", Image.fromarray(rgb).quantize(16), "GIF"), ("bmp", Image.fromarray(rgb), "BMP"), ("pgm", Image.fromarray(grey), "PPM"), ("ppm", Image.fromarray(rgb), "PPM")):
    add(name, saved(image, kind))
# Damaged Exif: no orientation, or that of what can be read.
for name, e in (("empty", b""), ("short head", b"II*\0"), ("far directory", b"II*\0" + struct.pack("<I", 1 << 30)), ("no entries", b"II*\0" + struct.pack("<IH", 8, 0)),
                ("entries cut off", b"II*\0" + struct.pack("<IH", 8, 500) + b"\0" * 30), ("other magic", b"XX*\0" + struct.pack("<IH", 8, 0)),
                ("itself", b"II*\0" + struct.pack("<I", 0)), ("huge count", exif("<", 6, count=0xFFFFFFFF))):
    cases.append({"name": f"damaged: {name}", "file": in_jpeg(app1(e)).hex(), "damaged": True, "pillow": seen(Image.open(io.BytesIO(jpeg)))})

print(len(cases), "cases,", sum("refused" in c for c in cases), "refused by Pillow")
assert len({c["name"] for c in cases}) == len(cases)
with open("pillow.json.gz", "wb") as out:
    out.write(gzip.compress(json.dumps({"pillow": Image.__version__, "cases": cases}).encode(), 9, mtime=0))
