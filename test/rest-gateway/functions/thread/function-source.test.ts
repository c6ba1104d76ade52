import { expect, test } from "vitest";
import { withoutUnusedImports } from "../../../../rest-gateway/functions/thread/function-source.ts";

test("imports that only types have used are dropped, and lines stay the same", () => {
  const source = [
    'import { Row, read } from "./rows.ts";',
    'import Client, { Options as ClientOptions } from "npm:client";',
    "import {",
    "  Shape,",
    '} from "./shapes.ts";',
    'import "./effects.ts";',
    'import * as all from "./all.ts";',
    "read(all);",
  ].join("\n");
  const kept = withoutUnusedImports(source).split("\n");
  expect(kept).toHaveLength(8);
  expect(kept.filter((line) => line.trim() !== "").map((line) => line.replaceAll(/\s+/g, " "))).toEqual([
    'import { read } from "./rows.ts";',
    'import "./effects.ts";',
    'import * as all from "./all.ts";',
    "read(all);",
  ]);
});

test("comments use no names, and texts and regular expressions with their signs are no comments", () => {
  const source = [
    'import { Database, one, two } from "./types.ts";',
    "/* Database",
    " * is a type */",
    "call(); // Store the caption in the Database",
    'const at = "https://example.org/" + one;',
    "const quoted = text.replace(/\"\\/\\//, `it's //`) + two;",
  ].join("\n");
  expect(withoutUnusedImports(source)).toContain("import { one, two } from");
});

test("a name that is used anywhere else is kept", () => {
  const source = 'import a, { b as $c, d } from "x";\nconsole.log(a, $c, "d");';
  expect(withoutUnusedImports(source)).toBe(source);
});
