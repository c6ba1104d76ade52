/** Gives each sample a button that copies it. Runs in the browser, where that lets pages copy: not over plain HTTP from elsewhere. */
export const COPY = `
for (const sample of navigator.clipboard ? document.querySelectorAll("pre") : []) {
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
`;
