import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { StudioFiles } from "../../../rest-gateway/studio/studio-files.ts";
import { useDatabase } from "../../database.ts";
import { REPOSITORY } from "../../repository.ts";
import { serve, useService } from "../../serve.ts";

describe("the files of /studio", () => {
  const database = useDatabase();
  const service = useService({ database });

  const get = (path: string, headers: Record<string, string> = {}) => fetch(service.url + path, { headers });

  /** The paths of scripts, styles and preloaded modules of the page. */
  async function filesOf(path: string): Promise<string[]> {
    const page = await (await get(path)).text();
    return [...page.matchAll(/(?:src|href)="(\/studio\/[^"]+)"/g)].map(([, file]) => file!);
  }

  test("every path of a page is answered with the same page, for a script and with a policy of its own", async () => {
    const nonces = new Set<string>();
    for (const path of ["/studio", "/studio/tables/public/users", "/studio/unknown"]) {
      const response = await get(path);
      const policy = response.headers.get("content-security-policy")!;
      expect(response.status).toBe(200);
      expect(policy).toMatch(
        /^default-src 'none'; script-src 'self'; style-src 'self' 'nonce-[\w+/=]+'; connect-src 'self';/,
      );
      expect(policy).toMatch(/frame-ancestors 'none'$/);
      expect(response.headers.get("cache-control")).toBe("no-store");
      expect(await response.text()).toMatch(
        /<script type="module" src="\/studio\/app@[\w-]{16}\/frame\/main.ts"><\/script>/,
      );
      nonces.add(policy);
    }
    expect(nonces.size).toBe(3);
  });

  test("the page names the modules that it needs at first, with those of the part in its path", async () => {
    const files = await filesOf("/studio/people");
    const names = files.map((file) => file.replace(/^\/studio\/app@[\w-]+\//, ""));
    expect(names).toContain("people/people-page.ts");
    expect(names).not.toContain("schema/schema-page.ts");
    expect(files.filter((file) => /\/preact@[\d.]+\/(dist|hooks\/dist)\/\w+\.mjs$/.test(file)).length).toBe(2);
    for (const file of files) expect({ file, status: (await get(file)).status }).toEqual({ file, status: 200 });
  });

  test("a module is JavaScript without types, whose packages are at paths of their versions", async () => {
    const response = await get("/studio/app/frame/main.ts");
    const text = await response.text();
    expect(response.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(response.headers.get("cache-control")).toBe("no-cache");
    expect(text).toMatch(/from "\/studio\/modules\/preact@[\d.]+\/dist\/preact\.mjs"/);
    expect(await (await get("/studio/app/html.ts")).text()).not.toContain("import { type");
  });

  // Node warns once per process, so this needs one of its own.
  test("types are stripped without a warning in the operator's console", async () => {
    const script = `
      const { StudioFiles } = await import("./rest-gateway/studio/studio-files.ts");
      const file = await new StudioFiles().find("/studio/app/html.ts");
      console.log((await file.content()).plain.body);`;
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
      cwd: REPOSITORY,
    });
    expect(stdout).toMatch(/import {\s+h,\s+} from "\/studio\/modules\/preact/);
    expect(stderr).toBe("");
  });

  test("a file of the page, of a package, and of the packages that it needs, may be kept for ever", async () => {
    const paths = await filesOf("/studio");
    expect(paths.length).toBeGreaterThan(80);
    const version = JSON.parse(
      readFileSync(join(REPOSITORY, "node_modules/@codemirror/view/package.json"), "utf8"),
    ).version;
    const view = await get(`/studio/modules/@codemirror/view@${version}/dist/index.js`);
    const [, styles] = /from "(\/studio\/modules\/style-mod@[^"]+)"/.exec((await view.text()).replaceAll("'", '"'))!;
    for (const path of [...paths, styles!]) {
      const response = await get(path);
      expect({ path, status: response.status, caching: response.headers.get("cache-control") }).toEqual({
        path,
        status: 200,
        caching: "public, max-age=31536000, immutable",
      });
    }
  });

  test("a file of another edition is sent as it is now, and asked for again the next time", async () => {
    const [now] = (await filesOf("/studio")).filter((file) => file.endsWith("/studio.css"));
    const other = now!.replace(/@[\w-]+/, "@another-edition0");
    const [response, current] = await Promise.all([get(other), get(now!)]);
    expect(response.headers.get("cache-control")).toBe("no-cache");
    expect(await response.text()).toBe(await current.text());
  });

  test("an edition is known to a process that has shown no page", async () => {
    const [path] = (await filesOf("/studio")).filter((file) => file.endsWith("/studio.css"));
    const file = await new StudioFiles().find(path!);
    const { headers } = (await file!.content()).plain;
    expect(headers["Cache-Control"]).toBe("public, max-age=31536000, immutable");
  });

  test("unchanged files are answered 304, and compressed for those who accept it", async () => {
    const first = await get("/studio/app/studio.css", { "Accept-Encoding": "br" });
    expect(first.headers.get("content-encoding")).toBe("br");
    const etag = first.headers.get("etag")!;
    const again = await get("/studio/app/studio.css", { "Accept-Encoding": "br", "If-None-Match": etag });
    expect(again.status).toBe(304);
    const plain = await get("/studio/app/studio.css", { "Accept-Encoding": "identity", "If-None-Match": etag });
    expect(plain.status).toBe(200);
  });

  test.each([
    "/studio/app/nothing.ts",
    "/studio/app/tsconfig.json",
    "/studio/app/..%2Fserver.ts",
    "/studio/app/tables",
    "/studio/modules/pg@8.23.1/lib/index.js",
    "/studio/modules/preact@0.0.0/dist/preact.mjs",
    "/studio/modules/preact@11.2.0/package.json",
  ])("%s is not served", async (path) => {
    expect((await get(path)).status).toBe(404);
  });

  test("only reads are allowed, and STUDIO=off serves nothing", async () => {
    expect((await fetch(`${service.url}/studio`, { method: "POST" })).status).toBe(405);
    const without = await serve(database, { STUDIO: "off" });
    expect((await fetch(`${without.url}/studio`)).status).toBe(404);
    await without.stop();
  });
});
