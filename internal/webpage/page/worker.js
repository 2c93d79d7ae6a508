// What computes, away from the page: the program's own code for pictures and tables (inputs.wasm), and ONNX Runtime.
// Messages are answered in their order. The page starts this worker through a blob, so the page's policy holds here too.
const here = new URL(".", import.meta.url).href;
const arrays = { float32: Float32Array, float64: Float64Array, float16: Uint16Array, int64: BigInt64Array, int32: Int32Array, uint8: Uint8Array, bool: Uint8Array };
const batch = 256; // rows of a table at once
let ort, session;

// content fetches a file of the folder. told is called with the bytes that are there.
async function content(name, told = () => {}) {
  const answer = await fetch(here + name);
  if (!answer.ok) throw new Error(`${name}: the server answers ${answer.status}`);
  const parts = [];
  let size = 0;
  for (const reader = answer.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    told((size += value.length));
  }
  const all = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

// said returns what a function of inputs.wasm gives.
function said(out) {
  if (out.error !== undefined) throw new Error(out.error);
  return out;
}

async function open({ page }) {
  const step = (text, part) => postMessage({ step: text, part });
  step("Loading the code for pictures and tables…", 0);
  await import(here + "wasm_exec.js");
  const go = new Go();
  const { instance } = await WebAssembly.instantiate(await content("inputs.wasm"), go.importObject);
  go.run(instance);
  said(networkInputs.open(JSON.stringify(page.network)));
  step("Loading ONNX Runtime…", 0.1);
  ort = await import(here + page.module);
  ort.env.logLevel = "error";
  ort.env.wasm.numThreads = 1; // more need headers that a plain server does not send
  ort.env.wasm.wasmBinary = await content(page.assembly);
  step("Loading the model…", 0.3);
  const model = await content(page.model, (bytes) => step("Loading the model…", 0.3 + (0.5 * bytes) / page.bytes));
  step("Preparing the model…", 0.8);
  session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] });
  return {};
}

// run returns what the model gives for some examples: an array for each output, one example after the other.
async function run(tensors) {
  const feeds = {};
  for (const t of tensors) {
    const of = arrays[t.type];
    feeds[t.name] = new ort.Tensor(t.type, new of(t.data.buffer, t.data.byteOffset, t.data.byteLength / of.BYTES_PER_ELEMENT), t.dims);
  }
  const outputs = {};
  for (const [name, t] of Object.entries(await session.run(feeds))) {
    outputs[name] = { width: t.dims.length > 1 ? t.dims[1] : 1, data: Array.from(t.data, Number) };
  }
  for (const name of ["prob", "mean"]) {
    if (outputs[name] && !outputs[name].data.every(Number.isFinite)) throw new Error("the network's output is not finite");
  }
  return outputs;
}

async function picture({ bytes }) {
  const read = said(networkInputs.picture(new Uint8Array(bytes)));
  return { ...read, tensors: undefined, outputs: await run(read.tensors) };
}

async function table({ name, bytes }) {
  const read = said(networkInputs.table(name, new Uint8Array(bytes)));
  const outputs = {};
  for (let first = 0; first < read.rows; first += batch) {
    const some = await run(said(networkInputs.rows(first, Math.min(batch, read.rows - first))).tensors);
    for (const [name, o] of Object.entries(some)) {
      outputs[name] ??= { width: o.width, data: [] };
      for (const v of o.data) outputs[name].data.push(v);
    }
    postMessage({ rows: Math.min(first + batch, read.rows), of: read.rows });
  }
  return { ...read, outputs };
}

const jobs = { open, picture, table };
let last = Promise.resolve();
onmessage = ({ data }) => {
  last = last.then(async () => {
    try {
      postMessage({ id: data.id, result: await jobs[data.job](data) });
    } catch (e) {
      postMessage({ id: data.id, error: e.message || String(e) });
    }
  });
};
