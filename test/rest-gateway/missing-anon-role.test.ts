import { afterAll, describe, expect, test } from "vitest";
import { withClient } from "../../postgres/client/with-client.ts";
import { makeLogger } from "../../runtime/log/log.ts";
import { useDatabase } from "../database.ts";
import { useService } from "../serve.ts";

const ROLE = `strangers_${process.pid}`;
const warnings: string[] = [];
const database = useDatabase();
afterAll(() => withClient(database.ownerUrl, (client) => client.query(`drop role if exists ${ROLE}`)));
const log = Object.assign(makeLogger({ logLevel: "silent" }), {
  warn: (_about: object, words: string) => warnings.push(words),
});
const service = useService({
  database,
  settings: { PGRST_DB_ANON_ROLE: ROLE, REST_REQUIRE_APIKEY: "false" },
  options: { log },
});

const SIGN_IN = "Sign in first: callers without credentials are not served here.";

async function ask(path: string, query?: string) {
  const init = query && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ query }),
  };
  const response = await fetch(service.url + path, init || {});
  return { status: response.status, body: await response.json() };
}

describe("without a role for anonymous callers", () => {
  test("the log reports it at the start, with the remedy", () => {
    const result = warnings.filter((words) => words.includes(ROLE));
    expect(result).toEqual([
      `callers without credentials are refused: requests cannot become "${ROLE}" (PGRST_DB_ANON_ROLE). ` +
        `To serve them: create role "${ROLE}"; grant "${ROLE}" to "authenticator";`,
    ]);
  });

  test("anonymous callers are asked to sign in, in each interface's error format", async () => {
    expect(await ask("/rest/v1/articles")).toMatchObject({ status: 401, body: { code: "PGRST302" } });
    for (const path of ["/users", "/api/v1/articles"]) {
      expect(await ask(path)).toMatchObject({
        status: 401,
        body: { error: { code: "AUTH_REQUIRED", message: SIGN_IN } },
      });
    }
    expect(await ask("/graphql", "{ articles { totalCount } }")).toMatchObject({
      body: { errors: [{ message: SIGN_IN, extensions: { code: "AUTH_REQUIRED" } }] },
    });
  });

  test("anonymous callers are served as soon as there is one", async () => {
    await withClient(database.ownerUrl, async (owner) => {
      await owner.query(`create role ${ROLE}; grant ${ROLE} to authenticator; grant anon to ${ROLE}; notify pgrst`);
      await expect.poll(async () => (await ask("/rest/v1/articles")).status === 200).toBe(true);
    });
  });
});
