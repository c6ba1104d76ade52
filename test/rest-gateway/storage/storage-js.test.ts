import { readdir } from "node:fs/promises";
import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import pg from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import { collectFiles, makeFolderStore } from "../../../cluster/files/index.ts";
import type { AsOwner } from "../../../postgres/database/index.ts";
import { useDatabase } from "../../database.ts";
import { useFolder } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";

let ada: SupabaseClient;
let bob: SupabaseClient;
let stranger: SupabaseClient;
let operator: SupabaseClient;

/** Runs statements as the DBA. */
async function withOwner(text: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  try {
    return await client.query(text);
  } finally {
    await client.end();
  }
}

const folder = useFolder("files-");
const database = useDatabase();
beforeAll(async () => {
  await withOwner(`
    insert into storage.buckets (id, name, public) values ('notes', 'notes', false), ('pictures', 'pictures', true);
    create policy "own folder" on storage.objects to authenticated
      using ((storage.foldername(name))[1] = (select auth.uid())::text)
      with check ((storage.foldername(name))[1] = (select auth.uid())::text);
    create policy "buckets" on storage.buckets for select to authenticated using (true)`);
});
const service = useService({ database, settings: { STORAGE_DIR: folder } });
beforeAll(async () => {
  const client = (claims: object) => createClient(service.url, jwt.sign(claims, SECRET));
  ada = client({ role: "authenticated", sub: "1" });
  bob = client({ role: "authenticated", sub: "2" });
  stranger = client({ role: "anon" });
  operator = client({ role: "service_role" });
});

const tokenOf = (sub: string) => jwt.sign({ role: "authenticated", sub }, SECRET);
const notes = (client: SupabaseClient) => client.storage.from("notes");

async function textOf(download: Promise<{ data: Blob | null }>): Promise<string> {
  return (await download).data!.text();
}

describe("uploads", () => {
  test("a text is downloaded as it was, by those who may read it", async () => {
    const { data, error } = await notes(ada).upload("1/a b/ü+.txt", "Hello", { contentType: "text/plain" });
    expect(error).toBeNull();
    expect(data).toEqual({
      path: "1/a b/ü+.txt",
      fullPath: "notes/1/a b/ü+.txt",
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect(await textOf(notes(ada).download("1/a b/ü+.txt"))).toBe("Hello");
    for (const other of [bob, stranger]) {
      const refused = await notes(other).download("1/a b/ü+.txt");
      expect(refused.error).toMatchObject({ message: "Object not found", status: 400, statusCode: "404" });
    }
  });

  test("a form, a Blob, a Buffer and a stream are one content each", async () => {
    const form = new FormData();
    form.append("file", new Blob(["from a form"], { type: "text/csv" }), "x.csv");
    const bodies = {
      form,
      blob: new Blob(["from a blob"]),
      buffer: Buffer.from("from a buffer"),
      stream: new Blob(["from a stream"]).stream(),
    };
    for (const [name, body] of Object.entries(bodies)) {
      const { error } = await notes(ada).upload(`1/kinds/${name}`, body);
      expect([name, error]).toEqual([name, null]);
      expect(await textOf(notes(ada).download(`1/kinds/${name}`))).toBe(`from a ${name}`);
    }
    const { data } = await notes(ada).info("1/kinds/form");
    expect(data).toMatchObject({ contentType: "text/csv", size: 11, cacheControl: "max-age=3600" });
  });

  test("metadata of the uploader is returned by info, for a form and for a content", async () => {
    for (const body of ["text", new Blob(["text"])]) {
      await notes(ada).upload("1/described", body, { metadata: { colour: "grün" }, upsert: true });
      const { data } = await notes(ada).info("1/described");
      expect(data!.metadata).toEqual({ colour: "grün" });
    }
  });

  test("info has an empty object where the uploader has sent no metadata, and the tag of the object in its headers", async () => {
    for (const [name, body] of Object.entries({ text: "text", blob: new Blob(["text"]) })) {
      await notes(ada).upload(`1/plain/${name}`, body);
      const { data } = await notes(ada).info(`1/plain/${name}`);
      expect(data!.metadata).toEqual({});
      for (const method of ["HEAD", "GET"]) {
        const response = await fetch(`${service.url}/storage/v1/object/info/notes/1/plain/${name}`, {
          method,
          headers: { apikey: tokenOf("1") },
        });
        expect([response.status, response.headers.get("ETag")]).toEqual([200, data!.etag]);
        expect(Date.parse(response.headers.get("Last-Modified")!)).not.toBeNaN();
      }
    }
  });

  test("a name that is taken is refused, unless the upload replaces it", async () => {
    await notes(ada).upload("1/once", "first");
    const again = await notes(ada).upload("1/once", "second");
    expect(again.error).toMatchObject({ message: "The resource already exists", statusCode: "409" });
    expect(await textOf(notes(ada).download("1/once"))).toBe("first");
    await notes(ada).upload("1/once", "third", { upsert: true });
    expect(await textOf(notes(ada).download("1/once"))).toBe("third");
    await notes(ada).update("1/once", "fourth");
    expect(await textOf(notes(ada).download("1/once"))).toBe("fourth");
  });

  test("the policies of storage.objects refuse before anything is written", async () => {
    const before = await contents();
    for (const client of [bob, stranger]) {
      const { error } = await notes(client).upload("1/foreign", randomText());
      expect(error).toMatchObject({ message: "new row violates row-level security policy", statusCode: "403" });
    }
    const { error } = await ada.storage.from("nowhere").upload("1/x", randomText());
    expect(error).toMatchObject({ message: "Bucket not found", statusCode: "404" });
    expect(await contents()).toEqual(before);
  });

  test("a bucket's limits of size and type hold for forms and contents", async () => {
    await operator.storage.createBucket("small", {
      public: false,
      fileSizeLimit: "10B",
      allowedMimeTypes: ["image/*"],
    });
    const small = operator.storage.from("small");
    for (const body of [Buffer.alloc(11), new Blob([Buffer.alloc(11)], { type: "image/png" })]) {
      const { error } = await small.upload("large", body, { contentType: "image/png" });
      expect(error).toMatchObject({ message: "The object exceeded the maximum allowed size", statusCode: "413" });
    }
    for (const body of ["text", new Blob(["text"], { type: "text/plain" })]) {
      const { error } = await small.upload("text", body, { contentType: "text/plain" });
      expect(error).toMatchObject({ message: "mime type text/plain is not supported", statusCode: "415" });
    }
    expect((await small.upload("fits", Buffer.alloc(10), { contentType: "image/png" })).error).toBeNull();
  });

  test.each(["", "a/../b", "..", "/a", "a/./b", "line\nfeed", "x".repeat(1025)])(
    "the name %j is refused",
    async (name) => {
      const response = await fetch(`${service.url}/storage/v1/object/notes/${encodeURIComponent(name)}`, {
        method: "POST",
        headers: { Authorization: `Bearer ${jwt.sign({ role: "service_role" }, SECRET)}` },
        body: "x",
      });
      expect(response.status).toBeGreaterThanOrEqual(400);
      expect(await response.json()).toMatchObject({ message: expect.any(String) });
    },
  );
});

describe("moves, copies and removals", () => {
  test("a moved object has its content under the new name only", async () => {
    await notes(ada).upload("1/old", "moved");
    expect(await notes(ada).move("1/old", "1/new")).toMatchObject({
      data: { message: "Successfully moved" },
      error: null,
    });
    expect(await textOf(notes(ada).download("1/new"))).toBe("moved");
    expect((await notes(ada).download("1/old")).error).not.toBeNull();
    expect((await notes(ada).move("1/new", "2/taken-away")).error).toMatchObject({ statusCode: "403" });
    expect((await notes(bob).move("1/new", "2/stolen")).error).toMatchObject({ message: "Object not found" });
  });

  test("a copy shares the content and lives on alone", async () => {
    await notes(ada).upload("1/source", "shared", { contentType: "text/plain", metadata: { a: 1 } });
    expect(await notes(ada).copy("1/source", "1/copy")).toEqual({ data: { path: "notes/1/copy" }, error: null });
    await notes(ada).remove(["1/source"]);
    expect(await textOf(notes(ada).download("1/copy"))).toBe("shared");
    expect((await notes(ada).info("1/copy")).data).toMatchObject({ metadata: { a: 1 }, contentType: "text/plain" });
    expect((await notes(bob).copy("1/copy", "2/copy")).error).toMatchObject({ message: "Object not found" });
  });

  test("a copy has the metadata of the object, or with copyMetadata: false that of the request", async () => {
    await notes(ada).upload("1/described", "text", { metadata: { colour: "grün" }, upsert: true });
    const sent = { "x-metadata": Buffer.from('{"colour":"rot"}').toString("base64") };
    const copies = [
      [{}, sent, { colour: "grün" }],
      [{ copyMetadata: false }, sent, { colour: "rot" }],
      [{ copyMetadata: false }, {}, undefined],
      [
        { copyMetadata: false, metadata: { mimetype: "text/css", cacheControl: "max-age=77" } },
        sent,
        { colour: "rot" },
      ],
    ] as const;
    for (const [options, headers, expected] of copies) {
      const response = await fetch(`${service.url}/storage/v1/object/copy`, {
        method: "POST",
        headers: { apikey: tokenOf("1"), "x-upsert": "true", ...headers },
        body: JSON.stringify({
          bucketId: "notes",
          sourceKey: "1/described",
          destinationKey: "1/described copy",
          ...options,
        }),
      });
      expect(response.status).toBe(200);
      const { data } = await notes(ada).info("1/described copy");
      expect([options, data!.metadata ?? undefined]).toEqual([options, expected]);
      if ("metadata" in options) expect(data).toMatchObject({ contentType: "text/css", cacheControl: "max-age=77" });
      else expect(data).toMatchObject({ contentType: "text/plain;charset=UTF-8", cacheControl: "max-age=3600" });
    }
  });

  test("remove returns what it has removed, and leaves what the caller may not remove", async () => {
    await notes(ada).upload("1/gone", "x");
    expect(await notes(bob).remove(["1/gone"])).toEqual({ data: [], error: null });
    const { data } = await notes(ada).remove(["1/gone", "1/never"]);
    expect(data).toEqual([expect.objectContaining({ bucket_id: "notes", name: "1/gone" })]);
  });
});

describe("lists", () => {
  beforeAll(async () => {
    await operator.storage.createBucket("tree");
    for (const name of ["b.txt", "a/1", "a/2", "a/deep/3", "a0", "c/4"])
      await operator.storage.from("tree").upload(name, name);
  });

  test("a folder's entries come in the order of their names, folders without id", async () => {
    const { data } = await operator.storage.from("tree").list();
    expect(data!.map(({ name, id }) => [name, id === null])).toEqual([
      ["a", true],
      ["a0", false],
      ["b.txt", false],
      ["c", true],
    ]);
    const inner = await operator.storage.from("tree").list("a", { sortBy: { column: "name", order: "desc" } });
    expect(inner.data!.map(({ name }) => name)).toEqual(["deep", "2", "1"]);
    const found = await operator.storage.from("tree").list("", { search: "B" });
    expect(found.data!.map(({ name }) => name)).toEqual(["b.txt"]);
    const page = await operator.storage.from("tree").list("", { limit: 2, offset: 1 });
    expect(page.data!.map(({ name }) => name)).toEqual(["a0", "b.txt"]);
  });

  test("each page by cursor goes on where the one before has ended", async () => {
    for (const column of ["name", "created_at", "updated_at"] as const) {
      for (const order of ["asc", "desc"] as const) {
        const seen: string[] = [];
        let cursor: string | undefined;
        do {
          const { data } = await operator.storage
            .from("tree")
            .listV2({ limit: 1, with_delimiter: true, sortBy: { column, order }, ...(cursor && { cursor }) });
          seen.push(...data!.folders.map(({ name }) => name), ...data!.objects.map(({ name }) => name));
          cursor = data!.nextCursor;
        } while (cursor);
        expect([column, order, seen.toSorted()]).toEqual([column, order, ["a/", "a0", "b.txt", "c/"]]);
      }
    }
  });

  test("only what the caller may read is listed", async () => {
    await notes(ada).upload("1/private/x", "x");
    expect((await notes(bob).list("1")).data).toEqual([]);
    expect((await notes(ada).list("1/private")).data).toHaveLength(1);
  });
});

describe("addresses", () => {
  test("a public bucket is read by everybody, and is not listed", async () => {
    await operator.storage.from("pictures").upload("cat.svg", "<svg/>", { contentType: "image/svg+xml" });
    const { publicUrl } = stranger.storage.from("pictures").getPublicUrl("cat.svg").data;
    const response = await fetch(publicUrl);
    expect(await response.text()).toBe("<svg/>");
    expect(response.headers.get("Content-Security-Policy")).toContain("sandbox");
    expect(response.headers.get("Cross-Origin-Resource-Policy")).toBe("cross-origin");
    expect(response.headers.get("Cache-Control")).toBe("public, max-age=3600");
    expect((await stranger.storage.from("pictures").list()).data).toEqual([]);
    const named = await fetch(
      stranger.storage.from("pictures").getPublicUrl("cat.svg", { download: "a b.svg" }).data.publicUrl,
    );
    expect(named.headers.get("Content-Disposition")).toBe(
      "attachment; filename=a%20b.svg; filename*=UTF-8''a%20b.svg;",
    );
  });

  test("a private bucket has no public address", async () => {
    await notes(ada).upload("1/hidden", "x");
    const response = await fetch(`${service.url}/storage/v1/object/public/notes/1/hidden`);
    expect([response.status, await response.json()]).toEqual([400, expect.objectContaining({ statusCode: "404" })]);
  });

  test("a signed address is read by everybody, for its object alone and until its time", async () => {
    await notes(ada).upload("1/signed file", "for you");
    const { data } = await notes(ada).createSignedUrl("1/signed file", 60);
    const response = await fetch(data!.signedUrl);
    expect([response.status, await response.text()]).toEqual([200, "for you"]);
    const other = await fetch(data!.signedUrl.replace("signed%20file", "once"));
    expect(await other.json()).toMatchObject({ statusCode: "400", error: "InvalidSignature" });
    const token = jwt.sign({ url: "notes/1/signed file", aud: "storage:download" }, SECRET, { expiresIn: -1 });
    const late = await fetch(`${service.url}/storage/v1/object/sign/notes/1/signed%20file?token=${token}`);
    expect(await late.json()).toMatchObject({ error: "InvalidJWT", message: '"exp" claim timestamp check failed' });
    expect((await notes(bob).createSignedUrl("1/signed file", 60)).error).toMatchObject({
      message: "Object not found",
    });
    const several = await notes(ada).createSignedUrls(["1/signed file", "1/never"], 60);
    expect(several.data!.map(({ error, signedUrl }) => [error === null, signedUrl !== null])).toEqual([
      [true, true],
      [false, false],
    ]);
  });

  test("a signed address for an upload takes one object, and is no address for downloads", async () => {
    const { data } = await notes(ada).createSignedUploadUrl("1/by-a-friend");
    const uploaded = await notes(stranger).uploadToSignedUrl("1/by-a-friend", data!.token, "from a friend");
    expect(uploaded.error).toBeNull();
    expect(await textOf(notes(ada).download("1/by-a-friend"))).toBe("from a friend");
    expect((await notes(stranger).uploadToSignedUrl("1/by-a-friend", data!.token, "again")).error).toMatchObject({
      statusCode: "409",
    });
    expect((await notes(stranger).uploadToSignedUrl("1/another", data!.token, "x")).error).not.toBeNull();
    const read = await fetch(`${service.url}/storage/v1/object/sign/notes/1/by-a-friend?token=${data!.token}`);
    expect(read.status).toBe(400);
    expect((await notes(bob).createSignedUploadUrl("1/foreign")).error).toMatchObject({ statusCode: "403" });
  });

  test("parts and conditions of a download are those of HTTP", async () => {
    await operator.storage.from("pictures").upload("digits", "0123456789", { upsert: true });
    const { publicUrl } = stranger.storage.from("pictures").getPublicUrl("digits").data;
    const part = await fetch(publicUrl, { headers: { Range: "bytes=2-4" } });
    expect([part.status, await part.text(), part.headers.get("Content-Range")]).toEqual([206, "234", "bytes 2-4/10"]);
    const outside = await fetch(publicUrl, { headers: { Range: "bytes=20-" } });
    expect([outside.status, outside.headers.get("Content-Range")]).toEqual([416, "bytes */10"]);
    const tag = part.headers.get("ETag")!;
    expect((await fetch(publicUrl, { headers: { "If-None-Match": tag } })).status).toBe(304);
    const head = await fetch(publicUrl, { method: "HEAD" });
    expect([head.status, head.headers.get("Content-Length"), head.headers.get("ETag")]).toEqual([200, "10", tag]);
  });

  test("a large file streams as it was uploaded", async () => {
    const content = Buffer.alloc(5_000_001, "large ");
    await operator.storage.from("pictures").upload("large", content);
    const { data } = await operator.storage.from("pictures").download("large");
    expect(Buffer.from(await data!.arrayBuffer()).equals(content)).toBe(true);
  });
});

describe("buckets", () => {
  test("their settings are created, changed and shown", async () => {
    expect(await operator.storage.createBucket("ours", { public: true })).toEqual({
      data: { name: "ours" },
      error: null,
    });
    expect((await operator.storage.createBucket("ours")).error).toMatchObject({ statusCode: "409" });
    await operator.storage.updateBucket("ours", {
      public: false,
      fileSizeLimit: 1000,
      allowedMimeTypes: ["text/plain"],
    });
    expect((await ada.storage.getBucket("ours")).data).toMatchObject({
      id: "ours",
      name: "ours",
      public: false,
      file_size_limit: 1000,
      allowed_mime_types: ["text/plain"],
    });
    expect((await stranger.storage.getBucket("ours")).error).toMatchObject({
      message: "Bucket not found",
      statusCode: "404",
    });
    expect((await ada.storage.createBucket("mine")).error).toMatchObject({ statusCode: "403" });
  });

  test("a bucket with objects is not deleted until it is empty", async () => {
    await operator.storage.createBucket("full");
    await operator.storage.from("full").upload("x", "x");
    expect((await operator.storage.deleteBucket("full")).error).toMatchObject({
      message: "The bucket you tried to delete is not empty",
      statusCode: "409",
    });
    const refused = await fetch(`${service.url}/storage/v1/bucket/full`, {
      method: "DELETE",
      headers: { apikey: jwt.sign({ role: "service_role" }, SECRET) },
    });
    expect([refused.status, await refused.json()]).toEqual([
      400,
      expect.objectContaining({ error: "ResourceNotEmpty", code: "ResourceNotEmpty", statusCode: "409" }),
    ]);
    expect((await operator.storage.deleteBucket("full")).error).toMatchObject({});
    expect((await operator.storage.emptyBucket("full")).error).toBeNull();
    expect((await operator.storage.deleteBucket("full")).data).toEqual({ message: "Successfully deleted" });
    expect((await operator.storage.listBuckets()).data!.map(({ id }) => id)).not.toContain("full");
  });
});

describe("contents", () => {
  test("nobody but the service names the content of an object", async () => {
    await notes(ada).upload("1/secret", "the secret");
    const [{ content }] = (await withOwner("select content from storage.objects where name = '1/secret'")).rows;
    await withOwner(`
      set role authenticated;
      select set_config('request.jwt.claims', '{"sub": "2", "role": "authenticated"}', false);
      insert into storage.objects (bucket_id, name, content) values ('notes', '2/thief', '${content}');
      update storage.objects set content = '${content}' where name = '2/thief'`);
    expect((await withOwner("select content from storage.objects where name = '2/thief'")).rows).toEqual([
      { content: null },
    ]);
    expect((await notes(bob).download("2/thief")).error).toMatchObject({ message: "Object not found" });
  });

  test("a content goes when no object has named it for a while, whatever has deleted them", async () => {
    await notes(ada).upload("1/collected", randomText());
    await notes(ada).copy("1/collected", "1/collected too");
    const [{ content }] = (await withOwner("select content from storage.objects where name = '1/collected'")).rows;
    const store = makeFolderStore(folder);
    const asOwner = makeOwner();
    try {
      await notes(ada).remove(["1/collected"]);
      await collectFiles(store, asOwner.run, "0 seconds");
      expect(await contents()).toContain(content);
      await withOwner("delete from storage.objects where name = '1/collected too'");
      await collectFiles(store, asOwner.run, "1 hour");
      expect(await contents()).toContain(content);
      // A transaction of the service that has begun before keeps the file for the next collection.
      const contentsAfterCollection = async () => {
        await collectFiles(store, asOwner.run, "0 seconds");
        return contents();
      };
      await expect.poll(contentsAfterCollection).not.toContain(content);
    } finally {
      await asOwner.end();
    }
  });
});

/** The names of the contents that are stored. */
async function contents(): Promise<string[]> {
  const names = await readdir(folder, { recursive: true });
  return names
    .map((name) => name.split("/").at(-1)!)
    .filter((name) => name.length > 2 && name !== "drafts")
    .sort();
}

function randomText(): string {
  return `content ${Math.random()}`;
}

function makeOwner() {
  const pool = new pg.Pool({ connectionString: database.ownerUrl });
  const run: AsOwner = async (work) => {
    const client = await pool.connect();
    try {
      return await work(client);
    } finally {
      client.release();
    }
  };
  return { run, end: () => pool.end() };
}
