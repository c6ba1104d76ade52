import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  FetchError,
  isChangeMessage,
  isControlMessage,
  type Message,
  type Row,
  ShapeStream,
} from "@electric-sql/client";
import { afterEach, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { openRealtimeFixture } from "../../realtime/service.ts";
import { until } from "../../until.ts";

type StreamOptions = Partial<ConstructorParameters<typeof ShapeStream<Row>>[0]>;
type MessageHandler = (resolve: () => void, message: Message<Row>, changes: number) => Promise<void> | void;

const fixture = useFixture(() => openRealtimeFixture("select 1", { REST_REQUIRE_APIKEY: "false" }));
const sql = (text: string, values: unknown[] = []) => fixture.owner.query(text, values);

let abort = new AbortController();
afterEach(() => {
  abort.abort();
  abort = new AbortController();
});

/** A new table for each test: the streams begin at once after the definitions have changed. */
async function createIssues() {
  const name = `issues for ${randomUUID()}`;
  const table = `public."${name}"`;
  await sql(`create table ${table} (id uuid primary key, title text not null, priority int not null);
    comment on table ${table} is 'Issues of a test';
    grant select on ${table} to anon`);
  return {
    table,
    keyOf: (id: string) => `"public"."${name}"/"${id}"`,
    insert: async (...titles: string[]) => {
      const ids = titles.map(() => randomUUID());
      await sql(`insert into ${table} select id, title, 10 from unnest($1::uuid[], $2::text[]) as issue (id, title)`, [
        ids,
        titles,
      ]);
      return ids;
    },
    update: (id: string, title: string) => sql(`update ${table} set title = $2 where id = $1`, [id, title]),
  };
}

function open(table: string, { params, ...options }: StreamOptions = {}) {
  const url = `${fixture.service.url}/v1/shape`;
  return new ShapeStream<Row>({ url, params: { table, ...params }, signal: abort.signal, ...options });
}

/** Calls back with each message, and the number of changes before it; the stream waits for the handler. */
function forEachMessage(stream: ShapeStream<Row>, handle: MessageHandler): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let changes = 0;
  stream.subscribe(async (messages) => {
    for (const message of messages) {
      await Promise.resolve(handle(resolve, message as Message<Row>, changes)).catch(reject);
      if (isChangeMessage(message)) changes++;
    }
  }, reject);
  return promise;
}

/** Resolves when a stream of its own has had so many changes; returns what a later stream continues from. */
async function waitForChanges(table: string, count: number, options: StreamOptions = {}) {
  const ended = new AbortController();
  const stream = open(table, { ...options, signal: ended.signal });
  let seen = 0;
  await forEachMessage(stream, (resolve, message) => {
    if (isChangeMessage(message)) seen++;
    if (seen >= count && isUpToDate(message)) resolve();
  });
  ended.abort();
  return { offset: stream.lastOffset, handle: stream.shapeHandle! };
}

const isUpToDate = (message: Message<Row>) => isControlMessage(message) && message.headers.control === "up-to-date";

describe.each([
  ["long polls", false],
  ["events", true],
])("%s", (_form, liveSse) => {
  test("a stream gets the rows, and then each change that its own handler makes", async () => {
    const { table, keyOf, insert, update } = await createIssues();
    const [first] = await insert("original");
    await waitForChanges(table, 1);
    const values = new Map<string, unknown>();
    let second = "";
    await forEachMessage(open(table, { liveSse }), async (resolve, message, changes) => {
      if (!isChangeMessage(message)) return;
      values.set(message.key, message.value);
      if (changes === 0) await update(first!, "changed");
      else if (changes === 1) [second] = (await insert("second")) as [string];
      else resolve();
    });
    // An update has the key and the columns that have changed.
    expect(values).toEqual(
      new Map([
        [keyOf(first!), { id: first, title: "changed" }],
        [keyOf(second), { id: second, title: "second", priority: 10 }],
      ]),
    );
  });

  test("a stream sends no request while its handler works, and others go on", async () => {
    const { table, insert } = await createIssues();
    await insert("original");
    let requests = 0;
    const fetchClient: typeof fetch = (...args) => {
      requests++;
      return fetch(...args);
    };
    await forEachMessage(open(table, { liveSse, fetchClient }), async (resolve, message, changes) => {
      if (!isChangeMessage(message)) return;
      if (changes > 0) return resolve();
      await sleep(100);
      const before = requests;
      await insert("second");
      await waitForChanges(table, 2);
      expect(requests).toBe(before);
    });
  });

  test("two streams of the same shape get the same changes", async () => {
    const { table, insert, update } = await createIssues();
    const [first] = await insert("first", "second");
    const read = async (isWriter: boolean) => {
      const values = new Map<string, unknown>();
      await forEachMessage(open(table, { liveSse }), (resolve, message, changes) => {
        if (!isChangeMessage(message)) return;
        values.set(message.key, message.value);
        if (changes === 1 && isWriter) setTimeout(() => void update(first!, "changed"), 50);
        if (changes === 2) resolve();
      });
      return values;
    };
    const [one, other] = await Promise.all([read(true), read(false)]);
    expect(one.size).toBe(2);
    expect(one).toEqual(other);
  });

  test("a stream that continues gets what it has missed", async () => {
    const { table, insert } = await createIssues();
    await insert("1", "2", "3");
    const state = await waitForChanges(table, 3);
    await insert(..."456789");
    await waitForChanges(table, 6, state);
    let missed = 0;
    await forEachMessage(open(table, { liveSse, ...state }), (resolve, message) => {
      if (isChangeMessage(message)) missed++;
      if (isUpToDate(message)) resolve();
    });
    expect(missed).toBe(6);
  });

  test("a condition holds for the rows and for changes", async () => {
    const { table, keyOf, insert, update } = await createIssues();
    const [foo, bar] = await insert("foo", "bar");
    const values = new Map<string, unknown>();
    const stream = open(table, { liveSse, params: { where: "title like 'foo%'" } });
    await forEachMessage(stream, async (resolve, message, changes) => {
      if (!isChangeMessage(message)) return;
      values.set(message.key, message.value);
      if (changes > 0) return resolve();
      await update(bar!, "bar1");
      await update(foo!, "foo1");
    });
    expect(values).toEqual(new Map([[keyOf(foo!), { id: foo, title: "foo1" }]]));
  });

  test("a stream waits on an empty table: one request for the rows, and one that stays open", async () => {
    const { table } = await createIssues();
    const requested: URLSearchParams[] = [];
    const fetchClient: typeof fetch = (input, init) => {
      requested.push(new URL(String(input)).searchParams);
      return fetch(input, init);
    };
    let upToDate = 0;
    open(table, { liveSse, fetchClient }).subscribe((messages) => {
      upToDate += messages.filter((message) => isUpToDate(message as Message<Row>)).length;
    });
    await until(() => requested.length > 1);
    await sleep(300);
    expect(requested.map((query) => [query.get("offset") === "-1", query.get("live")])).toEqual([
      [true, null],
      [false, "true"],
    ]);
    expect(upToDate).toBeGreaterThan(0);
  });

  test("an invalid condition ends the stream with the error of the response", async () => {
    const { table } = await createIssues();
    let error: unknown;
    const onError = (failure: Error) => {
      error = failure;
    };
    const stream = open(table, { liveSse, onError, params: { where: "1 x 1" } });
    await expect(new Promise((_resolve, reject) => stream.subscribe(() => {}, reject))).rejects.toThrow(FetchError);
    expect(stream.isConnected()).toBe(false);
    expect(error).toMatchObject({
      status: 400,
      json: { error: { code: "INVALID_SHAPE", message: expect.any(String) } },
    });
  });

  test("a stream whose shape is rotated begins anew with another handle", async () => {
    const { table, insert } = await createIssues();
    await insert("first");
    const statuses: number[] = [];
    const fetchClient: typeof fetch = async (input, init) => {
      const url = new URL(String(input));
      // The server has a handle that this client does not know.
      if (statuses.length === 1) {
        await insert("second");
        url.searchParams.set("handle", "rotated");
        url.searchParams.set("offset", "7_0");
      }
      const response = await fetch(url, init);
      statuses.push(response.status);
      return response;
    };
    const titles: unknown[] = [];
    const stream = open(table, { liveSse, fetchClient });
    const handles: (string | undefined)[] = [];
    await forEachMessage(stream, (resolve, message) => {
      if (isChangeMessage(message)) titles.push(message.value.title);
      if (isUpToDate(message)) handles.push(stream.shapeHandle);
      if (titles.length === 3) resolve();
    });
    expect(statuses.slice(0, 3)).toEqual([200, 409, 200]);
    expect(titles.toSorted()).toEqual(["first", "first", "second"]);
  });
});

test("a large table comes in one response, and so does a large transaction", async () => {
  const { table, insert } = await createIssues();
  const sizes: number[] = [];
  const fetchClient: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    const changes = ((await response.clone().json()) as Message<Row>[]).filter((message) => isChangeMessage(message));
    if (changes.length > 0) sizes.push(changes.length);
    return response;
  };
  const titles = Array.from({ length: 40 }, (_, index) => String(index).padEnd(1_000, "."));
  await insert(...titles);
  const state = await waitForChanges(table, 40, { fetchClient });
  await insert(...titles);
  await waitForChanges(table, 40, { ...state, fetchClient });
  expect(sizes).toEqual([40, 40]);
});

test("a handle is not deleted on request, and an offset of another server has the client begin anew", async () => {
  const { table } = await createIssues();
  const { handle } = await waitForChanges(table, 0);
  const ask = (query: object, method = "GET") =>
    fetch(`${fixture.service.url}/v1/shape?${new URLSearchParams({ table, handle, ...query })}`, { method });
  expect((await ask({}, "DELETE")).status).toBe(405);
  expect((await ask({ offset: "0_0" })).status).toBe(409);
});

test("a response is cached for seconds, and confirmed by its tag", async () => {
  const { table, insert } = await createIssues();
  await insert("first");
  const read = (headers: Record<string, string> = {}) =>
    fetch(`${fixture.service.url}/v1/shape?${new URLSearchParams({ table, offset: "-1" })}`, { headers });
  const first = await read();
  const tag = first.headers.get("etag")!;
  expect(first.headers.get("cache-control")).toBe("public, max-age=5, stale-while-revalidate=5");
  expect((await read({ "if-none-match": tag })).status).toBe(304);
  await insert("second");
  await waitForChanges(table, 2);
  const second = await read({ "if-none-match": tag });
  expect([second.status, second.headers.get("etag") === tag]).toEqual([200, false]);
});
