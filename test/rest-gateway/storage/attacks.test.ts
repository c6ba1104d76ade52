// These requests attack /storage/v1 itself; other tests check its policies.

import { randomBytes } from "node:crypto";
import { statfs } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useDatabase } from "../../database.ts";
import { useFolder } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { serve, useService } from "../../serve.ts";
import { MAY_MOUNT, mountSmallDisk, saySkipped } from "../../small-disk.ts";

const ada = jwt.sign({ role: "authenticated", sub: "1" }, SECRET);
const bob = jwt.sign({ role: "authenticated", sub: "2" }, SECRET);

const asOwner = (text: string, values: unknown[] = []) =>
  withClient(database.ownerUrl, (owner) => owner.query(text, values));

const folder = useFolder("files-");
const database = useDatabase();
beforeAll(async () => {
  await asOwner(`
    insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types)
      values ('notes', 'notes', true, null, null), ('pictures', 'pictures', true, 1000, '{image/*}');
    create policy "own folder" on storage.objects to authenticated
      using ((storage.foldername(name))[1] = (select auth.uid())::text)
      with check ((storage.foldername(name))[1] = (select auth.uid())::text)`);
});
const service = useService({ database, settings: { STORAGE_DIR: folder } });

type Sent = {
  readonly method?: string;
  readonly token?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array | FormData | object;
};

function send(path: string, { method = "POST", token = ada, headers = {}, body }: Sent = {}): Promise<Response> {
  const isJson = body !== undefined && Object.getPrototypeOf(body) === Object.prototype;
  return fetch(`${service.url}/storage/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(isJson && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: isJson ? JSON.stringify(body) : (body as string) }),
  });
}

const upload = (path: string, type: string, body: string | Uint8Array = "<script>alert(1)</script>") =>
  send(`/object/${path}`, { headers: { "content-type": type, "x-upsert": "true" }, body });

async function statusIn(response: Response): Promise<string> {
  return ((await response.json()) as { statusCode: string }).statusCode;
}

/** Sends the path unchanged, without the normalization of `fetch`. */
function statusOfPath(path: string): Promise<number> {
  const { hostname, port } = new URL(service.url);
  return new Promise((resolve, reject) => {
    request({ hostname, port, path, headers: { authorization: `Bearer ${ada}` } }, (response) => {
      response.resume();
      resolve(response.statusCode!);
    })
      .on("error", reject)
      .end();
  });
}

describe("what a browser would run", () => {
  test.each([
    ["text/html", "text/plain"],
    ["image/svg+xml", "image/svg+xml"],
    ["text/xsl", "text/xsl"],
    ["application/mathml+xml", "application/mathml+xml"],
    ["application/unknown-type", "application/unknown-type"],
    ["multipart/x-mixed-replace; boundary=b", "application/octet-stream"],
    ["message/rfc822", "application/octet-stream"],
    ["image", "application/octet-stream"],
  ])("%s runs no script on this site", async (type, shown) => {
    expect((await upload("notes/1/page", type)).status).toBe(200);
    const { headers } = await send("/object/public/notes/1/page", { method: "GET" });
    expect(headers.get("content-type")).toBe(shown);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    const isOpaque = shown === "application/octet-stream";
    expect(headers.get("content-security-policy")?.includes("sandbox")).toBe(!isOpaque);
  });

  test.each([
    ["text/html, image/png", "application/octet-stream"],
    ["image/png; a=b, text/html", "image/png"],
    ["image/png;, text/html", "image/png"],
    ['image/png; a="b", text/html', "image/png"],
    ['image/png; a="\\", text/html', "image/png"],
    ['image/png; a="b, text/html', "image/png"],
    ["image/png; a='b, text/html'", "image/png"],
    ["application/pdf; a=b, image/svg+xml", "application/pdf"],
    ['video/webm; codecs="vp9, opus"', "video/webm"],
  ])("%s has no more rights than its first type", async (type, shown) => {
    const isList = !type.startsWith("video");
    const copied = { bucketId: "notes", sourceKey: "1/other", destinationKey: "1/copy", copyMetadata: false };
    const form = new FormData();
    form.append("contentType", type);
    form.append("", new Blob(["<script>"], { type: "image/png" }));
    await upload("notes/1/other", "image/png");
    const upsert = { "x-upsert": "true" };
    const uploads = [
      () => upload("notes/1/list", type),
      () => send("/object/notes/1/list", { headers: upsert, body: form }),
      () => send("/object/copy", { headers: upsert, body: { ...copied, metadata: { mimetype: type } } }),
      () => {
        const metadata = Object.entries({ bucketName: "notes", objectName: "1/tus", contentType: type });
        const sent = metadata.map(([name, value]) => `${name} ${btoa(value)}`).join(",");
        const headers = { ...upsert, "tus-resumable": "1.0.0", "upload-length": "1", "upload-metadata": sent };
        return send("/upload/resumable", { headers });
      },
    ];
    for (const each of uploads) {
      const response = await each();
      expect(response.ok, await response.text()).toBe(!isList);
    }
    // Whoever may change rows, or an older version, has written it.
    await upload("notes/1/list", "image/png");
    await asOwner("update storage.objects set metadata = metadata || $1 where name = '1/list'", [{ mimetype: type }]);
    const { headers } = await send("/object/public/notes/1/list", { method: "GET" });
    expect(headers.get("content-type")).toBe(shown);
  });

  test("pictures, films and documents are shown as they are", async () => {
    for (const type of ["image/png", "video/mp4", "audio/mpeg", "application/pdf", "text/plain; charset=utf-8"]) {
      expect((await upload("notes/1/shown", type)).status).toBe(200);
      const { headers } = await send("/object/public/notes/1/shown", { method: "GET" });
      expect([headers.get("content-type"), headers.get("x-content-type-options")]).toEqual([type, "nosniff"]);
      expect(headers.get("content-security-policy")).not.toContain("sandbox");
    }
  });
});

describe("the types and sizes of a bucket", () => {
  const types = [
    ["after the file", (form: FormData) => form.append("", new Blob(["<html>"], { type: "image/png" }))],
    ["before the file", () => undefined],
  ] as const;

  test.each(types)("hold for a type that a form names %s", async (when, first) => {
    const form = new FormData();
    first(form);
    form.append("contentType", "text/html");
    if (when === "before the file") form.append("", new Blob(["<html>"], { type: "image/png" }));
    const response = await send("/object/pictures/1/form", { body: form });
    expect([response.status, await statusIn(response)]).toEqual([400, "415"]);
  });

  test("are all types where the list is empty, as in Supabase's service", async () => {
    await asOwner("update storage.buckets set allowed_mime_types = '{}' where id = 'pictures'");
    try {
      expect((await upload("pictures/1/any", "text/plain")).status).toBe(200);
      await upload("notes/1/any", "text/plain");
      const copied = {
        bucketId: "notes",
        sourceKey: "1/any",
        destinationBucket: "pictures",
        destinationKey: "1/copied",
      };
      expect((await send("/object/copy", { body: copied })).status).toBe(200);
      const metadata = `bucketName ${btoa("pictures")},objectName ${btoa("1/tus")},contentType ${btoa("text/plain")}`;
      const headers = { "tus-resumable": "1.0.0", "upload-length": "1", "upload-metadata": metadata };
      expect((await send("/upload/resumable", { headers })).status).toBe(201);
    } finally {
      await asOwner("update storage.buckets set allowed_mime_types = '{image/*}' where id = 'pictures'");
      await asOwner("delete from storage.objects where name in ('1/any', '1/copied')");
    }
  });

  test("hold for copies and moves", async () => {
    await upload("notes/1/source", "text/html");
    await upload("notes/1/large", "image/png", Buffer.alloc(2000));
    await upload("pictures/1/small", "image/png", "x");
    const to = (name: string, more = {}) => ({
      bucketId: "notes",
      sourceKey: name,
      destinationBucket: "pictures",
      destinationKey: "1/target",
      ...more,
    });
    for (const way of ["copy", "move"]) {
      expect(await statusIn(await send(`/object/${way}`, { body: to("1/source") }))).toBe("415");
      expect(await statusIn(await send(`/object/${way}`, { body: to("1/large") }))).toBe("413");
    }
    const within = to("1/small", { bucketId: "pictures", copyMetadata: false });
    for (const mimetype of ["text/html", "image/png\r\nX: y"]) {
      const response = await send("/object/copy", { body: { ...within, metadata: { mimetype } } });
      expect(["400", "415"]).toContain(await statusIn(response));
    }
    expect((await send("/object/copy", { body: { ...within, metadata: { mimetype: "image/gif" } } })).status).toBe(200);
  });
});

test("a move brings no other content than the target accepts, even if the object is replaced meanwhile", async () => {
  await upload("notes/1/replaced", "image/png", "x");
  // The object is found as an image, and is another one when it is moved.
  await asOwner(`
    create function public.replaced() returns trigger language plpgsql as
      $$ begin new.metadata := new.metadata || '{"mimetype": "text/html"}'; return new; end $$;
    create trigger _000_replaced before update of bucket_id on storage.objects for each row execute function public.replaced()`);
  try {
    const keys = { bucketId: "notes", sourceKey: "1/replaced" };
    const body = { ...keys, destinationBucket: "pictures", destinationKey: "1/replaced" };
    expect(await statusIn(await send("/object/move", { body }))).toBe("415");
    const names = "select bucket_id from storage.objects where name = '1/replaced'";
    expect((await asOwner(names)).rows).toEqual([{ bucket_id: "notes" }]);
  } finally {
    await asOwner("drop function public.replaced cascade");
  }
});

test("paths lead to no file of the machine", async () => {
  for (const path of [
    "/object/notes/../../../../etc/passwd",
    "/object/public/notes/..%2f..%2f..%2fetc%2fpasswd",
    "/object/public/..%2f..%2fetc/passwd",
    "/object/public/notes/1/%00",
    "/object/public/no%00tes/1/x",
    "/object/public/%ff/1/x",
    "/object/notes/%2e%2e/%2e%2e/etc/passwd",
    "/render/image/public/notes/..%2f..%2fetc%2fpasswd",
    "/upload/resumable/..%2f..%2fetc%2fpasswd",
    "/bucket/..%2f..",
    "/bucket/%00",
    "/object/list/%00",
  ]) {
    const status = await statusOfPath(`/storage/v1${path}`);
    expect([400, 401, 404, 405]).toContain(status);
  }
});

test("a token is for what it was signed for, and no credential is a signed address", async () => {
  await upload("notes/1/signed", "text/plain");
  await asOwner("update storage.buckets set public = false where id = 'notes'");
  try {
    const sign = async (path: string, body = {}) =>
      ((await (await send(path, { body })).json()) as { signedURL?: string; token?: string }) ?? {};
    const { signedURL } = await sign("/object/sign/notes/1/signed", { expiresIn: 60 });
    const download = new URL(signedURL!, service.url).searchParams.get("token")!;
    const { token: uploading } = await sign("/object/upload/sign/notes/1/other");
    const forged = [
      jwt.sign(
        { url: "notes/1/signed", aud: "storage:download", exp: 9_999_999_999 },
        "another secret of 32 characters!",
      ),
      jwt.sign({ url: "notes/1/signed", exp: 9_999_999_999 }, SECRET),
      `${Buffer.from('{"alg":"none"}').toString("base64url")}.${download.split(".")[1]}.`,
      ada,
      uploading!,
    ];
    for (const token of forged) {
      expect((await fetch(`${service.url}/storage/v1/object/sign/notes/1/signed?token=${token}`)).status).toBe(400);
    }
    for (const token of [download, ...forged.slice(0, 4)]) {
      const url = `${service.url}/storage/v1/object/upload/sign/notes/1/other?token=${token}`;
      expect((await fetch(url, { method: "PUT", body: "x" })).status).toBe(400);
    }
    for (const token of [download, uploading!]) {
      const headers = { authorization: `Bearer ${token}` };
      for (const path of ["/storage/v1/object/notes/1/signed", "/rest/v1/users", "/auth/v1/user"]) {
        expect((await fetch(service.url + path, { headers })).status).toBeGreaterThanOrEqual(400);
      }
    }
    expect((await fetch(`${service.url}/storage/v1${signedURL}`)).status).toBe(200);
  } finally {
    await asOwner("update storage.buckets set public = true where id = 'notes'");
  }
});

describe("the protocol for uploads in parts", () => {
  const begin = (headers: Record<string, string> = {}, token = ada, bucket = "notes") =>
    send("/upload/resumable", {
      token,
      headers: {
        "tus-resumable": "1.0.0",
        "upload-length": "100000",
        "upload-metadata": `bucketName ${btoa(bucket)},objectName ${btoa(token === ada ? "1/part" : "2/part")}`,
        ...headers,
      },
    });

  test("takes no more than was announced or is allowed", async () => {
    const contents = { "content-type": "application/offset+octet-stream", "tus-resumable": "1.0.0" };
    const deferred = { "upload-length": "", "upload-defer-length": "1" };
    const metadata = `bucketName ${btoa("pictures")},objectName ${btoa("1/part")},contentType ${btoa("image/png")}`;
    const created = await send("/upload/resumable", {
      headers: { "tus-resumable": "1.0.0", "upload-defer-length": "1", "upload-metadata": metadata },
    });
    expect(created.status).toBe(201);
    const path = created.headers.get("location")!.replace("/storage/v1", "");
    const sent = (headers: Record<string, string>, body: Buffer) =>
      send(path, {
        method: "PATCH",
        headers: { ...contents, "upload-offset": "0", ...headers },
        body: new Uint8Array(body),
      });
    expect((await sent({ "upload-length": "1000000000" }, randomBytes(10))).status).toBe(413);
    expect((await sent({}, randomBytes(5000))).status).toBeGreaterThanOrEqual(400);
    expect((await begin(deferred)).status).toBe(400);
    expect((await begin({ "upload-length": "9".repeat(30) })).status).toBeGreaterThanOrEqual(400);
    expect((await begin({ "upload-concat": "partial" })).status).toBeGreaterThanOrEqual(400);
  });

  test("has a bound for what a caller begins and does not complete", async () => {
    const burst = await Promise.all(Array.from({ length: 130 }, () => begin({}, bob)));
    const begun = burst.filter(({ status }) => status === 201);
    expect(begun.length).toBeLessThanOrEqual(100);
    expect(new Set(burst.map(({ status }) => status))).toEqual(new Set([201, 429]));
    while ((await begin({}, bob)).status === 201);
    expect((await begin({}, ada)).status).toBe(201);
    const ended = begun[0]!.headers.get("location")!.replace("/storage/v1", "");
    const headers = { "tus-resumable": "1.0.0" };
    expect((await send(ended, { method: "DELETE", token: bob, headers })).status).toBe(204);
    expect((await begin({}, bob)).status).toBe(201);
  });

  test("heeds no header that names another method", async () => {
    const path = (await begin()).headers.get("location")!.replace("/storage/v1", "");
    const headers = { "tus-resumable": "1.0.0", "x-http-method-override": "DELETE" };
    for (const token of [ada, bob]) await send(path, { method: "HEAD", token, headers });
    expect((await send(path, { method: "HEAD", headers: { "tus-resumable": "1.0.0" } })).status).toBe(200);
  });
});

test.skipIf(!MAY_MOUNT)("uploads of a stranger do not fill the disk", async () => {
  saySkipped("a disk that uploads fill");
  await using disk = await mountSmallDisk("40m");
  const beside = await serve(database, { STORAGE_DIR: join(disk.folder, "files") });
  try {
    const send = (name: string) =>
      fetch(`${beside.url}/storage/v1/object/notes/1/${name}`, {
        method: "POST",
        headers: { authorization: `Bearer ${ada}`, "x-upsert": "true" },
        body: randomBytes(5_000_000),
      });
    const statuses: number[] = [];
    // Each replaces the one before: no policy counts objects that are kept for a while.
    for (let n = 0; n < 10; n++) statuses.push((await send("one")).status);
    expect(statuses).toContain(200);
    expect(statuses.at(-1)).toBe(507);
    expect(await (await send("one")).json()).toMatchObject({ code: "StorageFull", statusCode: "507" });
    const { bavail, blocks } = await statfs(disk.folder);
    expect(bavail / blocks).toBeGreaterThan(0.01);
    expect((await fetch(`${beside.url}/storage/v1/object/public/notes/1/one`)).status).toBe(200);
  } finally {
    await beside.stop();
  }
});
