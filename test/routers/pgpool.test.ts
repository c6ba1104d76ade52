import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../postgres/client/with-client.ts";
import type { TransactionMode } from "../../postgres/database/connection-capabilities.ts";
import { openDatabase } from "../../postgres/database/database.ts";
import { type Pair, startPair } from "../standby.ts";
import { testThrough } from "./acceptance.ts";
import { PGPOOL, startPgpool } from "./pgpool.ts";
import { type Router, socketAddressOf } from "./router.ts";

// Debian's package, which .ci/run installs.
describe.runIf(existsSync(PGPOOL))("requests", () => {
  testThrough("pgpool", { start: startPgpool });

  describe("through pgpool, which distributes reads among a primary and its replica,", () => {
    let root: string;
    let pair: Pair;
    let router: Router;
    const urlOf = () => `postgresql://postgres@127.0.0.1:${router.port}/postgres`;
    beforeAll(async () => {
      root = await mkdtemp(join(tmpdir(), "content-service-pgpool-"));
      await chmod(root, 0o755);
      pair = await startPair(root);
      const primary = pair.primary("postgres", "postgres");
      await withClient(primary, (client) =>
        client.query(`
          create role web;
          create table public.things (id int);
          insert into public.things values (0);
          grant select, insert on public.things to web`),
      );
      await pair.caughtUp();
      router = await startPgpool(...[primary, pair.standby("postgres", "postgres")].map(socketAddressOf));
    });
    afterAll(async () => {
      await router.close();
      await pair.stop();
      await rm(root, { recursive: true, force: true });
    });

    const context = { role: "web", settings: [["request.claims", "those of the caller"]] } as const;
    const read = {
      text: "select current_user, current_setting('request.claims', true) from public.things limit 1",
      values: [],
    };
    const open = (transactionMode: TransactionMode) =>
      openDatabase({
        url: urlOf(),
        ownerUrl: pair.primary("postgres", "postgres"),
        log: { info: () => {}, warn: () => {} },
        transactionMode,
      });

    /** What reads on many sessions saw; pgpool chooses a server per session. */
    async function readOften(transactionMode: TransactionMode): Promise<Set<string>> {
      const seen = new Set<string>();
      for (let round = 0; round < 5; round++) {
        const database = await open(transactionMode);
        const reads = Array.from({ length: 20 }, () => database.run(context, read, { readOnly: true }));
        for (const { rows } of await Promise.all(reads)) seen.add(String(rows[0]));
        await database.close();
      }
      return seen;
    }

    test("lose the caller's role in implicit transactions, which it divides", async () => {
      expect(await readOften("implicit")).toContain("postgres,");
    });

    test("keep it in explicit transactions", async () => {
      expect(await readOften("explicit")).toEqual(new Set(["web,those of the caller"]));
    });

    test("read their own writes in explicit transactions", async () => {
      const database = await open("explicit");
      for (let id = 1; id <= 50; id++) {
        const values = [String(id)];
        await database.run(context, { text: "insert into public.things values ($1)", values });
        const found = await database.run(context, { text: "select from public.things where id = $1", values });
        expect(found.rowCount).toBe(1);
      }
      await database.close();
    });
  });
});
