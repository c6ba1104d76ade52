import { Agent, request } from "node:http";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Service } from "../../service/wiring/service.ts";
import { cloneDatabase, type TestDatabase } from "../database.ts";
import { serve } from "../serve.ts";
import { until } from "../until.ts";

/** A read sleeps at each row. */
const SCHEMA = ["one", "other"]
  .map(
    (name) => `
  create table public.${name}_naps (id int primary key, seconds float8 not null);
  insert into public.${name}_naps values (1, 0.2);
  alter table public.${name}_naps enable row level security;
  create policy nap on public.${name}_naps using (pg_sleep(seconds)::text = '');
  grant select on public.${name}_naps to anon;`,
  )
  .join("");

let database: TestDatabase;
let owner: pg.Client;
let service: Service;
beforeEach(async () => {
  database = await cloneDatabase("empty");
  owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  await owner.query(SCHEMA);
  service = await serve(database, {
    DB_ANON_STATEMENT_TIMEOUT_SECONDS: "0",
    DB_STATEMENT_TIMEOUT_SECONDS: "0",
    REST_REQUIRE_APIKEY: "false",
  });
});
afterEach(async () => {
  await service.stop();
  await owner.end();
  await database.drop();
});

type Question = { readonly path: string; readonly body?: string };

/** Anonymous callers are told apart by their address alone. */
class Stranger {
  readonly #agent: Agent;

  constructor(address: string) {
    this.#agent = new Agent({ localAddress: address });
  }

  leave(): void {
    this.#agent.destroy();
  }

  /** Resolves with the status; null where there was no answer. */
  ask({ path, body }: Question): Promise<number | null> {
    const options = { agent: this.#agent, method: body === undefined ? "GET" : "POST" };
    return new Promise((resolve) => {
      const sent = request(new URL(path, service.url), options, (response) => {
        response.on("end", () => resolve(response.statusCode!)).resume();
      });
      sent.on("error", () => resolve(null));
      if (body !== undefined) sent.setHeader("Content-Type", "application/json");
      sent.end(body);
    });
  }
}

const running = async (table: string): Promise<number> => {
  const { rows } = await owner.query(
    "select count(*)::int as n from pg_stat_activity where state = 'active' and usename = 'authenticator' and strpos(query, $1) > 0",
    [table],
  );
  return rows[0].n;
};

const INTERFACES: readonly { readonly at: string; readonly nap: (table: string) => Question }[] = [
  { at: "/rest/v1", nap: (table) => ({ path: `/rest/v1/${table}_naps` }) },
  { at: "/api/v1", nap: (table) => ({ path: `/api/v1/${table}-naps` }) },
  {
    at: "/graphql",
    nap: (table) => ({
      path: "/graphql",
      body: JSON.stringify({ query: `{ ${table}Naps { edges { node { id } } } }` }),
    }),
  },
];

test.each(INTERFACES)(
  "$at: an address has a share of the connections, and another address has its own",
  async ({ nap }) => {
    const one = new Stranger("127.0.0.1");
    const other = new Stranger("127.0.0.2");
    // The service knows from now on that both take long.
    expect(await one.ask(nap("one"))).toBe(200);
    expect(await other.ask(nap("other"))).toBe(200);
    await owner.query("update one_naps set seconds = 600; update other_naps set seconds = 600");
    const answers = Array.from({ length: 12 }, () => one.ask(nap("one")));
    await until(async () => (await running("one_naps")) === 2);
    answers.push(other.ask(nap("other")));
    await until(async () => (await running("other_naps")) === 1);
    expect(await running("one_naps")).toBe(2);
    one.leave();
    other.leave();
    await Promise.all(answers);
  },
);
