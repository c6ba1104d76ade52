// With USERS_ACCESS=owner, the address of a user is read by the user, administrators and servers, on every interface.

import { beforeAll, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../database.ts";
import { anonKey, token } from "../realtime/service.ts";
import { useService } from "../serve.ts";

let ids: { readonly me: string; readonly other: string };

const MINE = "me@example.org";
const HIDDEN = "other@example.org";

const database = useDatabase();
const owner = useClient(database.ownerUrl);
const service = useService({ database, settings: { USERS_ACCESS: "owner", PGRST_DB_AGGREGATES_ENABLED: "true" } });
beforeAll(async () => {
  const add = async (name: string) =>
    (await owner.query("insert into public.users (name, email) values ($1, $1 || '@example.org') returning id", [name]))
      .rows[0].id as string;
  ids = { me: await add("me"), other: await add("other") };
  await owner.query(
    "insert into public.articles (title, content, author_id, status) select 'A title', '', id, 'PUBLISHED' from public.users",
  );
});

const CALLERS = ["user", "anonymous account", "administrator", "server"] as const;
type CallerName = (typeof CALLERS)[number];

const claimsOf = (caller: CallerName) => {
  const claims = {
    user: { role: "authenticated", sub: ids.me },
    "anonymous account": { role: "authenticated", sub: ids.me, is_anonymous: true },
    administrator: { role: "admin", sub: ids.me },
    server: { role: "service_role" },
  };
  return claims[caller];
};

const ask = async (caller: CallerName, path: string, init: RequestInit = {}) => {
  const response = await fetch(service.url + path, {
    ...init,
    headers: {
      apikey: anonKey,
      Authorization: `Bearer ${token(claimsOf(caller))}`,
      "Content-Type": "application/json",
      ...(init.headers as Record<string, string>),
    },
  });
  return { status: response.status, text: await response.text() };
};
const graphql = (caller: CallerName, query: string) =>
  ask(caller, "/graphql", { method: "POST", body: JSON.stringify({ query }) });

/** Requests whose response has the addresses of both users, if the caller reads them. */
const READS: Readonly<Record<string, (caller: CallerName) => Promise<{ status: number; text: string }>>> = {
  "columns by name": (caller) => ask(caller, "/rest/v1/users?select=id,email"),
  "all columns": (caller) => ask(caller, "/rest/v1/users"),
  CSV: (caller) => ask(caller, "/rest/v1/users?select=id,email", { headers: { Accept: "text/csv" } }),
  embedded: (caller) => ask(caller, "/rest/v1/articles?select=id,users(email)"),
  spread: (caller) => ask(caller, "/rest/v1/articles?select=id,...users(email)"),
  cast: (caller) => ask(caller, "/rest/v1/users?select=email::varchar"),
  ordered: (caller) => ask(caller, "/rest/v1/users?select=email&order=email.desc"),
  filtered: (caller) => ask(caller, "/rest/v1/users?select=email&email=like.*@example.org"),
  "either of two": (caller) => ask(caller, `/rest/v1/users?select=email&or=(email.eq.${MINE},email.eq.${HIDDEN})`),
  aggregated: (caller) => ask(caller, "/rest/v1/users?select=email.min(),id"),
  "resource collection": (caller) => ask(caller, "/users"),
  "resource of a version": (caller) => ask(caller, "/api/v1/users"),
  "GraphQL list": (caller) => graphql(caller, "{ users { id email } }"),
  "GraphQL relation": (caller) => graphql(caller, "{ users { articles { author { email } } } }"),
};

/** Requests whose response has the address of the caller only. */
const OWN: Readonly<Record<string, (caller: CallerName) => Promise<{ status: number; text: string }>>> = {
  "written and returned": (caller) =>
    ask(caller, `/rest/v1/users?id=eq.${ids.me}&select=email`, {
      method: "PATCH",
      body: '{"age":7}',
      headers: { Prefer: "return=representation" },
    }),
  "own row by its address": (caller) => ask(caller, `/users/${ids.me}`),
  "function of the own row": (caller) => ask(caller, "/rest/v1/rpc/me", { method: "POST", body: "{}" }),
  "GraphQL, the own row": (caller) => graphql(caller, `{ me { id email } user(id: ${ids.me}) { email } }`),
};

describe.each(Object.entries(READS))("addresses read by %s", (_, read) => {
  test.each(CALLERS)("%s", async (caller) => {
    const { status, text } = await read(caller);
    expect([status, text]).toEqual([200, expect.stringContaining(MINE)]);
    expect(text.includes(HIDDEN)).toBe(caller === "administrator" || caller === "server");
  });
});

test.each(Object.entries(OWN))("the own address is read by %s", async (_, read) => {
  for (const caller of ["user", "anonymous account", "administrator"] as const) {
    expect(await read(caller)).toEqual({ status: 200, text: expect.stringContaining(MINE) });
  }
});

test("no filter finds a user by the address of another", async () => {
  const found = async (caller: CallerName, address: string) => {
    const filter = `email=eq.${encodeURIComponent(address)}`;
    const texts = [
      (await ask(caller, `/rest/v1/users?select=id&${filter}`)).text,
      (await ask(caller, `/rest/v1/articles?select=id,users!inner(id)&users.${filter}`)).text,
      (await ask(caller, `/rest/v1/users?select=count()&${filter}`)).text,
    ];
    return texts.map(
      (text) => (JSON.parse(text) as readonly { count?: number }[]).filter(({ count }) => count !== 0).length,
    );
  };
  expect(await found("user", MINE)).toEqual([1, 1, 1]);
  expect(await found("user", HIDDEN)).toEqual([0, 0, 0]);
  expect(await found("administrator", HIDDEN)).toEqual([1, 1, 1]);
});

test("no filter or order of GraphQL and of the resources shows the address of another", async () => {
  const arguments_ = [
    `(where: { email: { equalTo: "${HIDDEN}" } })`,
    "(orderBy: EMAIL_ASC)",
    "(first: 1, orderBy: EMAIL_DESC)",
  ];
  for (const argument of arguments_) {
    const { text } = await graphql("user", `{ users${argument} { id } }`);
    expect([argument, text]).toEqual([argument, expect.not.stringContaining('"data":{"users":[{')]);
  }
  for (const path of ["/users", "/api/v1/users"]) {
    const { text } = await ask("user", `${path}?email=${encodeURIComponent(HIDDEN)}`);
    expect([path, text]).toEqual([path, expect.not.stringContaining(`"${ids.other}"`)]);
    expect(text).not.toContain('"other"');
  }
});

test("anonymous callers read no address", async () => {
  for (const path of ["/rest/v1/users?select=email", "/rest/v1/users?select=id&email=like.*", "/users"]) {
    const response = await fetch(service.url + path, { headers: { apikey: anonKey } });
    expect([path, response.status]).toEqual([path, 401]);
  }
  expect(await (await fetch(`${service.url}/rest/v1/users`, { headers: { apikey: anonKey } })).text()).not.toContain(
    "@",
  );
});

test("functions with the rights of their owner return no rows of users but the caller's own", async () => {
  const { rows } = await owner.query(
    "select proname from pg_proc where prosecdef and prorettype = 'public.users'::regtype order by proname",
  );
  expect(rows).toEqual([{ proname: "me" }]);
});
