import { existsSync } from "node:fs";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { probeSessions, type SessionSettings } from "../../../postgres/database/connection-capabilities.ts";
import { CITUS } from "../../citus-catalog.ts";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { openWire } from "../../postgres-wire.ts";
import { keepsStatements, PGBOUNCER, startPgBouncer } from "../../routers/pgbouncer.ts";
import { PGPOOL } from "../../routers/pgpool.ts";
import { type Router, socketAddressOf, startRouter } from "../../routers/router.ts";

const UNSET: SessionSettings = { transactionMode: null, preparedStatements: null, settingMode: null };
const OF_POSTGRES = {
  isExplicit: false,
  keepsSettings: true,
  settingMode: "function",
  isRouted: false,
  preparesStatements: true,
};

const database = useDatabase({ template: "empty" });

/** Returns the URL of a router that is closed after the test. */
async function startUrl(start: Promise<Router>): Promise<string> {
  const router = await start;
  onTestFinished(() => router.close());
  return `postgresql://authenticator@127.0.0.1:${router.port}/${database.name}`;
}

const find = (url: string, settings = UNSET) => probeSessions(url, settings);

describe("connections to Postgres itself", () => {
  test("keep implicit transactions and prepared statements", async () => {
    expect(await find(database.url)).toEqual(OF_POSTGRES);
  });

  test("follow the settings", async () => {
    const settings = { ...UNSET, transactionMode: "explicit", preparedStatements: false } as const;
    expect(await find(database.url, settings)).toEqual({ ...OF_POSTGRES, isExplicit: true, preparesStatements: false });
  });
});

describe("settings by statements", () => {
  const BY_STATEMENTS = { ...OF_POSTGRES, isExplicit: true, settingMode: "statements" };
  const distributed = useDatabase({ template: "empty", sql: CITUS });

  test("are used where the operator says so", async () => {
    expect(await find(database.url, { ...UNSET, settingMode: "statements" })).toEqual(BY_STATEMENTS);
    expect(await find(database.url, { ...UNSET, settingMode: "function" })).toEqual(OF_POSTGRES);
  });

  test("are used on Citus, whose workers would not get them otherwise", async () => {
    expect(await find(distributed.url)).toEqual({ ...BY_STATEMENTS, settingMode: "distributed" });
    await expect(find(distributed.url, { ...UNSET, settingMode: "function" })).rejects.toThrow(
      "whose workers would check policies without the caller's role and claims",
    );
  });

  test("need transactions of BEGIN and COMMIT", async () => {
    const settings = { ...UNSET, transactionMode: "implicit", settingMode: "statements" } as const;
    await expect(find(database.url, settings)).rejects.toThrow("unset TRANSACTION_MODE");
  });
});

test("a session that is lost while a router is tried out does not count as what the router refuses", async () => {
  const keyMessage = Buffer.from([0x4b, 0, 0, 0, 12]);
  let connections = 0;
  const wire = await openWire(database.url, {
    alter: () => {
      const isLost = ++connections === 2;
      return (said) => {
        const at = said.indexOf(keyMessage);
        // The process id of a router.
        if (at >= 0) said.writeInt32BE(1, at + keyMessage.length);
        return isLost && at < 0 ? { bytes: Buffer.alloc(0), ends: true } : { bytes: said, ends: false };
      };
    },
  });
  onTestFinished(() => wire.close());
  expect(await find(wire.url)).toEqual({ ...OF_POSTGRES, isRouted: true });
});

describe("connections through the hostile router", () => {
  let url: string;
  const router = useFixture(() => startRouter("hostile", socketAddressOf(database.ownerUrl)));
  beforeAll(async () => {
    url = `postgresql://authenticator@127.0.0.1:${router.port}/${database.name}`;
  });

  test("require explicit transactions, prepare no statements, and have nothing to reset", async () => {
    expect(await find(url)).toEqual({
      isExplicit: true,
      keepsSettings: false,
      settingMode: "function",
      isRouted: true,
      preparesStatements: false,
    });
  });

  test("are refused with TRANSACTION_MODE=implicit: requests would run without their caller's role", async () => {
    await expect(find(url, { ...UNSET, transactionMode: "implicit" })).rejects.toThrow(
      "unset TRANSACTION_MODE, or set it to explicit",
    );
  });
});

describe.runIf(existsSync(PGBOUNCER))("connections through PgBouncer", () => {
  test.each([1, 2, 10])(
    "have implicit transactions and something to reset in transaction mode, with %i server connections",
    async (poolSize) => {
      const url = await startUrl(startPgBouncer(socketAddressOf(database.ownerUrl), { poolSize }));
      expect(await find(url)).toMatchObject({ isExplicit: false, keepsSettings: true, isRouted: true });
    },
  );

  test("have something to reset in explicit transactions too", async () => {
    const url = await startUrl(startPgBouncer(socketAddressOf(database.ownerUrl)));
    const capabilities = await find(url, { ...UNSET, transactionMode: "explicit" });
    expect(capabilities).toMatchObject({ isExplicit: true, keepsSettings: true, isRouted: true });
  });

  test("are refused in statement mode", async () => {
    const url = await startUrl(startPgBouncer(socketAddressOf(database.ownerUrl), { poolMode: "statement" }));
    await expect(find(url)).rejects.toThrow("let it pool transactions or sessions");
  });

  test("prepare statements if its version does", async () => {
    const url = await startUrl(startPgBouncer(socketAddressOf(database.ownerUrl)));
    expect(await find(url)).toMatchObject({ preparesStatements: keepsStatements() });
  });
});

describe.runIf(existsSync(PGPOOL))("connections through pgpool", () => {
  test("keep their session, and so prepared statements and what is to be reset", async () => {
    const url = await startUrl(startRouter("pgpool", socketAddressOf(database.ownerUrl)));
    expect(await find(url)).toMatchObject({ isExplicit: false, keepsSettings: true, preparesStatements: true });
  });
});
