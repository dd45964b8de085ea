"use strict";
// Runs the simulator apart from the page. In: { module } once, then { id, text } for each run, and { id: null } to
// stop. Out: { id, progress }, { id, report, ms }, { id, error }. A newer message ends the run under way.
let module = null;
let current = null;
const SLICE_MS = 15;

// One run's own instance: a trap or a large memory does not outlive it.
function instance() {
  const wasm = new WebAssembly.Instance(module).exports;
  const answer = () => new TextDecoder().decode(
    new Uint8Array(wasm.memory.buffer, wasm.lfn_answer(), wasm.lfn_answer_bytes()));
  const give = (text) => {
    const bytes = new TextEncoder().encode(text);
    const at = wasm.lfn_text(bytes.length);
    new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
  };
  return { wasm, answer, give };
}

const pause = () => new Promise((done) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => { port1.close(); done(); };
  port2.postMessage(null);
});

async function run(id, text) {
  const began = performance.now();
  const { wasm, answer, give } = instance();
  try {
    give(text);
    if (wasm.lfn_begin()) return postMessage({ id, error: answer() });
    let part = 1e-6;
    let told = began;
    for (;;) {
      const before = performance.now();
      const progress = wasm.lfn_advance(part);
      const now = performance.now();
      if (progress >= 1) break;
      if (now - before < SLICE_MS / 2) part *= 2;
      if (now - before > 2 * SLICE_MS) part /= 2;
      if (now - told > 100) {
        told = now;
        postMessage({ id, progress });
      }
      await pause();
      if (current !== id) return undefined;
    }
    const failed = wasm.lfn_finish();
    const said = answer();
    if (failed) return postMessage({ id, error: said });
    return postMessage({ id, report: JSON.parse(said), ms: performance.now() - began });
  } catch (trap) {
    let why = "";
    try { why = answer(); } catch { /* the memory is damaged */ }
    return postMessage({ id, error: why || `the simulator stopped: ${trap.message}; it may need less memory` });
  }
}

onmessage = ({ data }) => {
  if (data.module) {
    module = data.module;
    const { wasm, answer } = instance();
    wasm.lfn_laws();
    postMessage({ laws: JSON.parse(answer()) });
    return;
  }
  current = data.id;
  if (data.id !== null) run(data.id, data.text);
};
