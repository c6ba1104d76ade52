import { describe, expect, test } from "vitest";
import { renderMarkdown } from "../../../rest-gateway/guide/render-markdown.ts";

const toHtml = (markdown: string) => renderMarkdown(markdown, (target) => `/at/${target}`).content.text;

describe("a rendered page", () => {
  test("shows HTML of the source as text, in paragraphs, blocks, code, tables and attributes", () => {
    const evil = "<img src=x onerror=alert(1)>";
    const source = `# T\n\nA ${evil}\n\n${evil}\n\n\`${evil}\`\n\n| a | b | ${evil} |\n| --- | --- | --- |\n| ${evil} | 2 | 3 |\n`;
    const rendered = toHtml(source);
    expect(rendered).not.toContain("<img");
    expect(rendered.match(/&lt;img/g)).toHaveLength(6);
  });

  test("has anchors as GitHub makes them, and numbers for equal headings", () => {
    const source = "# T\n\n## Why `this`, not that?\n\n## Again\n\n### Again\n";
    expect([...toHtml(source).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)).toEqual([
      "why-this-not-that",
      "again",
      "again-1",
    ]);
    expect(renderMarkdown(source, () => null).sections.map(({ anchor }) => anchor)).toEqual([
      null,
      "why-this-not-that",
      "again",
      "again-1",
    ]);
  });

  test("leaves its title to the page", () => {
    const { title, content } = renderMarkdown("# Limits of `it`\n\nText.\n", () => null);
    expect(title).toBe("Limits of it");
    expect(content.text).not.toContain("<h1");
  });

  test("shows the text of links to files that are not served, without a link", () => {
    const resolve = (target: string) => (target === "known.md" ? "/known" : null);
    const { content } = renderMarkdown("# T\n\n[one](known.md) and [two](../server.ts)\n", resolve);
    expect(content.text).toBe('<p><a href="/known">one</a> and two</p>\n');
  });

  test("keeps addresses that are shown, and resolves the links of other texts", () => {
    const address = "http://127.0.0.1:3000/graphiql";
    expect(toHtml(`# T\n\n<${address}> [here](${address})\n`)).toBe(
      `<p><a href="${address}">${address}</a> <a href="/at/${address}">here</a></p>\n`,
    );
  });

  test("names the file of a code block, and the columns of a wide table in each row", () => {
    expect(toHtml("# T\n\n```ts session.ts\nconst a = 1;\n```\n")).toContain("<figcaption>session.ts</figcaption>");
    expect(toHtml("# T\n\n| a | `b` | c |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n")).toContain(
      '<td>1</td><td data-label="b">2</td><td data-label="c">3</td>',
    );
  });

  test("has sections of plain text for the search", () => {
    const source =
      "# T\n\nSee [the **page**](x.md).\n\n## Two\n\n| a | b |\n| --- | --- |\n| `x \\| y` | 2 |\n\n```sh\nnpm start\n```\n";
    expect(renderMarkdown(source, () => null).sections.map(({ text }) => text)).toEqual([
      "See the page.",
      "a · b x | y · 2 npm start",
    ]);
  });
});
