import { expect, test } from "vitest";
import { resolveImport } from "../../../../rest-gateway/functions/thread/resolve-import.ts";

const map = {
  base: "file:///project/deno.json",
  imports: { zod: "npm:zod@3", "@shared/": "./_shared/", "https://esm.sh/jose@6": "npm:jose", cors: "./cors.ts" },
};
const specifierOf = (specifier: string) => {
  const target = resolveImport(specifier, map);
  return target.kind === "module" ? [target.specifier, target.parent] : target.kind;
};

test.each([
  ["npm:zod@3.22.4", ["zod", null]],
  ["npm:/zod", ["zod", null]],
  ["npm:@supabase/supabase-js@2/dist/module/index.js", ["@supabase/supabase-js/dist/module/index.js", null]],
  ["node:crypto", ["node:crypto", null]],
  ["./other.ts", ["./other.ts", null]],
  ["jose", ["jose", null]],
  // The import map has these
  ["zod", ["zod", null]],
  ["zod/v4", ["zod/v4", null]],
  ["cors", ["./cors.ts", map.base]],
  ["cors/more", ["cors/more", null]],
  ["@shared/a/b.ts", ["./_shared/a/b.ts", map.base]],
  ["https://esm.sh/jose@6", ["jose", null]],
  // The table has these
  ["https://esm.sh/lodash", ["lodash", null]],
  ["jsr:@supabase/supabase-js@2/cors", ["@supabase/supabase-js/cors", null]],
  ["https://deno.land/std@0.177.0/node/crypto.ts", ["node:crypto", null]],
  ["https://deno.land/std@0.177.0/node/fs/promises.ts", ["node:fs/promises", null]],
  ["https://deno.land/x/puppeteer@16.2.0/mod.ts", ["puppeteer-core", null]],
  ["jsr:@oak/oak@17/application", "service"],
  // Types have no content
  ["jsr:@supabase/functions-js/edge-runtime.d.ts", "empty"],
  ["jsr:@supabase/functions-js@2/edge-runtime.d.ts", "empty"],
  ["https://esm.sh/@supabase/functions-js/src/edge-runtime.d.ts", "empty"],
])("%s is %j", (specifier, expected) => {
  expect(specifierOf(specifier)).toEqual(expected);
});

test.each([
  [
    "https://deno.land/std@0.208.0/csv/mod.ts",
    'run npx jsr add @std/csv, and add to "imports" of deno.json: "https://deno.land/std@0.208.0/csv/mod.ts": "jsr:@std/csv"',
  ],
  [
    "https://deno.land/x/other@1.6.0/mod.ts",
    'run npm install <package>, and add to "imports" of deno.json: "https://deno.land/x/other@1.6.0/mod.ts": "npm:<package>"',
  ],
  [
    "https://deno.land/x/deno_dom@v0.1.45/deno-dom-wasm.ts",
    'run npm install linkedom, which has other exports, and add to "imports" of deno.json: "https://deno.land/x/deno_dom@v0.1.45/deno-dom-wasm.ts": "npm:linkedom"',
  ],
  // Newer versions of std have no such module, and jsr has no such package
  ["https://deno.land/std@0.177.0/hash/mod.ts", "run npm install <package>, and add"],
  ["https://deno.land/std@0.177.0/node/other.ts", "run npm install <package>, and add"],
  ["data:text/javascript,export {}", "imports by data: and blob: are not supported"],
])("%s is refused", (specifier, reason) => {
  expect(resolveImport(specifier, map)).toEqual({ kind: "refused", reason: expect.stringContaining(reason) });
});

test.each([
  ["npm:zod@3.22.4", "npm install zod@3.22.4"],
  ["npm:zod@^3 || ^4", 'npm install "zod@^3 || ^4"'],
  ["jsr:@supabase/supabase-js@2/cors", "npm install @supabase/supabase-js@2"],
  ["jsr:@std/path@1/join", "npx jsr add @std/path@1"],
  ["zod", "npm install zod@3"],
  ["https://deno.land/x/zod@v3.22.4/mod.ts", "npm install zod@3"],
])("the package of %s is installed by %s", (specifier, command) => {
  expect(resolveImport(specifier, map)).toMatchObject({ kind: "module", install: command });
});

test("a project extends the table by its import map, which comes first", () => {
  const imports = { "https://deno.land/std@0.168.0/http/server.ts": "./serve.ts", oak: "jsr:@oak/oak@17" };
  const own = { base: map.base, imports };
  expect(resolveImport("https://deno.land/std@0.168.0/http/server.ts", own)).toMatchObject({ specifier: "./serve.ts" });
  expect(resolveImport("https://deno.land/std@0.167.0/http/server.ts", own)).toMatchObject({ kind: "service" });
  expect(resolveImport("oak", own)).toMatchObject({
    kind: "service",
    needs: { install: "npm install @oakserver/oak@17" },
  });
});
