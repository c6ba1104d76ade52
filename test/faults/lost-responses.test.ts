import { expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { openWire } from "../postgres-wire.ts";
import { startOwnPostgres } from "./own-postgres.ts";
import { startServiceProcess } from "./service-process.ts";
import type { Send } from "./traffic.ts";
import { expectRecovery, expectServedUnder, type Fault } from "./under-fault.ts";

/** ReadyForQuery, idle: all that was sent is committed. */
const COMMITTED = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);
const EACH = 20;

let isLosing = false;
let answers = 0;
const postgres = useFixture(startOwnPostgres);
const passes = (said: Buffer) =>
  !isLosing || !said.subarray(-COMMITTED.length).equals(COMMITTED) || ++answers % EACH > 0;
const wire = useFixture(() => openWire(postgres.url, { passes }));
const service = useFixture(() =>
  startServiceProcess({ DATABASE_URL: wire.url, OWNER_DATABASE_URL: postgres.ownerUrl }),
);

const fault: Fault = {
  name: "Responses of Postgres are lost: the connection is cut after the commit",
  fail: async () => {
    isLosing = true;
  },
  repair: async () => {
    isLosing = false;
  },
};

test("responses that are lost after the commit", async () => {
  await expectServedUnder(fault, { service: () => service, postgres });
});

test("a write of unknown outcome that a proxy sends again would be found", async () => {
  const isUnknown = (body: string) => /"08007"|"SERVICE_UNAVAILABLE"/.test(body);
  const retryBlindly: Send = async (url, init) => {
    const response = await fetch(url, init);
    const isKeyed = new Headers(init?.headers).has("Idempotency-Key");
    if (init?.method !== "POST" || isKeyed || !isUnknown(await response.clone().text())) return response;
    return retryBlindly(url, init);
  };
  const { found } = await expectRecovery(fault, { service: () => service, postgres, send: retryBlindly });
  expect(Object.keys(found)).toEqual(["written twice"]);
});
