import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { findDenoImport } from "../../../../rest-gateway/functions/thread/deno-imports.ts";

test.each([
  ["jsr:@supabase/supabase-js@2", "@supabase/supabase-js", ""],
  ["jsr:@supabase/supabase-js@2/cors", "@supabase/supabase-js", "/cors"],
  ["jsr:/@hono/hono@^4/cors", "hono", "/cors"],
  ["jsr:@std/path@1/join", "@std/path", "/join"],
  ["https://esm.sh/@supabase/supabase-js@2.7.1", "@supabase/supabase-js", ""],
  ["https://esm.sh/v135/stripe@12.4.1?target=deno&no-check", "stripe", ""],
  ["https://esm.sh/*@scope/name@1.0.0&deps=zod@3/sub/path/?dts", "@scope/name", "/sub/path"],
  ["https://esm.sh/jsr/@std/path@1?bundle", "@std/path", ""],
  ["https://cdn.skypack.dev/date-fns@2", "date-fns", ""],
  ["https://cdn.jsdelivr.net/npm/marked@12/lib/marked.esm.js/+esm", "marked", "/lib/marked.esm.js"],
  ["https://deno.land/x/zod@v3.22.4/mod.ts", "zod", ""],
  ["https://deno.land/x/zod/mod.ts", "zod", ""],
  ["https://deno.land/x/postgresjs@v3.4.4/mod.js", "postgres", ""],
])("%s is %s%s of npm", (specifier, name, path) => {
  expect(findDenoImport(specifier)).toEqual({ kind: "npm", name, path, install: expect.any(String) });
});

test.each([
  ["https://deno.land/std@0.168.0/http/server.ts", "http-server", null],
  ["https://deno.land/std/encoding/base64.ts", "base64", null],
  ["jsr:@std/encoding@1.0/base64url", "base64url", null],
  ["jsr:@std/encoding/hex", "hex", null],
  ["https://deno.land/std@0.224.0/crypto/mod.ts", "crypto", null],
  ["jsr:@db/postgres@0.19", "postgres", null],
  [
    "https://deno.land/x/oak@v12.6.0/mod.ts",
    "oak",
    { specifier: "@oakserver/oak", install: "npm install @oakserver/oak@12" },
  ],
])("%s is the module %s of the service", (specifier, name, needs) => {
  const found = findDenoImport(specifier);
  expect(found).toEqual({ kind: "service", url: expect.stringContaining(`/deno-modules/${name}.`), needs });
  expect(existsSync(fileURLToPath(found!.kind === "service" ? found!.url : ""))).toBe(true);
});

test.each(["https://deno.land/std@0.1.0/dotenv/load.ts", "https://deno.land/x/xhr@0.3.0/mod.ts"])(
  "%s is empty",
  (specifier) => {
    expect(findDenoImport(specifier)).toEqual({ kind: "empty" });
  },
);

test.each([
  "https://deno.land/std@0.168.0/csv/mod.ts",
  "https://deno.land/x/zod@v3.22.4/types.ts",
  "https://esm.sh/gh/owner/name@1",
  "https://example.org/zod@3",
  "https://esm.sh.example.org/zod@3",
])("%s is no import of the table", (specifier) => {
  expect(findDenoImport(specifier)).toBeNull();
});
