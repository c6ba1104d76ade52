import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Service } from "../../service/wiring/service.ts";
import { cloneDatabase, type TestDatabase } from "../database.ts";
import { Inbox } from "../realtime/inbox.ts";
import { anonKey, clientOf, subscribed, token } from "../realtime/service.ts";
import { serve } from "../serve.ts";
import { CALLERS, MATRIX, type MatrixRow } from "./security-matrix.ts";

type CallerName = (typeof CALLERS)[number];
/** Ids: a user's published article and draft, each with a comment of that user; and a user who wrote nothing. */
type Ids = Readonly<Record<"user" | "article" | "draft" | "comment" | "hidden" | "silent", string>>;
type Site = {
  readonly database: TestDatabase;
  readonly owner: pg.Client;
  readonly service: Service;
  /** The ids of users who own none of the rows that are tried. */
  readonly others: Readonly<Record<"stranger" | "admin", string>>;
};

let count = 0;

async function addContent(owner: pg.Client): Promise<Ids> {
  count++;
  const insert = async (statement: string, values: unknown[]): Promise<string> =>
    (await owner.query(`insert into public.${statement} returning id`, values)).rows[0].id;
  const article = "articles (title, content, author_id, status) values ($1, '', $2, $3)";
  const comment = "comments (article_id, author_id, content) values ($1, $2, $3)";
  const user = await insert("users (name, email) values ($1, $2)", [`Olga ${count}`, `olga-${count}@example.org`]);
  const published = await insert(article, ["Published", user, "PUBLISHED"]);
  const draft = await insert(article, ["Being written", user, "DRAFT"]);
  return {
    user,
    article: published,
    draft,
    comment: await insert(comment, [published, user, "Seen."]),
    hidden: await insert(comment, [draft, user, "Unseen."]),
    silent: await insert("users (name, email) values ($1, $2)", ["Silent", `silent-${count}@example.org`]),
  };
}

async function openSite(access: "open" | "owner", settings: NodeJS.ProcessEnv = {}): Promise<Site> {
  const database = await cloneDatabase();
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  const service = await serve(database, { USERS_ACCESS: access, ...settings });
  const addUser = async (name: string): Promise<string> => {
    const statement = "insert into public.users (name, email) values ($1, $1 || '@example.com') returning id";
    return (await owner.query(statement, [name])).rows[0].id;
  };
  return { database, owner, service, others: { stranger: await addUser("Stranger"), admin: await addUser("Admin") } };
}

async function closeSite({ service, owner, database }: Site): Promise<void> {
  await service.stop();
  await owner.end();
  await database.drop();
}

function claimsOf(caller: CallerName, { others }: Site, { user }: Ids): object {
  const claims = {
    anon: { role: "anon" },
    stranger: { role: "authenticated", sub: others.stranger },
    owner: { role: "authenticated", sub: user },
    admin: { role: "admin", sub: others.admin },
    service: { role: "service_role" },
  };
  return claims[caller];
}

function fill(text: string, ids: Ids): string {
  return text.replace(/\{(user|article|draft|comment|hidden|silent|new)\}/g, (_, name: keyof Ids | "new") =>
    name === "new" ? String(count++) : ids[name],
  );
}

async function send({ service }: Site, { method, path, body }: MatrixRow, ids: Ids, headers: Record<string, string>) {
  const sent = path === "/graphql" ? JSON.stringify({ query: fill(body, ids) }) : fill(body, ids);
  const response = await fetch(service.url + fill(path, ids), {
    method,
    headers: {
      // The API key of /rest/v1, where a token takes precedence.
      ...(path.startsWith("/rest/") && { apikey: anonKey }),
      ...(sent !== "" && { "Content-Type": "application/json" }),
      Prefer: "return=minimal",
      ...headers,
    },
    ...(sent !== "" && { body: sent }),
  });
  const text = await response.text();
  return { status: response.status, text };
}

/** Returns the refusal of the request; "-" if there is none. A "*" follows where GraphQL returns the rest of the data. */
function refusalOf({ status, text }: { readonly status: number; readonly text: string }): string {
  if (status >= 400) return String(status);
  const { errors = [], data } = text === "" || text.startsWith("[") ? {} : JSON.parse(text);
  const codes = errors.map(({ extensions }: { extensions: { code: string } }) => extensions.code);
  return codes.length === 0 ? "-" : `${codes.join()}${data && Object.values(data)[0] ? "*" : ""}`;
}

async function outcomeOf(site: Site, row: MatrixRow, caller: CallerName, ids: Ids): Promise<string> {
  const claims = claimsOf(caller, site, ids);
  const headers: Record<string, string> = caller === "anon" ? {} : { Authorization: `Bearer ${token(claims)}` };
  if (row.text !== null) {
    const response = await send(site, row, ids, headers);
    const isSeen = response.status < 400 && response.text.includes(fill(row.text, ids));
    return isSeen ? "seen" : refusalOf(response);
  }
  const [table, id] = fill(row.written!, ids).split(" ");
  const state =
    id === undefined ? `select count(*) from public.${table}` : `select * from public.${table} where id = ${id}`;
  const before = await site.owner.query(state);
  const response = await send(site, row, ids, headers);
  const after = await site.owner.query(state);
  return JSON.stringify(after.rows) === JSON.stringify(before.rows) ? refusalOf(response) : "done";
}

describe.each(["open", "owner"] as const)("with USERS_ACCESS=%s", (access) => {
  let site: Site;
  beforeAll(async () => {
    site = await openSite(access);
  });
  afterAll(() => closeSite(site));

  test.each(MATRIX)("$interface: $action, $method $path $body", async (row) => {
    const outcomes: string[] = [];
    let ids: Ids | null = null;
    for (const caller of CALLERS) {
      ids ??= await addContent(site.owner);
      const outcome = await outcomeOf(site, row, caller, ids);
      outcomes.push(outcome);
      // Rows that were read or refused are as they were.
      if (outcome === "done") ids = null;
    }
    expect(outcomes).toEqual(row.outcomes[access]);
  });

  test("Realtime: changes of users, drafts and comments arrive as they can be read", async () => {
    const ids = await addContent(site.owner);
    const statements = [
      "update public.users set age = 30 where id = $1 returning $2::text",
      "update public.articles set tags = '{a}' where author_id = $1 and id = $2",
      "update public.comments set content = content || '!' where author_id = $1 and article_id = $2",
    ];
    const heard: Record<string, unknown> = {};
    for (const caller of CALLERS) {
      const inbox = new Inbox<{ table: string; new: Record<string, unknown> }>();
      const client = await clientOf(site.service.url, claimsOf(caller, site, ids));
      const channel = ["users", "articles", "comments", "article_translations"].reduce(
        (joined, table) =>
          // biome-ignore lint/suspicious/noExplicitAny: the overloads want each event by itself.
          joined.on("postgres_changes", { event: "UPDATE", schema: "public", table } as any, inbox.put),
        client.channel(caller),
      );
      await subscribed(channel);
      for (const statement of statements) {
        for (const article of [ids.draft, ids.article]) await site.owner.query(statement, [ids.user, article]);
      }
      // The comment on the published article, which all callers read, is changed last.
      await inbox.until(({ table, new: row }) => table === "comments" && row.id === Number(ids.comment));
      await client.realtime.disconnect();
      const isOf = (id: string) => (item: { new: Record<string, unknown> }) => item.new.id === Number(id);
      const users = inbox.items.filter(({ table }) => table === "users");
      const articles = inbox.items.filter(({ table }) => table === "articles");
      const comments = inbox.items.filter(({ table }) => table === "comments");
      heard[caller] = {
        users: users.length > 0,
        addresses: users.some(({ new: row }) => "email" in row),
        drafts: articles.some(isOf(ids.draft)),
        published: articles.some(isOf(ids.article)),
        ofDraft: comments.some(isOf(ids.hidden)),
      };
    }
    const all = { users: true, addresses: true, drafts: true, published: true, ofDraft: true };
    const open = access === "open";
    expect(heard).toEqual({
      anon: { ...all, addresses: open, drafts: open, ofDraft: open },
      stranger: { ...all, addresses: open, drafts: open, ofDraft: open },
      owner: { ...all, addresses: open },
      admin: all,
      service: all,
    });
  });
});

describe("with USERS_ACCESS=owner", () => {
  const anonymousDocument = async ({ service }: Site, query: string) => {
    const response = await fetch(`${service.url}/graphql`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ query }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: what a response holds is what its test says.
    return (await response.json()) as { data: any; errors?: { path: unknown[]; extensions: { code: string } }[] };
  };

  test("GraphQL returns anonymous callers everything but the addresses, each of which is an error", async () => {
    const site = await openSite("owner");
    try {
      const ids = await addContent(site.owner);
      const query = `{ article(id: ${ids.article}) { title author { id name email } comments { author { email name } } } }`;
      const { data, errors } = await anonymousDocument(site, query);
      const name = `Olga ${count}`;
      expect(data.article).toEqual({
        title: "Published",
        author: { id: ids.user, name, email: null },
        comments: [{ author: { email: null, name } }],
      });
      expect(errors!.map(({ path, extensions }) => [path.join("."), extensions.code])).toEqual([
        ["article.author.email", "FORBIDDEN"],
        ["article.comments.0.author.email", "FORBIDDEN"],
      ]);
      const created = await anonymousDocument(
        site,
        'mutation { createUser(input: {name: "Una", email: "una@example.org"}) { id name email age } }',
      );
      expect(created.data.createUser).toEqual({ id: expect.any(String), name: "Una", email: null, age: null });

      const types = '{ __type(name: "User") { fields { name type { kind } } } }';
      const kinds = Object.fromEntries(
        (await anonymousDocument(site, types)).data.__type.fields.map(
          ({ name: field, type }: { name: string; type: { kind: string } }) => [field, type.kind],
        ),
      );
      expect(kinds).toMatchObject({ id: "NON_NULL", name: "NON_NULL", email: "SCALAR", articles: "NON_NULL" });
    } finally {
      await closeSite(site);
    }
  });

  test("all but administrators create users within SIGN_UP_LIMIT, counted together with registrations", async () => {
    const site = await openSite("owner", { RATE_LIMIT: "10000", SIGN_UP_LIMIT: "6" });
    const { service, others } = site;
    const post = async (path: string, body: unknown, headers: Record<string, string> = {}) =>
      (
        await fetch(service.url + path, {
          method: "POST",
          headers: { "Content-Type": "application/json", ...headers },
          body: JSON.stringify(body),
        })
      ).status;
    const user = () => ({ name: "N", email: `n${count++}@example.org` });
    const create = (alias: string, email: string) =>
      `${alias}: createUser(input: {name: "N", email: "${email}"}) { id }`;
    try {
      expect(await post("/users", user())).toBe(201);
      // An address that is taken counts, too.
      expect(await post("/users", { name: "N", email: "Stranger@example.com" })).toBe(409);
      expect(await post("/api/v2/users", [user(), user()])).toBe(201);
      expect(await post("/auth/register", { ...user(), password: "Passw0rd-of-mine" })).toBe(201);
      const { data, errors } = await anonymousDocument(
        site,
        `mutation { ${create("a", "a@example.org")} ${create("b", "b@example.org")} }`,
      );
      expect(errors!.map(({ path, extensions }) => [path, extensions.code])).toEqual([[["b"], "RATE_LIMITED"]]);
      expect(data).toBeNull();
      expect(await post("/users", user())).toBe(429);
      const alone = await anonymousDocument(site, `mutation { ${create("c", "c@example.org")} }`);
      expect(alone.errors!.map(({ extensions }) => extensions.code)).toEqual(["RATE_LIMITED"]);
      expect(await post("/api/v1/users", [user()])).toBe(429);
      expect(await post("/auth/register", { ...user(), password: "Passw0rd-of-mine" })).toBe(429);
      const signedIn = { Authorization: `Bearer ${token({ role: "authenticated", sub: others.stranger })}` };
      expect(await post("/users", user(), signedIn)).toBe(429);
      const administrator = { Authorization: `Bearer ${token({ role: "admin", sub: others.stranger })}` };
      expect(await post("/users", user(), administrator)).toBe(201);
      const { rows } = await site.owner.query("select count(*)::int from public.users where name = 'N'");
      expect(rows).toEqual([{ count: 6 }]);
    } finally {
      await closeSite(site);
    }
  });
});

test("a start changes the policies and privileges of a database to those of USERS_ACCESS", async () => {
  const site = await openSite("open");
  const ids = await addContent(site.owner);
  const read = async (service: Service) => {
    const statuses = [];
    for (const path of [`/users/${ids.user}`, `/api/v1/articles/${ids.draft}`])
      statuses.push((await fetch(service.url + path)).status);
    return statuses;
  };
  try {
    expect(await read(site.service)).toEqual([200, 200]);
    for (const [access, statuses] of [
      ["owner", [401, 404]],
      ["owner", [401, 404]],
      ["open", [200, 200]],
    ] as const) {
      const service = await serve(site.database, { USERS_ACCESS: access, GRAPHQL_PRELOAD: "off" });
      expect(await read(service)).toEqual(statuses);
      await service.stop();
    }
  } finally {
    await closeSite(site);
  }
});
