import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { anonKey } from "../realtime/service.ts";
import { startOwnPostgres } from "./own-postgres.ts";
import { type ServiceProcess, startServiceProcess } from "./service-process.ts";
import { expectServedUnder, type Fault } from "./under-fault.ts";

let service: ServiceProcess;
const postgres = useFixture(startOwnPostgres);
beforeAll(async () => {
  service = await serve("0");
});
afterAll(() => service[Symbol.asyncDispose]());

const serve = (port: string) =>
  startServiceProcess({ DATABASE_URL: postgres.url, OWNER_DATABASE_URL: postgres.ownerUrl, PORT: port });
const expectRecovery = (fault: Fault) => expectServedUnder(fault, { service: () => service, postgres });
const endSessionsOf = (who: string) =>
  postgres.execute(`select pg_terminate_backend(pid) from pg_stat_activity where ${who} and pid <> pg_backend_pid()`);
const LOGIN = "usename = 'authenticator'";

describe("Postgres", () => {
  test("stopped", async () => {
    await expectRecovery({
      name: "Postgres is stopped (`SIGINT`) and started",
      fail: () => postgres.signal("SIGINT"),
      repair: () => postgres.start(),
    });
  });

  test("in a smart shutdown without clients, which stays unnoticed, and then stopped", async () => {
    let ending = Promise.resolve();
    await expectRecovery({
      name: "Postgres shuts down in smart mode (`SIGTERM`), is stopped and started",
      fail: async () => {
        // A new question opens the connection that slow ones go by: from now on none can be opened, and any may be slow for once.
        await fetch(`${service.url}/rest/v1/marks?select=note&limit=1`, { headers: { apikey: anonKey } });
        ending = postgres.signal("SIGTERM");
      },
      repair: async (refusals) => {
        expect(Object.fromEntries(refusals)).toEqual({});
        await postgres.signal("SIGINT");
        await ending;
        await postgres.start();
      },
    });
  });

  test("killed", async () => {
    await expectRecovery({
      name: "Postgres is killed (`kill -9`) and started",
      fail: () => postgres.signal("SIGKILL"),
      repair: () => postgres.start(),
    });
  });
});

describe("sessions", () => {
  test("terminated, all of them, repeatedly", async () => {
    await expectRecovery({
      name: "All sessions are ended (`pg_terminate_backend`), ten times",
      fail: async () => {
        for (let time = 0; time < 10; time++) {
          await endSessionsOf("backend_type in ('client backend', 'walsender')");
          await sleep(100);
        }
      },
      repair: async () => {},
    });
  });

  test("refused above the login's connection limit: with two of them all requests are served", async () => {
    await expectRecovery({
      name: "The login is limited to two connections (`CONNECTION LIMIT 2`)",
      fail: async () => {
        await postgres.execute("alter role authenticator connection limit 2");
        await endSessionsOf(LOGIN);
      },
      repair: async () => {
        const { rows } = await postgres.execute(`select count(*)::int as count from pg_stat_activity where ${LOGIN}`);
        expect(rows[0].count).toBeLessThanOrEqual(2);
        await postgres.execute("alter role authenticator connection limit -1");
      },
    });
  });

  test("refused altogether", async () => {
    await expectRecovery({
      name: "The login is disabled (`NOLOGIN`)",
      fail: async () => {
        await postgres.execute("alter role authenticator nologin");
        await endSessionsOf(LOGIN);
      },
      repair: () => postgres.execute("alter role authenticator login"),
    });
  });
});

test("the gateway, killed", async () => {
  await expectRecovery({
    name: "The gateway is killed (`kill -9`) and started",
    fail: () => service.kill(),
    repair: async () => {
      service = await serve(new URL(service.url).port);
    },
  });
});
