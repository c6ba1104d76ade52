// Shows the address of this service in samples, so that they can be copied as they are.

const EXAMPLE = "http://127.0.0.1:3000";

for (const code of document.querySelectorAll("pre:not(.output) > code")) {
  const texts = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text !== null; text = texts.nextNode()) {
    if (text.data.includes(EXAMPLE)) text.data = text.data.replaceAll(EXAMPLE, location.origin);
  }
}
