import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ShapeStreamOptions } from "@electric-sql/client";
import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { REPOSITORY } from "../../repository.ts";
import { until } from "../../until.ts";
import { openRestartedFixture } from "./restarted-service.ts";

const PACKAGES = join(REPOSITORY, "examples/local-first/node_modules/@tanstack");

type Row = { readonly id: number; readonly title: string };
type Collection = {
  readonly toArray: readonly Row[];
  readonly utils: { awaitTxId(txid: number, timeout: number): Promise<true> };
  preload(): Promise<void>;
  cleanup(): Promise<void>;
};
type Packages = {
  createCollection(options: object): Collection;
  electricCollectionOptions(options: { getKey(row: Row): number; shapeOptions: ShapeStreamOptions }): object;
};

const SCHEMA = `
  create table public.tasks (id int primary key, title text);
  grant select on public.tasks to authenticated;
  insert into public.tasks select n, 'task ' || n from generate_series(1, 10) n`;
const NEVER_MS = 250_000;
const CLAIMS = { sub: "ann" };

const isInstalled = existsSync(PACKAGES);
if (!isInstalled) console.warn("awaitTxId is not tested; `npm ci --prefix examples/local-first` brings TanStack DB.");

(isInstalled ? describe : describe.skip)("awaitTxId of TanStack DB", () => {
  let packages: Packages;

  const service = useFixture(() => openRestartedFixture(SCHEMA));
  beforeAll(async () => {
    const [db, electric] = await Promise.all(
      ["db", "electric-db-collection"].map((name) => import(join(PACKAGES, name, "dist/esm/index.js"))),
    );
    packages = { ...db, ...electric };
  });

  /** Returns the number of the transaction. */
  async function write(statement: string): Promise<number> {
    const { rows } = await service.owner.query<{ txid: string }>(
      `with written as (${statement} returning id) select distinct pg_current_xact_id()::xid::text as txid from written`,
    );
    return Number(rows[0]!.txid);
  }

  async function openCollection(liveSse: boolean, claims: object = CLAIMS): Promise<Collection> {
    const { createCollection, electricCollectionOptions } = packages;
    const options = electricCollectionOptions({
      getKey: ({ id }) => id,
      shapeOptions: {
        url: "http://service/v1/shape",
        params: { table: "tasks" },
        headers: service.headersOf(claims),
        liveSse,
        backoffOptions: { initialDelay: 20, maxDelay: 200, multiplier: 2 },
        fetchClient: (input, init) => fetch(String(input).replace("http://service", service.program().url), init),
      },
    });
    const collection = createCollection(options);
    await collection.preload();
    return collection;
  }

  const awaitAll = (collection: Collection, txids: readonly number[]) =>
    Promise.all(txids.map((txid) => collection.utils.awaitTxId(txid, NEVER_MS)));

  test.each([
    ["SIGKILL", false],
    ["SIGKILL", true],
    ["SIGTERM", false],
  ] as const)(
    "resolves for what was written while the service was down, after %s (events: %o)",
    async (signal, sse) => {
      const collection = await openCollection(sse);
      const txids: number[] = [];
      await service.restart(signal, async () => {
        txids.push(
          await write("update public.tasks set title = title || ' down' where id = 1"),
          await write("update public.tasks set title = title"),
          await write("insert into public.tasks values (99, 'new')"),
          await write("delete from public.tasks where id = 99"),
        );
      });
      await awaitAll(collection, txids);
      expect(collection.toArray.find(({ id }) => id === 1)!.title).toMatch(/ down$/);
      const later = await write("update public.tasks set title = title || ' later' where id = 2");
      await awaitAll(collection, [later]);
      await collection.cleanup();
    },
  );

  test("resolves for what was written before the first rows were read", async () => {
    const before = await write("update public.tasks set title = 'before' where id = 3");
    const first = await openCollection(false, { sub: "eve" });
    await awaitAll(first, [before]);
    const since = await write("update public.tasks set title = 'since' where id = 3");
    await awaitAll(first, [since]);
    // Its rows are of the log that is open already.
    const second = await openCollection(false, { sub: "eve" });
    await awaitAll(second, [before, since]);
    for (const each of [first, second])
      expect(each.toArray.find(({ id }) => id === 3)).toMatchObject({ title: "since" });
    for (const each of [first, second]) await each.cleanup();
  });

  test("a transaction that has not ended is not in what is sent", async () => {
    await service.owner.query("begin");
    const txid = await write("update public.tasks set title = 'open' where id = 4");
    const collection = await openCollection(false, { sub: "cem" });
    let isKnown = false;
    const known = awaitAll(collection, [txid]).then(() => {
      isKnown = true;
    });
    await service.restart("SIGKILL");
    const other = await openCollection(false, { sub: "cem" });
    await until(() => other.toArray.length > 0);
    expect(isKnown).toBe(false);
    await service.owner.query("commit");
    await known;
    await until(() => collection.toArray.some(({ title }) => title === "open"));
    for (const each of [collection, other]) await each.cleanup();
  });

  test("changes that the log on disk has name their transactions after a restart", async () => {
    const request = async (query: string) => {
      const headers = service.headersOf({ sub: "fay" });
      const response = await fetch(`${service.program().url}/v1/shape?table=tasks&${query}`, { headers });
      const messages = (await response.json()) as { headers: { operation?: string; txids?: number[] } }[];
      const [handle, offset] = ["handle", "offset"].map((name) => response.headers.get(`electric-${name}`));
      return { next: `handle=${handle}&offset=${offset}`, messages };
    };
    const txidsIn = ({ messages }: Awaited<ReturnType<typeof request>>) =>
      messages.flatMap(({ headers }) => headers.txids ?? []);
    const { next } = await request("offset=-1");
    const txids: number[] = [];
    for (let from = next; txids.length < 2; ) {
      const txid = await write("update public.tasks set title = title || '.' where id = 5");
      let response: Awaited<ReturnType<typeof request>>;
      do {
        response = await request(from);
        from = response.next;
      } while (!txidsIn(response).includes(txid));
      // A run for another transaction may have had it: then no change names it.
      if (response.messages.some(({ headers }) => headers.operation && headers.txids?.includes(txid))) txids.push(txid);
    }
    await service.restart("SIGKILL");
    expect(txidsIn(await request(next))).toEqual(expect.arrayContaining(txids));
  });
});
