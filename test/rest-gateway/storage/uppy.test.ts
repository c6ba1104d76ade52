import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../../browser.ts";
import { useFixture, useFolder } from "../../fixture.ts";
import { REPOSITORY } from "../../repository.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";

/** The code on Supabase's page about resumable uploads. */
const PAGE = `
  import Uppy from "@uppy/core";
  import Tus from "@uppy/tus";
  window.upload = async ({ url, token, bytes }) => {
    const uppy = new Uppy().use(Tus, {
      endpoint: url + "/storage/v1/upload/resumable",
      headers: { authorization: "Bearer " + token },
      chunkSize: 64 * 1024,
      allowedMetaFields: ["bucketName", "objectName", "contentType", "cacheControl"],
    });
    uppy.on("file-added", (file) => uppy.setFileMeta(file.id, {
      bucketName: "notes", objectName: "1/" + file.name, contentType: file.type,
    }));
    for (const name of ["one.txt", "two ü.txt"])
      uppy.addFile({ name, type: "text/plain", data: new Blob(["x".repeat(bytes)], { type: "text/plain" }) });
    const { successful, failed } = await uppy.upload();
    return { successful: successful.map(({ name }) => name).sort(), failed: failed.map(({ error }) => error) };
  };`;

async function bundle(): Promise<string> {
  const entry = join(REPOSITORY, "uppy-page.js");
  const build = await rolldown({
    input: entry,
    platform: "browser",
    transform: { define: { "process.env.NODE_ENV": '"production"' } },
    plugins: [
      { name: "entry", resolveId: (id) => (id === entry ? id : null), load: (id) => (id === entry ? PAGE : null) },
    ],
    logLevel: "silent",
  });
  const { output } = await build.generate({ format: "esm", codeSplitting: false });
  await build.close();
  return output[0].code;
}

describeInBrowser("Uppy, unmodified, in a page of another site", () => {
  let site: Server;

  const folder = useFolder("uppy-");
  beforeAll(async () => {
    const script = await bundle();
    site = createServer(({ url }, response) => {
      const isScript = url === "/page.js";
      const html = '<!doctype html><title>Uppy</title><script type="module" src="/page.js"></script>';
      response.setHeader("Content-Type", isScript ? "text/javascript" : "text/html").end(isScript ? script : html);
    }).listen(0, "127.0.0.1");
    await once(site, "listening");
  });
  const service = useService({
    sql: `
      insert into storage.buckets (id, name) values ('notes', 'notes');
      create policy "own folder" on storage.objects to authenticated
        using ((storage.foldername(name))[1] = (select auth.uid())::text)
        with check ((storage.foldername(name))[1] = (select auth.uid())::text)`,
    settings: { STORAGE_DIR: folder },
  });
  const browser = useFixture(launchBrowser);
  afterAll(() => void site.close());

  test("uploads files in parts, under the policies of its user", async () => {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`);
    await page.waitForFunction("window.upload");
    const uploadAs = (sub: string) => {
      const token = jwt.sign({ role: "authenticated", sub }, SECRET);
      return page.evaluate(
        (sent) =>
          (
            globalThis as unknown as { upload(sent: object): Promise<{ successful: string[]; failed: string[] }> }
          ).upload(sent),
        { url: service.url, token, bytes: 200_000 },
      );
    };
    expect(await uploadAs("1")).toEqual({ successful: ["one.txt", "two ü.txt"], failed: [] });
    const ada = createClient(service.url, jwt.sign({ role: "authenticated", sub: "1" }, SECRET));
    const { data } = await ada.storage.from("notes").download("1/two ü.txt");
    expect([data!.size, data!.type]).toEqual([200_000, "text/plain"]);
    const refused = await uploadAs("2");
    expect([refused.successful, refused.failed.length]).toEqual([[], 2]);
  });
});
