import * as s3 from "@aws-sdk/client-s3";
import { beforeAll, describe, expect, test } from "vitest";
import { useFixture, useFolder } from "../../../fixture.ts";
import { RawClient } from "../../../realtime/raw-client.ts";
import { until } from "../../../until.ts";
import {
  type Application,
  approved,
  newApplication,
  newPerson,
  openOAuth,
  type Person,
  signedIn,
} from "./open-oauth.ts";

const SCHEMA = `
  create table public.notes (id int primary key, body text);
  insert into public.notes values (1, 'one'), (2, 'two');
  grant all on public.notes to authenticated, service_role;
  create or replace function public.add_note(id int) returns int language sql volatile
  begin atomic insert into public.notes values (id, 'new') returning id; end;
  create function public.announce(room text) returns void language sql volatile security definer
  begin atomic select realtime.send('{"by":"sql"}', 'news', room, false); end;
  create function public.announce_bytes(room text) returns void language sql volatile security definer
  begin atomic select realtime.send_binary('\\x00', 'news', room, false); end;
  create function public.count_notes() returns bigint language sql stable return (select count(*) from public.notes);
  grant execute on function public.count_notes, public.add_note, public.announce, public.announce_bytes to authenticated;
  create policy "may all" on realtime.messages to authenticated using (true) with check (true);
  insert into storage.buckets (id, name) values ('files', 'files');
  create policy "may all" on storage.objects to authenticated using (true) with check (true);
  create policy "may all" on storage.buckets to authenticated using (true) with check (true)`;

/** The tokens for the two resources. */
type Tokens = { readonly api: string; readonly mcp: string };

let person: Person;
let application: Application;
let ofPerson: string;
const tokens: Record<string, Tokens> = {};

const folder = useFolder("files-");
const fixture = useFixture(() => openOAuth({ MCP: "write", STORAGE_DIR: folder }));
beforeAll(async () => {
  await fixture.owner.query(SCHEMA);
  person = await newPerson(fixture);
  application = await newApplication(fixture);
  ofPerson = (await signedIn(fixture, person)).token;
  await until(async () => (await ask("GET", "/rest/v1/notes", ofPerson)).status === 200);
  const grant = async (scope: string, resource = "") => {
    const parameters = { scope, resource: resource === "" ? fixture.url : new URL(resource, fixture.url).href };
    return (await approved(fixture, application, person, parameters)).tokens.access_token;
  };
  for (const scope of ["read", "read write:notes", "write"])
    tokens[scope] = { api: await grant(scope), mcp: await grant(scope, "/mcp") };
});

type Sent = { readonly body?: unknown; readonly headers?: Record<string, string> };

async function ask(method: string, path: string, token: string, { body, headers = {} }: Sent = {}) {
  const isJson = body !== undefined && !(body instanceof Uint8Array);
  const response = await fetch(`${fixture.url}${path}`, {
    method,
    redirect: "manual",
    headers: {
      ...{ Authorization: `Bearer ${token}`, apikey: token },
      ...(isJson && { "Content-Type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: isJson ? JSON.stringify(body) : (body as Uint8Array<ArrayBuffer>) }),
  });
  return { status: response.status, text: await response.text() };
}

let lastId = 1000;
const newId = () => ++lastId;

/** Resolves with true if the interface carried it out. */
type Attempt = (token: Tokens) => Promise<boolean>;

const request =
  (method: string, path: string | (() => string), sent: () => Sent = () => ({})): Attempt =>
  async ({ api }) =>
    (await ask(method, typeof path === "string" ? path : path(), api, sent())).status < 300;

const json = (make: () => unknown) => () => ({ body: make() });
const bytes = (headers: Record<string, string> = {}) => ({
  body: new TextEncoder().encode("hello"),
  headers: { "Content-Type": "text/plain", ...headers },
});

const graphql: Attempt = async ({ api }) => {
  const query = `mutation { createNote(input: { id: ${newId()}, body: "x" }) { id } }`;
  const { text } = await ask("POST", "/graphql", api, { body: { query } });
  const { errors } = JSON.parse(text) as { errors?: readonly { extensions?: { code?: string } }[] };
  if (errors) expect(errors[0]!.extensions?.code).toBe("PERMISSION_DENIED");
  return errors === undefined;
};

const mcp =
  (name: string, argumentsOf: () => object): Attempt =>
  async ({ mcp: token }) => {
    const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: argumentsOf() } };
    const headers = { Accept: "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18" };
    const { text } = await ask("POST", "/mcp", token, { body, headers });
    const message = text.startsWith("{") ? text : /^data: (\{.*)$/m.exec(text)![1]!;
    const { result, error } = JSON.parse(message) as { result?: { isError?: boolean }; error?: unknown };
    return error === undefined && result?.isError !== true;
  };

const upload = async (path: string) => {
  const { status, text } = await ask(
    "POST",
    `/storage/v1/object/files/${path}`,
    ofPerson,
    bytes({ "x-upsert": "true" }),
  );
  expect([status, text]).toEqual([200, expect.any(String)]);
};

/** An attempt on a file of the person. */
const onFile =
  (attempt: (path: string) => Attempt): Attempt =>
  async (token) => {
    const path = `file-${newId()}`;
    await upload(path);
    return attempt(path)(token);
  };

const byS3 =
  (send: (client: s3.S3Client) => Promise<object>): Attempt =>
  async ({ api }) => {
    const client = new s3.S3Client({
      endpoint: `${fixture.url}/storage/v1/s3`,
      region: "eu-central-1",
      forcePathStyle: true,
      maxAttempts: 1,
      credentials: { accessKeyId: "project", secretAccessKey: api, sessionToken: api },
    });
    const wasDone = await send(client).then(
      () => true,
      (error: unknown) => {
        if (!(error instanceof s3.S3ServiceException)) throw error;
        return false;
      },
    );
    client.destroy();
    return wasDone;
  };

const withdrawTask: Attempt = async ({ api }) => {
  const { status, text } = await ask("POST", "/rest/v1/rpc/add_note", ofPerson, {
    body: { id: newId() },
    headers: { Prefer: "respond-async" },
  });
  expect([status, text]).toEqual([202, expect.any(String)]);
  const withdrawn = await ask("DELETE", `/api/v1/tasks/${JSON.parse(text).taskId}`, api);
  // The task may run already, which is a conflict for those who could withdraw it.
  return withdrawn.status === 204 || withdrawn.status === 409 || withdrawn.status === 404;
};

/** Sends it on a socket, in a channel that the application has joined. */
const inChannel =
  (isPrivate: boolean, event: string, payload: object): Attempt =>
  async ({ api }) => {
    const client = await new RawClient(fixture.url, { key: api }).opened();
    try {
      const config = { private: isPrivate, broadcast: { ack: true }, presence: { key: "app" } };
      const joined = await client.join("realtime:room", config);
      expect(joined.payload).toMatchObject({ status: "ok" });
      const sent = await client.reply(client.say("realtime:room", event, payload, { joinRef: joined.ref }));
      return sent.payload.status === "ok";
    } finally {
      await client.close();
    }
  };

const BROADCAST = { type: "broadcast", event: "news", payload: { by: "app" } };
const TRACK = { type: "presence", event: "track", payload: { name: "app" } };

const message = (isPrivate: boolean) => ({ topic: "room", event: "news", payload: { by: "app" }, private: isPrivate });

/** Attempts to change or send anything, for somebody who may. */
const ATTEMPTS: Readonly<Record<string, Attempt>> = {
  "REST: insert": request(
    "POST",
    "/rest/v1/notes",
    json(() => ({ id: newId() })),
  ),
  "REST: insert with a key of idempotency": request("POST", "/rest/v1/notes", () => ({
    body: { id: newId() },
    headers: { "Idempotency-Key": crypto.randomUUID() },
  })),
  "REST: put": request(
    "PUT",
    "/rest/v1/notes?id=eq.1",
    json(() => ({ id: 1, body: "put" })),
  ),
  "REST: update": request(
    "PATCH",
    "/rest/v1/notes?id=eq.1",
    json(() => ({ body: "patched" })),
  ),
  "REST: delete": request("DELETE", () => `/rest/v1/notes?id=eq.${newId()}`),
  "REST: a function that changes": request(
    "POST",
    "/rest/v1/rpc/add_note",
    json(() => ({ id: newId() })),
  ),
  "REST: a function that changes, later": request("POST", "/rest/v1/rpc/add_note", () => ({
    body: { id: newId() },
    headers: { Prefer: "respond-async" },
  })),
  "REST: a function that sends": request(
    "POST",
    "/rest/v1/rpc/announce",
    json(() => ({ room: "room" })),
  ),
  "REST: a function that sends bytes": request(
    "POST",
    "/rest/v1/rpc/announce_bytes",
    json(() => ({ room: "room" })),
  ),
  "resource: insert": request(
    "POST",
    "/api/v1/notes",
    json(() => ({ id: newId() })),
  ),
  "resource: update": request(
    "PATCH",
    "/api/v1/notes/1",
    json(() => ({ body: "patched" })),
  ),
  "resource: delete": async (token) => {
    const id = newId();
    await fixture.owner.query("insert into public.notes values ($1, 'x')", [id]);
    return request("DELETE", `/api/v1/notes/${id}`)(token);
  },
  batch: request(
    "POST",
    "/api/v1/batch",
    json(() => ({ operations: [{ method: "POST", path: "/notes", body: { id: newId() } }] })),
  ),
  "tasks: withdraw": withdrawTask,
  "GraphQL: mutation": graphql,
  "MCP: insert": mcp("insert_notes", () => ({ rows: [{ id: newId() }] })),
  "MCP: a function": mcp("call_add_note", () => ({ id: newId() })),
  "storage: create a bucket": request(
    "POST",
    "/storage/v1/bucket",
    json(() => ({ name: `bucket-${newId()}` })),
  ),
  "storage: upload": request(
    "POST",
    () => `/storage/v1/object/files/new-${newId()}`,
    () => bytes(),
  ),
  "storage: replace": onFile((path) => request("PUT", `/storage/v1/object/files/${path}`, () => bytes())),
  "storage: delete": onFile((path) => request("DELETE", `/storage/v1/object/files/${path}`)),
  "storage: move": onFile((path) =>
    request(
      "POST",
      "/storage/v1/object/move",
      json(() => ({ bucketId: "files", sourceKey: path, destinationKey: `${path}-moved` })),
    ),
  ),
  "storage: copy": onFile((path) =>
    request(
      "POST",
      "/storage/v1/object/copy",
      json(() => ({ bucketId: "files", sourceKey: path, destinationKey: `${path}-copied` })),
    ),
  ),
  "storage: sign an address for uploads": request(
    "POST",
    () => `/storage/v1/object/upload/sign/files/new-${newId()}`,
    json(() => ({})),
  ),
  "storage: begin an upload in parts": request("POST", "/storage/v1/upload/resumable", () => ({
    headers: {
      "Tus-Resumable": "1.0.0",
      "Upload-Length": "5",
      "Upload-Metadata": `bucketName ${btoa("files")},objectName ${btoa(`tus-${newId()}`)},contentType ${btoa("text/plain")}`,
    },
  })),
  "S3: put": byS3((client) =>
    client.send(new s3.PutObjectCommand({ Bucket: "files", Key: `s3-${newId()}`, Body: "hello" })),
  ),
  "S3: begin an upload in parts": byS3((client) =>
    client.send(new s3.CreateMultipartUploadCommand({ Bucket: "files", Key: `s3-${newId()}` })),
  ),
  "S3: delete": onFile((path) =>
    byS3((client) => client.send(new s3.DeleteObjectCommand({ Bucket: "files", Key: path }))),
  ),
  "S3: create a bucket": byS3((client) => client.send(new s3.CreateBucketCommand({ Bucket: `bucket-${newId()}` }))),
  "realtime: HTTP, public": request(
    "POST",
    "/realtime/v1/api/broadcast",
    json(() => ({ messages: [message(false)] })),
  ),
  "realtime: HTTP, private": request(
    "POST",
    "/realtime/v1/api/broadcast",
    json(() => ({ messages: [message(true)] })),
  ),
  "realtime: HTTP, one, public": request(
    "POST",
    "/realtime/v1/api/broadcast/room/events/news",
    json(() => ({ by: "app" })),
  ),
  "realtime: HTTP, one, private": request(
    "POST",
    "/realtime/v1/api/broadcast/room/events/news?private=true",
    json(() => ({ by: "app" })),
  ),
  "realtime: socket, public": inChannel(false, "broadcast", BROADCAST),
  "realtime: socket, private": inChannel(true, "broadcast", BROADCAST),
  "realtime: presence, public": inChannel(false, "presence", TRACK),
  "realtime: presence, private": inChannel(true, "presence", TRACK),
};

/** Changes that only users themselves may make, whatever they have granted. */
const ACCOUNT_CHANGES: readonly (readonly [method: string, path: string, body?: object])[] = [
  ["PUT", "/auth/v1/user", { data: { name: "Eve" } }],
  ["POST", "/auth/v1/logout"],
  ["POST", "/auth/v1/factors", { factor_type: "totp", friendly_name: "x" }],
  ["DELETE", `/auth/v1/factors/${crypto.randomUUID()}`],
  ["DELETE", `/auth/v1/user/identities/${crypto.randomUUID()}`],
  ["DELETE", `/auth/v1/user/oauth/grants?client_id=${crypto.randomUUID()}`],
  ["POST", "/auth/v1/passkeys/registration/options", {}],
  ["DELETE", `/auth/v1/passkeys/${crypto.randomUUID()}`],
  ["POST", "/auth/keys", { name: "x" }],
  ["POST", "/auth/logout"],
  ["POST", "/admin/v1/sql", { sql: "select 1" }],
  ["POST", "/functions/v1/any", {}],
];

describe("an application that may only read", () => {
  test.each(Object.keys(ATTEMPTS))("changes and sends nothing: %s", async (name) => {
    expect(await ATTEMPTS[name]!(tokens.read!)).toBe(false);
    // The control.
    expect(await ATTEMPTS[name]!(tokens.write!)).toBe(true);
  });

  test("may write one table at MCP, and writes nothing elsewhere", async () => {
    const done: string[] = [];
    for (const [name, attempt] of Object.entries(ATTEMPTS)) {
      if (await attempt(tokens["read write:notes"]!)) done.push(name);
    }
    expect(done).toEqual(["MCP: insert"]);
  });

  test("reads on all interfaces, receives broadcasts, and calls functions that change nothing at once", async () => {
    const { api, mcp: forMcp } = tokens.read!;
    expect((await ask("GET", "/rest/v1/notes", api)).status).toBe(200);
    expect((await ask("GET", "/api/v1/notes", api)).status).toBe(200);
    expect((await ask("POST", "/storage/v1/object/list/files", api, { body: { prefix: "" } })).status).toBe(200);
    expect(await mcp("read_notes", () => ({}))({ api, mcp: forMcp })).toBe(true);
    const later = { body: {}, headers: { Prefer: "respond-async" } };
    expect((await ask("POST", "/rest/v1/rpc/count_notes", api, later)).status).toBe(200);
    const reader = await new RawClient(fixture.url, { key: api, version: "1.0.0" }).opened();
    const joined = await reader.join("realtime:room", { private: true });
    expect(joined.payload).toMatchObject({ status: "ok" });
    await ATTEMPTS["realtime: HTTP, private"]!(tokens.write!);
    const heard = await reader.until(({ event }) => event === "broadcast");
    expect(heard.payload.payload).toEqual({ by: "app" });
    await reader.close();
  });
});

test("no application changes the account or the service, whatever it may write", async () => {
  for (const [method, path, body] of ACCOUNT_CHANGES) {
    for (const scope of ["read", "write"]) {
      const { status } = await ask(method, path, tokens[scope]!.api, body && { body });
      expect([401, 403, 404], `${method} ${path} with ${scope}: ${status}`).toContain(status);
    }
  }
  expect((await ask("GET", "/auth/v1/user", ofPerson)).text).not.toContain("Eve");
});
