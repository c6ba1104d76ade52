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
  // By the import map
  ["zod", ["zod", null]],
  ["zod/v4", ["zod/v4", null]],
  ["cors", ["./cors.ts", map.base]],
  ["cors/more", ["cors/more", null]],
  ["@shared/a/b.ts", ["./_shared/a/b.ts", map.base]],
  ["https://esm.sh/jose@6", ["jose", null]],
  // Types have no content
  ["jsr:@supabase/functions-js/edge-runtime.d.ts", "empty"],
  ["jsr:@supabase/functions-js@2/edge-runtime.d.ts", "empty"],
  ["https://esm.sh/@supabase/functions-js/src/edge-runtime.d.ts", "empty"],
])("%s is %j", (specifier, expected) => {
  expect(specifierOf(specifier)).toEqual(expected);
});

test.each([
  ["https://deno.land/std@0.168.0/http/server.ts", "call Deno.serve instead of serve"],
  ["https://esm.sh/lodash", 'import "npm:<package>" or map the import in deno.json'],
  ["jsr:@std/encoding@1/base64", "jsr is not supported"],
])("%s is refused", (specifier, reason) => {
  expect(resolveImport(specifier, map)).toEqual({ kind: "refused", reason: expect.stringContaining(reason) });
});
