// Names, empty files, broken and simultaneous uploads, and transfers between buckets whose policies differ.

import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useDatabase } from "../../database.ts";
import { useFolder } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";
import { until } from "../../until.ts";

const KEY = jwt.sign({ role: "service_role" }, SECRET);

let operator: SupabaseClient;
let ada: SupabaseClient;

const asOwner = (text: string, values: unknown[] = []) =>
  withClient(database.ownerUrl, (owner) => owner.query(text, values));

const folder = useFolder("files-");
const database = useDatabase();
beforeAll(async () => {
  await asOwner(`
    insert into storage.buckets (id, name, public)
      values ('kept', 'kept', true), ('inbox', 'inbox', false), ('archive', 'archive', false);
    create policy "take from the inbox" on storage.objects for select to authenticated using (bucket_id = 'inbox');
    create policy "delete from the inbox" on storage.objects for delete to authenticated using (bucket_id = 'inbox');
    create policy "add to the archive" on storage.objects for insert to authenticated with check (bucket_id = 'archive')`);
});
const service = useService({ database, settings: { STORAGE_DIR: folder } });
beforeAll(async () => {
  operator = createClient(service.url, KEY);
  ada = createClient(service.url, jwt.sign({ role: "authenticated", sub: "1" }, SECRET));
});

type Body = Readonly<Record<"message" | "statusCode" | "etag", string | undefined>>;
type Sent = { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string };

const send = (path: string, { method = "POST", headers = {}, body }: Sent = {}) =>
  fetch(`${service.url}/storage/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${KEY}`, ...headers },
    ...(body !== undefined && { body }),
  });

const drafts = () => readdir(join(folder, "drafts")).catch(() => []);
const namesLike = async (pattern: string) =>
  (await asOwner("select name from storage.objects where name like $1 order by name", [pattern])).rows.map(
    ({ name }) => name,
  );

describe("names", () => {
  test.each([
    ["composed and decomposed letters", ["nfc/é", "nfc/e\u0301"]],
    ["spaces at the end, and none", ["space/a", "space/a ", "space/ a"]],
    ["percent signs and underscores", ["like/%", "like/_", "like/x"]],
    ["backslashes and segments of points", ["dots/..\\..\\x", "dots/...", "dots/.x"]],
    ["letters in both cases", ["case/A", "case/a"]],
    ["1,024 bytes", [`long/${"x".repeat(1019)}`]],
  ])("%s are different files", async (_, names) => {
    for (const name of names)
      expect((await send(`/object/kept/${encodeURIComponent(name)}`, { body: name })).status).toBe(200);
    for (const name of names) {
      const response = await send(`/object/kept/${encodeURIComponent(name)}`, { method: "GET" });
      expect(await response.text()).toBe(name);
    }
  });

  test.each([
    ["1,025 bytes", "x".repeat(1025)],
    ["NUL", "a\0b"],
    ["a segment of two points", "a/../b"],
    ["a slash at the beginning", "/a"],
    ["a line break", "a\nb"],
  ])("with %s are refused on every way", async (_, name) => {
    const encoded = encodeURIComponent(name);
    const json = { "content-type": "application/json" };
    await send("/object/kept/source", { headers: { "x-upsert": "true" }, body: "x" });
    const transfer = JSON.stringify({ bucketId: "kept", sourceKey: "source", destinationKey: name });
    for (const response of [
      await send(`/object/kept/${encoded}`, { body: "x" }),
      await send(`/object/kept/${encoded}`, { method: "GET" }),
      await send(`/object/upload/sign/kept/${encoded}`),
      await send(`/object/copy`, { headers: json, body: transfer }),
      await send(`/object/move`, { headers: json, body: transfer }),
    ])
      expect(response.status).toBe(400);
  });
});

test("an empty file is a file", async () => {
  expect((await send("/object/kept/empty", { body: "" })).status).toBe(200);
  const whole = await send("/object/kept/empty", { method: "GET" });
  expect([whole.status, whole.headers.get("content-length"), await whole.text()]).toEqual([200, "0", ""]);
  const part = await send("/object/kept/empty", { method: "GET", headers: { range: "bytes=0-" } });
  expect([part.status, part.headers.get("content-range")]).toEqual([416, "bytes */0"]);
  expect((await operator.storage.from("kept").info("empty")).data).toMatchObject({ size: 0 });
});

test("several ranges are answered with the whole, as HTTP allows", async () => {
  await send("/object/kept/ranges", { body: "0123456789" });
  const response = await send("/object/kept/ranges", { method: "GET", headers: { range: "bytes=0-1,4-5" } });
  expect([response.status, await response.text()]).toEqual([200, "0123456789"]);
});

describe("uploads that break", () => {
  /** An upload whose request was refused while it was read goes on for a moment. */
  const draftsEnd = () => until(async () => (await drafts()).length === 0);
  /** Sends the text unchanged, and ends the connection after the last byte. */
  const sendRaw = (head: string, body: string, end: "half-close" | "reset", type = "text/plain") =>
    new Promise<string>((resolve) => {
      const { hostname, port } = new URL(service.url);
      let answer = "";
      const socket = connect(Number(port), hostname, () => {
        const lines = [head, "Host: localhost", `Authorization: Bearer ${KEY}`, `Content-Type: ${type}`, "", body];
        socket.write(lines.join("\r\n"), () => (end === "reset" ? socket.resetAndDestroy() : socket.end()));
      });
      socket.on("data", (data) => (answer += data)).on("error", () => {});
      socket.on("close", () => resolve(answer));
    });

  test.each(["half-close", "reset"] as const)("in the middle of a body (%s) leave nothing", async (end) => {
    const head = `POST /storage/v1/object/kept/broken-${end} HTTP/1.1\r\nContent-Length: 1000000`;
    await sendRaw(head, "x".repeat(200_000), end);
    await draftsEnd();
    expect(await namesLike("broken-%")).toEqual([]);
  });

  const FORM = "multipart/form-data; boundary=b";
  const filePart = (bytes: number) =>
    `--b\r\nContent-Disposition: form-data; name=""; filename="a"\r\nContent-Type: text/plain\r\n\r\n${"x".repeat(bytes)}`;

  test.each(["half-close", "reset"] as const)("in the middle of a form's file (%s) leave nothing", async (end) => {
    const head = `POST /storage/v1/object/kept/broken-form-${end} HTTP/1.1\r\nContent-Length: 1000000`;
    await sendRaw(head, filePart(200_000), end, FORM);
    await draftsEnd();
    expect(await namesLike("broken-form-%")).toEqual([]);
  });

  test.each(["constructor", "__proto__"])("by a part's header %s after a large file are refused", async (name) => {
    const part = `--b\r\n${name}: x\r\nContent-Disposition: form-data; name="a"\r\n\r\nv\r\n--b--\r\n`;
    const response = await send(`/object/kept/header-${name}`, {
      headers: { "content-type": FORM },
      body: `${filePart(2_000_000)}\r\n${part}`,
    });
    expect([response.status, ((await response.json()) as Body).message]).toEqual([400, "The form could not be read"]);
    await draftsEnd();
    expect(await namesLike("header-%")).toEqual([]);
  });

  test("with more bytes than announced keep to the announcement", async () => {
    const head = "POST /storage/v1/object/kept/longer HTTP/1.1\r\nContent-Length: 5";
    const answer = await sendRaw(head, "12345GARBAGE", "half-close");
    expect(answer).toMatch(/^HTTP\/1\.1 (200|400)/);
    const stored = await send("/object/kept/longer", { method: "GET" });
    if (stored.ok) expect(await stored.text()).toBe("12345");
  });

  test("whose headers cannot be kept leave nothing", async () => {
    const response = await send("/object/kept/headers", { headers: { "cache-control": "ü" }, body: "abc" });
    expect([response.status, ((await response.json()) as Body).message]).toEqual([
      400,
      expect.stringContaining("printable ASCII"),
    ]);
    await draftsEnd();
  });
});

describe("uploads of one name at once", () => {
  const contents = Array.from({ length: 8 }, (_, number) => `content ${number}`);

  test("succeed once, unless they replace", async () => {
    const answers = await Promise.all(contents.map((body) => send("/object/kept/once", { body })));
    const statuses = await Promise.all(answers.map(async (each) => ((await each.json()) as Body).statusCode ?? "200"));
    expect(statuses.toSorted()).toEqual(["200", ...Array(7).fill("409")]);
    const winner = contents[statuses.indexOf("200")];
    expect(await (await send("/object/kept/once", { method: "GET" })).text()).toBe(winner);
  });

  test("leave one of them whole, if they replace", async () => {
    const headers = { "x-upsert": "true" };
    const answers = await Promise.all(contents.map((body) => send("/object/kept/last", { headers, body })));
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
    const found = await send("/object/kept/last", { method: "GET" });
    expect(contents).toContain(await found.text());
    const info = await send("/object/info/kept/last", { method: "GET" });
    expect(((await info.json()) as Body).etag).toBe(found.headers.get("etag"));
  });
});

test("a signed upload replaces nothing when it is used again", async () => {
  const { data } = await operator.storage.from("kept").createSignedUploadUrl("reused");
  const use = (body: string) =>
    operator.storage.from("kept").uploadToSignedUrl("reused", data!.token, body, { upsert: true });
  expect((await use("one")).error).toBeNull();
  expect((await use("two")).error).toMatchObject({ statusCode: "409" });
  expect(await (await operator.storage.from("kept").download("reused")).data!.text()).toBe("one");
});

test("the public address of a bucket ends when it is made private, a signed one does not", async () => {
  const bucket = operator.storage.from("kept");
  await bucket.upload("shown", "shown", { upsert: true });
  const { publicUrl } = bucket.getPublicUrl("shown").data;
  const { data } = await bucket.createSignedUrl("shown", 60);
  expect((await fetch(publicUrl)).status).toBe(200);
  await asOwner("update storage.buckets set public = false where id = 'kept'");
  try {
    expect((await fetch(publicUrl)).status).toBe(400);
    expect((await fetch(data!.signedUrl)).status).toBe(200);
  } finally {
    await asOwner("update storage.buckets set public = true where id = 'kept'");
  }
});

describe("between buckets whose policies differ", () => {
  const to = { destinationBucket: "archive" };

  test("a copy needs to read the one and add to the other", async () => {
    await operator.storage.from("inbox").upload("letter", "Dear Ada");
    expect((await ada.storage.from("inbox").copy("letter", "letter", to)).error).toBeNull();
    const back = await ada.storage.from("archive").copy("letter", "back", { destinationBucket: "inbox" });
    expect(back.error).toMatchObject({ statusCode: "404" });
    const within = await ada.storage.from("inbox").copy("letter", "second");
    expect(within.error).toMatchObject({ statusCode: "403" });
  });

  test("a move needs to change both, and none of the rights to read, add and delete is enough", async () => {
    await operator.storage.from("inbox").upload("moved", "Dear Ada");
    const move = () => ada.storage.from("inbox").move("moved", "moved", to);
    expect((await move()).error).not.toBeNull();
    await asOwner("create policy source on storage.objects for update to authenticated using (bucket_id = 'inbox')");
    expect((await move()).error).toMatchObject({ statusCode: "403" });
    expect((await operator.storage.from("inbox").exists("moved")).data).toBe(true);
    await asOwner("alter policy source on storage.objects with check (bucket_id = 'archive')");
    // Postgres requires that the caller can see the row as it becomes.
    await asOwner(
      `create policy "read the archive" on storage.objects for select to authenticated using (bucket_id = 'archive')`,
    );
    expect((await move()).error).toBeNull();
    expect(await (await operator.storage.from("archive").download("moved")).data!.text()).toBe("Dear Ada");
  });
});
