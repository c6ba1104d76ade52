import { isBuiltin } from "node:module";
import { extname } from "node:path";

/** The target of an import by `jsr:` or `https:`. */
export type DenoImport =
  | { readonly kind: "npm"; readonly name: string; readonly path: string; readonly install: string }
  /** A module of `deno-modules`, and the package of the project that it imports. */
  | { readonly kind: "service"; readonly url: string; readonly needs: NeededPackage | null }
  /** A module of Node, such as `node:crypto`. */
  | { readonly kind: "builtin"; readonly specifier: string }
  | { readonly kind: "empty" };

type NeededPackage = { readonly specifier: string; readonly install: string };

/**
 * The table of mappings. The keys are imports without their version, the values packages of npm with the same versions, modules of
 * `deno-modules`, or `empty`. A project extends it by its import map, which comes first.
 */
const MODULES: Readonly<Record<string, string>> = {
  "https://deno.land/std/http/server.ts": "service:http-server",
  "https://deno.land/std/http/http_status.ts": "service:http-status",
  "https://deno.land/std/http/status.ts": "service:http-status",
  "https://deno.land/std/async/delay.ts": "service:delay",
  "https://deno.land/std/path/mod.ts": "service:path",
  "https://deno.land/std/path/posix/mod.ts": "service:path",
  "https://deno.land/std/uuid/mod.ts": "service:uuid",
  "https://deno.land/std/uuid/v4.ts": "service:uuid-v4",
  "https://deno.land/std/encoding/base32.ts": "service:base32",
  "https://deno.land/std/encoding/base64.ts": "service:base64",
  "https://deno.land/std/encoding/base64url.ts": "service:base64url",
  "https://deno.land/std/encoding/hex.ts": "service:hex",
  "https://deno.land/std/crypto/mod.ts": "service:crypto",
  "https://deno.land/std/crypto/crypto.ts": "service:crypto",
  "https://deno.land/std/crypto/timing_safe_equal.ts": "service:crypto",
  // The file .env of the functions is in `Deno.env` already.
  "https://deno.land/std/dotenv/load.ts": "empty",
  "https://deno.land/std/dotenv/mod.ts": "service:dotenv",
  "https://deno.land/x/dotenv/load.ts": "empty",
  "https://deno.land/x/dotenv/mod.ts": "service:dotenv",
  "jsr:@std/async/delay": "service:delay",
  "jsr:@std/dotenv": "service:dotenv",
  "jsr:@std/http/status": "service:http-status",
  "jsr:@std/encoding/base32": "service:base32",
  "jsr:@std/encoding/base64": "service:base64",
  "jsr:@std/encoding/base64url": "service:base64url",
  "jsr:@std/encoding/hex": "service:hex",
  "jsr:@std/crypto": "service:crypto",
  "jsr:@std/crypto/crypto": "service:crypto",
  "jsr:@std/crypto/timing-safe-equal": "service:crypto",
  "jsr:@std/dotenv/load": "empty",
  "jsr:@supabase/supabase-js": "npm:@supabase/supabase-js",
  "jsr:@supabase/functions-js": "npm:@supabase/functions-js",
  "jsr:@supabase/server": "npm:@supabase/server",
  "jsr:@supabase/ssr": "npm:@supabase/ssr",
  "jsr:@hono/hono": "npm:hono",
  "jsr:@zod/zod": "npm:zod",
  "jsr:@openai/openai": "npm:openai",
  "jsr:@panva/jose": "npm:jose",
  "jsr:@upstash/redis": "npm:@upstash/redis",
  "jsr:@oak/oak": "service:oak",
  "jsr:@oak/oak/application": "service:oak",
  "jsr:@oak/oak/router": "service:oak",
  "jsr:@db/postgres": "service:postgres",
  "https://deno.land/x/oak/mod.ts": "service:oak",
  "https://deno.land/x/postgres/mod.ts": "service:postgres",
  "https://deno.land/x/postgresjs/mod.js": "npm:postgres",
  "https://deno.land/x/zod/mod.ts": "npm:zod",
  "https://deno.land/x/zod/index.ts": "npm:zod",
  "https://deno.land/x/openai/mod.ts": "npm:openai",
  "https://deno.land/x/hono/mod.ts": "npm:hono",
  "https://deno.land/x/jose/index.ts": "npm:jose",
  "https://deno.land/x/grammy/mod.ts": "npm:grammy",
  "https://deno.land/x/upstash_redis/mod.ts": "npm:@upstash/redis",
  "https://deno.land/x/supabase/mod.ts": "npm:@supabase/supabase-js",
  "https://deno.land/x/puppeteer/mod.ts": "npm:puppeteer-core",
  "https://deno.land/x/slack_web_api/mod.js": "npm:@slack/web-api",
  "https://deno.land/x/imagescript/mod.ts": "npm:imagescript",
  "https://deno.land/x/sentry/index.mjs": "npm:@sentry/deno",
  "https://deno.land/x/djwt/mod.ts": "service:djwt",
  "https://deno.land/x/bcrypt/mod.ts": "service:bcrypt",
  "https://deno.land/x/denomailer/mod.ts": "service:denomailer",
  "https://deno.land/x/smtp/mod.ts": "service:denomailer",
  // Packages of npm use fetch or Node's requests, and need no XMLHttpRequest.
  "https://deno.land/x/xhr/mod.ts": "empty",
};

/** The packages that modules of the service import from the project. */
const NEEDED_PACKAGES: Readonly<Record<string, string>> = { oak: "@oakserver/oak" };

/** Packages of npm with other exports, which help where no exact one exists. */
const SIMILAR_PACKAGES: Readonly<Record<string, string>> = {
  "x/deno_dom": "linkedom",
  "x/sift": "hono",
  "x/cors": "hono",
  "x/oauth2_client": "oauth4webapi",
  "x/og_edge": "@vercel/og",
  "x/qrcode": "qrcode",
};
/** Folders of `https://deno.land/std` that are no packages of jsr. */
const REMOVED_FROM_STD: ReadonlySet<string> = new Set(["hash", "node"]);

const JSR = /^jsr:\/?(@[^/@]+\/[^/@]+)(?:@([^/]+))?(\/.*)?$/;
const DENO_LAND = /^https:\/\/deno\.land\/(std|x\/[^/@]+)(?:@v?(\d+)?[^/]*)?(\/.*)$/;
/** Servers that make modules of npm packages: `https://esm.sh/v135/@scope/name@1.2.3/path?target=deno`. */
const CDN =
  /^https:\/\/(?:esm\.sh\/(?:(?:stable|v\d+)\/)?\*?|cdn\.skypack\.dev\/)((?:@[^/@]+\/)?[^/@?&:]+)(?:@([^/?&]+))?(?:&[^/?]*)?(\/[^?]*)?(?:\?.*)?$/;
const JSDELIVR = /^https:\/\/cdn\.jsdelivr\.net\/npm\/((?:@[^/@]+\/)?[^/@]+)(?:@([^/]+))?(\/.+)?\/\+esm$/;
/** Names at esm.sh for sources that are no npm packages. */
const OTHER_SOURCES: ReadonlySet<string> = new Set(["gh", "jsr", "pr", "gist"]);

/** Returns the module for an import of Deno; null if there is none. */
export function findDenoImport(specifier: string): DenoImport | null {
  const esmOfJsr = specifier.replace(/^https:\/\/esm\.sh\/jsr\/([^?]*).*$/, "jsr:$1");
  const jsr = JSR.exec(esmOfJsr);
  if (jsr) return findJsrImport(jsr[1]!, jsr[2] ?? null, jsr[3] ?? "");
  // Not each version was published at both places.
  const [, folder, major, file] = DENO_LAND.exec(specifier) ?? [];
  const [, builtin] = (folder === "std" && /^\/node\/([\w/]+)\.ts$/.exec(file ?? "")) || [];
  if (builtin !== undefined && isBuiltin(builtin)) return { kind: "builtin", specifier: `node:${builtin}` };
  const listed = MODULES[`https://deno.land/${folder}${file}`];
  if (listed !== undefined) return toTarget(listed, major ?? null, "");
  const [, name, version, path] = CDN.exec(specifier) ?? JSDELIVR.exec(specifier) ?? [];
  if (name === undefined || OTHER_SOURCES.has(name)) return null;
  return toTarget(`npm:${name}`, version ?? null, path?.replace(/\/$/, "") ?? "");
}

/** Any other package of jsr is the one that `npx jsr add` installs, whose name is the same. */
function findJsrImport(name: string, version: string | null, path: string): DenoImport {
  const exact = MODULES[`jsr:${name}${path}`];
  if (exact !== undefined) return toTarget(exact, version, "");
  const ofPackage = MODULES[`jsr:${name}`];
  if (ofPackage?.startsWith("npm:")) return toTarget(ofPackage, version, path);
  return { kind: "npm", name, path, install: explainJsrInstall(name, version) };
}

function toTarget(listed: string, version: string | null, path: string): DenoImport {
  if (listed === "empty") return { kind: "empty" };
  const [kind, name] = listed.split(/:(.*)/) as [string, string];
  if (kind === "npm") return { kind: "npm", name, path, install: explainInstall(name, version) };
  const needed = NEEDED_PACKAGES[name];
  const needs = needed === undefined ? null : { specifier: needed, install: explainInstall(needed, version) };
  const extension = needs === null ? extname(import.meta.filename) : ".mjs";
  return { kind: "service", url: `${DENO_MODULES}${name}${extension}`, needs };
}

/** The folder of the service's own modules. */
export const DENO_MODULES = new URL("./deno-modules/", import.meta.url).href;

export function explainInstall(name: string, version: string | null): string {
  return `npm install ${withVersion(name, version)}`;
}

function explainJsrInstall(name: string, version: string | null): string {
  return `npx jsr add ${withVersion(name, version)}`;
}

/** Quotes versions such as `^2 || ^3`, which mean something to a shell. */
function withVersion(name: string, version: string | null): string {
  if (version === null) return name;
  return /^[\w.-]+$/.test(version) ? `${name}@${version}` : `"${name}@${version}"`;
}

/** Returns the package of jsr that has a module of `https://deno.land/std`, perhaps with other exports. */
export function findStandardPackage(specifier: string): string | null {
  const [, folder, , file = ""] = DENO_LAND.exec(specifier) ?? [];
  if (folder !== "std") return null;
  const [name, ...path] = file
    .replace(/\.ts$/, "")
    .replace(/\/mod$/, "")
    .replaceAll("_", "-")
    .split("/")
    .filter((part) => part !== "");
  return name === undefined || REMOVED_FROM_STD.has(name) ? null : ["@std", name, ...path].join("/");
}

/** Returns the package of npm that a function can be changed to use. */
export function findSimilarPackage(specifier: string): string | null {
  const [, folder = ""] = DENO_LAND.exec(specifier) ?? [];
  return SIMILAR_PACKAGES[folder] ?? null;
}
