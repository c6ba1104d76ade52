import { once } from "node:events";
import { Agent, type ClientRequest, get, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { serve, useService } from "../../serve.ts";
import { until } from "../../until.ts";
import { openClient, type TestRequest, tokenOf } from "./client.ts";
import { serveApart } from "./serving-process.ts";

const ROWS = 20_000;
const SCHEMA = `
  create table public.lines (id int primary key, owner text not null, text text, note text);
  insert into public.lines
    select n, (array['ada', 'ben'])[1 + n % 2], 'line "' || n || '", ' || repeat('x', 60), nullif('note', 'note')
    from generate_series(0, ${ROWS - 1}) n;
  alter table public.lines enable row level security;
  create policy own on public.lines for select to authenticated using (owner = current_setting('request.jwt.claims')::json ->> 'sub');
  create policy all_of_them on public.lines for select to anon using (true);

  create view public.fragile as
    select id, repeat('x', 100) as text, 1 / (id - 18000) as ratio from public.lines;
  create view public.many as
    select 15 * id + n as id, text, text as more from public.lines, generate_series(0, 14) n;
  create function public.lines_from(first int) returns setof public.lines stable language sql
    as $$ select * from public.lines where id >= first order by id $$;
  create function public.announce() returns void language sql as $$
    select set_config('response.headers', '[{"X-Tea":"' || coalesce(nullif(current_setting('request.headers')::json ->> 'x-tea', ''), 'none') || '"}]', true),
           set_config('response.status', '203', true) $$;
  create function public.babble() returns void language sql as $$
    select set_config('response.headers', 'no JSON at all', true) $$;
  grant select on public.lines, public.fragile, public.many to anon, authenticated;
  grant execute on all functions in schema public to anon;
`;

const database = useDatabase({ template: "empty", sql: SCHEMA });
const owner = useClient(database.ownerUrl);
const service = useService({ database, settings: { PGRST_DB_TX_END: "commit-allow-override", SERVER_TIMING: "true" } });
const client = useFixture(() => openClient(service.url));

/** Postgres puts the whole answer together where the transaction is not of the usual kind. */
const WHOLE = { Prefer: "tx=rollback" };

/** The answer whose head has come and whose body nobody has read yet. */
async function begin(path: string, agent?: Agent, base = service.url): Promise<[IncomingMessage, ClientRequest]> {
  const headers = { apikey: tokenOf({ role: "anon" }) };
  const request = get(`${base}/rest/v1${path}`, { headers, agent: agent ?? false });
  request.on("error", () => {});
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  return [answer, request];
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Returns the wait events of the sessions that are at a statement with this mark. */
async function sessionsAt(mark: string): Promise<string[]> {
  const { rows } = await owner.query(
    `select coalesce(wait_event, 'nothing') as wait_event from pg_stat_activity
      where datname = current_database() and state = 'active' and query like '%' || $1 || '%' and pid <> pg_backend_pid()`,
    [mark],
  );
  return rows.map(({ wait_event }) => wait_event);
}

describe("a response with many rows", () => {
  test.each<[string, string, TestRequest]>([
    ["JSON", "/lines", {}],
    [
      "JSON with relations and nothing that is null",
      "/lines?select=id,note",
      { headers: { Accept: "application/vnd.pgrst.array+json;nulls=stripped" } },
    ],
    ["CSV", "/lines?select=*", { headers: { Accept: "text/csv" } }],
    ["CSV of some columns", "/lines?select=text,number:id,note&order=id.desc", { headers: { Accept: "text/csv" } }],
    ["a page of them", "/lines?order=id&limit=10000&offset=100", {}],
    ["the rows of a function", "/rpc/lines_from?first=7&order=id", {}],
  ])("is streamed, and equals the response that is sent whole: %s", async (_name, path, request) => {
    const whole = await client.ask(path, { headers: { ...request.headers, ...WHOLE } });
    expect([whole.status, whole.headers["transfer-encoding"]]).toEqual([200, undefined]);
    // At first nobody knows how long it is going to be.
    for (const time of ["first", "second"]) {
      const coming = await client.ask(path, request);
      expect([coming.status, coming.headers["transfer-encoding"]], time).toEqual([200, "chunked"]);
      expect(coming.headers["content-length"], time).toBeUndefined();
      expect(coming.headers["content-type"], time).toBe(whole.headers["content-type"]);
      expect(coming.text === whole.text, time).toBe(true);
    }
  });

  test("has no end of its range, unless its rows are counted", async () => {
    const rangeOf = async (path: string, count?: string) => {
      const { status, headers } = await client.ask(path, count ? { headers: { Prefer: `count=${count}` } } : {});
      return [status, headers["content-range"], headers["transfer-encoding"]];
    };
    const page = "/lines?order=id&limit=10000";
    expect(await rangeOf("/lines?select=id,text")).toEqual([200, "0-*/*", "chunked"]);
    expect(await rangeOf(`${page}&offset=5`)).toEqual([200, "5-*/*", "chunked"]);
    expect(await rangeOf("/lines?select=id,text", "exact")).toEqual([200, `0-${ROWS - 1}/${ROWS}`, "chunked"]);
    expect(await rangeOf(page, "exact")).toEqual([206, `0-9999/${ROWS}`, "chunked"]);
    expect(await rangeOf(`${page}&offset=12000`, "exact")).toEqual([206, `12000-19999/${ROWS}`, "chunked"]);
    await owner.query("analyze public.lines");
    expect(await rangeOf("/lines?select=id,text", "planned")).toEqual([200, `0-*/${ROWS}`, "chunked"]);
    expect(await rangeOf(page, "planned")).toEqual([206, `0-*/${ROWS}`, "chunked"]);
  });

  test("has no body for HEAD", async () => {
    for (const path of ["/lines?select=id", "/lines?select=id&id=gte.8000"]) {
      await client.ask(path);
      const { status, headers, text } = await client.ask(path, { method: "HEAD", headers: { Prefer: "count=exact" } });
      expect([status, text, headers["transfer-encoding"]]).toEqual([200, "", undefined]);
      expect(headers["content-range"]).toMatch(/^0-(19999\/20000|11999\/12000)$/);
    }
  });

  test("has only rows that are visible to the caller", async () => {
    const { body } = await client.ask("/lines?select=id,owner", { as: { role: "authenticated", sub: "ben" } });
    expect(body).toHaveLength(ROWS / 2);
    expect(body.every((row: { owner: string }) => row.owner === "ben")).toBe(true);
  });

  test("leaves its connection to the next request", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (const path of ["/lines?select=text", "/lines?select=text", "/lines?select=text&limit=1"]) {
      const [answer, request] = await begin(path, agent);
      expect(JSON.parse(await textOf(answer)).length).toBeGreaterThan(0);
      expect(request.reusedSocket).toBe(path !== "/lines?select=text" || request.reusedSocket);
    }
    expect(Object.values(agent.freeSockets).flat()).toHaveLength(1);
    agent.destroy();
  });

  test("reports the time to its first byte", async () => {
    const { headers } = await client.ask("/lines?select=owner,text");
    expect(headers["server-timing"]).toMatch(/^route;.*query;dur=[\d.]+, run;dur=[\d.]+, respond;dur=[\d.]+, jwt;/);
  });
});

describe("a response with few rows", () => {
  test("is sent whole, also after a long response, with Content-Length", async () => {
    for (const rows of [3, ROWS, 3, 3, 0, ROWS, 0, 200]) {
      const { body, headers } = await client.ask(`/lines?select=id,text&id=lt.${rows}`);
      expect(body).toHaveLength(rows);
      const isLong = rows === ROWS;
      expect(headers["content-range"]).toBe(isLong ? "0-*/*" : rows === 0 ? "*/*" : `0-${rows - 1}/*`);
      expect(headers["content-length"] === undefined).toBe(isLong);
    }
  });

  test("has the usual count", async () => {
    for (const rows of [3, ROWS, 3, 3, ROWS, 0, 0]) {
      const { headers } = await client.ask(`/lines?select=text&id=lt.${rows}`, { headers: { Prefer: "count=exact" } });
      expect(headers["content-range"]).toBe(rows === 0 ? "*/0" : `0-${rows - 1}/${rows}`);
    }
  });

  test("is streamed after its shape has proved to be large", async () => {
    await owner.query(`
      create view public.posters as select id, repeat('x', 100000) as picture from public.lines;
      grant select on public.posters to anon; notify pgrst, 'reload schema'`);
    const path = "/posters?limit=50&order=id";
    await until(async () => (await client.ask(path)).status === 200);
    const { body, headers } = await client.ask(path);
    expect(body).toHaveLength(50);
    expect(headers["transfer-encoding"]).toBe("chunked");
  });
});

describe("headers and status that SQL sets for a response with many rows", () => {
  test("are sent, although the rows are streamed", async () => {
    const polite = await serve(database, { PGRST_DB_PRE_REQUEST: "public.announce" });
    const asking = openClient(polite.url);
    for (const path of ["/lines", "/lines", "/lines?limit=2", "/rpc/lines_from?first=0"]) {
      const { status, headers } = await asking.ask(path, { headers: { "X-Tea": "green" } });
      expect([status, headers["x-tea"]]).toEqual([203, "green"]);
    }
    asking.close();
    await polite.stop();
  });

  test("end it with an error if they are invalid", async () => {
    const muddled = await serve(database, { PGRST_DB_PRE_REQUEST: "public.babble", DB_POOL: "4" });
    const asking = openClient(muddled.url);
    // Were the rows not let go of, their connections would be used up.
    for (let time = 0; time < 5; time++) {
      expect(await asking.ask("/lines?select=id,text")).toMatchObject({ status: 500, body: { code: "PGRST111" } });
    }
    await until(async () => (await sessionsAt("row_to_json")).length === 0);
    asking.close();
    await muddled.stop();
  });
});

describe("an error", () => {
  test("before the first rows are sent is an ordinary error response", async () => {
    expect((await client.ask("/lines?select=id,text&text=gte.a")).status).toBe(200);
    const refused = await client.ask("/lines?select=id,text&id=gte.a");
    expect(refused).toMatchObject({ status: 400, body: { code: "22P02" } });
    await client.ask("/fragile?id=lt.15000&select=ratio,text,id");
    const failed = await client.ask("/fragile?id=lt.18100&select=ratio,text,id&order=id.desc&id=gt.100");
    expect(failed).toMatchObject({ status: 400, body: { code: "22012" } });
  });

  test("after them breaks the connection: no client takes the rows for a complete response", async () => {
    const [answer] = await begin("/fragile?order=id");
    expect(answer.statusCode).toBe(200);
    await expect(textOf(answer)).rejects.toThrow("aborted");
    expect((await client.ask("/fragile?limit=1")).status).toBe(200);
  });

  test("is detected by clients that read until the connection closes", async () => {
    const { hostname, port } = new URL(service.url);
    const ends = [];
    for (const path of ["/lines?select=id", "/fragile?order=id"]) {
      const socket = connect(Number(port), hostname);
      socket.write(`GET /rest/v1${path} HTTP/1.0\r\napikey: ${tokenOf({ role: "anon" })}\r\n\r\n`);
      let text = "";
      let end = "complete";
      socket.on("data", (chunk) => (text += chunk)).on("error", ({ message }) => (end = message));
      await new Promise((closed) => socket.once("close", closed));
      expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
      ends.push(end);
    }
    expect(ends).toEqual(["complete", "read ECONNRESET"]);
  });
});

describe("a client", () => {
  /** 20 MB, more than the buffers of the sockets. */
  const HUGE = `/lines?select=id,and_more_still:text,${Array.from({ length: 11 }, (_, n) => `more_${n}:text`).join()}`;

  test("that reads slowly makes Postgres wait, and gets the whole response", async () => {
    const [answer] = await begin(HUGE);
    await until(async () => (await sessionsAt("and_more_still")).includes("ClientWrite"));
    expect(JSON.parse(await textOf(answer))).toHaveLength(ROWS);
    expect(await sessionsAt("and_more_still")).toEqual([]);
  });

  test("that disconnects ends its query and frees the connection", async () => {
    for (let time = 0; time < 5; time++) {
      const [answer] = await begin(HUGE);
      expect(await sessionsAt("and_more_still")).toHaveLength(1);
      answer.destroy();
      await until(async () => (await sessionsAt("and_more_still")).length === 0);
    }
    expect((await client.ask(HUGE)).status).toBe(200);
  });

  test("that disconnects before the first byte ends its query too", async () => {
    await owner.query(`
      create view public.sluggish as select id, text, pg_sleep(0.001 * (id % 2))::text as pause from public.lines;
      grant select on public.sluggish to anon; notify pgrst, 'reload schema'`);
    await until(async () => (await client.ask("/sluggish?limit=1")).status === 200);
    const request = get(`${service.url}/rest/v1/sluggish?order=text`, {
      headers: { apikey: tokenOf({ role: "anon" }) },
    });
    request.on("error", () => {});
    await until(async () => (await sessionsAt("sluggish")).length === 1);
    request.destroy();
    await expect.poll(async () => (await sessionsAt("sluggish")).length === 0).toBe(true);
  });

  test("that reads slowly delays no short response to the same query shape with other values", async () => {
    const readers: IncomingMessage[] = [];
    // Anonymous callers leave the last of three connections of streams to others: a third reader would wait for one of these two.
    for (let connection = 0; connection < 2; connection++) readers.push((await begin(`${HUGE}&id=gt.0`))[0]);
    const short = await client.ask(`${HUGE}&id=gt.${ROWS - 2}`);
    expect([short.status, JSON.parse(short.text)]).toMatchObject([200, [{ id: ROWS - 1 }]]);
    for (const reader of readers) reader.destroy();
    await until(async () => (await sessionsAt("and_more_still")).length === 0);
  });

  test("that is still reading when the service stops gets the whole response", async () => {
    const stopping = await serve(database, { DRAIN_TIMEOUT_SECONDS: "25" });
    const [answer] = await begin(HUGE, undefined, stopping.url);
    let isStopped = false;
    const stopped = stopping.stop().then(() => (isStopped = true));
    await sleep(1_000);
    expect(isStopped).toBe(false);
    expect(JSON.parse(await textOf(answer))).toHaveLength(ROWS);
    await stopped;
  });
});

describe("the service's memory", () => {
  const begin = async (path: string, url: string, headers = {}) => {
    const request = get(`${url}/rest/v1${path}`, { headers: { apikey: tokenOf({ role: "anon" }), ...headers } });
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    return answer;
  };
  const readThrough = async (path: string, url: string) => {
    const answer = await begin(path, url);
    let bytes = 0;
    for await (const chunk of answer) bytes += chunk.length;
    return bytes / 2 ** 20;
  };

  test("does not grow with a streamed response", async () => {
    const settings = { PGRST_DB_TX_END: "commit-allow-override", MAX_ANSWER_BYTES: String(2 ** 27) };
    await using serving = await serveApart(database, settings);
    await readThrough("/many", serving.url);
    const before = await serving.peak();
    expect(await readThrough("/many", serving.url)).toBeGreaterThan(50);
    const after = await serving.peak();
    expect(after - before).toBeLessThan(16);

    // Several unread answers do increase it: one could fit in the memory that the start of a service has used.
    const answers = await Promise.all(Array.from({ length: 4 }, () => begin("/many", serving.url, WHOLE)));
    expect((await serving.peak()) - after).toBeGreaterThan(16);
    for (const answer of answers) answer.destroy();
  });
});
