import jwt from "jsonwebtoken";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Service } from "../../service/service.ts";
import { cloneDatabase, type TestDatabase } from "../database.ts";
import { SECRET } from "../secret.ts";
import { serve } from "../serve.ts";
import { until } from "../until.ts";

let database: TestDatabase;
let service: Service;
beforeAll(async () => {
  database = await cloneDatabase();
  service = await serve(database, { RATE_LIMIT: "1000000", LOAD_SHEDDING: "true" });
});
afterAll(async () => {
  await service.stop();
  await database.drop();
});

const apikey = jwt.sign({ role: "anon" }, SECRET);
const userToken = jwt.sign({ role: "authenticated", sub: "1" }, SECRET);

async function request(count: number, path: string, headers: Record<string, string>): Promise<Response[]> {
  const responses = await Promise.all(Array.from({ length: count }, () => fetch(service.url + path, { headers })));
  await Promise.all(responses.map((response) => response.arrayBuffer()));
  return responses;
}

/** The service runs in this process, so a busy test is an overload. */
async function whileBusy<T>(work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => {
    const end = performance.now() + 600;
    while (performance.now() < end);
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
      await whileBusy(async () => {
        let refused: Response | undefined;
        await until(async () => {
          const responses = await request(20, path, path.startsWith("/rest") ? { apikey } : {});
          refused = responses.find(({ status }) => status === 503);
          return refused !== undefined;
        });
        expect(refused!.headers.get("retry-after")).toBe("1");
        const users = await request(5, path, { apikey, Authorization: `Bearer ${userToken}` });
        expect(new Set(users.map(({ status }) => status))).toEqual(new Set([200]));
        expect((await request(3, "/health/live", {})).every(({ ok }) => ok)).toBe(true);
      });
    },
  );

  test("serves strangers again when it has recovered", async () => {
    await until(async () => {
      const responses = await request(20, "/rest/v1/articles?limit=1", { apikey });
      return responses.every(({ status }) => status === 200);
    });
  });
});
