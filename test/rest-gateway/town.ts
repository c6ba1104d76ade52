import fc from "fast-check";
import type pg from "pg";
import { ANN, BOB } from "./callers.ts";
import type { Claims } from "./table/client.ts";

/** The operators on lists stand for those of an extension for vectors. */
export const TOWN = `
  create schema if not exists extensions;
  create extension if not exists pg_trgm schema extensions;
  alter extension pg_trgm set schema extensions;
  create function extensions.l2(a float8[], b float8[]) returns float8 immutable language sql
    return (select sqrt(sum((x - y) * (x - y))) from unnest(a, b) as t (x, y));
  create function extensions.inner_product(a float8[], b float8[]) returns float8 immutable language sql
    return (select -sum(x * y) from unnest(a, b) as t (x, y));
  create operator extensions.<-> (leftarg = float8[], rightarg = float8[], function = extensions.l2);
  create operator extensions.<#> (leftarg = float8[], rightarg = float8[], function = extensions.inner_product);
  create schema town;
  create table town.owners (id int primary key, name text, bio text);
  create table town.places (
    id int primary key, owner_id int references town.owners, spot point, title text, story text, facts jsonb,
    embedding float8[], keeper text, secret text, words tsvector generated always as (to_tsvector('english', coalesce(story, ''))) stored);
  create table town.notes (id int primary key, place_id int references town.places, text text, keeper text);
  insert into town.owners select n, (array['Ann Harbour', 'Bob Miller', null, 'Dora Green'])[n % 4 + 1], 'keeps number ' || n from generate_series(1, 6) n;
  insert into town.places (id, owner_id, spot, title, story, facts, embedding, keeper, secret)
  select n, nullif(n % 7, 0), nullif(point(n * 37 % 100, n * 53 % 97)::text, point(37, 53)::text)::point,
    (array['Old harbour', 'The green mill', null, 'Harbour market', 'Mill of cats'])[n % 5 + 1],
    (array['Cats sleep near the boats.', 'A miller and his dogs', 'Greens and boats, cats too', null])[n % 4 + 1],
    jsonb_build_object('kind', (array['harbour', 'mill'])[n % 2 + 1]), array[n % 10, n % 7],
    (array['${ANN}', '${BOB}', null])[n % 3 + 1], 'boat'
  from generate_series(1, 40) n;
  insert into town.notes select n, nullif(n * n % 41, 0), (array['boats here', 'a cat', 'nothing', null])[n % 4 + 1], (array['${ANN}', '${BOB}'])[n % 5]
  from generate_series(1, 60) n;
  create table town.stars as select n as id, point(random() * 1000, random() * 1000) as spot, 'star ' || n as name from generate_series(1, 5000) n;
  alter table town.stars add primary key (id), alter spot set not null;
  create index on town.stars using gist (spot);
  create index on town.stars using gist (name extensions.gist_trgm_ops);
  create index on town.stars using gin (to_tsvector('english', name));
  analyze town.stars;
  alter table town.places enable row level security;
  alter table town.notes enable row level security;
  create policy shown on town.places for select using (keeper is null or keeper = auth.uid()::text or auth.role() = 'admin');
  create policy shown on town.notes for select using (keeper is null or keeper = auth.uid()::text or auth.role() = 'admin');
  grant usage on schema town, extensions to anon, authenticated, service_role;
  grant select on town.owners, town.notes, town.stars to anon, authenticated, service_role;
  grant select (id, owner_id, spot, title, story, facts, embedding, keeper, words) on town.places to anon, authenticated, service_role;
`;

/** The rows of a statement, as the caller. */
export async function townRows(client: pg.Client, statement: string, claims: Claims): Promise<unknown[]> {
  await client.query("begin");
  await client.query("select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)", [
    claims.role,
    JSON.stringify(claims),
  ]);
  await client.query("set local search_path = town, extensions");
  const { rows } = await client.query(`select coalesce(json_agg(t), '[]') as rows from (${statement}) t`);
  await client.query("rollback");
  return rows[0].rows;
}

const phrases = fc.constantFrom("cats", "boats", "green mill", "harbour -old", "cat or dog", "nobody", "");
const beginnings = fc.constantFrom("boa", "har", "old har", "gre", "", "' | :*");
const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;

const QUERIES = { wfts: "websearch_to_tsquery", plfts: "plainto_tsquery", phfts: "phraseto_tsquery" } as const;
/** `wfts(english).cats`, and its query. */
export const wordings = fc.oneof(
  fc
    .tuple(fc.constantFrom("wfts", "plfts", "phfts"), fc.constantFrom("", "english", "simple"), phrases)
    .map(([operator, language, text]) => ({
      url: `${operator}${language && `(${language})`}.${text}`,
      sql: `${QUERIES[operator]}(${language && `'${language}', `}${quoted(text)})`,
      operator,
      words: text,
      configuration: language,
      language: language && `'${language}', `,
    })),
  beginnings.map((text) => ({
    url: `prefix(english).${text}`,
    sql: `(nullif(plainto_tsquery('english', ${quoted(text)})::text, '') || ':*')::tsquery`,
    operator: "prefix",
    words: text,
    configuration: "english",
    language: "'english', ",
  })),
);

/** Fields of a place and of rows around it, as the table interface names them, and their texts for the row `p`. */
export const SEARCHED_TEXTS: Readonly<Record<string, string>> = {
  title: "title",
  story: "story",
  "facts->>kind": "facts->>'kind'",
  "owners.name": "(select o.name from owners o where o.id = p.owner_id)",
  "notes.text": "(select string_agg(n.text, ' ' order by n.text) from notes n where n.place_id = p.id)",
};

/** The document and the text of fields, as a statement writes them. */
export function searchedTexts(fields: readonly string[], { language }: { readonly language: string }) {
  const vectors = fields.map((field, index) => {
    return `setweight(to_tsvector(${language}coalesce(${SEARCHED_TEXTS[field]}, '')), '${"ABCDD"[index]}')`;
  });
  const texts = fields.map((field) => SEARCHED_TEXTS[field]).join(", ");
  return { document: `(${vectors.join(" || ")})`, text: `concat_ws(' ', ${texts})` };
}
