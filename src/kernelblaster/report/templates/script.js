"use strict";
// Long texts are packed (report/packing.py): unpacked once per problem, when the first of them is opened.
const packs = new Map();
function unpack(id) {
  if (!packs.has(id)) {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    packs.set(id, new Response(stream).json());
  }
  return packs.get(id);
}
document.addEventListener("toggle", async (event) => {
  const opened = event.target;
  if (!opened.open || !opened.dataset.pack) return;
  const shown = opened.querySelector("pre");
  if (shown.textContent) return;
  try {
    shown.textContent = (await unpack(opened.dataset.pack))[Number(opened.dataset.number)];
  } catch (error) {
    shown.textContent = "this browser cannot unpack it: " + error;
  }
}, true);
function reveal() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  if (target) target.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();
