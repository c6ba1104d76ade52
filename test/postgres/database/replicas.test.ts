import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { signToken } from "../../../accounts/identity/tokens.ts";
import { readConfig } from "../../../config/config.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { type Database, openDatabase } from "../../../postgres/database/database.ts";
import { formatLsn } from "../../../postgres/database/lsn.ts";
import type { StatementContext } from "../../../postgres/database/statement.ts";
import { makeLogger } from "../../../runtime/log/log.ts";
import { startService } from "../../../service/wiring/service.ts";
import { connect } from "../../db/callers.ts";
import { useFixture, useFolder } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { startPair } from "../../standby.ts";
import { until } from "../../until.ts";
import { sql } from "./open.ts";

const SCHEMA = `
  create role anon; create role authenticated; create role service_role bypassrls;
  create role authenticator login noinherit; grant anon, authenticated, service_role to authenticator;
  create table public.notes (id int primary key, body text);
  grant select, insert, delete on public.notes to anon, authenticated;
  create function public.served_by() returns text language sql stable
    begin atomic select case when pg_is_in_recovery() then 'replica' else 'primary' end; end;
  create function public.served_at_last() returns text language sql volatile
    begin atomic select case when pg_is_in_recovery() then 'replica' else 'primary' end; end`;
const WHO = sql("select public.served_by()");

const root = useFolder("replicas-", 0o755);
const pair = useFixture(() => startPair(root));
const owner = useFixture(() => connect(pair.primary("postgres", "postgres")));
beforeAll(async () => {
  await owner.query(SCHEMA);
  await pair.caughtUp();
});

const onStandby = (statement: string) =>
  withClient(pair.standby("postgres", "postgres"), (client) => client.query(statement));

describe("the engine", () => {
  let database: Database;
  let result: string[];
  let ids = 0;

  beforeEach(async () => {
    result = [];
    database = openDatabase({
      url: pair.primary("authenticator", "postgres"),
      ownerUrl: pair.primary("postgres", "postgres"),
      log: { info: () => {}, warn: () => {} },
      replicaUrls: [pair.standby("authenticator", "postgres")],
    });
    await until(() => database.replicas()[0]!.status === "serving");
  });
  afterEach(async () => {
    await onStandby("select pg_wal_replay_resume()");
    await database.close();
  });

  const as = (subject: string, after: bigint | null = 0n): StatementContext => ({
    role: "anon",
    settings: [],
    readYourWrites: { subject, replicaSeed: 1, minLsn: after, onWrite: (place) => void result.push(formatLsn(place)) },
  });
  const servedBy = async (context: StatementContext) =>
    (await database.run(context, WHO, { readOnly: true })).rows[0]![0];
  const write = async (context: StatementContext) => {
    const id = ++ids;
    await database.run(context, sql("insert into notes values ($1, 'new')", String(id)));
    return id;
  };
  const sees = async (context: StatementContext, id: number) =>
    (await database.run(context, sql("select id from notes where id = $1", String(id)), { readOnly: true })).rowCount;

  test("reads go to the replica, and requests without a position, or that may write, go to the primary", async () => {
    await until(async () => (await servedBy(as("reader"))) === "replica");
    expect(await servedBy({ role: "anon", settings: [] })).toBe("primary");
    expect((await database.run(as("reader"), WHO)).rows).toEqual([["primary"]]);
    expect(await database.transaction(as("reader"), (query) => query(WHO))).toMatchObject({ rows: [["primary"]] });
    const chunks = await Array.fromAsync(
      database.stream(as("other"), sql("select public.served_by()"), { separator: "" }),
    );
    expect(String(chunks[0]!.data)).toBe("primary");
    await until(async () => {
      const [chunk] = await Array.fromAsync(database.stream(as("other"), WHO, { separator: "" }));
      return String(chunk!.data) === "replica";
    });
  });

  test("serves a caller's own writes to that caller, however late the replica is", async () => {
    await until(async () => (await servedBy(as("writer"))) === "replica");
    await until(async () => (await servedBy(as("other"))) === "replica");
    await onStandby("select pg_wal_replay_pause()");
    const id = await write(as("writer"));
    expect(await sees(as("writer"), id)).toBe(1);
    expect(await servedBy(as("writer"))).toBe("primary");
    // Others lag behind, which shows that the replica really does.
    expect(await servedBy(as("other"))).toBe("replica");
    expect(await sees(as("other"), id)).toBe(0);

    await onStandby("select pg_wal_replay_resume()");
    await until(async () => (await servedBy(as("writer"))) === "replica");
    expect(await sees(as("writer"), id)).toBe(1);
  });

  test("reads from the replica after a write that was refused", async () => {
    const id = await write(as("refused"));
    await until(async () => (await servedBy(as("refused"))) === "replica");
    await onStandby("select pg_wal_replay_pause()");
    await owner.query("insert into notes values ($1, 'of somebody else')", [++ids]);
    await expect(
      database.run(as("refused"), sql("insert into notes values ($1, 'twice')", String(id))),
    ).rejects.toMatchObject({ code: "23505" });
    expect(await servedBy(as("refused"))).toBe("replica");
  });

  test("returns a client's own write for its position with any credentials, and ignores an invalid position", async () => {
    await until(async () => (await servedBy(as("other"))) === "replica");
    await onStandby("select pg_wal_replay_pause()");
    await write(as("writer"));
    const [high, low] = result.at(-1)!.split("/");
    const place = (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
    expect(await servedBy(as("other", place))).toBe("primary");
    expect(await servedBy(as("other", null))).toBe("primary");
    expect(await servedBy(as("other"))).toBe("replica");
  });

  test("misses none of two hundred concurrent writes and reads, while replay stops and continues", async () => {
    let stopping = false;
    const meddler = (async () => {
      while (!stopping) {
        await onStandby("select pg_wal_replay_pause()");
        await onStandby("select pg_wal_replay_resume()");
      }
    })();
    const missed: number[] = [];
    const people = Array.from({ length: 8 }, async (_, person) => {
      for (let turn = 0; turn < 25; turn++) {
        const id = await write(as(`person ${person}`));
        if ((await sees(as(`person ${person}`), id)) !== 1) missed.push(id);
      }
    });
    await Promise.all(people);
    stopping = true;
    await meddler;
    expect(missed).toEqual([]);
  });

  test("a query that recovery cancels is answered by the primary", async () => {
    await until(async () => (await servedBy(as("slow"))) === "replica");
    const text = "select public.served_by() from pg_sleep(1) left join notes on false";
    const reading = database.run(as("slow"), sql(text), { readOnly: true });
    await until(async () => {
      const { rowCount } = await onStandby("select from pg_stat_activity where wait_event = 'PgSleep'");
      return rowCount === 1;
    });
    await owner.query("begin; lock table notes in access exclusive mode; commit");
    expect((await reading).rows).toEqual([["primary"]]);
  });

  test("an error of the request itself is returned as from the primary", async () => {
    await until(async () => (await servedBy(as("reader"))) === "replica");
    const ask = (text: string) => database.run(as("reader"), sql(text), { readOnly: true });
    await expect(ask("select 1 / 0")).rejects.toMatchObject({ code: "22012" });
    await expect(ask("select pg_current_wal_lsn()::text")).resolves.toMatchObject({ rowCount: 1 });
    await expect(
      database.run(as("reader"), sql("select pg_sleep(9)::text"), { readOnly: true, timeoutMs: 50 }),
    ).rejects.toMatchObject({ code: "57014" });
  });

  test("a new table is found, and is read from the replica soon", async () => {
    await until(async () => (await servedBy(as("reader"))) === "replica");
    await onStandby("select pg_wal_replay_pause()");
    await owner.query("create table public.fresh as select 1 as id; grant select on public.fresh to anon");
    const ask = () =>
      database.run(as("reader"), sql("select id::text, public.served_by() from fresh"), { readOnly: true });
    expect((await ask()).rows).toEqual([["1", "primary"]]);
    await onStandby("select pg_wal_replay_resume()");
    await until(async () => (await ask()).rows[0]![1] === "replica");
  });

  test("a replica that does not replay for too long is not used", async () => {
    const impatient = openDatabase({
      url: pair.primary("authenticator", "postgres"),
      ownerUrl: pair.primary("postgres", "postgres"),
      log: { info: () => {}, warn: () => {} },
      replicaUrls: [pair.standby("authenticator", "postgres")],
      maxReplicaLag: 1,
    });
    try {
      await until(() => impatient.replicas()[0]!.status === "serving");
      await onStandby("select pg_wal_replay_pause()");
      await owner.query("insert into notes values (-1, 'not replayed')");
      await until(() => impatient.replicas()[0]!.status === "behind");
      await onStandby("select pg_wal_replay_resume()");
      await expect.poll(() => impatient.replicas()[0]!.status === "serving").toBe(true);
    } finally {
      await impatient.close();
    }
  });
});

describe("the service", () => {
  test("fails no request when a replica is killed, returns and is promoted", async () => {
    const { config, warnings } = readConfig({
      PORT: "0",
      LOG_LEVEL: "silent",
      DATABASE_URL: pair.primary("authenticator", "postgres"),
      OWNER_DATABASE_URL: pair.primary("postgres", "postgres"),
      READ_DATABASE_URLS: pair.standby("authenticator", "postgres"),
      JWT_SECRET: SECRET,
    });
    expect(warnings).toEqual([]);
    const giveUp = (reason: Error) => {
      throw reason;
    };
    await using stack = new AsyncDisposableStack();
    const service = await startService(config, { log: makeLogger(config), report: () => {}, onFatalError: giveUp });
    stack.defer(() => service.stop());
    const keys = makeTokenKeys({ jwtSecret: SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });
    const tokenOf = (claims: object) => ({ apikey: signToken(claims, keys) });
    const anon = tokenOf({ role: "anon" });
    const alice = tokenOf({ role: "authenticated", sub: "alice" });
    const ask = (path: string, options: RequestInit = {}) =>
      fetch(`${service.url}${path}`, { headers: anon, ...options });
    const servedBy = async (path = "/rest/v1/rpc/served_by") => (await ask(path)).json();
    const replica = async () => {
      const { replicas } = (await (await ask("/health")).json()) as { replicas: { status: string }[] };
      return replicas[0]!.status;
    };
    await until(async () => (await servedBy()) === "replica");
    expect(await replica()).toBe("serving");

    const graphql = async (query: string) => {
      const headers = { ...anon, "Content-Type": "application/json" };
      const answer = await ask("/graphql", { method: "POST", headers, body: JSON.stringify({ query }) });
      return ((await answer.json()) as { data: Record<string, string> }).data;
    };
    await until(async () => (await graphql("{ servedBy }")).servedBy === "replica");
    expect(await graphql("mutation { servedAtLast }")).toEqual({ servedAtLast: "primary" });
    // The primary serves the reads of a recent writer until the replica has the write, too.
    await until(async () => (await servedBy("/rest/v1/rpc/served_at_last")) === "replica");
    expect(await (await ask("/rest/v1/rpc/served_at_last", { method: "POST" })).json()).toBe("primary");

    const statuses = new Set<number>();
    const stale: unknown[] = [];
    let busy = true;
    const readers = Array.from({ length: 4 }, async () => {
      while (busy) statuses.add((await ask("/rest/v1/notes?limit=5")).status);
    });
    const writer = (async () => {
      const headers = { ...alice, "Content-Type": "application/json" };
      for (let id = 1_000; busy; id++) {
        const made = await ask("/rest/v1/notes", { method: "POST", headers, body: JSON.stringify({ id }) });
        statuses.add(made.status);
        if (!/^[\dA-F]+\/[\dA-F]+$/.test(made.headers.get("X-Consistency") ?? "")) stale.push("no place");
        const seen = await (await ask(`/rest/v1/notes?id=eq.${id}`, { headers })).json();
        if ((seen as unknown[]).length !== 1) stale.push(id);
        const headersOfOther = { ...anon, "X-Consistency": made.headers.get("X-Consistency")! };
        const seenByOther = await (await ask(`/rest/v1/notes?id=eq.${id}`, { headers: headersOfOther })).json();
        if ((seenByOther as unknown[]).length !== 1) stale.push(`${id} with its place`);
      }
    })();

    await pair.killStandby();
    await until(async () => (await replica()) === "away");
    expect(await servedBy()).toBe("primary");
    await pair.startStandby();
    await until(async () => (await servedBy()) === "replica");

    await onStandby("select pg_promote()");
    await until(async () => (await replica()) === "no standby");
    expect(await servedBy()).toBe("primary");
    busy = false;
    await Promise.all([...readers, writer]);
    expect([...statuses].sort()).toEqual([200, 201]);
    expect(stale).toEqual([]);
  });
});
