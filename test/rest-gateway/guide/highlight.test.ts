import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { highlight } from "../../../rest-gateway/guide/highlight.ts";
import { repositoryFiles } from "../../repository.ts";

const BLOCK = /^```(\w+)[^\n]*\n(.*?)^```$/gms;
const ENTITIES: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
};

const tokensOf = (code: string, language: string) =>
  [...highlight(code, language).text.matchAll(/<span class="(\w+)">(.*?)<\/span>/gs)].map(([, kind, text]) => [
    kind,
    text,
  ]);

describe("a highlighted sample", () => {
  test("keeps the text of every sample of the documentation", () => {
    const samples = repositoryFiles("*.md").flatMap((file) => [...readFileSync(file, "utf8").matchAll(BLOCK)]);
    expect(samples.length).toBeGreaterThan(300);
    const changed = samples.filter(([, language, code]) => {
      const shown = highlight(code!, language!).text.replace(/<\/?span[^>]*>/g, "");
      return shown.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => ENTITIES[entity]!) !== code;
    });
    expect(changed).toEqual([]);
  });

  test("shows markup in code as text, inside and outside of tokens", () => {
    expect(highlight(`a <b> "<i>"`, "js").text).toBe('a &lt;b&gt; <span class="string">&quot;&lt;i&gt;&quot;</span>');
  });

  test.each([
    ["sh", `# a\ncurl -s "$URL" | cd $X # b`, ["comment", "value", "string", "keyword", "value", "comment"]],
    ["sql", "select 'it''s' from t1 -- x\nwhere true", ["keyword", "string", "keyword", "comment", "keyword", "value"]],
    ["js", "const a = `x`; // it's\nreturn 7;", ["keyword", "string", "comment", "keyword", "value"]],
    ["json", '{"a": ["b", 1.5, null]}', ["keyword", "string", "value", "value"]],
    ["graphql", "query ($a: ID!) { b(c: 1) } # d", ["keyword", "value", "value", "comment"]],
    [
      "python",
      "from a import b  # it's\nprint('c', None)",
      ["keyword", "keyword", "comment", "keyword", "string", "value"],
    ],
    ["text", "select 1", []],
  ])("finds the tokens of %s", (language, code, kinds) => {
    expect(tokensOf(code, language).map(([kind]) => kind)).toEqual(kinds);
  });

  test("takes no part of a longer word for a keyword, and no address for a comment", () => {
    expect(tokensOf("created_at, update_own, a.select", "sql")).toEqual([]);
    expect(tokensOf("curl http://127.0.0.1/#a my-in do-it", "sh")).toEqual([]);
  });
});
