import { createHash, createHmac } from "node:crypto";
import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import * as s3 from "@aws-sdk/client-s3";
import jwt from "jsonwebtoken";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { withClient } from "../../../../postgres/client/with-client.ts";
import { useDatabase } from "../../../database.ts";
import { useFolder } from "../../../fixture.ts";
import { SECRET } from "../../../secret.ts";
import { useService } from "../../../serve.ts";
import { until } from "../../../until.ts";

// Forms as `createPresignedPost` of the AWS SDK makes them, which a browser sends.

const BUCKET = "notes";
const FILE_NAME = "$" + "{filename}";
const SERVER = { accessKeyId: "key-of-the-server", secretAccessKey: "secret-of-the-server" };

let client: s3.S3Client;

const asOwner = (text: string) => withClient(database.ownerUrl, (owner) => owner.query(text));

const folder = useFolder("forms-");
const database = useDatabase();
beforeAll(async () => {
  await asOwner(`
    insert into storage.buckets (id, name) values ('notes', 'notes'), ('other', 'other');
    create policy "own folder" on storage.objects to authenticated
      using ((storage.foldername(name))[1] = (select auth.uid())::text)
      with check ((storage.foldername(name))[1] = (select auth.uid())::text)`);
});
const service = useService({
  database,
  settings: {
    STORAGE_DIR: folder,
    S3_PROTOCOL_ACCESS_KEY_ID: SERVER.accessKeyId,
    S3_PROTOCOL_ACCESS_KEY_SECRET: SERVER.secretAccessKey,
  },
});
beforeAll(async () => {
  const endpoint = `${service.url}/storage/v1/s3`;
  client = new s3.S3Client({ endpoint, region: "us-east-1", forcePathStyle: true, credentials: SERVER });
});
beforeEach(() => asOwner("delete from storage.objects; update storage.buckets set file_size_limit = null"));

type Fields = Record<string, string>;
type FormOptions = {
  readonly credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string };
  readonly fields?: Fields;
  readonly conditions?: readonly unknown[];
  readonly expiresIn?: number;
  readonly policy?: (policy: { expiration?: string; conditions: unknown[] }) => unknown;
};

const hmac = (key: Buffer | string, text: string) => createHmac("sha256", key).update(text).digest();

/** The fields of the form. */
function presign(key: string, options: FormOptions = {}): Fields {
  const { fields = {}, conditions = [], expiresIn = 300, policy = (each) => each } = options;
  const credentials: NonNullable<FormOptions["credentials"]> = options.credentials ?? SERVER;
  const date = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
  const scope = `${date.slice(0, 8)}/us-east-1/s3/aws4_request`;
  const all: Fields = {
    ...fields,
    bucket: BUCKET,
    "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
    "X-Amz-Credential": `${credentials.accessKeyId}/${scope}`,
    "X-Amz-Date": date,
    ...(credentials.sessionToken && { "X-Amz-Security-Token": credentials.sessionToken }),
  };
  const prefix = key.replace(/\$\{filename\}$/, "");
  const ofKey = prefix === key ? { key } : ["starts-with", "$key", prefix];
  const document = policy({
    expiration: new Date(Date.now() + expiresIn * 1000).toISOString(),
    conditions: [...conditions, ...Object.entries(all).map(([name, value]) => ({ [name]: value })), ofKey],
  });
  const encoded = Buffer.from(JSON.stringify(document)).toString("base64");
  const signingKey = scope.split("/").reduce<Buffer>(hmac, Buffer.from(`AWS4${credentials.secretAccessKey}`));
  return { ...all, key, Policy: encoded, "X-Amz-Signature": hmac(signingKey, encoded).toString("hex") };
}

type Sent = { readonly bucket?: string; readonly content?: string; readonly name?: string; readonly after?: Fields };

function post(fields: Fields, { bucket = BUCKET, content = "Hello", name = "hello.txt", after = {} }: Sent = {}) {
  const form = new FormData();
  for (const [field, value] of Object.entries(fields)) form.set(field, value);
  form.set("file", new Blob([content], { type: "text/plain" }), name);
  for (const [field, value] of Object.entries(after)) form.append(field, value);
  return fetch(`${service.url}/storage/v1/s3/${bucket}`, { method: "POST", body: form, redirect: "manual" });
}

const codeOf = async (response: Response) =>
  [response.status, /<Code>(\w+)/.exec(await response.text())?.[1] ?? null] as const;
const head = (Key: string) => client.send(new s3.HeadObjectCommand({ Bucket: BUCKET, Key }));
const names = async () =>
  (await asOwner("select name from storage.objects order by name")).rows.map(({ name }) => name);

function credentialsOf(sub: string) {
  const token = jwt.sign({ role: "authenticated", sub }, SECRET, { expiresIn: 3600 });
  return { accessKeyId: "project", secretAccessKey: token, sessionToken: token };
}

describe("an upload", () => {
  test("has the headers and metadata of its fields", async () => {
    const fields = { "Content-Type": "text/css", "Cache-Control": "max-age=60", "X-Amz-Meta-Author": "Ada" };
    const response = await post(presign("a/b ü.css", { fields }));
    const tag = `"${createHash("md5").update("Hello").digest("hex")}"`;
    expect([response.status, response.headers.get("ETag")]).toEqual([200, tag]);
    expect(await head("a/b ü.css")).toMatchObject({
      ...{ ContentLength: 5, ContentType: "text/css", CacheControl: "max-age=60" },
      ...{ Metadata: { author: "Ada" }, ETag: tag },
    });
  });

  test("is named as the file, where the key says so", async () => {
    expect((await post(presign(`a/${FILE_NAME}`), { name: "cat.png" })).status).toBe(200);
    expect((await post(presign(`a/${FILE_NAME}`), { name: "../../dog.png" })).status).toBe(200);
    expect(await names()).toEqual(["a/cat.png", "a/dog.png"]);
  });

  test("is answered as the form asks for", async () => {
    const fields = (more: Fields) => presign("a", { fields: more });
    expect((await post(fields({ success_action_status: "204" }))).status).toBe(204);
    const created = await post(fields({ success_action_status: "201" }));
    expect([created.status, await created.text()]).toEqual([201, expect.stringContaining("<Key>a</Key>")]);
    const moved = await post(fields({ success_action_redirect: "https://example.org/done?x=1" }));
    expect([moved.status, moved.headers.get("Location")]).toEqual([
      303,
      expect.stringMatching(/^https:\/\/example\.org\/done\?x=1&bucket=notes&key=a&etag=/),
    ]);
    expect((await post(fields({ success_action_redirect: "javascript:alert(1)" }))).status).toBe(200);
  });

  test("is one of the caller whose session token the form has", async () => {
    const credentials = credentialsOf("1");
    expect((await post(presign("1/a", { credentials }))).status).toBe(200);
    expect(await codeOf(await post(presign("2/a", { credentials })))).toEqual([403, "AccessDenied"]);
    expect(await names()).toEqual(["1/a"]);
    expect((await asOwner("select owner_id from storage.objects")).rows).toEqual([{ owner_id: "1" }]);
  });

  test("may be as large as the policy and the bucket let it", async () => {
    const conditions = [["content-length-range", 3, 8]];
    expect((await post(presign("a", { conditions }), { content: "12345678" })).status).toBe(200);
    expect(await codeOf(await post(presign("b", { conditions }), { content: "123456789" }))).toEqual([
      400,
      "EntityTooLarge",
    ]);
    expect(await codeOf(await post(presign("b", { conditions }), { content: "12" }))).toEqual([400, "EntityTooSmall"]);
    await asOwner("update storage.buckets set file_size_limit = 4");
    expect(await codeOf(await post(presign("b")))).toEqual([400, "EntityTooLarge"]);
    expect(await names()).toEqual(["a"]);
  });
});

describe("refusals", () => {
  const signed = () => presign("a", { fields: { "Content-Type": "text/plain" } });
  const without = (fields: Fields, name: string) =>
    Object.fromEntries(Object.entries(fields).filter(([each]) => each !== name));
  const forged = { ...SERVER, secretAccessKey: "another" };

  test.each<[what: string, code: readonly [number, string], fields: () => Fields, sent?: Sent]>([
    ["another secret", [403, "SignatureDoesNotMatch"], () => presign("a", { credentials: forged })],
    [
      "an unknown key",
      [403, "InvalidAccessKeyId"],
      () => presign("a", { credentials: { ...SERVER, accessKeyId: "x" } }),
    ],
    ["no signature", [403, "SignatureDoesNotMatch"], () => without(signed(), "X-Amz-Signature")],
    ["no policy", [403, "AccessDenied"], () => without(signed(), "Policy")],
    ["another policy", [403, "SignatureDoesNotMatch"], () => ({ ...signed(), Policy: presign("b").Policy! })],
    ["another key", [403, "AccessDenied"], () => ({ ...signed(), key: "b" })],
    ["no key", [403, "AccessDenied"], () => without(signed(), "key")],
    ["another type", [403, "AccessDenied"], () => ({ ...signed(), "Content-Type": "text/html" })],
    ["a field that the policy does not name", [403, "AccessDenied"], () => ({ ...signed(), "X-Amz-Meta-A": "b" })],
    ["another bucket", [403, "AccessDenied"], signed, { bucket: "other" }],
    ["an expired policy", [403, "AccessDenied"], () => presign("a", { expiresIn: -1 })],
    [
      "a policy without end",
      [400, "InvalidPolicyDocument"],
      () => presign("a", { policy: ({ conditions }) => ({ conditions }) }),
    ],
    ["a policy that is none", [400, "InvalidPolicyDocument"], () => presign("a", { policy: () => "x" })],
    [
      "an unknown condition",
      [400, "InvalidPolicyDocument"],
      () => presign("a", { conditions: [["like", "$key", "a"]] }),
    ],
    [
      "fields that are too long together",
      [400, "InvalidArgument"],
      () => ({
        ...Object.fromEntries(["a", "b", "c"].map((name) => [`x-ignore-${name}`, "x".repeat(8000)])),
        ...signed(),
      }),
    ],
    ["a field twice", [400, "InvalidArgument"], () => ({ ...signed(), KEY: "a" })],
    ["a name that no object has", [400, "KeyTooLongError"], () => presign("a/../b")],
    ["a scheme of version 2", [400, "InvalidRequest"], () => without(signed(), "X-Amz-Algorithm")],
  ])("%s", async (_, code, fields, sent) => {
    expect(await codeOf(await post(fields(), sent))).toEqual(code);
    expect(await names()).toEqual([]);
  });

  test("fields after the file say nothing", async () => {
    expect((await post(signed(), { after: { key: "b", "x-amz-meta-a": "b" } })).status).toBe(200);
    expect(await names()).toEqual(["a"]);
    expect((await head("a")).Metadata).toEqual({});
  });

  test("a form without a file, and none, are refused", async () => {
    const target = `${service.url}/storage/v1/s3/${BUCKET}`;
    const form = new FormData();
    for (const [name, value] of Object.entries(signed())) form.set(name, value);
    expect(await codeOf(await fetch(target, { method: "POST", body: form }))).toEqual([400, "InvalidArgument"]);
    const headers = { "Content-Type": "multipart/form-data" };
    expect(await codeOf(await fetch(target, { method: "POST", body: "x", headers }))).toEqual([
      400,
      "MalformedPOSTRequest",
    ]);
    expect(await codeOf(await fetch(target, { method: "POST", body: "x" }))).toEqual([403, "AccessDenied"]);
  });

  test.each([
    ["a field without a name", "Content-Disposition: form-data\r\n\r\nhello"],
    [
      "a header with the name of a method of objects",
      'constructor: x\r\nContent-Disposition: form-data; name="a"\r\n\r\nv',
    ],
  ])("%s is refused, before anybody is known", async (_, part) => {
    const response = await fetch(`${service.url}/storage/v1/s3/anything`, {
      method: "POST",
      headers: { "content-type": "multipart/form-data; boundary=b" },
      body: `--b\r\n${part}\r\n--b--\r\n`,
    });
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringMatching(/<Code>(?:InvalidArgument|MalformedPOSTRequest)</),
    ]);
  });

  test("a form that breaks off leaves no row and no file", async () => {
    const fields = Object.entries(signed()).map(
      ([name, value]) => `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
    );
    const part = '--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nHel';
    const { hostname, port } = new URL(service.url);
    for (const length of [0, 100_000]) {
      const body = `${fields.join("")}${part}`;
      const socket = connect(Number(port), hostname);
      socket.write(
        `POST /storage/v1/s3/${BUCKET} HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=x\r\n` +
          `Content-Length: ${Buffer.byteLength(body) + length}\r\nConnection: close\r\n\r\n${body}`,
      );
      if (length === 0) {
        const chunks = await socket.toArray();
        expect(Buffer.concat(chunks).toString()).toContain("MalformedPOSTRequest");
      } else {
        await until(async () => (await readdir(join(folder, "drafts"))).length > 0);
        socket.destroy();
      }
      await until(async () => (await readdir(join(folder, "drafts"))).length === 0);
      expect(await names()).toEqual([]);
    }
  });
});
