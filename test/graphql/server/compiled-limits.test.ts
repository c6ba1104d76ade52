import { pino } from "pino";
import { beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import type { Service } from "../../../service/wiring/service.ts";
import { useFixture, useFolder } from "../../fixture.ts";
import { tokenFor } from "../../graphql.ts";
import { startCollector } from "../../http/observability/collector.ts";
import { openWire } from "../../postgres-wire.ts";
import { serve } from "../../serve.ts";
import { startPair } from "../../standby.ts";
import { until } from "../../until.ts";
import { operationOutcomes } from "../compile/oracle.ts";

const SCHEMA = `
  create role anon; create role authenticated; create role service_role bypassrls;
  create role authenticator login noinherit; grant anon, authenticated, service_role to authenticator;
  create table public.notes (id int primary key, body text, parent_id int references public.notes);
  create index on public.notes (parent_id);
  insert into public.notes select n, 'secret words ' || n from generate_series(1, 30) as n;
  grant select, insert, update, delete on public.notes to anon, authenticated;
  create function public.served_by(note public.notes) returns text language sql stable
    as $$ select case when pg_is_in_recovery() then 'replica' else 'primary' end $$;
  create function public.slow(note public.notes) returns text language sql stable as $$ select 'slept' from pg_sleep(0.15) $$;
  create function public.asleep(note public.notes) returns text language sql stable as $$ select 'slept' from pg_sleep(60) $$;
  create function public.wide(note public.notes) returns text language sql stable as $$ select repeat('w', 2000) $$;
  create function public.change_note(id int, body text) returns public.notes language sql volatile
    as 'update public.notes set body = $2 where notes.id = $1 returning *'`;

const CLIENT = 3;
const REQUEST = "limits-of-operations";

const root = useFolder("compiled-limits-", 0o755);
const pair = useFixture(() => startPair(root));
const collector = useFixture(startCollector);
beforeAll(async () => {
  await onPrimary(SCHEMA);
  await pair.caughtUp();
});

const onPrimary = (text: string) => withClient(pair.primary("postgres", "postgres"), (client) => client.query(text));
const onStandby = (text: string) => withClient(pair.standby("postgres", "postgres"), (client) => client.query(text));

type Line = Readonly<Record<string, unknown>>;

/** Opens a service that reads from the replica, with its log. */
async function open(settings: NodeJS.ProcessEnv = {}) {
  const lines: Line[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const login = pair.primary("authenticator", "postgres");
  const urls = { url: login, ownerUrl: pair.primary("postgres", "postgres") };
  const own = {
    ADMIN_PORT: "0",
    READ_DATABASE_URLS: pair.standby("authenticator", "postgres"),
    ...settings,
  };
  const service = await serve(urls, own, { log });
  return { service, lines, [Symbol.asyncDispose]: () => service.stop() };
}

type Request = {
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
};

async function ask({ url }: Service, query: string, { token, headers, signal }: Request = {}) {
  const response = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      "X-Request-Id": REQUEST,
      ...(token && { Authorization: `Bearer ${token}` }),
      ...headers,
    },
    body: JSON.stringify({ query }),
    ...(signal && { signal }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what its test says.
  const { data, errors } = (await response.json()) as { data: any; errors: any };
  return { data, errors, consistency: response.headers.get("x-consistency") };
}

const isServedByReplica = async (service: Service, token?: string) =>
  (await ask(service, "{ note(id: 1) { servedBy } }", token === undefined ? {} : { token })).data.note.servedBy ===
  "replica";

async function expectCompiled(service: Service) {
  const { compiled = 0, refused = 0 } = await operationOutcomes(service);
  expect({ isCompiled: compiled > 0, refused }).toEqual({ isCompiled: true, refused: 0 });
}

describe("operations that are compiled", () => {
  test("read from a replica, and write to the primary", async () => {
    await using opened = await open();
    const { service } = opened;
    await until(() => isServedByReplica(service));
    const page = await ask(service, "{ notes(first: 2) { totalCount edges { node { servedBy } } } }");
    expect(page.data.notes.edges).toEqual([{ node: { servedBy: "replica" } }, { node: { servedBy: "replica" } }]);
    const updated = await ask(
      service,
      'mutation { changeNote(id: 1, input: { body: "secret change" }) { body servedBy } }',
    );
    expect(updated.data).toEqual({ changeNote: { body: "secret change", servedBy: "primary" } });
    const generated = await ask(service, 'mutation { updateNote(id: 1, input: { body: "secret update" }) { body } }');
    expect(generated.data).toEqual({ updateNote: { body: "secret update" } });
    await expectCompiled(service);
  });

  test("see the writes of their caller, and those of a position that another caller sends", async () => {
    await using opened = await open();
    const { service } = opened;
    const [ada, bob] = [tokenFor("ada"), tokenFor("bob")];
    for (const token of [ada, bob]) await until(() => isServedByReplica(service, token));
    await pair.caughtUp();
    await onStandby("select pg_wal_replay_pause()");
    try {
      const read = "{ note(id: 2) { body servedBy } }";
      const before = (await ask(service, read, { token: bob })).data.note;
      expect(before.servedBy).toBe("replica");
      for (const [body, mutation] of [
        ["called", 'mutation { changeNote(id: 2, input: { body: "called" }) { id } }'],
        ["written", 'mutation { updateNote(id: 2, input: { body: "written" }) { id } }'],
      ] as const) {
        const { consistency, errors } = await ask(service, mutation, { token: ada });
        expect(errors).toBeUndefined();
        expect(consistency).toMatch(/^[\dA-F]+\/[\dA-F]+$/);
        expect((await ask(service, read, { token: ada })).data.note).toEqual({ body, servedBy: "primary" });
        expect((await ask(service, read, { token: bob })).data.note).toEqual(before);
        const headers = { "X-Consistency": consistency! };
        const later = await ask(service, read, { token: tokenFor("carol"), headers });
        expect(later.data.note).toEqual({ body, servedBy: "primary" });
      }
    } finally {
      await onStandby("select pg_wal_replay_resume()");
    }
    await expectCompiled(service);
  });

  test("have spans for the operation and its statements, without values", async () => {
    collector.spans.length = 0;
    const opened = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    await ask(opened.service, "query Reading { notes(first: 1) { edges { node { body } } } }");
    await ask(opened.service, 'mutation Writing { changeNote(id: 3, input: { body: "secret" }) { id } }');
    await expectCompiled(opened.service);
    // All spans have arrived when the service has stopped.
    await opened[Symbol.asyncDispose]();
    const spansOf = (name: string) => {
      const operation = collector.spans.find(({ attributes }) => attributes["graphql.operation.name"] === name)!;
      return { operation, statements: collector.spans.filter(({ parentSpanId }) => parentSpanId === operation.spanId) };
    };
    const [read, write] = [spansOf("Reading"), spansOf("Writing")];
    for (const [{ operation, statements }, type] of [
      [read, "query"],
      [write, "mutation"],
    ] as const) {
      expect(operation).toMatchObject({ name: type, attributes: { "graphql.operation.type": type } });
      expect(statements).toHaveLength(1);
      expect(statements[0]).toMatchObject({ kind: CLIENT, traceId: operation.traceId });
      expect(statements[0]!.attributes).toMatchObject({ "postgresql.role": "anon", "db.response.returned_rows": 1 });
      expect(statements[0]!.attributes["db.query.text"]).toContain(type === "query" ? "notes" : "current_setting(");
      expect(JSON.stringify(statements)).not.toContain("secret");
    }
  });

  test("are logged when they are slow, with their request and without values", async () => {
    await using opened = await open({ SLOW_QUERY_MS: "100" });
    const { service, lines } = opened;
    await ask(service, '{ notes(where: { body: { eq: "secret words 4" } }) { edges { node { slow } } } }');
    await ask(service, 'mutation { changeNote(id: 5, input: { body: "secret" }) { slow } }');
    // The schema is read by slow statements, too.
    const slow = lines.filter(({ statement, request }) => statement !== undefined && request === REQUEST);
    expect(slow).toHaveLength(2);
    for (const line of slow) {
      expect(line).toMatchObject({ request: REQUEST, interface: "graphql", role: "anon", rows: 1 });
      expect(line.inPostgres).toBeGreaterThan(100);
      expect(JSON.stringify(line)).not.toContain("secret");
    }
    await expectCompiled(service);
  });

  test.each(["query", "mutation"])("end in Postgres when the client leaves (%s)", async (kind) => {
    await using opened = await open({
      GRAPHQL_STATEMENT_TIMEOUT_SECONDS: "0",
      DB_STATEMENT_TIMEOUT_SECONDS: "0",
      DB_ANON_STATEMENT_TIMEOUT_SECONDS: "0",
    });
    const leaving = new AbortController();
    const query =
      kind === "query"
        ? "{ note(id: 6) { asleep } }"
        : 'mutation { changeNote(id: 6, input: { body: "left" }) { asleep } }';
    const answer = ask(opened.service, query, { signal: leaving.signal }).catch(() => "left");
    const running = async () => {
      const text = `select from pg_stat_activity where state = 'active' and usename = 'authenticator' and query like '%asleep%'`;
      const counts = await Promise.all([onPrimary(text), onStandby(text)]);
      return counts.reduce((sum, { rowCount }) => sum + rowCount!, 0);
    };
    await until(async () => (await running()) > 0);
    leaving.abort();
    expect(await answer).toBe("left");
    await until(async () => (await running()) === 0);
    expect((await onPrimary("select body from public.notes where id = 6")).rows).toEqual([{ body: "secret words 6" }]);
    await expectCompiled(opened.service);
  });

  test("have the time limit of anonymous callers, or of their role", async () => {
    await onPrimary("alter role authenticated set statement_timeout = '300ms'");
    const limits = { GRAPHQL_STATEMENT_TIMEOUT_SECONDS: "40", DB_ANON_STATEMENT_TIMEOUT_SECONDS: "1" };
    await using opened = await open(limits);
    const query = "{ note(id: 1) { asleep } }";
    const mutation = 'mutation { changeNote(id: 7, input: { body: "late" }) { asleep } }';
    const durationOf = async (text: string, token?: string) => {
      const start = performance.now();
      const { data, errors } = await ask(opened.service, text, token === undefined ? {} : { token });
      expect({ data, errors }).toMatchObject({
        data: text === query ? { note: null } : null,
        errors: [{ extensions: { code: "TIMEOUT" } }],
      });
      return performance.now() - start;
    };
    for (const text of [query, mutation]) {
      expect(await durationOf(text)).toBeGreaterThan(950);
      const ofRole = await durationOf(text, tokenFor("ada"));
      expect(ofRole).toBeGreaterThan(280);
      expect(ofRole).toBeLessThan(40_000);
    }
    expect((await onPrimary("select body from public.notes where id = 7")).rows).toEqual([{ body: "secret words 7" }]);
    await expectCompiled(opened.service);
  });

  test("have the budget of an answer", async () => {
    await using opened = await open({ MAX_ANSWER_BYTES: "200000" });
    const { data, errors } = await ask(opened.service, "{ notes(first: 30) { edges { node { wide } } } }");
    expect(data).toBeNull();
    expect(errors).toMatchObject([{ path: ["notes"], extensions: { code: "ANSWER_TOO_LARGE" } }]);
    const few = await ask(opened.service, "{ notes(first: 3) { edges { node { wide } } } }");
    expect(few.errors).toBeUndefined();
    expect(few.data.notes.edges).toHaveLength(3);
    await expectCompiled(opened.service);
  });

  test("end in the statement where nested lists and pages may have more than ten million rows", async () => {
    const sent: string[] = [];
    const listen = () => (bytes: Buffer) => void sent.push(bytes.toString("latin1"));
    await using opened = new AsyncDisposableStack();
    const wire = opened.adopt(await openWire(pair.primary("authenticator", "postgres"), { listen }), (each) =>
      each.close(),
    );
    const urls = { url: wire.url, ownerUrl: pair.primary("postgres", "postgres") };
    const service = opened.adopt(await serve(urls, { MAX_ANSWER_BYTES: "200000" }), (each) => each.stop());
    const nested = (size: number) =>
      `{ notes(first: ${size}) { edges { node { notes(limit: ${size}) { notes(limit: ${size}) { wide } } } } } }`;
    const boundsOf = async (size: number) => {
      sent.length = 0;
      const { data } = await ask(service, nested(size));
      expect(data.notes.edges).toHaveLength(Math.min(size, 30));
      return sent.join("").split("graphql.too_large").length - 1;
    };
    expect(await boundsOf(20)).toBe(0);
    // The page and both lists.
    expect(await boundsOf(1000)).toBe(3);
    await onPrimary("update public.notes set parent_id = 1");
    expect(await ask(service, nested(1000))).toMatchObject({
      data: null,
      errors: [{ path: ["notes"], extensions: { code: "ANSWER_TOO_LARGE" } }],
    });
  });
});
