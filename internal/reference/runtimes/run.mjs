// Runs a model in onnxruntime-node. The last argument is a file that says what to run: internal/reference/elsewhere.go.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
process.on("uncaughtException", (e) => {
  console.error(e.message.replace(/\s+/g, " "));
  process.exit(1);
});
let ort;
try {
  ort = createRequire(process.cwd() + "/")("onnxruntime-node");
} catch (e) {
  console.error(e.message.split("\n")[0]);
  process.exit(69);
}
const fields = readFileSync(process.argv.at(-1), "utf8").split("\0"), lines = [];
for (let i = 0; i + 5 < fields.length; i += 5) lines.push(fields.slice(i, i + 5));
const arrays = { float32: Float32Array, float64: Float64Array, float16: Uint16Array, int64: BigInt64Array, int32: Int32Array, uint8: Uint8Array, bool: Uint8Array };
const feeds = {}, wanted = lines.filter((x) => x[0] === "output");
for (const [, name, type, shape, file] of lines.filter((x) => x[0] === "input")) {
  const bytes = readFileSync(file);
  const elements = new arrays[type](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  feeds[name] = new ort.Tensor(type, elements, shape.split(",").filter(Boolean).map(Number));
}
const session = await ort.InferenceSession.create(lines[0][1]);
const results = await session.run(feeds, wanted.map((x) => x[1]));
// half returns the number with the bits of a float16, which older versions of Node have no array for.
function half(bits) {
  const exponent = (bits >> 10) & 31, fraction = (bits & 1023) / 1024;
  const size = exponent === 31 ? (fraction ? NaN : Infinity) : exponent ? (1 + fraction) * 2 ** (exponent - 15) : fraction * 2 ** -14;
  return bits >> 15 ? -size : size;
}
for (const [, name, , file] of wanted) {
  const { type, data } = results[name];
  writeFileSync(file, new Uint8Array(Float64Array.from(data, type === "float16" && data instanceof Uint16Array ? half : Number).buffer));
}
console.log(ort.env.versions.node ?? ort.env.versions.common);
