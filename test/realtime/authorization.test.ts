import pg from "pg";
import { expect, test } from "vitest";
import { type Database, openDatabase } from "../../engine/database/database.ts";
import { makeTopicAuthorization } from "../../realtime/authorization.ts";
import { cloneDatabase } from "../database.ts";

const POLICIES = `
  create policy hear on realtime.messages for select to anon using (realtime.topic() = 'room');
  create policy speak on realtime.messages for insert to anon with check (realtime.topic() = 'room')`;

test("a read-only role receives and sends where policies allow it", async () => {
  const { url, ownerUrl, drop } = await cloneDatabase();
  const owner = new pg.Client({ connectionString: ownerUrl });
  await owner.connect();
  await owner.query(POLICIES);
  const log = { info: () => {}, warn: () => {} };
  const database: Database = openDatabase({ url, ownerUrl, log });
  try {
    const settings = [["transaction_read_only", "on"]] as const;
    const { readAccess: mayHear, mayWrite: maySay } = makeTopicAuthorization({
      database,
      contextOf: () => ({ role: "anon", settings }),
    });
    const caller = { role: "anon", claims: {} } as Parameters<typeof mayHear>[0];
    expect(await mayHear(caller, "room")).toEqual({ broadcast: true, presence: true });
    expect(await maySay(caller, "room", "broadcast")).toBe(true);
    expect(await mayHear(caller, "elsewhere")).toEqual({ broadcast: false, presence: false });
    expect(await maySay(caller, "elsewhere", "broadcast")).toBe(false);
  } finally {
    await database.close();
    await owner.end();
    await drop();
  }
});
