import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { useFolder } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";

const NAMES = ["1/a.txt", "1/b.txt"];

let ada: SupabaseClient;

const tokenOf = (claims: object) => jwt.sign(claims, SECRET);
const ADA = tokenOf({ role: "authenticated", sub: "1" });
const BOB = tokenOf({ role: "authenticated", sub: "2" });

const folder = useFolder("exposed-");
const service = useService({
  sql: `
    insert into storage.buckets (id, name) values ('notes', 'notes');
    create policy "own folder" on storage.objects to authenticated
      using ((storage.foldername(name))[1] = (select auth.uid())::text)
      with check ((storage.foldername(name))[1] = (select auth.uid())::text)`,
  settings: { STORAGE_DIR: folder, PGRST_DB_SCHEMAS: "public,storage" },
});
beforeAll(async () => {
  ada = createClient(service.url, ADA);
  for (const name of NAMES) expect((await ada.storage.from("notes").upload(name, `of ${name}`)).error).toBeNull();
});

async function call(path: string, token: string, body?: unknown) {
  const headers = { Authorization: `Bearer ${token}`, apikey: token, "Content-Type": "application/json" };
  const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
  const response = await fetch(service.url + path, init);
  return (await response.json()) as Record<string, never>;
}

describe("with the schema storage exposed", () => {
  test("/rest/v1 reads objects under their policies", async () => {
    const read = (token: string) =>
      createClient(service.url, token).schema("storage").from("objects").select("name, bucket_id").order("name");
    expect((await read(ADA)).data).toEqual(NAMES.map((name) => ({ name, bucket_id: "notes" })));
    expect((await read(BOB)).data).toEqual([]);
  });

  test("GraphQL reads objects under their policies", async () => {
    const query = "{ storageObjects { edges { node { name } } } }";
    expect(await call("/graphql", ADA, { query })).toMatchObject({
      data: { storageObjects: { edges: expect.arrayContaining(NAMES.map((name) => ({ node: { name } }))) } },
    });
    expect(await call("/graphql", BOB, { query })).toMatchObject({ data: { storageObjects: { edges: [] } } });
  });

  test("/api/v1 reads objects under their policies", async () => {
    expect(JSON.stringify(await call("/api/v1/objects", ADA))).toContain("1/a.txt");
    expect(JSON.stringify(await call("/api/v1/objects", BOB))).not.toContain("1/a.txt");
  });

  test("a row that is deleted there is no file any more", async () => {
    await ada.schema("storage").from("objects").delete().eq("name", "1/a.txt");
    expect((await ada.storage.from("notes").download("1/a.txt")).error).toMatchObject({ message: "Object not found" });
    expect((await ada.storage.from("notes").download("1/b.txt")).error).toBeNull();
  });

  test("a row that is written there takes no content of somebody else", async () => {
    const bob = createClient(service.url, BOB);
    const [{ content }] = (await ada.schema("storage").from("objects").select("content")).data as [{ content: string }];
    const row = { bucket_id: "notes", name: "2/thief", content };
    expect((await bob.schema("storage").from("objects").insert(row)).error).toBeNull();
    expect((await bob.storage.from("notes").download("2/thief")).error).toMatchObject({ message: "Object not found" });
  });

  test("metadata that a row's writer made up becomes no header, and fails no download", async () => {
    const notes = ada.storage.from("notes");
    await notes.upload("1/described.html", "<b>", { contentType: "text/html", cacheControl: "60" });
    const describe = (metadata: unknown) =>
      ada.schema("storage").from("objects").update({ metadata }).eq("name", "1/described.html").throwOnError();
    const headers = async () => {
      const response = await fetch(`${service.url}/storage/v1/object/notes/1/described.html`, {
        headers: { Authorization: `Bearer ${ADA}` },
      });
      expect([response.status, await response.text()]).toEqual([200, "<b>"]);
      return ["content-type", "cache-control", "set-cookie"].map((name) => response.headers.get(name));
    };
    expect(await headers()).toEqual(["text/plain", "private, max-age=60", null]);
    const unusable = [
      { cacheControl: "x\r\nSet-Cookie: a=b", mimetype: "a/b\nX: y" },
      { mimetype: {} },
      [],
      "text",
      null,
    ];
    for (const metadata of unusable) {
      await describe(metadata);
      expect(await headers()).toEqual(["application/octet-stream", "private, no-cache", null]);
      expect((await notes.info("1/described.html")).error).toBeNull();
      expect((await notes.list("1")).error).toBeNull();
    }
    const copied = await fetch(`${service.url}/storage/v1/object/copy`, {
      method: "POST",
      headers: { Authorization: `Bearer ${ADA}`, "Content-Type": "application/json" },
      body: JSON.stringify({
        ...{ bucketId: "notes", sourceKey: "1/b.txt", destinationKey: "1/copied.txt", copyMetadata: false },
        metadata: { cacheControl: "x\r\nSet-Cookie: a=b" },
      }),
    });
    expect([copied.status, await copied.text()]).toEqual([400, expect.stringContaining("printable ASCII")]);
  });
});
