// The tests check which uploads signed addresses allow, and whose quota they count for.

import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Service } from "../../../service/wiring/service.ts";
import { useDatabase } from "../../database.ts";
import { useFixture, useFolder } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { serve } from "../../serve.ts";

const QUOTA = 1_000_000;

let service: Service;

const tokenOf = (sub: string) => jwt.sign({ role: "authenticated", sub }, SECRET);
const clientOf = (sub: string) => createClient(service.url, tokenOf(sub));
const operator = () => createClient(service.url, jwt.sign({ role: "service_role" }, SECRET));

const folder = useFolder("files-");
const database = useDatabase();
const owner = useFixture(() => new pg.Pool({ connectionString: database.ownerUrl, max: 2 }));
beforeAll(async () => {
  await owner.query(`
    insert into storage.buckets (id, name, max_bytes_of_owner) values
      ('bounded', 'bounded', ${QUOTA}), ('free', 'free', null), ('append', 'append', null);
    create policy "all" on storage.objects to authenticated
      using (bucket_id in ('bounded', 'free')) with check (bucket_id in ('bounded', 'free'));
    create policy "only new ones" on storage.objects for insert to authenticated with check (bucket_id = 'append');
    create policy "shown" on storage.objects for select to authenticated using (bucket_id = 'append');
    grant usage on schema storage to authenticated`);
  service = await serve(database, {
    STORAGE_DIR: folder,
    PGRST_DB_SCHEMAS: "public,storage",
    REST_REQUIRE_APIKEY: "false",
  });
});
afterAll(() => service.stop());
beforeEach(() => owner.query("delete from storage.objects; delete from content_service.unfinished_uploads"));

async function sign(client: SupabaseClient, bucket: string, name: string, upsert = false): Promise<string> {
  const { data, error } = await client.storage.from(bucket).createSignedUploadUrl(name, { upsert });
  expect(error).toBeNull();
  return data!.token;
}

const base64 = (text: string) => Buffer.from(text).toString("base64");
const TYPE = { "content-type": "application/offset+octet-stream", "tus-resumable": "1.0.0" };

type Part = {
  readonly token: string;
  readonly bucket: string;
  readonly name: string;
  readonly size: number | null;
  readonly body: Buffer;
};

const begin = ({ token, bucket, name, size, body }: Part) =>
  fetch(`${service.url}/storage/v1/upload/resumable/sign`, {
    method: "POST",
    headers: {
      ...TYPE,
      ...(size === null ? { "upload-defer-length": "1" } : { "upload-length": String(size) }),
      "x-signature": token,
      "upload-metadata": `bucketName ${base64(bucket)},objectName ${base64(name)}`,
    },
    body: new Uint8Array(body),
  });

const goOn = (location: string, token: string, offset: number, body: Buffer) =>
  fetch(`${service.url}${location}`, {
    method: "PATCH",
    headers: { ...TYPE, "x-signature": token, "upload-offset": String(offset) },
    body: new Uint8Array(body),
  });

async function bytesOnDisk(): Promise<number> {
  const names = await readdir(join(folder, "uploads"), { recursive: true }).catch(() => []);
  const sizes = await Promise.all(
    names.filter((name) => !name.endsWith(".json")).map((name) => stat(join(folder, "uploads", name))),
  );
  return sizes.filter((each) => each.isFile()).reduce((sum, { size }) => sum + size, 0);
}

describe("uploads by TUS to signed addresses", () => {
  test("count for their signer until they are finished, with the size that they will have", async () => {
    const ada = clientOf("11");
    const begun: { location: string; token: string; name: string }[] = [];
    const statuses: number[] = [];
    for (let number = 0; number < 30; number++) {
      const name = `unfinished ${number}`;
      const token = await sign(ada, "bounded", name);
      const response = await begin({
        token,
        bucket: "bounded",
        name,
        size: 100_000,
        body: Buffer.alloc(90_000, number),
      });
      statuses.push(response.status);
      if (response.ok) begun.push({ token, name, location: response.headers.get("location")! });
    }
    expect(statuses).toEqual([...Array(10).fill(201), ...Array(20).fill(413)]);
    expect(await bytesOnDisk()).toBeLessThanOrEqual(QUOTA);
    // Others have a quota of their own.
    const ofBob = await sign(clientOf("12"), "bounded", "of bob");
    expect(
      (await begin({ token: ofBob, bucket: "bounded", name: "of bob", size: 4, body: Buffer.from("four") })).ok,
    ).toBe(true);
    // Unfinished uploads leave no room for an upload in one request.
    const whole = () => ada.storage.from("bounded").upload("whole", Buffer.alloc(1));
    expect((await whole()).error).toMatchObject({ statusCode: "413" });
    const [first, second] = begun as [(typeof begun)[0], (typeof begun)[0]];
    const removed = await fetch(`${service.url}${first.location}`, {
      method: "DELETE",
      headers: { "tus-resumable": "1.0.0", "x-signature": first.token },
    });
    expect(removed.status).toBe(204);
    expect((await whole()).error).toBeNull();
    // The last bytes of an upload that counts already.
    expect((await goOn(second.location, second.token, 90_000, Buffer.alloc(10_000))).status).toBe(204);
    const usage = await owner.query(
      "select bytes::int from content_service.bucket_usage where bucket_id = 'bounded' and owner_id = '11'",
    );
    expect(usage.rows).toEqual([{ bytes: 100_001 }]);
  });

  test("count when the size is not known before the bytes are", async () => {
    const ada = clientOf("13");
    const token = await sign(ada, "bounded", "deferred");
    const body = Buffer.alloc(600_000);
    const response = await begin({ token, bucket: "bounded", name: "deferred", size: null, body });
    expect(response.status).toBe(201);
    const location = response.headers.get("location")!;
    expect((await goOn(location, token, 600_000, body)).status).toBe(413);
    expect((await ada.storage.from("bounded").upload("large", body)).error).toMatchObject({ statusCode: "413" });
    expect((await ada.storage.from("bounded").upload("small", Buffer.alloc(400_000))).error).toBeNull();
  });

  test("are a hundred of a signer at once, by whichever addresses", async () => {
    const ada = clientOf("14");
    const statuses: number[] = [];
    for (let number = 0; number <= 100; number++) {
      const token = await sign(ada, "free", `free ${number}`);
      statuses.push(
        (await begin({ token, bucket: "free", name: `free ${number}`, size: 9, body: Buffer.from("x") })).status,
      );
    }
    expect(statuses).toEqual([...Array(100).fill(201), 429]);
  });
});

describe("a signed address of an upload", () => {
  test("that replaces asks the policy of updates when it is signed, also for a free name", async () => {
    const files = clientOf("15").storage.from("append");
    expect((await files.createSignedUploadUrl("new", { upsert: true })).error).toMatchObject({ statusCode: "403" });
    const { data } = await files.createSignedUploadUrl("new");
    expect((await files.uploadToSignedUrl("new", data!.token, "x")).error).toBeNull();
  });

  test("is worth one upload: after that the object is another one", async () => {
    const files = clientOf("15").storage.from("free");
    for (const isThere of [false, true]) {
      const token = await sign(clientOf("15"), "free", "once", true);
      expect((await files.uploadToSignedUrl("once", token, `first, ${isThere}`)).error).toBeNull();
      const again = await files.uploadToSignedUrl("once", token, "second");
      expect(again.error).toMatchObject({ statusCode: isThere ? "400" : "409" });
      expect(await (await files.download("once")).data!.text()).toBe(`first, ${isThere}`);
    }
  });

  test("of two uploads at once one succeeds", async () => {
    const files = clientOf("15").storage.from("free");
    for (const isThere of [false, true]) {
      const token = await sign(clientOf("15"), "free", "twice", true);
      const bodies = ["one", "two", "three", "four"];
      const results = await Promise.all(bodies.map((body) => files.uploadToSignedUrl("twice", token, body)));
      expect([isThere, results.filter(({ error }) => error === null).length]).toEqual([isThere, 1]);
    }
  });

  test("shows nothing of its signer, and is refused if it names none, as those of former versions", async () => {
    const token = await sign(clientOf("15"), "free", "shown");
    expect(Object.keys(jwt.decode(token) as object).toSorted()).toEqual([
      "aud",
      "exp",
      "iat",
      "object",
      "signer",
      "url",
    ]);
    expect(Buffer.from((jwt.decode(token) as jwt.JwtPayload).signer, "base64url").includes("authenticated")).toBe(
      false,
    );
    await operator().storage.from("free").upload("old", "old");
    const claims = { url: "free/old", owner: "15", upsert: true, exp: 9_999_999_999 };
    const old = (aud: string) => jwt.sign({ ...claims, aud }, SECRET);
    const target = `${service.url}/storage/v1/object`;
    const responses = [
      await fetch(`${target}/sign/free/old?token=${old("storage:download")}`),
      await fetch(`${target}/upload/sign/free/old?token=${old("storage:upload")}`, { method: "PUT", body: "new" }),
    ];
    for (const response of responses)
      expect([response.status, await response.json()]).toMatchObject([400, { error: "InvalidJWT" }]);
  });
});

describe("the owner of an object", () => {
  const patch = (sub: string, name: string, changes: object, token = tokenOf(sub)) =>
    fetch(`${service.url}/rest/v1/objects?name=eq.${name}`, {
      method: "PATCH",
      headers: {
        ...{ authorization: `Bearer ${token}`, "content-type": "application/json" },
        "content-profile": "storage",
      },
      body: JSON.stringify(changes),
    });
  const usage = async () =>
    (
      await owner.query(
        "select owner_id, bytes::int from content_service.bucket_usage where owner_id in ('16', '17', '') and bytes > 0 order by 1",
      )
    ).rows;

  test("is not given away, with the bytes, by whoever may change the row", async () => {
    await clientOf("16").storage.from("bounded").upload("mine", Buffer.alloc(500));
    const before = await usage();
    for (const changes of [{ owner_id: "17" }, { owner_id: null }, { owner: crypto.randomUUID() }]) {
      const response = await patch("16", "mine", changes);
      expect([response.status, await response.json()]).toMatchObject([
        403,
        { code: "42501", hint: expect.any(String) },
      ]);
    }
    expect([before, await usage()]).toEqual(Array(2).fill([{ owner_id: "16", bytes: 500 }]));
  });

  test("is who moves it, in both columns that policies compare", async () => {
    const [first, second] = [crypto.randomUUID(), crypto.randomUUID()];
    const ownersOf = async (name: string) =>
      (await owner.query("select owner, owner_id from storage.objects where name = $1", [name])).rows;
    await clientOf(first).storage.from("free").upload("one", "x");
    expect(await ownersOf("one")).toEqual([{ owner: first, owner_id: first }]);
    expect((await clientOf(second).storage.from("free").move("one", "two")).error).toBeNull();
    expect(await ownersOf("two")).toEqual([{ owner: second, owner_id: second }]);
    expect((await clientOf("16").storage.from("free").move("two", "three")).error).toBeNull();
    expect(await ownersOf("three")).toEqual([{ owner: null, owner_id: "16" }]);
  });

  test("is who replaces it, or whom the service role names", async () => {
    await clientOf("16").storage.from("bounded").upload("taken", Buffer.alloc(500));
    const replaced = await clientOf("17").storage.from("bounded").upload("taken", Buffer.alloc(300), { upsert: true });
    expect(replaced.error).toBeNull();
    expect(await usage()).toEqual([{ owner_id: "17", bytes: 300 }]);
    expect((await patch("16", "taken", { owner_id: "16" })).status).toBe(204);
    expect(await usage()).toEqual([{ owner_id: "16", bytes: 300 }]);
    const service = jwt.sign({ role: "service_role" }, SECRET);
    expect((await patch("", "taken", { owner_id: "17" }, service)).status).toBe(204);
    expect(await usage()).toEqual([{ owner_id: "17", bytes: 300 }]);
  });
});
