import { type ChildProcess, spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import jwt from "jsonwebtoken";
import { describe, expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { useFixture } from "../fixture.ts";
import { startGateway } from "../program.ts";
import { SECRET } from "../secret.ts";
import { useService } from "../serve.ts";
import { until } from "../until.ts";

const database = useDatabase();
const service = useService({
  database,
  settings: { RATE_LIMIT: "1000000", LOAD_SHEDDING: "true", GRAPHQL_PRELOAD: "on" },
});

const apikey = jwt.sign({ role: "anon" }, SECRET);
const userToken = jwt.sign({ role: "authenticated", sub: "1" }, SECRET);

async function request(count: number, path: string, headers: Record<string, string>): Promise<Response[]> {
  const responses = await Promise.all(Array.from({ length: count }, () => fetch(service.url + path, { headers })));
  await Promise.all(responses.map((response) => response.arrayBuffer()));
  return responses;
}

/** The service runs in this process, so a busy test is an overload. Strangers are refused from 250 ms of its work on. */
async function whileBusy<T>(work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => {
    const start = process.threadCpuUsage();
    const worked = ({ user, system } = process.threadCpuUsage(start)) => (user + system) / 1_000;
    while (worked() < 350);
  }, 1);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

describe("an overloaded service", () => {
  test.each(["/rest/v1/articles?limit=1", "/graphql?query={__typename}", "/api/v1/articles"])(
    "refuses strangers who send much with 503 and Retry-After at %s, and serves users and health checks",
    async (path) => {
      const headers = path.startsWith("/rest") ? { apikey } : {};
      // Connections are opened while that takes few turns of the event loop.
      await request(20, path, headers);
      await whileBusy(async () => {
        let refused: Response | undefined;
        await until(async () => {
          const responses = await request(20, path, headers);
          refused = responses.find(({ status }) => status === 503);
          return refused !== undefined;
        });
        expect(refused!.headers.get("retry-after")).toBe("1");
        const [users, probes] = await Promise.all([
          request(5, path, { apikey, Authorization: `Bearer ${userToken}` }),
          request(3, "/health/live", {}),
        ]);
        expect(new Set(users.map(({ status }) => status))).toEqual(new Set([200]));
        expect(probes.every(({ ok }) => ok)).toBe(true);
      });
    },
  );

  test("serves strangers again when it has recovered", async () => {
    await expect
      .poll(async () => {
        const responses = await request(20, "/rest/v1/articles?limit=1", { apikey });
        return responses.every(({ status }) => status === 200);
      })
      .toBe(true);
  });
});

type Disturbance = {
  /** This is longer than the second that requests are counted in, and several times the half second whose mean the lateness is. */
  readonly seconds: number;
  begin(gateway: ChildProcess, opened: AsyncDisposableStack): void;
};

/** Disturbances that keep a service from its work and are not its own load. */
const DISTURBANCES: Readonly<Record<string, Disturbance>> = {
  "others take all processors": {
    seconds: 3,
    begin(_gateway, opened) {
      for (let processor = 0; processor < 2 * availableParallelism(); processor++) {
        const busy = spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" });
        opened.defer(() => void busy.kill("SIGKILL"));
      }
    },
  },
  "it is stopped again and again": {
    seconds: 6,
    begin(gateway, opened) {
      let isStopped = false;
      const timer = setInterval(() => {
        isStopped = !isStopped;
        gateway.kill(isStopped ? "SIGSTOP" : "SIGCONT");
      }, 900);
      opened.defer(() => {
        clearInterval(timer);
        gateway.kill("SIGCONT");
      });
    },
  },
};
const REQUESTS_A_SECOND = 10;

describe("a service with a single caller", () => {
  const gateway = useFixture(() => startGateway(database, { RATE_LIMIT: "1000000", LOAD_SHEDDING: "true" }));

  test.each(Object.keys(DISTURBANCES))("answers each of its ten requests a second while %s", async (disturbance) => {
    const { seconds, begin } = DISTURBANCES[disturbance]!;
    await using opened = new AsyncDisposableStack();
    begin(gateway.child, opened);
    const answers: Promise<number>[] = [];
    while (answers.length < seconds * REQUESTS_A_SECOND) {
      const answer = fetch(`${gateway.url}/rest/v1/articles?limit=1`, { headers: { apikey } });
      answers.push(
        answer.then(async (response) => {
          await response.arrayBuffer();
          return response.status;
        }),
      );
      await sleep(1_000 / REQUESTS_A_SECOND);
    }
    expect((await Promise.all(answers)).filter((status) => status !== 200)).toEqual([]);
  });
});
