import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";
import { until } from "../../until.ts";

const HIDDEN_TEXT = "mtqx7k";
/** A count stops before so many rows. */
const MANY_ROWS = 12_000;

/** Nobody but the service reads letters. All may read senders and postcards. */
const SCHEMA = `
  create table public.senders (id int primary key, name text not null);
  create table public.letters (
    id int primary key, sender int not null references public.senders, secret text not null, amount int not null
  );
  create table public.postcards (id int primary key, sender int not null references public.senders, words text not null);
  create table public.notices (id int primary key, words text not null);
  create table public.diaries (id int primary key, owner text not null, words text not null);
  insert into public.senders select n, 'sender ' || n from generate_series(1, 10) n;
  insert into public.letters
    select n, n % 10 + 1, case when n % 3 = 0 then md5(n::text) else '${HIDDEN_TEXT}' end, case when n % 3 = 0 then n else 700123 end
    from generate_series(1, 3000) n;
  insert into public.postcards select n, n % 10 + 1, 'word ' || n % 7 from generate_series(1, ${MANY_ROWS}) n;
  insert into public.notices select n, 'word ' || n % 7 from generate_series(1, ${MANY_ROWS}) n;
  insert into public.diaries select n, case when n % 2 = 0 then 'ann' else 'bob' end, 'word ' || n % 7 from generate_series(1, ${2 * MANY_ROWS + 40}) n;
  insert into public.diaries select -n, 'eve', 'word' from generate_series(1, 40) n;
  alter table public.letters enable row level security;
  alter table public.notices enable row level security;
  alter table public.diaries enable row level security;
  create policy none on public.letters for select to anon using (sender > (select 100));
  create policy changes on public.letters for update to anon using (sender > (select 100));
  create policy removals on public.letters for delete to anon using (sender > (select 100));
  create policy everybody on public.notices using (true);
  create policy own on public.diaries to authenticated using (owner = (select auth.jwt() ->> 'sub'));

  create view public.letters_of_caller with (security_invoker) as select * from public.letters;
  create view public.letters_of_nobody as select * from public.letters where sender > (select 100);
  create view public.guarded_letters with (security_barrier) as select * from public.letters where sender > (select 100);
  create view public.letters_of_view as select * from public.letters_of_nobody;
  create view public.letters_below as select * from (select * from public.letters where sender > (select 100)) as below;
  create view public.letters_of_none as select * from public.letters offset (select 5000);
  create view public.unsent_postcards as select * from public.postcards where sender > (select 100);
  create view public.whole_postcards as select id, words from public.postcards;
  create view public.whole_postcards_again as select * from public.whole_postcards;
  create materialized view public.kept_postcards as select * from public.postcards;
  create function public.find_letters() returns setof public.letters language sql stable begin atomic select * from public.letters; end;
  create function public.letters_from(public.senders) returns setof public.letters language sql stable
  begin atomic select * from public.letters where sender = $1.id; end;
  create function public.counted_letters(public.senders) returns bigint language sql stable
  begin atomic select count(*) from public.letters where sender = $1.id; end;
  create extension if not exists pg_trgm;
  grant usage on schema public to anon, authenticated, service_role;
  grant all on all tables in schema public to anon, authenticated, service_role;
  grant execute on function public.find_letters, public.letters_from, public.counted_letters to anon, authenticated, service_role;
  vacuum analyze public.senders, public.letters, public.postcards, public.notices, public.diaries, public.kept_postcards`;

const keys = {
  anon: jwt.sign({ role: "anon" }, SECRET),
  ann: jwt.sign({ role: "authenticated", sub: "ann" }, SECRET),
  eve: jwt.sign({ role: "authenticated", sub: "eve" }, SECRET),
  service: jwt.sign({ role: "service_role" }, SECRET),
};
type CallerName = keyof typeof keys;

const database = useDatabase();
const owner = useClient(database.ownerUrl);
beforeAll(async () => {
  for (const statement of SCHEMA.split(/;\n(?! {2}begin)/)) await owner.query(statement);
});
const service = useService({
  database,
  settings: { PGRST_DB_PLAN_ENABLED: "true", PGRST_DB_AGGREGATES_ENABLED: "true", MCP: "read" },
});
beforeAll(() => until(async () => (await ask("postcards?limit=1", { as: "service" })).status === 200));

type Sent = {
  readonly as?: CallerName;
  readonly method?: string;
  readonly prefer?: string;
  readonly accept?: string;
  readonly body?: unknown;
};

async function ask(path: string, { as = "anon", method = "GET", prefer, accept, body }: Sent = {}) {
  const response = await fetch(path.startsWith("/") ? `${service.url}${path}` : `${service.url}/rest/v1/${path}`, {
    method,
    headers: {
      ...{ apikey: keys[as], Authorization: `Bearer ${keys[as]}` },
      ...(prefer !== undefined && { Prefer: prefer }),
      ...(accept !== undefined && { Accept: accept }),
      ...(body !== undefined && { "Content-Type": "application/json" }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, range: response.headers.get("content-range"), text: await response.text() };
}

/** The total that the response names. */
async function totalOf(path: string, sent: Sent): Promise<number> {
  const { range, text } = await ask(path, sent);
  expect(range, text).toMatch(/\/(\d+|\*)$/);
  return Number(range!.split("/")[1]);
}

/** Paths that read letters, with a condition on the hidden column. */
const READS: Readonly<Record<string, (condition: string) => string>> = {
  "the table": (condition) => `letters?secret=${condition}`,
  "a page of the table": (condition) => `letters?secret=${condition}&limit=5`,
  "a later page": (condition) => `letters?secret=${condition}&limit=5&offset=0&order=amount`,
  "a page by cursor": (condition) => `letters?secret=${condition}&order=id&limit=5&cursor=`,
  "columns, one row for each value": (condition) => `letters?select=amount&secret=${condition}&distinct=on(amount)`,
  groups: (condition) => `letters?select=amount,id.count()&secret=${condition}`,
  "a logic tree": (condition) => `letters?or=(secret.${condition},id.eq.0)`,
  "a view of the caller's rows": (condition) => `letters_of_caller?secret=${condition}`,
  "a view that hides rows": (condition) => `letters_of_nobody?secret=${condition}`,
  "a view with a security barrier": (condition) => `guarded_letters?secret=${condition}`,
  "a view of a view": (condition) => `letters_of_view?secret=${condition}`,
  "a view of a subquery": (condition) => `letters_below?secret=${condition}`,
  "a view with a limit": (condition) => `letters_of_none?secret=${condition}`,
  "an embedded relation": (condition) => `senders?select=id,letters!inner(id)&letters.secret=${condition}`,
  "a spread relation": (condition) => `letters?select=...senders(name)&secret=${condition}`,
  "a condition on a relation": (condition) => `senders?select=id&letters=any(secret.${condition})`,
  "a negated condition on a relation": (condition) => `senders?select=id&letters=none(secret.${condition})`,
  "a condition on the number of related rows": (condition) =>
    `senders?select=id,letters()&letters.secret=${condition}&letters.count=gt.0`,
  "an order by the number of related rows": (condition) =>
    `senders?select=id,letters()&letters.secret=${condition}&order=letters.count.desc`,
  "a function of the row": (condition) => `senders?select=id,letters_from!inner(id)&letters_from.secret=${condition}`,
};

/** No letter, and about two thirds of them. */
const CONDITIONS = ["gt.zzzz", "gte.m"] as const;

const isPlan = { accept: "application/vnd.pgrst.plan+json" };

describe("an estimate of the planner", () => {
  test("tells a hidden text to those who may see estimates, by asking for ranges", async () => {
    const recovered = await recoverText("service");
    expect(recovered).toBe(HIDDEN_TEXT);
  });

  test("tells nobody else a hidden text or number", async () => {
    expect(await recoverText("anon")).toBe("");
    for (const range of ["amount=gt.700000", "amount=lt.700000"])
      expect(await totalOf(`letters?${range}`, { prefer: "count=planned" })).toBe(0);
  });

  test.each(Object.keys(READS))("is the same whatever the hidden rows are: %s", async (name) => {
    const answers = async (as: CallerName) => {
      const all: unknown[] = [];
      for (const condition of CONDITIONS) {
        const path = READS[name]!(condition);
        const answered: unknown[] = [];
        for (const method of ["GET", "HEAD"]) {
          for (const prefer of ["count=planned", "count=estimated"])
            answered.push((await ask(path, { as, method, prefer })).range);
        }
        const { status, text } = await ask(path, { as, ...isPlan });
        answered.push(status, status === 200 ? rowsOfPlan(text) : JSON.parse(text).code);
        all.push(answered);
      }
      return all;
    };
    const [none, most] = await answers("anon");
    expect(most).toEqual(none);
    expect(most).toContain(406);
    // The control: the same requests of those who may read all rows.
    const [noneOfService, mostOfService] = await answers("service");
    expect(mostOfService).not.toEqual(noneOfService);
    expect(mostOfService).toContain(200);
  });

  test("is not part of other responses", async () => {
    for (const prefer of ["count=planned", "count=estimated"]) {
      const called = CONDITIONS.map((condition) => ask(`rpc/find_letters?secret=${condition}`, { prefer }));
      const [none, most] = await Promise.all(called);
      expect(most).toEqual(none);
      const rest = CONDITIONS.map((condition) => ask(`/api/v1/letters?secret=${condition.split(".")[1]}`, { prefer }));
      const [fewer, more] = await Promise.all(rest);
      expect(JSON.parse(more!.text).pagination).toEqual(JSON.parse(fewer!.text).pagination);
    }
    const query = (value: string) => `{ letters(first: 1, where: { secret: { gte: "${value}" } }) { totalCount } }`;
    for (const value of ["m", "zzzz"]) {
      const { text } = await ask("/graphql", { method: "POST", body: { query: query(value) } });
      expect(JSON.parse(text)).toEqual({ data: { letters: { totalCount: 0 } } });
    }
  });

  test("is the same in a batch", async () => {
    const answers = async (condition: string) => {
      const operations = [{ method: "GET", path: `letters?secret=${condition}`, headers: { Prefer: "count=planned" } }];
      const { status, text } = await ask("/rest/v1/batch", { method: "POST", body: { operations } });
      return [status, /"content-range":"[^"]*"/i.exec(text)?.[0] ?? text];
    };
    expect(await answers(CONDITIONS[1])).toEqual(await answers(CONDITIONS[0]));
  });
});

describe("an execution plan", () => {
  test.each<[string, string, Sent]>([
    ["a function that is written in SQL", "rpc/find_letters?secret=gte.m", {}],
    ["an update", "letters?secret=gte.m", { method: "PATCH", body: { amount: 1 } }],
    ["a deletion", "letters?secret=gte.m", { method: "DELETE" }],
  ])("of %s is refused where row-level security hides rows", async (_name, path, sent) => {
    for (const accept of ["", "; options=analyze|buffers"]) {
      const { status, text } = await ask(path, { ...sent, accept: `application/vnd.pgrst.plan+json${accept}` });
      expect([status, JSON.parse(text).code]).toEqual([406, "PGRST107"]);
      expect(JSON.parse(text).details).toContain("row-level security");
    }
    expect((await ask(path, { ...sent, as: "service", ...isPlan })).status).toBe(200);
  });

  test("is shown of tables whose rows all may read", async () => {
    for (const path of [
      "postcards?words=gt.word",
      "notices",
      "whole_postcards",
      "senders?select=*,postcards(*),counted_letters",
    ])
      expect((await ask(path, isPlan)).status).toBe(200);
  });
});

describe("without hidden rows", () => {
  test.each([
    ["a table without policies", "postcards"],
    ["a table with a policy that is true", "notices"],
    ["a view of a whole table", "whole_postcards"],
    ["a view of such a view", "whole_postcards_again"],
    ["a materialized view", "kept_postcards"],
    ["a table with a relation", "postcards?select=id,senders(name)"],
  ])("the estimate stays: %s", async (_name, path) => {
    expect(await totalOf(path, { prefer: "count=planned" })).toBe(MANY_ROWS);
    expect(await totalOf(`${path}${path.includes("?") ? "&" : "?"}limit=1`, { prefer: "count=estimated" })).toBe(
      MANY_ROWS,
    );
  });

  test("a view with a condition is counted", async () => {
    expect(await totalOf("unsent_postcards", { prefer: "count=planned" })).toBe(0);
  });
});

describe("where a policy applies, rows are counted up to a bound", () => {
  test.each(["planned", "estimated"])("count=%s", async (count) => {
    const prefer = `count=${count}`;
    expect((await ask("diaries?limit=10", { as: "eve", prefer })).range).toBe("0-9/40");
    expect((await ask("diaries", { as: "eve", prefer })).range).toBe("0-39/40");
    expect((await ask("diaries?limit=10", { as: "ann", prefer })).range).toBe("0-9/10001");
    expect((await ask("diaries?limit=10&order=id", { as: "ann", method: "HEAD", prefer })).range).toBe("0-9/10001");
    // A page beyond the bound is no error.
    expect((await ask("diaries?limit=10&offset=11000", { as: "ann", prefer })).range).toBe("11000-11009/11010");
    expect(await ask("diaries?limit=10&offset=13000", { as: "ann", prefer })).toMatchObject({ text: "[]" });
    expect(await ask("diaries?limit=10&offset=50", { as: "eve", prefer })).toMatchObject({ status: 416 });
  });

  test("and all rows without a range are counted as they are", async () => {
    const total = MANY_ROWS + 20;
    for (const method of ["GET", "HEAD"])
      expect((await ask("diaries", { as: "ann", method, prefer: "count=planned" })).range).toBe(
        `0-${total - 1}/${total}`,
      );
  });
});

/** Returns all numbers of rows that a plan names. */
function rowsOfPlan(text: string): string[] {
  return text.match(/"(?:Plan Rows|Actual Rows|Total Cost|Rows Removed[^"]*)": ?[\d.]+/g) ?? [];
}

/** The text that most letters have, from the estimates of ranges: the longest beginning that most rows are not below. */
async function recoverText(as: CallerName): Promise<string> {
  const alphabet = [..."0123456789abcdefghijklmnopqrstuvwxyz"];
  const rowsFrom = (text: string) => totalOf(`letters?secret=gte.${text}`, { as, prefer: "count=planned" });
  let found = "";
  while (found.length < HIDDEN_TEXT.length) {
    let [low, high] = [0, alphabet.length];
    if ((await rowsFrom(found + alphabet[0])) < 300) return found;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if ((await rowsFrom(found + alphabet[middle])) >= 300) low = middle;
      else high = middle;
    }
    found += alphabet[low];
  }
  return found;
}
