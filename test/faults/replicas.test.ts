import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import jwt from "jsonwebtoken";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runMigrations } from "../../migrate/migrate.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { useFixture, useFolder } from "../fixture.ts";
import { SECRET } from "../secret.ts";
import { startPair } from "../standby.ts";
import { until } from "../until.ts";
import { MARKS } from "./own-postgres.ts";
import { type ServiceProcess, startServiceProcess } from "./service-process.ts";
import { expectServedUnder, type Fault } from "./under-fault.ts";

let service: ServiceProcess;
const root = useFolder("content-service-replica-", 0o755);
const pair = useFixture(() => startPair(root));
beforeAll(async () => {
  const urlOf = (database: string) => pair.primary("postgres", database);
  await withClient(urlOf("postgres"), (client) => client.query("create database content"));
  await runMigrations(
    { name: "migrate" },
    { url: urlOf("content"), shadowUrl: urlOf("shadow"), rootUrl: urlOf("postgres") },
  );
  await execute(MARKS);
  await pair.caughtUp();
  service = await startServiceProcess({
    DATABASE_URL: pair.primary("authenticator", "content"),
    OWNER_DATABASE_URL: urlOf("content"),
    READ_DATABASE_URLS: pair.standby("authenticator", "content"),
    STORAGE_DIR: join(root, "files"),
  });
  await until(isReplicaServing);
});
afterAll(() => service?.[Symbol.asyncDispose]());

const execute = (sql: string) => withClient(pair.primary("postgres", "content"), (client) => client.query(sql));

async function isReplicaServing(): Promise<boolean> {
  const { replicas } = (await (await fetch(`${service.url}/health`)).json()) as { replicas: { status: string }[] };
  return replicas[0]!.status === "serving";
}

const expectRecovery = (fault: Fault) => expectServedUnder(fault, { service: () => service, postgres: { execute } });

/** Requests of the service have reached the replica. */
async function answersReads(of = "marks"): Promise<boolean> {
  const { rowCount } = await withClient(pair.standby("postgres", "content"), (client) =>
    client.query("select from pg_stat_activity where usename = 'authenticator' and query like $1", [`%${of}%`]),
  );
  return rowCount! > 0;
}

test("a replica, stopped immediately and started: it is not noticed, and each caller reads its own writes", async () => {
  await expectRecovery({
    name: "A replica is stopped (`SIGQUIT`) and started",
    fail: async () => {
      await until(() => answersReads());
      await pair.killStandby();
      await until(async () => !(await isReplicaServing()));
    },
    repair: async () => {
      await pair.startStandby();
      await until(isReplicaServing);
      await expect.poll(() => answersReads()).toBe(true);
    },
  });
});

test("sessions of the primary, terminated while a replica serves", async () => {
  await expectRecovery({
    name: "All sessions are ended (`pg_terminate_backend`), ten times",
    fail: async () => {
      for (let time = 0; time < 10; time++) {
        await execute(`select pg_terminate_backend(pid) from pg_stat_activity
          where backend_type = 'client backend' and pid <> pg_backend_pid()`);
        await sleep(100);
      }
    },
    repair: () => until(() => answersReads()),
  });
});

test("files are read from the replica, and those at public addresses are the newest", async () => {
  await execute("insert into storage.buckets (id, name, public) values ('kept', 'kept', true)");
  const storage = `${service.url}/storage/v1/object`;
  const headers = { authorization: `Bearer ${jwt.sign({ role: "service_role" }, SECRET)}` };
  for (let number = 0; number < 50; number++) {
    const upload = await fetch(`${storage}/kept/${number}`, { method: "POST", headers, body: String(number) });
    expect(upload.status).toBe(200);
    const download = await fetch(`${storage}/public/kept/${number}`);
    expect([download.status, await download.text()]).toEqual([200, String(number)]);
    const replacement = await fetch(`${storage}/kept/${number}`, { method: "PUT", headers, body: `new ${number}` });
    expect(replacement.status).toBe(200);
    expect(await (await fetch(`${storage}/public/kept/${number}`)).text()).toBe(`new ${number}`);
  }
  await until(async () => {
    await fetch(`${storage}/authenticated/kept/0`, { headers });
    return answersReads("storage.find_objects");
  });
  await until(async () => {
    await fetch(`${storage}/list/kept`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: "{}",
    });
    return answersReads("storage.search");
  });
});
