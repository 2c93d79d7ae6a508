"""Write frost.json: the published frost on drawn photographs: frost.py CHECKOUT [FOLDER].

CHECKOUT is github.com/hendrycks/robustness. Its functions run from there, with the random numbers of internal/corrupt. FOLDER
has other photographs, such as those of the authors. Then frost.json is written into it, with all values.
"""
import json
import os
import pathlib
import sys
import tempfile

import cv2
import numpy as np
from PIL import Image

here = pathlib.Path(__file__).parent.resolve()
sys.path.insert(0, str(here.parents[2] / "fixtures/shift"))
import corruptions


def drawn(k, h, w):
    y, x, c = np.mgrid[:h, :w, :3]
    return np.uint8((7 * y * y + 13 * x + 5 * x * y + 50 * c + 31 * k) % 256)


checkout, folder = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp()
os.chdir(folder)
if len(sys.argv) == 2:
    for k in range(1, 7):  # of the sizes of the authors' photographs, about
        cv2.imwrite(f"frost{k}." + ("png" if k < 4 else "jpg"), drawn(k, 240 + k, 260 - k))
    imread = cv2.imread
    cv2.imread = lambda f: drawn(int(f[-5]), 240 + int(f[-5]), 260 - int(f[-5]))[..., ::-1]  # JPEG would change them
out = []
for size, script in ((32, "make_cifar_c.py"), (224, "make_imagenet_c.py")):
    frost = corruptions.functions(checkout, script, size)["frost"]
    for severity in range(1, 6):
        for seed in range(3):
            np.random.randint = corruptions.Stream(seed).randint
            damaged = np.uint8(frost(Image.fromarray(drawn(9, size, size)), severity)).reshape(-1)
            out.append({"size": size, "severity": severity, "seed": seed, "want": damaged[:: 1 if len(sys.argv) > 2 else 997].tolist()})
(pathlib.Path(folder) if len(sys.argv) > 2 else here).joinpath("frost.json").write_text(json.dumps(out) + "\n")
