import { hash } from "node:crypto";
import { cp, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { StudioFiles } from "../../../rest-gateway/studio/studio-files.ts";
import { useDatabase } from "../../database.ts";
import { useFolder } from "../../fixture.ts";
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
      expect(await response.text()).toMatch(/<script type="module" src="\/studio\/app@[\w-]{16}\/main.js"><\/script>/);
      nonces.add(policy);
    }
    expect(nonces.size).toBe(3);
  });

  test("the page names the files that it needs at first, with those of the part in its path", async () => {
    const files = await filesOf("/studio/people");
    const names = files.map((file) => file.replace(/^\/studio\/app@[\w-]+\//, ""));
    expect(new Set(names)).toEqual(new Set(["studio.css", "main.js", "common.js", "people-page.js"]));
    for (const file of files) expect({ file, status: (await get(file)).status }).toEqual({ file, status: 200 });
  });

  test("a part is a file of JavaScript without types and packages, and the editor is another", async () => {
    const response = await get("/studio/app/sql-page.js");
    const text = await response.text();
    expect(response.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(response.headers.get("cache-control")).toBe("no-cache");
    const imported = [...text.matchAll(/\bfrom\s*["'`]([^"'`]+)["'`]/g)].map(([, file]) => file);
    expect(new Set(imported)).toEqual(new Set(["./common.js", "./main.js"]));
    const editor = "cm-activeLine";
    expect(await (await get("/studio/app/code-mirror.js")).text()).toContain(editor);
    for (const file of await filesOf("/studio/sql")) expect(await (await get(file)).text()).not.toContain(editor);
  });

  test("a file of the page, and one that it loads later, may be kept for ever", async () => {
    const paths = await filesOf("/studio");
    const editor = paths[0]!.replace(/[^/]+$/, "code-mirror.js");
    for (const path of [...paths, editor]) {
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
    expect(await new StudioFiles().find(path!)).toMatchObject({ isLasting: true });
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

  test("the document that shows an e-mail runs its own script only, with an origin of its own, in Studio alone", async () => {
    const response = await get("/studio/app/email-frame.html");
    expect(response.status).toBe(200);
    const policy = response.headers.get("content-security-policy")!;
    expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-[\w+/=]+'; /);
    expect(policy).toMatch(/frame-ancestors 'self'; sandbox allow-scripts$/);
    const [, script] = /<script>(.*)<\/script>/s.exec(await response.text())!;
    expect(policy).toContain(`'sha256-${hash("sha256", script!, "base64")}'`);
  });

  test.each([
    "/studio/app/nothing.js",
    "/studio/app/tsconfig.json",
    "/studio/app/bundle.json",
    "/studio/app/..%2Fserver.ts",
    "/studio/app/frame/main.ts",
    "/studio/app/tables",
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

describe("a changed source of Studio", () => {
  const folder = useFolder("content-service-studio-");
  const sources = join(folder, "studio");
  beforeAll(async () => {
    await cp(join(REPOSITORY, "studio"), sources, { recursive: true });
    await symlink(join(REPOSITORY, "node_modules"), join(folder, "node_modules"));
  });

  const textOf = async (files: StudioFiles, path: string) => String((await files.find(path))?.content.plain.body);

  test.each([
    ["styles", "studio.css", "/* changed */", "\n/* changed */"],
    ["main", "frame/main.ts", "written-later", '\ndocument.title = "written-later";'],
  ] as const)("is in the next page, at a path of its own: %s", async (file, source, expected, added) => {
    const files = new StudioFiles(sources);
    const before = await files.pageFiles("tables");
    expect(await files.pageFiles("tables")).toEqual(before);
    expect(await textOf(files, before[file])).not.toContain(expected);
    await writeFile(join(sources, source), `${await readFile(join(sources, source), "utf8")}${added}`);
    const after = await files.pageFiles("tables");
    expect(after[file]).not.toBe(before[file]);
    expect(await textOf(files, after[file])).toContain(expected);
    // Browsers that still show the earlier page must not keep the new file for it.
    expect(await files.find(before[file])).toMatchObject({ isLasting: false });
  });

  test("is not read where the bundle was packed, as in packages and images", async () => {
    const packed = [{ name: "studio.css", text: "main {}", imports: [] }];
    await writeFile(join(sources, "bundle.json"), JSON.stringify(packed));
    const files = new StudioFiles(sources);
    const { styles } = await files.pageFiles("tables");
    expect(await textOf(files, styles)).toBe("main {}");
    await writeFile(join(sources, "bundle.json"), "[]");
    expect((await files.pageFiles("tables")).styles).toBe(styles);
  });

  test("that cannot be bundled is an error until it is mended", async () => {
    const broken = join(folder, "broken");
    await cp(join(REPOSITORY, "studio"), broken, { recursive: true });
    const main = join(broken, "frame/main.ts");
    const text = await readFile(main, "utf8");
    await writeFile(main, `${text}\nconst ;`);
    const files = new StudioFiles(broken);
    await expect(files.pageFiles("tables")).rejects.toThrow("main.ts");
    await writeFile(main, text);
    expect((await files.pageFiles("tables")).modules.length).toBe(3);
  });
});
