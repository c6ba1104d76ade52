import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { compileJsx } from "../../../../rest-gateway/functions/thread/compile-jsx.ts";
import { useFixture } from "../../../fixture.ts";

/** A project whose compiler returns its options. */
const project = useFixture(async () => {
  const folder = await mkdtemp(join(tmpdir(), "functions-jsx-"));
  const compiler = join(folder, "with/node_modules/esbuild");
  await mkdir(compiler, { recursive: true });
  await writeFile(
    join(compiler, "index.js"),
    "exports.transformSync = (source, options) => ({ code: JSON.stringify({ source, ...options }) });",
  );
  const urlOf = (path: string) => pathToFileURL(join(folder, path)).href;
  return { urlOf, remove: () => rm(folder, { recursive: true }) };
});
const optionsOf = (jsx: Parameters<typeof compileJsx>[2]) =>
  JSON.parse(compileJsx("<a />", project.urlOf("with/index.tsx"), jsx)) as Record<string, unknown>;

test("a project without a compiler gets the command that installs it", () => {
  expect(() => compileJsx("<a />", project.urlOf("index.tsx"), null)).toThrow("npm install esbuild");
});

test.each([
  [null, { jsx: "transform" }],
  [
    { jsx: "react", jsxFactory: "h", jsxFragmentFactory: "Fragment" },
    { jsx: "transform", jsxFactory: "h", jsxFragment: "Fragment" },
  ],
  [
    { jsx: "react-jsx", jsxImportSource: "npm:preact" },
    { jsx: "automatic", jsxImportSource: "npm:preact" },
  ],
  [{ jsx: "precompile" }, { jsx: "automatic" }],
])("the compiler options %j of deno.json are %j", (options, expected) => {
  const { jsx, jsxFactory, jsxFragment, jsxImportSource, source } = optionsOf(options);
  expect(JSON.parse(JSON.stringify({ jsx, jsxFactory, jsxFragment, jsxImportSource }))).toEqual(expected);
  expect(source).toBe("<a />");
});
