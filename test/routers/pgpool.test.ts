import { existsSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../postgres/client/with-client.ts";
import type { TransactionMode } from "../../postgres/database/connection-capabilities.ts";
import { openDatabase } from "../../postgres/database/database.ts";
import { useFixture, useFolder } from "../fixture.ts";
import { startPair } from "../standby.ts";
import { testThrough } from "./acceptance.ts";
import { PGPOOL, startPgpool } from "./pgpool.ts";
import { socketAddressOf } from "./router.ts";

// Debian's package, which .ci/run installs.
describe.runIf(existsSync(PGPOOL))("requests", () => {
  testThrough("pgpool", { start: startPgpool });

  describe("through pgpool, which distributes reads among a primary and its replica,", () => {
    const urlOf = () => `postgresql://postgres@127.0.0.1:${router.port}/postgres`;
    const root = useFolder("content-service-pgpool-", 0o755);
    const pair = useFixture(() => startPair(root));
    beforeAll(async () => {
      await withClient(pair.primary("postgres", "postgres"), (client) =>
        client.query(`
          create role web;
          create table public.things (id int);
          insert into public.things values (0);
          grant select, insert on public.things to web`),
      );
      await pair.caughtUp();
    });
    const router = useFixture(() =>
      startPgpool(...[pair.primary("postgres", "postgres"), pair.standby("postgres", "postgres")].map(socketAddressOf)),
    );

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

    /** Returns the values that reads on many sessions saw; pgpool chooses a server per session. */
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
