import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { html, makeRenderPage } from "../../../rest-gateway/pages/page.ts";
import { PRODUCT_NAME } from "../../../rest-gateway/pages/product.ts";
import { REPOSITORY } from "../../repository.ts";

const page = (before?: ReturnType<typeof html>) =>
  makeRenderPage({ formTargets: [] })({ title: "A title", content: html`<p>x</p>`, ...(before && { before }) }).body!;

describe("pages of the service", () => {
  test("name the product, with its mark, and have the mark as their icon", () => {
    expect(page()).toMatch(
      new RegExp(`<header class="product"><svg class="mark" [^<>]*>.*</svg> ${PRODUCT_NAME}</header>`),
    );
    expect(page()).toContain('<link rel="icon" href="data:image/svg+xml,');
  });

  test("have a header of their own in its place", () => {
    expect(page(html`<header>Guide</header>`)).not.toContain(PRODUCT_NAME);
  });

  test("have the look of Studio", async () => {
    expect(page()).toContain(await readFile(join(REPOSITORY, "studio/tokens.css"), "utf8"));
  });
});

test("colours are in one file, except the series of charts", async () => {
  const folders = await Promise.all(
    ["studio", "rest-gateway"].map(async (folder) =>
      (await readdir(join(REPOSITORY, folder), { recursive: true }))
        .filter((name) => name.endsWith(".css"))
        .map((name) => join(folder, name)),
    ),
  );
  const coloured = await Promise.all(
    folders.flat().map(async (name) => {
      const styles = await readFile(join(REPOSITORY, name), "utf8");
      const others = styles.replaceAll(/^ *--series-\d: .*$/gm, "");
      return /#[\da-f]{3,8}\b(?=[^{}]*;)/i.test(others) ? name : null;
    }),
  );
  expect(coloured.filter((name) => name !== null).sort()).toEqual(["studio/tokens.css"]);
});
