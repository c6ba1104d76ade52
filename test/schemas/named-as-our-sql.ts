import { withClient } from "../../postgres/client/with-client.ts";
import { shareOf } from "../property-runs.ts";
import { wordsOfSql } from "../sql-texts.ts";
import { normalName } from "./normal-name.ts";
import type { PublicSchema } from "./public-schemas.ts";
import { quoted } from "./rows.ts";

/** Every table has these columns. */
const SYSTEM_COLUMNS = ["tableoid", "xmin", "xmax", "cmin", "cmax", "ctid"];
const TABLES = 16;

/**
 * Tables, columns, functions and types named as the aliases of our SQL, and as the words of it that Postgres reserves. A query that reads the alias
 * where it means the row, or the column where it means the alias, returns something else than SQL.
 */
export const NAMED_AS_OUR_SQL: PublicSchema = {
  title: "A schema whose names are those of our SQL",
  name: "public",
  role: "authenticated",
  load: (ownerUrl) =>
    withClient(ownerUrl, async (client) => {
      const { rows } = await client.query<{ word: string }>(
        "select word from pg_get_keywords() where catcode in ('R', 'T')",
      );
      const { aliases, words } = wordsOfSql();
      const reserved = rows.map(({ word }) => word).filter((word) => words.includes(word));
      const all = [...new Set([...RUNTIME_ALIASES, ...shareOf([...aliases, ...reserved])])]
        .filter((name) => !SYSTEM_COLUMNS.includes(name))
        .sort();
      // The crawler finds the names in GraphQL again by their letters, so a table has each spelling once.
      const spellings = [...Map.groupBy(all, normalName)].filter(([letters]) => letters !== "").map(([, same]) => same);
      const names = [...spellings.map(([first]) => first!), ...spellings.flatMap(([, ...others]) => others)];
      await client.query(statementsFor(names, [...new Set([...RUNTIME_ALIASES, ...names])]).join(";\n"));
    }),
};

/** Aliases whose text is an interpolation in the sources, or quoted there. */
const RUNTIME_ALIASES = ["each", "page", "last", "item", "row", "t", "$images", "$values", "value", "json", "number"];

function statementsFor(columnNames: readonly string[], tableNames: readonly string[]): string[] {
  const size = Math.ceil(columnNames.length / TABLES);
  const step = Math.floor(tableNames.length / TABLES);
  const used = new Set<string>();
  const tables = Array.from({ length: TABLES }, (_, index) => {
    const name = index < RUNTIME_ALIASES.length ? tableNames[index]! : tableNames[index * step]!;
    used.add(name);
    return { name, columns: columnNames.slice(index * size, (index + 1) * size) };
  });
  const kind = columnNames.find((name) => !used.has(name))!;
  return [
    `create type public.${quoted(kind)} as enum ('one', 'two')`,
    ...tables.flatMap(({ name, columns }, index) => {
      const previous = tables[index - 1];
      // A function takes the place of a column or table of its name in GraphQL.
      const others = tables[(index + 1) % TABLES]!.columns.filter((each) => !used.has(each) && each !== kind);
      const definitions = columns.map((column, at) => {
        const type =
          at % 9 === 7 ? `public.${quoted(kind)}` : at % 9 === 6 ? "jsonb" : at % 9 === 5 ? "text[]" : "text";
        return `${quoted(column)} ${type}`;
      });
      // The name of the table, and those that Grafast makes of it.
      const own = [name, `__${name}__`, `__${name}_2`]
        .filter((each) => /^\w+$/.test(name) && !columns.includes(each))
        .map((each) => `${quoted(each)} text`);
      const reference = previous ? [`"previous row" int references public.${quoted(previous.name)}`] : [];
      return [
        `create table public.${quoted(name)} ("key of row" int primary key, ${[...own, ...definitions, ...reference].join(", ")})`,
        ...(index % 4 === 0
          ? [
              `create function public.${quoted(others[0]!)}(public.${quoted(name)}) returns text stable language sql return 'computed'`,
              `create function public.${quoted(others[1]!)}("key" int) returns setof public.${quoted(name)} stable language sql begin atomic select * from public.${quoted(name)} where "key of row" >= $1; end`,
              `create view public.${quoted(`${name} view`)} as select * from public.${quoted(name)}`,
            ]
          : []),
      ];
    }),
  ];
}
