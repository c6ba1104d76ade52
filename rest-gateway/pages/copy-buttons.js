// Adds a copy button to each sample. Browsers allow it on HTTPS and localhost only.

for (const sample of navigator.clipboard ? document.querySelectorAll("pre:not(.output)") : []) {
  const frame = document.createElement("div");
  frame.className = "copied";
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(sample.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  sample.replaceWith(frame);
  frame.append(sample, button);
}
