import { Agent, request } from "node:http";
import jwt from "jsonwebtoken";
import pg from "pg";
import { cloneDatabase } from "../../../database.ts";
import { SECRET } from "../../../secret.ts";
import { serve } from "../../../serve.ts";
import { type Json, type ReadDocument, readDocument, type TestResponse } from "./operations.ts";
import type { Request } from "./requests.ts";

export type OpenApiFixture = {
  readonly owner: pg.Pool;
  ask(
    request: Pick<Request, "url" | "headers" | "body"> & { readonly method: string },
    role: string,
  ): Promise<TestResponse>;
  json(url: string, role?: string): Promise<Json>;
  documentFor(role: string, version: number): Promise<ReadDocument>;
  /** Rows for requests to find; deletions take some away again. */
  populate(): Promise<void>;
  close(): Promise<void>;
};

/** Opens a service with some rows in it, and tables of a DBA's with properties that those of the content service lack. */
export async function openOpenApiFixture(): Promise<OpenApiFixture> {
  const database = await cloneDatabase();
  const owner = new pg.Pool({ connectionString: database.ownerUrl, max: 2 });
  await owner.query(TABLES);
  const service = await serve(database, { MAX_BODY_BYTES: "100000" });
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const tokenOf = (role: string) => jwt.sign({ role, ...(role !== "service_role" && { sub: "1" }) }, SECRET);

  const ask: OpenApiFixture["ask"] = ({ method, url, headers, body }, role) =>
    new Promise((resolve, reject) => {
      const credentials = role === "anon" ? {} : { Authorization: `Bearer ${tokenOf(role)}` };
      const sent = request(
        `${service.url}${url}`,
        { agent, method, headers: { ...credentials, ...headers } },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk) => chunks.push(chunk)).on("error", reject);
          response.on("end", () =>
            resolve({
              status: response.statusCode!,
              contentType: response.headers["content-type"] ?? null,
              text: Buffer.concat(chunks).toString("utf8"),
            }),
          );
        },
      );
      sent.on("error", reject);
      sent.end(body ?? undefined);
    });

  const json: OpenApiFixture["json"] = async (url, role = "anon") => {
    return JSON.parse((await ask({ method: "GET", url, headers: {}, body: null }, role)).text);
  };

  return {
    owner,
    ask,
    json,
    documentFor: async (role, version) => readDocument(await json(`/openapi.json?version=${version}`, role)),
    populate: async () => void (await owner.query(ROWS)),
    async close() {
      agent.destroy();
      await service.stop();
      await owner.end();
      await database.drop();
    },
  };
}

const TABLES = `
  create type public.mood as enum ('calm', 'merry');
  create table public.odd_things (
    code text not null, place integer not null, mood public.mood, tags text[] not null default '{}', notes jsonb,
    weight numeric(8, 2) check (weight > 0), at timestamptz, day date, big bigint, ref uuid, flag boolean not null default false,
    author_id bigint references public.users on delete cascade,
    doubled integer generated always as (place * 2) stored,
    constraint odd_things_pkey primary key (code, place)
  );
  create index on public.odd_things (author_id);
  alter table public.odd_things enable row level security;
  create policy all_all on public.odd_things using (true) with check (true);
  grant select, insert, update, delete on public.odd_things to anon, authenticated, service_role;
  create function public.weigh(thing public.odd_things, kilos numeric, gently boolean default true)
    returns public.odd_things language sql volatile set search_path = '' as $$
      update public.odd_things set weight = kilos where code = thing.code and place = thing.place returning *
    $$;
  create function public.praise(thing public.odd_things) returns text language sql volatile set search_path = '' as $$
    select 'well done, ' || thing.code
  $$;
  create function public.replace(thing public.odd_things, word text) returns text language sql volatile set search_path = '' as $$
    select word || thing.code
  $$;
  grant execute on function public.weigh, public.praise, public.replace to anon, authenticated, service_role;
  create table public.drop_box (id bigint generated always as identity primary key, line text not null);
  alter table public.drop_box enable row level security;
  create policy insert_all on public.drop_box for insert with check (true);
  grant insert on public.drop_box to anon, authenticated;
  create table public.keyless (word text, number integer, sort text, version integer);
  alter table public.keyless enable row level security;
  create policy all_all on public.keyless using (true) with check (true);
  grant select, insert on public.keyless to anon, authenticated, service_role;
`;

const ROWS = `
  insert into public.users (id, name, email) overriding system value
    select n, 'User ' || n, 'user' || n || '@example.org' from generate_series(1, 12) as n on conflict do nothing;
  insert into public.articles (id, title, content, author_id) overriding system value
    select n, 'A title of some length ' || n, 'content', 1 + n % 12 from generate_series(1, 12) as n on conflict do nothing;
  insert into public.comments (id, content, article_id, author_id) overriding system value
    select n, 'comment ' || n, n, n from generate_series(1, 12) as n on conflict do nothing;
  insert into public.odd_things (code, place, tags, at, day, big, weight)
    select 'c' || n, n, '{a,b}', now(), current_date, 9007199254740993, 1.5 from generate_series(1, 12) as n on conflict do nothing;
  insert into public.keyless select 'w' || n, n from generate_series(1, 3) as n;
  select setval(pg_get_serial_sequence('public.users', 'id'), 1000, true),
    setval(pg_get_serial_sequence('public.articles', 'id'), 1000, true),
    setval(pg_get_serial_sequence('public.comments', 'id'), 1000, true);
`;
