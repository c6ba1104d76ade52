import { execFile, spawnSync } from "node:child_process";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { createClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { useFixture, useFolder } from "../fixture.ts";
import { anonKey, openRealtimeFixture } from "../realtime/service.ts";
import { REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { ADDRESS } from "./five-minutes.ts";

/** A code block with a file name. */
const FILE = /^```(?:tsx?|python) (\S+)\n(.*?)^```$/gms;
const PASSWORD = "Tangerine-Boat-7";
const ACCOUNT = ["ada@example.org", PASSWORD] as const;

const hasPython = (...words: string[]) => spawnSync("python3", words).status === 0;
const python = hasPython("--version");
const supabasePackage = hasPython("-c", "import supabase");

/** Packages that exist only in an app, in memory. */
const STAND_INS = {
  "next/headers.js": `
    const jar = new Map();
    export const cookies = async () => ({
      get: (name) => jar.has(name) ? { value: jar.get(name) } : undefined,
      getAll: () => [...jar].map(([name, value]) => ({ name, value })),
      set: (name, value) => jar.set(name, value),
    });`,
  "react-native-url-polyfill/auto.js": "",
  "@react-native-async-storage/async-storage/index.js": `
    const items = new Map();
    export default {
      getItem: async (name) => items.get(name) ?? null,
      setItem: async (name, value) => void items.set(name, value),
      removeItem: async (name) => void items.delete(name),
    };`,
};

const folder = useFolder("content-service-guides-");
const fixture = useFixture(() => openRealtimeFixture("select"));
beforeAll(async () => {
  await fetch(`${fixture.service.url}/auth/register`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ name: "Ada", email: ACCOUNT[0], password: PASSWORD }),
  });
  for (const [file, text] of Object.entries(STAND_INS)) await write(`node_modules/${file}`, text);
  for (const [name, path] of [
    ["next", "headers"],
    ["react-native-url-polyfill", "auto"],
  ]) {
    const exports = { [`./${path}`]: `./${path}.js` };
    await write(`node_modules/${name}/package.json`, JSON.stringify({ type: "module", exports }));
  }
  const storage = JSON.stringify({ type: "module", exports: "./index.js" });
  await write("node_modules/@react-native-async-storage/async-storage/package.json", storage);
  for (const name of ["@supabase", "cookie"]) {
    await symlink(join(REPOSITORY, "node_modules", name), join(folder, "node_modules", name));
  }
  for (const guide of ["python", "nextjs", "react-native"]) {
    const text = await readFile(join(REPOSITORY, `docs/guides/${guide}.md`), "utf8");
    for (const [, name, code] of text.matchAll(FILE)) {
      await write(`${guide}/${name}`, code!.replaceAll(ADDRESS, fixture.service.url).replace("eyJ…", anonKey));
    }
  }
});

async function write(name: string, text: string): Promise<void> {
  await mkdir(dirname(join(folder, name)), { recursive: true });
  await writeFile(join(folder, name), text);
}

const load = (path: string) => import(pathToFileURL(join(folder, path)).href);

describe.skipIf(!python)("the Python guide", () => {
  const run = async (file: string) =>
    (await promisify(execFile)("python3", [file], { cwd: join(folder, "python") })).stdout;

  test("writes, reads and reports errors with the standard library, with the output that it shows", async () => {
    const guide = await readFile(join(REPOSITORY, "docs/guides/python.md"), "utf8");
    expect(guide).toContain(`\`\`\`text\n${await run("articles.py")}\`\`\``);
  });

  test("uploads and downloads CSV", async () => {
    expect(await run("bulk.py")).toMatch(/^\*\/10000\n\d{5} lines\n$/);
  });

  test.skipIf(!supabasePackage)("reads and watches with the package supabase", async () => {
    expect(await run("with_supabase.py")).toBe("[{'title': 'By supabase-py', 'author': {'name': 'Ada'}}]\n");
    expect(await run("watch.py")).toContain("Seen live");
  });
});

describe("the client of the Next.js guide", () => {
  test("signs in, keeps the tokens in cookies, refreshes them, and reads as the user", async () => {
    Object.assign(process.env, {
      NEXT_PUBLIC_SERVICE_URL: fixture.service.url,
      NEXT_PUBLIC_ANON_KEY: anonKey,
    });
    const { logIn, refresh, service, store } = await load("nextjs/lib/service.ts");
    const { cookies } = await load("node_modules/next/headers.js");
    expect(await logIn(ACCOUNT[0], "wrong")).toBeNull();
    const first = await logIn(...ACCOUNT);
    // Requests at the same time receive the same pair.
    const [pair, again] = await Promise.all([refresh(first.refreshToken), refresh(first.refreshToken)]);
    expect(again).toEqual(pair);
    expect(await refresh("none")).toBeNull();

    const writeArticle = async () =>
      (await (await service()).from("articles").insert({ title: "Cookies", content: "…" })).status;
    expect(await writeArticle()).toBe(401);
    store(await cookies(), pair);
    expect(await writeArticle()).toBe(201);
  });
});

test("the guide's client of @supabase/ssr keeps the session of supabase.auth in cookies, and reads as the user", async () => {
  const servers = createClient(fixture.service.url, jwt.sign({ role: "service_role" }, SECRET));
  const email = "grace@example.org";
  await servers.auth.admin.createUser({ email, password: PASSWORD, email_confirm: true });
  const { service } = await load("nextjs/lib/ssr.ts");
  const first = await service();
  expect((await first.auth.getUser()).data.user).toBeNull();
  expect((await first.from("articles").insert({ title: "Cookies", content: "…" })).status).toBe(401);
  const signedIn = await first.auth.signInWithPassword({ email, password: PASSWORD });
  expect(signedIn.error).toBeNull();

  // The next request has only the cookies.
  const next = await service();
  expect((await next.auth.getUser()).data.user.email).toBe(email);
  expect((await next.from("articles").insert({ title: "Cookies", content: "…" })).status).toBe(201);
  expect((await next.auth.signOut()).error).toBeNull();
  expect((await (await service()).auth.getUser()).data.user).toBeNull();
});

describe("the client of the React Native guide", () => {
  test("signs in, stays signed in when the app starts again, and signs out", async () => {
    const { restore, signIn, signOut, supabase } = await load("react-native/service.ts");
    expect(await restore()).toBe(false);
    expect(await signIn(ACCOUNT[0], "wrong")).toBe(false);
    expect(await signIn(...ACCOUNT)).toBe(true);
    expect((await supabase.from("articles").insert({ title: "Storage", content: "…" })).status).toBe(201);

    const { default: storage } = await load("node_modules/@react-native-async-storage/async-storage/index.js");
    const stored = JSON.parse(await storage.getItem("tokens"));
    await storage.setItem("tokens", JSON.stringify({ ...stored, expiresAt: Date.now() }));
    expect(await restore()).toBe(true);
    expect(JSON.parse(await storage.getItem("tokens")).refreshToken).not.toBe(stored.refreshToken);

    await signOut();
    expect(await storage.getItem("tokens")).toBeNull();
    expect((await supabase.from("articles").insert({ title: "Storage", content: "…" })).status).toBe(401);
    await supabase.realtime.disconnect();
  });
});
