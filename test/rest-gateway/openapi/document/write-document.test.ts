import { hash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { printDocument } from "../../../../rest-gateway/openapi/document/printed-document.ts";
import { textOf } from "../text-of.ts";

const written = (document: Parameters<typeof printDocument>[0]) => textOf(printDocument(document));

describe("writing a document", () => {
  test("returns the length of the text, and its digest", async () => {
    const { bytes, digest } = await printDocument({ text: "é" });
    expect([bytes, digest]).toEqual([13, hash("sha256", '{"text":"é"}', "hex")]);
  });

  test("fails with the error of an entry", async () => {
    const failing = {
      *section(): Iterable<readonly [string, object]> {
        yield ["a", {}];
        throw new Error("no");
      },
    };
    await expect(printDocument(failing)).rejects.toThrow("no");
  });

  test("produces the JSON of the whole object", async () => {
    const entries: [string, object][] = [
      ["a", { x: [1, null], absent: undefined }],
      ['"é"', {}],
    ];
    const document = {
      text: "é",
      absent: undefined,
      list: [{ a: 1 }],
      empty: {},
      inner: { section: () => entries, none: () => [] },
    };
    const whole = { ...document, inner: { section: Object.fromEntries(entries), none: {} } };
    expect(await written(document)).toBe(JSON.stringify(whole));
  });

  test("yields to other requests while it is large", async () => {
    let turns = 0;
    let done = false;
    const count = () => {
      turns++;
      if (!done) setImmediate(count);
    };
    setImmediate(count);
    const text = "x".repeat(1_000);
    await printDocument({
      *section() {
        const until = performance.now() + 100;
        for (let index = 0; performance.now() < until; index++) yield [`${index}`, { text }] as const;
      },
    });
    done = true;
    expect(turns).toBeGreaterThan(3);
  });
});
